//! POSIX semaphores. The value is where libc has it, in the `sem_t` itself.
//!
//! The posts are numbered: a wait takes the oldest that is left, and what that one released. In every interleaving that
//! differs only by when other posts came the wait takes the same one, so it must not be ordered after the others.

use crate::access;
use crate::cancel;
use crate::end::misuse;
use crate::exec;
use crate::limits;
use crate::names;
use crate::races;
use crate::sched;
use crate::snapshot;
use crate::spin;
use crate::syscalls::errno;
use symdpor_abi::op::{Op, OpKind, POSTS, WAITS};

const BYTES: usize = 32;
const DESTROYED: u32 = 0xdead_5e3a;
const MAX_VALUE: u32 = i32::MAX as u32;
/// Clocks of the race detector that one semaphore has. With more posts than that left, the oldest ones share theirs.
const CLOCKS: u32 = 31;

#[repr(C)]
struct Semaphore {
    value: u32,
    libc: [u32; 3],
    posts: u32,
    mark: u32,
}

#[allow(clippy::mut_from_ref)]
fn at(address: usize) -> &'static mut Semaphore {
    // SAFETY: the program says that there is a semaphore; a wild pointer faults and is reported as the program's crash.
    unsafe { &mut *(address as *mut Semaphore) }
}

pub fn may_take(address: usize) -> bool {
    at(address).value > 0
}

fn check(address: usize, what: &str) {
    access::synchronisation_object(address, 4);
    if at(address).mark == DESTROYED {
        misuse(what);
    }
}

fn op(kind: OpKind, address: usize, mask: u8) -> Op {
    let mut op = Op::new(kind, names::object(address));
    op.mask = mask;
    op
}

fn clock_of(address: usize, post: u32) -> usize {
    address + (post % CLOCKS) as usize
}

/// Takes one; what the value was.
fn take(address: usize) {
    let semaphore = at(address);
    let value = semaphore.value;
    if let Some(before) = (semaphore.posts + 1).checked_sub(value).filter(|&p| p > 0) {
        races::acquire(clock_of(address, before));
    }
    semaphore.value -= 1;
    spin::wrote(address, 4);
    if snapshot::is_taken()
        && let Some(step) = sched::last_step()
    {
        step.op.arg = value;
        if !step.op.may_be_cancelled() {
            step.op.mask = WAITS;
        }
        sched::values(value as u64, value as u64 - 1);
    }
}

pub fn wait(address: usize) -> i32 {
    cancel::anywhere();
    check(address, "a destroyed semaphore is waited for");
    if snapshot::is_taken() || !may_take(address) {
        crate::cycle::enter();
        let mask = if cancel::is_possible() { 0xff } else { WAITS };
        let way = sched::visible(cancel::point(op(OpKind::SemWait, address, mask)), address, 0);
        cancel::look(way);
    }
    take(address);
    0
}

fn attempt(address: usize, registers: usize, limited: bool) -> bool {
    if snapshot::is_taken() {
        exec::get().outside &= !1;
        spin::arrive(registers, Some(0), true);
        let op = op(OpKind::SemTry, address, 0xff);
        let way = sched::visible(if limited { cancel::point(op) } else { op }, address, 0);
        cancel::look(way);
        sched::executed(if may_take(address) { OpKind::SemTaken } else { OpKind::SemTryFailed });
    }
    if !may_take(address) {
        spin::read(address, 4);
        return false;
    }
    take(address);
    true
}

pub extern "C" fn try_wait(address: usize, registers: usize) -> i32 {
    crate::init::ensure();
    check(address, "a destroyed semaphore is waited for");
    if attempt(address, registers, false) { 0 } else { errno::result(errno::EAGAIN) }
}

/// Takes one within a time limit.
pub fn wait_until(address: usize, clock: i32, time: usize, registers: usize) -> i32 {
    crate::init::ensure();
    check(address, "a destroyed semaphore is waited for");
    let Some(deadline) = limits::deadline(clock, time) else {
        return if may_take(address) { wait(address) } else { errno::result(errno::EINVAL) };
    };
    limits::begin(registers, deadline);
    if attempt(address, registers, true) {
        limits::end();
        return 0;
    }
    limits::give_up();
    errno::result(-(limits::ETIMEDOUT as isize))
}

pub fn post(address: usize) -> i32 {
    cancel::anywhere();
    const EOVERFLOW: isize = -75;
    check(address, "a destroyed semaphore is posted");
    if snapshot::is_taken() {
        sched::visible(op(OpKind::SemPost, address, POSTS), address, 0);
    }
    let semaphore = at(address);
    if semaphore.value == MAX_VALUE {
        return errno::result(EOVERFLOW);
    }
    semaphore.posts = semaphore.posts.wrapping_add(1);
    let clock = clock_of(address, semaphore.posts);
    if semaphore.value < CLOCKS {
        races::release(clock)
    } else {
        races::release_merge(clock)
    }
    semaphore.value += 1;
    spin::wrote(address, 4);
    if snapshot::is_taken() {
        sched::values(semaphore.value as u64 - 1, semaphore.value as u64);
    }
    0
}

/// The value, which is 0 if threads wait.
pub fn value(address: usize, out: usize) -> i32 {
    check(address, "a destroyed semaphore is asked for its value");
    if snapshot::is_taken() {
        sched::visible(op(OpKind::SemValue, address, 0xff), address, 0);
    }
    let value = at(address).value;
    if snapshot::is_taken() {
        if let Some(step) = sched::last_step() {
            step.op.arg = value;
        }
        spin::read(address, 4);
    }
    access::write(out, 4);
    // SAFETY: the program's own pointer; a wild one faults as the program's crash.
    unsafe { *(out as *mut i32) = value as i32 };
    0
}

pub fn init(address: usize, value: u32) -> i32 {
    if value > MAX_VALUE {
        return errno::result(errno::EINVAL);
    }
    access::write(address, BYTES);
    // SAFETY: the program says that there is room for a semaphore.
    unsafe { core::ptr::write_bytes(address as *mut u8, 0, BYTES) };
    at(address).value = value;
    0
}

pub fn destroy(address: usize) -> i32 {
    check(address, "a destroyed semaphore is destroyed again");
    let exec = exec::get();
    let waits = |n: &u16| {
        let thread = &exec.threads[*n as usize];
        let waits = matches!(thread.pending.kind, OpKind::SemWait) && thread.pending_address == address;
        thread.is_alive() && exec.pending.contains(*n) && waits
    };
    if !may_take(address) && (0..exec.thread_count).any(|n| waits(&n)) {
        misuse("a semaphore that threads wait for is destroyed");
    }
    access::write(address, BYTES);
    at(address).mark = DESTROYED;
    0
}
