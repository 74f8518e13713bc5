//! Mutexes. Their state is in the `pthread_mutex_t` itself, in libc's own layout, so that it is restored with the
//! program's memory and a static initialiser is a free mutex.

use crate::access;
use crate::cancel;
use crate::end::misuse;
use crate::exec;
use crate::limits;
use crate::names;
use crate::races;
use crate::robust;
use crate::sched;
use crate::spin;
use crate::stack;
use crate::thread::Thread;
use core::arch::naked_asm;
use symdpor_abi::op::{NO_THREAD, Op, OpKind};

pub const EPERM: i32 = 1;
pub const EBUSY: i32 = 16;
pub const EDEADLK: i32 = 35;

/// The beginning of glibc's `pthread_mutex_t`.
#[repr(C)]
pub struct Mutex {
    locked: u32,
    count: u32,
    /// 1 + number of the owner.
    pub owner: u32,
    /// Site id of where it was taken (libc counts users here).
    since: u32,
    pub kind: i32,
    libc: u32,
    /// Of a robust one that is held: the next that its owner holds.
    pub next: usize,
}

pub const MUTEX_BYTES: usize = 40;
const RECURSIVE: i32 = 1;
const ERROR_CHECKING: i32 = 2;
const TYPE: i32 = 3;
const ROBUST: i32 = 16;
const DESTROYED: i32 = -1;
/// The bits that libc may have set in `kind`, and one of ours: see `robust`.
const KNOWN: i32 = 0x3ff | INCONSISTENT;
pub const INCONSISTENT: i32 = 1 << 20;

#[allow(clippy::mut_from_ref)]
pub fn at(address: usize) -> &'static mut Mutex {
    // SAFETY: the program says that there is a mutex; a wild pointer faults and is reported as the program's crash.
    unsafe { &mut *(address as *mut Mutex) }
}

fn op(kind: OpKind, address: usize) -> Op {
    Op::new(kind, names::object(address))
}

pub fn lock_op(address: usize) -> Op {
    op(OpKind::MutexLock, address)
}

fn mine(mutex: &Mutex) -> bool {
    mutex.owner == exec::get().current as u32 + 1
}

pub fn is_free(address: usize) -> bool {
    at(address).locked == 0
}

pub fn is_mine(address: usize) -> bool {
    at(address).locked != 0 && mine(at(address))
}

/// Who holds what a thread is about to lock, and the site where it was taken.
pub fn holder_of(thread: &Thread) -> (u32, u32) {
    if thread.pending.kind != OpKind::MutexLock || is_free(thread.pending_address) {
        return (NO_THREAD, 0);
    }
    let mutex = at(thread.pending_address);
    (mutex.owner.wrapping_sub(1), mutex.since)
}

fn check(address: usize, what: &str) {
    access::synchronisation_object(address, 4);
    let kind = at(address).kind;
    if kind == DESTROYED {
        misuse(what);
    }
    if kind & !KNOWN != 0 {
        misuse("a mutex that was never initialised is used: there is something else in it");
    }
}

/// Makes the running thread the owner; the mutex is free.
pub fn take(address: usize, count: u32) {
    crate::repeat::mutex(address);
    let mutex = at(address);
    if mutex.kind & ROBUST != 0 && !robust::take(address, mutex) {
        return;
    }
    mutex.locked = 1;
    mutex.count = count;
    mutex.owner = exec::get().current as u32 + 1;
    mutex.since = stack::here_id();
    exec::me().held += 1;
    spin::wrote(address, 4);
    races::acquire(address);
}

/// What locking returns, now that the running thread has taken it.
pub fn taken(address: usize) -> i32 {
    let mutex = at(address);
    if mutex.kind & ROBUST == 0 { 0 } else { robust::result(mutex) }
}

/// Gives it up; returns how often it was held.
pub fn give_up(address: usize) -> u32 {
    let dead = if at(address).kind & ROBUST == 0 { 0 } else { robust::give_up(address, at(address)) };
    races::release(address);
    crate::repeat::mutex(address);
    spin::wrote(address, 4);
    let me = exec::me();
    me.held = me.held.saturating_sub(1);
    let mutex = at(address);
    (mutex.locked, mutex.owner, mutex.since) = (0, dead, 0);
    core::mem::replace(&mut mutex.count, 0)
}

/// A further lock by the owner, where that does not block.
fn relock(address: usize) -> Option<i32> {
    let mutex = at(address);
    if mutex.locked == 0 || !mine(mutex) {
        return None;
    }
    match mutex.kind & TYPE {
        RECURSIVE => {
            mutex.count += 1;
            Some(0)
        }
        _ => None,
    }
}

