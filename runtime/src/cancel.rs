//! Cancellation: a thread that shall be cancelled ends where POSIX lets it.
//!
//! That a thread shall be cancelled is part of its *life*, an object of the search ([`ObjectId::life`]). Each operation at which
//! it can be cancelled reads that object besides its own; so whether `pthread_cancel` comes before or after it is explored.
//! One that waits can go on once the thread shall be cancelled. What was to be done is not done then: the step is a
//! `CancelPoint`, and the thread unwinds its stack as for `pthread_exit`. If it could be done, that is explored as well: it is up
//! to the system which of the two a thread notices first.
//!
//! A waiter on a condition variable takes its mutex again first. If it has been signalled already, the signal goes to the
//! waiter that has waited longest: it must not be lost.
//!
//! Only in programs that can call `pthread_cancel` ([`uses::cancels`]). Not covered: asynchronous cancellation, which is refused where a
//! thread that has asked for it shall be cancelled, whichever comes first; system calls that libc makes for `<stdio.h>` and others,
//! where POSIX lets a thread be cancelled but does not say that it is.

use crate::end;
use crate::exec;
use crate::sched;
use crate::snapshot::is_taken;
use crate::spin;
use crate::thread::{Joining, Life, Thread};
use crate::threads::number_of;
use crate::unwind;
use crate::uses;
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{NO_THREAD, Op, OpKind};

/// What the join of a cancelled thread gives: PTHREAD_CANCELED.
pub const RESULT: usize = usize::MAX;

const ESRCH: i32 = 3;
const EINVAL: i32 = 22;

/// Of `Thread::cancel`. It shall be cancelled; it does not want to be; it is ending.
const ASKED: u8 = 1;
const DISABLED: u8 = 2;
const ENDING: u8 = 4;
/// It waits for a condition variable, and has been signalled (and not merely woken with all others).
const SIGNALLED: u8 = 8;
/// It is in a function at which it can be cancelled.
const AT_POINT: u8 = 16;
/// It has asked to be cancelled anywhere.
const ANYWHERE: u8 = 32;
/// And be it that it has changed its mind since.
const WAS_ANYWHERE: u8 = 64;

/// Stands for its being asked to, for those who spin: an address of the thread's own that nothing else uses.
fn word(thread: &Thread) -> usize {
    thread.fs + 1
}

/// Whether a thread shall be cancelled, and can be.
pub fn acts(thread: &Thread) -> bool {
    thread.cancel & (ASKED | DISABLED | ENDING) == ASKED
}

/// Whether the running thread could be cancelled by the next operation.
pub fn is_possible() -> bool {
    uses::cancels() && is_taken() && exec::get().section == 0 && exec::me().cancel & (DISABLED | ENDING) == 0
}

/// The operation as one at which the running thread can be cancelled, if it can.
pub fn point(op: Op) -> Op {
    if is_possible() { op.cancellable(exec::get().current) } else { op }
}

/// The same for an operation within a function of libc's that is known to be such a point.
pub fn point_within(op: Op) -> Op {
    if exec::me().cancel & AT_POINT != 0 { point(op) } else { op }
}

/// Does something within which the running thread can be cancelled.
pub fn within<T>(act: impl FnOnce() -> T) -> T {
    if !uses::cancels() {
        return act();
    }
    exec::me().cancel |= AT_POINT;
    let result = act();
    exec::me().cancel &= !AT_POINT;
    result
}

/// Whether an operation of a thread that shall be cancelled may be done all the same, if it can be done: the thread might have
/// looked before. Those who wait for a condition variable look in a step of their own.
pub fn is_undecided(kind: OpKind, thread: &Thread) -> bool {
    let looks_only = matches!(kind, OpKind::CancelPoint | OpKind::CondCancel | OpKind::CondTimeout);
    thread.pending.may_be_cancelled() && !looks_only && acts(thread)
}

/// After such an operation has been chosen: ends the thread if it is cancelled. `way`: 0, or 1 if it shall go on all the same.
pub fn look(way: u16) {
    let is_point = sched::last_step().is_some_and(|step| step.op.may_be_cancelled());
    if is_point && way == 0 && acts(exec::me()) {
        if let Some(step) = sched::last_step() {
            (step.op.kind, step.op.arg) = (OpKind::CancelPoint, 1);
        }
        act();
    }
}

/// Ends the running thread as one that was cancelled.
pub fn act() -> ! {
    // SAFETY: nothing of the runtime's on the stack has to be cleaned up: it is left behind as libc's functions are.
    unsafe { unwind::exit_thread(RESULT) }
}

