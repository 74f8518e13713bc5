//! Operations on what lies outside of memory as transitions: files, pipes, sockets and their like.
//!
//! An operation is announced with the objects that it reads and changes; one that would have to wait brings a condition,
//! which the scheduler asks. A thread that has found nothing [`PATIENCE`] times in a row (a poll that timed out, a read that
//! would have blocked, a timer that had to be waited for) is not asked again until another thread has done something or nobody else can go on: else a loop
//! around such a call would have no end.

use super::state;
use crate::cell::Global;
use crate::snapshot::is_taken;
use crate::{cancel, exec, sched};
use symdpor_abi::MAX_THREADS;
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind};
use symdpor_abi::outside::What;

/// How often in a row a thread may find nothing.
const PATIENCE: u8 = 3;

/// The system call under way was trapped: code that is not instrumented may be in the midst of something, which no frame tells of.
static TRAPPED: Global<bool> = Global::new(false);

pub fn trapped(is: bool) {
    *TRAPPED.get() = is;
}

type Test<'a> = &'a dyn Fn() -> bool;

/// An operation of the running thread, on up to two objects.
pub fn op(kind: OpKind, what: What, fd: Option<usize>, first: (ObjectId, u8), second: (ObjectId, u8)) -> Op {
    let mut op = Op::new(kind, first.0);
    op.mask = first.1;
    (op.object2, op.mask2) = second;
    op.arg = what.arg(fd.map(|fd| fd as u32));
    op
}

/// Announces an operation, and waits for the running thread's turn.
pub fn take(op: Op) {
    take_when(op, None);
}

/// The same for one that has to wait until `ready`.
pub fn take_when(op: Op, ready: Option<Test>) {
    if !is_taken() {
        match ready {
            // With nobody else there the wait never ends; the execution that shows it begins here.
            Some(ready) if !ready() => crate::cycle::enter(),
            _ => return,
        }
    }
    let (trapped, me) = (core::mem::take(TRAPPED.get()), exec::me());
    if trapped && op.object == ObjectId::SIGNALS {
        // Its mask, perhaps.
        crate::footprint::identified(sched::current());
    }
    me.midway = trapped || me.parts > 0;
    me.parts = me.parts.saturating_add(1);
    let address = ready.as_ref().map_or(0, |test| test as *const Test as usize);
    let way = sched::visible(cancel::point_within(op), address, 0);
    exec::me().midway = false;
    *copied() = 0;
    cancel::look(way);
    crate::spin::changed();
}

/// Whether the condition at this address holds: that of a thread which is suspended in [`take_when`].
pub fn is_ready(address: usize) -> bool {
    // SAFETY: the announced condition lives on the stack of the thread that waits for it.
    let test = unsafe { &*(address as *const Test) };
    test()
}

/// The running thread's next operation depends on what it has copied of memory, which others may change until then.
pub fn copies(words: impl IntoIterator<Item = u64>) {
    let mut lanes = crate::footprint::Lanes::new();
    words.into_iter().for_each(|word| lanes.add(word));
    *copied() = lanes.finish()[0];
}

fn copied() -> &'static mut u64 {
    &mut exec::get().copied[sched::current() as usize % MAX_THREADS]
}

/// The running thread found nothing: others shall go first. How often it has is part of what it is, and cannot be seen.
pub fn found_nothing() {
    if is_taken() {
        crate::footprint::identified(sched::current());
    }
    let thread = exec::me();
    thread.in_vain = thread.in_vain.saturating_add(1);
    thread.yields = true;
    state().in_vain = sched::step_number();
}

/// The running thread has looked for something. What it found only because time went by up to a timer is nothing that others have
/// done: a loop around a timer that is set again each time would have no end either.
pub fn looked(found_something: bool, waited: bool) {
    if found_something && !waited { found() } else { found_nothing() }
}

/// The running thread found something.
pub fn found() {
    exec::me().in_vain = 0;
}

/// After the step of a thread: if it was not in vain itself, those that have looked in vain may look again.
pub fn settle(number: u16, was_idle: bool) {
    let in_vain = state().in_vain;
    if in_vain == 0 || was_idle || in_vain == sched::step_number() {
        return;
    }
    let exec = exec::get();
    for (other, thread) in exec.threads[..exec.thread_count as usize].iter_mut().enumerate() {
        if other != number as usize {
            thread.in_vain = 0;
        }
    }
}

/// Whether any thread has looked for something in vain in this execution.
pub fn any_in_vain() -> bool {
    state().in_vain != 0
}

/// Whether a thread has looked often enough for something that has not changed.
pub fn is_patient(thread: &crate::thread::Thread) -> bool {
    thread.in_vain >= PATIENCE && is_outside(thread.pending.kind)
}

pub fn is_outside(kind: OpKind) -> bool {
    matches!(kind, OpKind::OutsideLook | OpKind::OutsideTake | OpKind::OutsidePut | OpKind::OutsideChange)
}