pub fn lock(address: usize) -> i32 {
    cancel::anywhere();
    check(address, "a destroyed mutex is locked");
    if let Some(result) = relock(address) {
        return result;
    }
    if is_mine(address) && at(address).kind & TYPE == ERROR_CHECKING {
        return EDEADLK;
    }
    if crate::snapshot::is_taken() || !is_free(address) {
        crate::cycle::enter();
        sched::visible(lock_op(address), address, 0);
    }
    take(address, 1);
    taken(address)
}

/// Takes it within a time limit.
pub fn lock_until(address: usize, clock: i32, time: usize, registers: usize) -> i32 {
    crate::init::ensure();
    cancel::anywhere();
    check(address, "a destroyed mutex is locked");
    if let Some(result) = relock(address) {
        return result;
    }
    if is_mine(address) && at(address).kind & TYPE == ERROR_CHECKING {
        return EDEADLK;
    }
    let Some(deadline) = limits::deadline(clock, time) else {
        return if is_free(address) { lock(address) } else { limits::EINVAL };
    };
    limits::begin(registers, deadline);
    match attempt(address, registers) {
        EBUSY => {
            limits::give_up();
            limits::ETIMEDOUT
        }
        result => {
            limits::end();
            result
        }
    }
}

/// `registers`: as for an atomic access, see [`spin::arrive`].
pub extern "C" fn try_lock(address: usize, registers: usize) -> i32 {
    crate::init::ensure();
    cancel::anywhere();
    check(address, "a destroyed mutex is locked");
    if let Some(result) = relock(address) {
        return result;
    }
    attempt(address, registers)
}

fn attempt(address: usize, registers: usize) -> i32 {
    if !crate::snapshot::is_taken() {
        return try_alone(address);
    }
    exec::get().outside &= !1;
    spin::arrive(registers, Some(0), true);
    sched::visible(op(OpKind::TryLock, address), address, 0);
    if is_free(address) {
        take(address, 1);
        sched::executed(OpKind::MutexLock);
        sched::tried();
        taken(address)
    } else {
        sched::executed(OpKind::TryLockFailed);
        spin::read(address, 4);
        EBUSY
    }
}

/// Before there are other threads.
fn try_alone(address: usize) -> i32 {
    if !is_free(address) {
        return EBUSY;
    }
    take(address, 1);
    taken(address)
}

pub fn unlock(address: usize) -> i32 {
    cancel::anywhere();
    check(address, "a destroyed mutex is unlocked");
    let mutex = at(address);
    let checks = matches!(mutex.kind & TYPE, RECURSIVE | ERROR_CHECKING) || mutex.kind & ROBUST != 0;
    if mutex.locked == 0 || !mine(mutex) {
        if checks {
            return EPERM;
        }
        if mutex.locked == 0 {
            misuse("a mutex that is not locked is unlocked");
        }
        misuse("a mutex that another thread holds is unlocked");
    }
    if mutex.count > 1 {
        mutex.count -= 1;
        return 0;
    }
    if crate::snapshot::is_taken() {
        sched::visible(op(OpKind::MutexUnlock, address), address, 0);
    }
    give_up(address);
    0
}

/// `kind`: the bits of a `pthread_mutexattr_t`.
pub fn init(address: usize, kind: i32) -> i32 {
    access::write(address, MUTEX_BYTES);
    // SAFETY: the program says that there is room for a mutex.
    unsafe { core::ptr::write_bytes(address as *mut u8, 0, MUTEX_BYTES) };
    at(address).kind = kind;
    0
}

pub fn destroy(address: usize) -> i32 {
    check(address, "a destroyed mutex is destroyed again");
    if at(address).locked != 0 {
        misuse("a locked mutex is destroyed");
    }
    access::write(address, MUTEX_BYTES);
    at(address).kind = DESTROYED;
    0
}

/// `pthread_mutex_trylock` with the caller's registers where they can be looked at.
#[unsafe(naked)]
pub unsafe extern "C" fn try_lock_shim(_address: usize) -> i32 {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov rsi, rsp",
        "sub rsp, 8",
        "call {try_lock}",
        // It failed: what the runtime left on the stack is wiped.
        "test eax, eax",
        "jz 2f",
        "mov edx, eax",
        "lea rdi, [rsp - {wiped}]",
        "mov ecx, {wiped} / 8",
        "xor eax, eax",
        "rep stosq",
        "mov eax, edx",
        "2:",
        "add rsp, 56",
        "ret",
        try_lock = sym try_lock,
        wiped = const spin::WIPED,
    )
}