/// The running thread is ending, one way or another.
pub fn is_ending() {
    exec::me().cancel |= ENDING;
}

/// `pthread_testcancel`, and what other functions do besides. `registers`, if they are known: a thread that comes round to the
/// same point having changed nothing waits until it shall be cancelled.
pub fn test(registers: Option<usize>) {
    if is_possible() {
        if let Some(registers) = registers {
            exec::get().outside &= !1;
            spin::arrive(registers, Some(0), true);
        }
        let way = sched::visible(point(Op::new(OpKind::CancelPoint, ObjectId::NONE)), 0, 0);
        look(way);
        spin::read(word(exec::me()), 1);
    } else if !is_taken() && acts(exec::me()) {
        act();
    }
}

/// One that can be cancelled anywhere can be so between any two instructions.
fn refuse_if_anywhere(thread: &Thread) {
    if thread.cancel & (ASKED | WAS_ANYWHERE) == ASKED | WAS_ANYWHERE {
        end::unsupported(format_args!(
            "the program calls pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS) in a thread that shall be cancelled; only \
             deferred cancellation is supported"
        ));
    }
}

/// `pthread_cancel`.
pub fn ask(handle: usize) -> i32 {
    let Some(number) = number_of(handle) else { return ESRCH };
    if is_taken() {
        if !uses::cancels() {
            end::unsupported(format_args!(
                "the program calls pthread_cancel() through a pointer that it has looked up, which symdpor cannot control"
            ));
        }
        let mut op = Op::new(OpKind::ThreadCancel, ObjectId::life(number));
        (op.object2, op.mask2, op.arg) = (ObjectId::LIVES, 0xff, number as u32);
        sched::visible(op, 0, 0);
        spin::changed();
    }
    let thread = &mut exec::get().threads[number as usize];
    let word = word(thread);
    match thread.joining {
        Joining::Joined => end::misuse("a thread that was joined is cancelled"),
        Joining::Detached if thread.life == Life::Ended => end::misuse("a detached thread that has ended is cancelled"),
        _ => thread.cancel |= ASKED,
    }
    refuse_if_anywhere(thread);
    spin::wrote(word, 1);
    0
}

/// What `pthread_setcancelstate` and `pthread_setcanceltype` tell.
pub fn told(thread: &Thread) -> u8 {
    thread.cancel & (DISABLED | ANYWHERE)
}

/// `pthread_setcancelstate`: 0 enables.
pub fn set_state(state: i32, old: usize) -> i32 {
    set(state, old, DISABLED)
}

/// `pthread_setcanceltype`: 0 is deferred.
pub fn set_type(kind: i32, old: usize) -> i32 {
    let result = set(kind, old, ANYWHERE);
    let me = exec::me();
    if me.cancel & ANYWHERE != 0 {
        me.cancel |= WAS_ANYWHERE;
        refuse_if_anywhere(me);
    }
    result
}

fn set(value: i32, old: usize, bit: u8) -> i32 {
    if !(0..2).contains(&value) {
        return EINVAL;
    }
    let me = exec::me();
    let before = (me.cancel & bit != 0) as i32;
    me.cancel = if value == 1 { me.cancel | bit } else { me.cancel & !bit };
    if old != 0 {
        crate::access::write(old, 4);
        // SAFETY: the program says that there is room for a number.
        unsafe { *(old as *mut i32) = before };
    }
    0
}

/// A waiter on a condition variable has been woken, by a signal or with all others.
pub fn woken(thread: &mut Thread, by_signal: bool) {
    thread.cancel = if by_signal { thread.cancel | SIGNALLED } else { thread.cancel & !SIGNALLED };
}

/// The running thread, which waited for a condition variable, goes on: because it was woken, or because it is cancelled.
/// Returns which, and whether the signal has to be passed on.
pub fn end_of_wait(was_woken: bool) -> (bool, bool) {
    let me = exec::me();
    let cancelled = acts(me);
    let pass_on = cancelled && was_woken && me.cancel & SIGNALLED != 0;
    me.cancel &= !SIGNALLED;
    sched::executed(OpKind::CondCancel);
    sched::values(0, cancelled as u64);
    passed_to(NO_THREAD);
    (cancelled, pass_on)
}

/// The signal has been passed on to another waiter.
pub fn passed_to(thread: u32) {
    if let Some(step) = sched::last_step() {
        step.op.arg = thread;
    }
}
