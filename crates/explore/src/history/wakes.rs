//! Who has created and woken whom: what a thread does next comes after that.

use super::{Event, History, named_thread, named_threads};
use crate::objects::NONE;
use symdpor_abi::op::{Op, OpKind};
use symdpor_trace::ThreadId;

/// Whether it is the arrival at a barrier for which all others there have waited.
fn passes(op: &Op) -> bool {
    op.kind == OpKind::BarrierArrive && op.arg != 0
}

impl History {
    /// Notes which threads `op` at `position` has created or woken.
    pub(super) fn wake(&mut self, op: &Op, position: u32) {
        match (op.kind, named_thread(op)) {
            (OpKind::ThreadCreate, Some(child)) => self.thread(child).created_by = position,
            (OpKind::CondSignal | OpKind::CondCancel | OpKind::FutexWake, Some(waiter)) => {
                self.wake_one(waiter, position);
            }
            (OpKind::FutexWakeSet | OpKind::FutexRequeue | OpKind::FutexWakeOp, _) => {
                named_threads(op).for_each(|waiter| self.wake_one(waiter, position));
            }
            (OpKind::CondBroadcast, _) => self.wake_all(OpKind::CondWait, op, position),
            (OpKind::FutexWakeAll, _) => self.wake_all(OpKind::FutexWait, op, position),
            (OpKind::BarrierArrive, _) if passes(op) => self.wake_all(OpKind::BarrierArrive, op, position),
            _ => {}
        }
    }

    fn wake_one(&mut self, waiter: ThreadId, position: u32) {
        let state = self.thread(waiter);
        if state.woken_by == NONE {
            state.woken_by = position;
        }
    }

    /// Wakes all whose last event is of this kind, on the same object. Who came last to a barrier does not wait there.
    fn wake_all(&mut self, kind: OpKind, by: &Op, position: u32) {
        for thread in &mut self.threads {
            let last = thread.events.last().and_then(|&e| self.events.get(e as usize));
            let waits = |e: &Event| e.op.kind == kind && e.op.object == by.object && !passes(&e.op);
            if last.is_some_and(waits) && thread.woken_by == NONE {
                thread.woken_by = position;
            }
        }
    }

    pub(super) fn unwake(&mut self, op: &Op, position: u32) {
        match (op.kind, named_thread(op)) {
            (OpKind::ThreadCreate, Some(child)) => self.thread(child).created_by = NONE,
            (
                OpKind::CondSignal
                | OpKind::CondCancel
                | OpKind::CondBroadcast
                | OpKind::BarrierArrive
                | OpKind::FutexWake
                | OpKind::FutexWakeAll
                | OpKind::FutexWakeSet
                | OpKind::FutexRequeue
                | OpKind::FutexWakeOp,
                _,
            ) => {
                let woken = self.threads.iter_mut().filter(|t| t.woken_by == position);
                woken.for_each(|t| t.woken_by = NONE);
            }
            _ => {}
        }
    }
}
