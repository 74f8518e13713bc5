//! `pthread_spinlock_t`: a word with 1 + the number of the owner. Who finds it taken waits as for a mutex, so that what would
//! spin for ever is a deadlock.

use crate::access;
use crate::end::misuse;
use crate::exec;
use crate::mutex::{EBUSY, is_free};
use crate::names;
use crate::races;
use crate::sched;
use crate::snapshot;
use crate::spin;
use symdpor_abi::op::{NO_THREAD, Op, OpKind};

const DESTROYED: u32 = 0xdead_5b17;

#[allow(clippy::mut_from_ref)]
fn at(address: usize) -> &'static mut u32 {
    // SAFETY: the program says that there is a lock; a wild pointer faults and is reported as the program's crash.
    unsafe { &mut *(address as *mut u32) }
}

/// There may be another lock beside it.
fn op(kind: OpKind, address: usize) -> Op {
    let mut op = Op::new(kind, names::object(address));
    op.mask = names::mask(address, 4);
    op
}

fn me() -> u32 {
    exec::get().current as u32 + 1
}

pub fn holder_of(address: usize) -> (u32, u32) {
    match *at(address) {
        0 | DESTROYED => (NO_THREAD, 0),
        owner => (owner - 1, 0),
    }
}

fn check(address: usize, what: &str) {
    access::synchronisation_object(address, 4);
    if *at(address) == DESTROYED {
        misuse(what);
    }
}

fn take(address: usize) {
    *at(address) = me();
    exec::me().held += 1;
    spin::wrote(address, 4);
    races::acquire(address);
}

pub fn lock(address: usize) -> i32 {
    check(address, "a destroyed spin lock is locked");
    if snapshot::is_taken() || !is_free(address) {
        crate::cycle::enter();
        sched::visible(op(OpKind::MutexLock, address), address, 0);
    }
    take(address);
    0
}

/// `registers`: as for an atomic access, see [`spin::arrive`].
pub extern "C" fn try_lock(address: usize, registers: usize) -> i32 {
    crate::init::ensure();
    check(address, "a destroyed spin lock is locked");
    if snapshot::is_taken() {
        exec::get().outside &= !1;
        spin::arrive(registers, Some(0), true);
        sched::visible(op(OpKind::TryLock, address), address, 0);
        sched::executed(if is_free(address) { OpKind::MutexLock } else { OpKind::TryLockFailed });
    }
    if !is_free(address) {
        spin::read(address, 4);
        return EBUSY;
    }
    take(address);
    if snapshot::is_taken() {
        sched::tried();
    }
    0
}

pub fn unlock(address: usize) -> i32 {
    check(address, "a destroyed spin lock is unlocked");
    if *at(address) != me() {
        misuse("a spin lock that the thread does not hold is unlocked");
    }
    if snapshot::is_taken() {
        sched::visible(op(OpKind::MutexUnlock, address), address, 0);
    }
    races::release(address);
    *at(address) = 0;
    let me = exec::me();
    me.held = me.held.saturating_sub(1);
    spin::wrote(address, 4);
    0
}

pub fn init(address: usize) -> i32 {
    access::write(address, 4);
    *at(address) = 0;
    0
}

pub fn destroy(address: usize) -> i32 {
    check(address, "a destroyed spin lock is destroyed again");
    if *at(address) != 0 {
        misuse("a locked spin lock is destroyed");
    }
    access::write(address, 4);
    *at(address) = DESTROYED;
    0
}
