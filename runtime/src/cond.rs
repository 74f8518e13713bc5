//! Condition variables. Who waits is kept with the threads; the object itself has no state of ours.

use crate::access;
use crate::cancel;
use crate::end::{self, Details};
use crate::exec;
use crate::limits;
use crate::mutex;
use crate::names;
use crate::sched;
use symdpor_abi::channel::ErrorKind;
use symdpor_abi::op::{MAY_BE_CANCELLED, NO_THREAD, Op, OpKind, TIMED};

const COND_BYTES: usize = 48;
/// Where a destroyed one is marked, and with what: libc's words are otherwise not used, and initialisers zero them.
const MARK_OFFSET: usize = 40;
const DESTROYED: u32 = 0xdead_c04d;

/// Which clock time limits are on: `pthread_condattr_setclock`.
const CLOCK_OFFSET: usize = 44;

fn mark(address: usize) -> &'static mut u32 {
    word(address, MARK_OFFSET)
}

#[allow(clippy::mut_from_ref)]
fn word(address: usize, offset: usize) -> &'static mut u32 {
    // SAFETY: the program says that there is a condition variable; a wild pointer faults as the program's crash.
    unsafe { &mut *((address + offset) as *mut u32) }
}

fn check(address: usize, what: &str) {
    access::synchronisation_object(address, 4);
    if *mark(address) == DESTROYED {
        misuse(what);
    }
}

fn op(kind: OpKind, address: usize) -> Op {
    Op::new(kind, names::object(address))
}

/// Waking depends on whether waiters shall be cancelled, in programs that cancel.
fn waking(kind: OpKind, address: usize) -> Op {
    let op = op(kind, address);
    if crate::uses::cancels() { op.wakes_cancellable() } else { op }
}

fn misuse(message: &str) -> ! {
    end::error(ErrorKind::LockMisuse, &Details::at(0), format_args!("{message}"))
}

/// How many threads wait.
pub fn waiters(address: usize) -> u16 {
    let exec = exec::get();
    let threads = &exec.threads[..exec.thread_count as usize];
    threads.iter().filter(|t| t.is_alive() && t.waits_for == address).count() as u16
}

/// The waiter that began to wait as the `index`-th of those that wait now.
fn waiter(address: usize, index: u16) -> Option<u16> {
    let exec = exec::get();
    let threads = &exec.threads[..exec.thread_count as usize];
    let waits = |n: &u16| threads[*n as usize].is_alive() && threads[*n as usize].waits_for == address;
    let rank = |n: &u16| {
        let since = threads[*n as usize].waits_since;
        (0..exec.thread_count).filter(waits).filter(|m| threads[*m as usize].waits_since < since).count() as u16
    };
    (0..exec.thread_count).filter(waits).find(|n| rank(n) == index)
}

/// A woken thread is about to lock the mutex again.
fn wake(number: u16, by_signal: bool) {
    let thread = &mut exec::get().threads[number as usize];
    let condition = core::mem::take(&mut thread.waits_for);
    if thread.pending.may_be_cancelled() {
        // It might be cancelled yet.
        cancel::woken(thread, by_signal);
        thread.pending = op(OpKind::CondCancel, condition).cancellable(number);
        return;
    }
    thread.pending = mutex::lock_op(thread.waits_with);
    thread.pending_address = thread.waits_with;
}

/// Gives up the mutex and waits from now on; returns how often the mutex was held.
fn begin(address: usize, with: usize, limit: u32) -> u32 {
    check(address, "a destroyed condition variable is waited for");
    access::synchronisation_object(with, 4);
    if !mutex::is_mine(with) {
        misuse("a condition variable is waited for with a mutex that the thread does not hold");
    }
    crate::cycle::enter();
    let mut wait = op(OpKind::CondWait, address);
    wait.object2 = names::object(with);
    wait.mask2 = 0xff;
    wait.arg = limit | if cancel::is_possible() { MAY_BE_CANCELLED } else { 0 };
    sched::visible(wait, address, 0);
    let count = mutex::give_up(with);
    crate::spin::changed();
    let thread = exec::me();
    thread.waits_for = address;
    thread.waits_with = with;
    thread.waits_since = sched::step_number();
    count
}

