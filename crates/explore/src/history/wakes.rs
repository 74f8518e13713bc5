//! Who has created and woken whom: what a thread does next comes after that.

use super::{History, named_thread, named_threads};
use crate::objects::NONE;
use symdpor_abi::op::{Op, OpKind};
use symdpor_trace::ThreadId;

/// Whether a thread that has done this waits at a barrier.
fn waits_at_barrier(op: &Op) -> bool {
    matches!(op.kind, OpKind::BarrierArrive | OpKind::BarrierMeet) && !op.opens_barrier()
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
            (OpKind::CondBroadcast, _) => self.wake_all(|waiter| waiter.kind == OpKind::CondWait, op, position),
            (OpKind::FutexWakeAll, _) => self.wake_all(|waiter| waiter.kind == OpKind::FutexWait, op, position),
            (OpKind::BarrierArrive | OpKind::BarrierMeet, _) if op.opens_barrier() => {
                self.wake_all(waits_at_barrier, op, position);
            }
            _ => {}
        }
    }

    fn wake_one(&mut self, waiter: ThreadId, position: u32) {
        let state = self.thread(waiter);
        if state.woken_by == NONE {
            state.woken_by = position;
        }
    }

    /// Wakes all who wait on the same object. Who came last to a barrier does not wait there.
    fn wake_all(&mut self, waits: impl Fn(&Op) -> bool, by: &Op, position: u32) {
        for thread in &mut self.threads {
            let last = thread.events.last().and_then(|&e| self.events.get(e as usize));
            if last.is_some_and(|e| waits(&e.op) && e.op.object == by.object) && thread.woken_by == NONE {
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
                | OpKind::BarrierMeet
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
