//! Read-write locks. Their state is in the `pthread_rwlock_t` itself; a static initialiser is a free lock.
//!
//! Whoever finds the lock free may take it, so that every order of grants is explored, whichever side the lock prefers. What
//! a preference for writers adds is that a reader must not read again while a writer waits: with the nonrecursive kind that
//! is misuse.

use crate::access;
use crate::end::misuse;
use crate::exec;
use crate::limits::{self, EINVAL, ETIMEDOUT};
use crate::mutex::{EBUSY, EDEADLK};
use crate::names;
use crate::races;
use crate::sched;
use crate::snapshot;
use crate::spin;
use crate::stack;
use symdpor_abi::op::{NO_THREAD, Op, OpKind};

const BYTES: usize = 56;
const DESTROYED: u32 = 0xdead_2106;
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
const NONRECURSIVE: u32 = 2;
const READERS: usize = 16;

/// In the space of libc's. `kind` is where static initialisers have it.
#[repr(C)]
struct RwLock {
    /// 1 + number of the writer.
    writer: u32,
    readers: u32,
    /// Site id of where it was taken last.
    since: u32,
    /// 1 + numbers of the readers, once for each time; if there are more, the others are only counted.
    who: [u16; READERS],
    unused: u32,
    kind: u32,
    mark: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Read,
    Write,
}

#[allow(clippy::mut_from_ref)]
fn at(address: usize) -> &'static mut RwLock {
    // SAFETY: the program says that there is a lock; a wild pointer faults and is reported as the program's crash.
    unsafe { &mut *(address as *mut RwLock) }
}

fn me() -> u32 {
    exec::get().current as u32 + 1
}

impl RwLock {
    fn is_read_by(&self, who: u32) -> bool {
        self.who.contains(&(who as u16))
    }

    /// Whether some readers are not known by their numbers.
    fn is_crowded(&self) -> bool {
        self.readers as usize > self.who.iter().filter(|&&w| w != 0).count()
    }
}

pub fn may_read(address: usize) -> bool {
    at(address).writer == 0
}

pub fn may_write(address: usize) -> bool {
    at(address).writer == 0 && at(address).readers == 0
}

/// One of those who hold it, and where it was taken last.
pub fn holder_of(address: usize) -> (u32, u32) {
    let lock = at(address);
    let reader = lock.who.iter().find(|&&w| w != 0).map_or(0, |&w| w as u32);
    let holder = if lock.writer != 0 { lock.writer } else { reader };
    if holder == 0 { (NO_THREAD, 0) } else { (holder - 1, lock.since) }
}

fn check(address: usize, what: &str) {
    access::synchronisation_object(address, 4);
    let lock = at(address);
    if lock.mark == DESTROYED {
        misuse(what);
    }
    if lock.kind > 3 || lock.writer as usize > symdpor_abi::MAX_THREADS {
        misuse("a read-write lock that was never initialised is used");
    }
}

fn op(kind: OpKind, address: usize) -> Op {
    Op::new(kind, names::object(address))
}

/// Where the clocks of the race detector are: what writers released, what readers released.
fn clocks(address: usize) -> [usize; 2] {
    [address, address + 1]
}

fn take(address: usize, side: Side) {
    let (me, [written, read]) = (me(), clocks(address));
    let lock = at(address);
    races::acquire(written);
    match side {
        Side::Write => {
            lock.writer = me;
            races::acquire(read);
        }
        Side::Read => {
            lock.readers += 1;
            if let Some(free) = lock.who.iter_mut().find(|w| **w == 0) {
                *free = me as u16;
                exec::me().reading.add(address);
            }
        }
    }
    lock.since = stack::here_id();
    exec::me().held += 1;
    spin::wrote(address, 8);
}

fn is_free(address: usize, side: Side) -> bool {
    if side == Side::Read { may_read(address) } else { may_write(address) }
}

/// What makes any attempt to take it end at once.
fn refuses(address: usize, side: Side) -> Option<i32> {
    let lock = at(address);
    if lock.writer == me() {
        return Some(EDEADLK);
    }
    if side == Side::Read && lock.kind & 3 == NONRECURSIVE && lock.is_read_by(me()) {
        misuse("a read-write lock that prefers writers is locked for reading again by the same thread");
    }
    None
}