pub fn wait(address: usize, with: usize) -> i32 {
    let count = begin(address, with, 0);
    if !cancel::is_possible() {
        sched::block();
        mutex::take(with, count);
        return mutex::taken(with);
    }
    sched::visible(cancel::point(op(OpKind::CondCancel, address)), address, 0);
    let cancelled = leave(address);
    end_wait(with, count, cancelled)
}

/// The running thread goes on after a wait in which it could be cancelled: whether it is.
fn leave(address: usize) -> bool {
    let was_woken = core::mem::take(&mut exec::me().waits_for) == 0;
    let (cancelled, pass_on) = cancel::end_of_wait(was_woken);
    if let Some(other) = waiter(address, 0).filter(|_| pass_on) {
        wake(other, true);
        cancel::passed_to(other as u32);
    }
    cancelled
}

fn end_wait(with: usize, count: u32, cancelled: bool) -> i32 {
    sched::visible(mutex::lock_op(with), with, 0);
    mutex::take(with, count);
    let result = mutex::taken(with);
    if cancelled {
        cancel::act();
    }
    result
}

/// The same, but not for ever. `clock`: that of the condition variable if there is none.
pub fn wait_until(address: usize, with: usize, clock: Option<i32>, time: usize, registers: usize) -> i32 {
    crate::init::ensure();
    let clock = clock.unwrap_or(*word(address, CLOCK_OFFSET) as i32);
    let Some(deadline) = limits::deadline(clock, time) else { return limits::EINVAL };
    let count = begin(address, with, TIMED);
    limits::begin(registers, deadline);
    // Others go first, unless the plan says otherwise.
    exec::me().yields = true;
    let possible = cancel::is_possible();
    sched::visible(cancel::point(op(OpKind::CondTimeout, address)), address, 0);
    if possible && (exec::me().waits_for == 0 || cancel::acts(exec::me())) {
        limits::end();
        let cancelled = leave(address);
        return end_wait(with, count, cancelled);
    }
    let gave_up = sched::last_step().is_some_and(|step| step.op.kind == OpKind::CondTimeout);
    if gave_up {
        exec::me().waits_for = 0;
        limits::give_up();
        sched::visible(mutex::lock_op(with), with, 0);
    } else {
        limits::end();
    }
    mutex::take(with, count);
    match mutex::taken(with) {
        0 if gave_up => limits::ETIMEDOUT,
        error => error,
    }
}

pub fn signal(address: usize) -> i32 {
    check(address, "a destroyed condition variable is signalled");
    if !crate::snapshot::is_taken() {
        return 0;
    }
    let alternative = sched::visible(waking(OpKind::CondSignal, address), address, 0);
    let woken = waiter(address, alternative);
    if let Some(step) = sched::last_step() {
        step.op.arg = woken.map_or(NO_THREAD, |n| n as u32);
    }
    if let Some(number) = woken {
        wake(number, true);
    }
    0
}

pub fn broadcast(address: usize) -> i32 {
    check(address, "a destroyed condition variable is signalled");
    if !crate::snapshot::is_taken() {
        return 0;
    }
    sched::visible(waking(OpKind::CondBroadcast, address), address, 0);
    while let Some(number) = waiter(address, 0) {
        wake(number, false);
    }
    0
}

pub fn init(address: usize, clock: i32) -> i32 {
    access::write(address, COND_BYTES);
    // SAFETY: the program says that there is room for a condition variable.
    unsafe { core::ptr::write_bytes(address as *mut u8, 0, COND_BYTES) };
    *word(address, CLOCK_OFFSET) = clock as u32;
    0
}

pub fn destroy(address: usize) -> i32 {
    check(address, "a destroyed condition variable is destroyed again");
    if waiters(address) > 0 {
        misuse("a condition variable that threads wait for is destroyed");
    }
    access::write(address, COND_BYTES);
    *mark(address) = DESTROYED;
    0
}