pub fn lock(address: usize, side: Side) -> i32 {
    check(address, "a destroyed read-write lock is locked");
    if let Some(error) = refuses(address, side) {
        return error;
    }
    if snapshot::is_taken() || !is_free(address, side) {
        crate::cycle::enter();
        let kind = if side == Side::Read { OpKind::RwRead } else { OpKind::RwWrite };
        sched::visible(op(kind, address), address, 0);
    }
    take(address, side);
    0
}

/// Tries to take it. `registers`: as for an atomic access, see [`spin::arrive`].
fn attempt(address: usize, side: Side, registers: usize) -> bool {
    let (pending, taken, failed) = match side {
        Side::Read => (OpKind::RwTryRead, OpKind::RwRead, OpKind::RwReadFailed),
        Side::Write => (OpKind::RwTryWrite, OpKind::RwWrite, OpKind::RwWriteFailed),
    };
    if snapshot::is_taken() {
        exec::get().outside &= !1;
        spin::arrive(registers, Some(0), true);
        sched::visible(op(pending, address), address, 0);
    }
    let free = is_free(address, side);
    if snapshot::is_taken() {
        sched::executed(if free { taken } else { failed });
    }
    if !free {
        spin::read(address, 8);
        return false;
    }
    take(address, side);
    if snapshot::is_taken() {
        sched::tried();
    }
    true
}

pub extern "C" fn try_read(address: usize, registers: usize) -> i32 {
    try_lock(address, Side::Read, registers)
}

pub extern "C" fn try_write(address: usize, registers: usize) -> i32 {
    try_lock(address, Side::Write, registers)
}

fn try_lock(address: usize, side: Side, registers: usize) -> i32 {
    crate::init::ensure();
    check(address, "a destroyed read-write lock is locked");
    if refuses(address, side).is_some() {
        return EBUSY;
    }
    if attempt(address, side, registers) { 0 } else { EBUSY }
}

/// Takes it within a time limit.
pub fn lock_until(address: usize, side: Side, clock: i32, time: usize, registers: usize) -> i32 {
    crate::init::ensure();
    check(address, "a destroyed read-write lock is locked");
    // Unlike that of a mutex, it is looked at even if there is nothing to wait for.
    let Some(deadline) = limits::deadline(clock, time) else { return EINVAL };
    if let Some(error) = refuses(address, side) {
        return error;
    }
    limits::begin(registers, deadline);
    if attempt(address, side, registers) {
        limits::end();
        return 0;
    }
    limits::give_up();
    ETIMEDOUT
}

pub fn unlock(address: usize) -> i32 {
    check(address, "a destroyed read-write lock is unlocked");
    let lock = at(address);
    let writes = lock.writer == me();
    let may_be_mine = lock.is_read_by(me()) || lock.readers > 0 && lock.is_crowded();
    if !writes && !may_be_mine {
        misuse("a read-write lock that the thread does not hold is unlocked");
    }
    if snapshot::is_taken() {
        let kind = if writes { OpKind::RwUnlockWrite } else { OpKind::RwUnlockRead };
        sched::visible(op(kind, address), address, 0);
    }
    give_up(address, writes);
    0
}

fn give_up(address: usize, writes: bool) {
    let [written, read] = clocks(address);
    let who = me();
    let lock = at(address);
    if writes {
        races::release(written);
        lock.writer = 0;
    } else {
        races::release_merge(read);
        lock.readers -= 1;
        if let Some(mine) = lock.who.iter_mut().find(|w| **w == who as u16) {
            *mine = 0;
            exec::me().reading.remove(address);
        }
    }
    let me = exec::me();
    me.held = me.held.saturating_sub(1);
    spin::wrote(address, 8);
}

pub fn init(address: usize, kind: i32) -> i32 {
    access::write(address, BYTES);
    // SAFETY: the program says that there is room for a lock.
    unsafe { core::ptr::write_bytes(address as *mut u8, 0, BYTES) };
    at(address).kind = kind as u32;
    0
}

pub fn destroy(address: usize) -> i32 {
    check(address, "a destroyed read-write lock is destroyed again");
    if !may_write(address) {
        misuse("a locked read-write lock is destroyed");
    }
    access::write(address, BYTES);
    at(address).mark = DESTROYED;
    0
}

const _: () = assert!(size_of::<RwLock>() == BYTES && core::mem::offset_of!(RwLock, kind) == 48);
