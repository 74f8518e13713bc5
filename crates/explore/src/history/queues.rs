//! Races of operations that several others can come before in any order, or there is no telling for whom they wait: writers after readers,
//! semaphores that others look at, pipes and their like.

use super::{Enabled, Event, History, Race, leaves_room};
use crate::clock::Past;
use symdpor_abi::op::{Access, Op, OpKind, dependent};
use symdpor_trace::{ObjectId, ThreadId, ThreadSet};

/// The bytes that an operation has in common with some accesses, where one of the two writes.
fn meeting(left: &[(ObjectId, u8, Access)], op: &Op) -> Vec<(ObjectId, u8)> {
    let common = |&(object, mask, access): &(ObjectId, u8, Access)| {
        let theirs = op.accesses().filter(|(o, _, a)| *o == object && a.conflicts(access));
        theirs.fold(0, |all, (_, m, _)| all | m) & mask
    };
    left.iter().map(|l| (l.0, common(l))).filter(|(_, mask)| *mask != 0).collect()
}

impl History {
    /// A writer can come before one reader and yet after others that have released the lock meanwhile; what takes from a semaphore before one who
    /// looks at its value, and after another. That begins with these others, not with the operation itself: it may be that the one has been
    /// explored, and the other not.
    pub(super) fn race_after_others(&mut self, thread: ThreadId, op: &Op, candidates: &[u32], races: &mut Vec<Race>) {
        let passes = |e: &Event| match op.kind {
            OpKind::RwWrite => e.op.access() == Some(Access::SharedRelease),
            OpKind::SemWait => e.op.kind == OpKind::SemValue,
            _ => false,
        };
        let is = |event: u32, what: &dyn Fn(&Event) -> bool| self.events.get(event as usize).is_some_and(what);
        let others: Vec<u32> = candidates.iter().copied().filter(|&c| is(c, &passes)).collect();
        if others.is_empty() {
            return;
        }
        let left_room = candidates.iter().copied().filter(|&c| is(c, &|e| leaves_room(&e.op)));
        let earlier: Vec<u32> = self.objects.acquisitions(op).chain(left_room).collect();
        let mut before = Past::default();
        before.become_like(&self.past);
        for event in earlier {
            let beside = |&other: &u32| other != event && !self.is_before(event, other);
            let beside: Vec<u32> = others.iter().copied().filter(beside).collect();
            beside.into_iter().for_each(|other| self.join(other));
            self.race_with(thread, event, races);
            self.past.become_like(&before);
        }
    }

    /// What has taken from a semaphore without waiting takes what the one before it took, if it comes instead of it: then it does not need the
    /// post that came in between.
    pub(super) fn race_before_take(
        &mut self,
        thread: ThreadId,
        op: &Op,
        candidates: &mut Vec<u32>,
        races: &mut Vec<Race>,
    ) {
        let post = self.objects.post(op.object, op.arg);
        let Some(at) = candidates.iter().position(|&c| c == post) else { return };
        let is_take = |&event: &u32| matches!(self.events[event as usize].op.kind, OpKind::SemTaken | OpKind::SemWait);
        let Some(take) = candidates[at..].iter().copied().find(is_take) else { return };
        for &later in &candidates[..at] {
            self.race_with(thread, later, races);
            self.join(later);
        }
        self.race_with(thread, post, races);
        self.race_with(thread, take, races);
        self.join(post);
        self.join(take);
        candidates.drain(..=at);
    }

    /// Whether an event happens before another one, which is later.
    fn is_before(&self, earlier: u32, later: u32) -> bool {
        let (of, event) = (self.events[earlier as usize].thread, &self.events[later as usize]);
        event.thread == of || self.clocks.get(event.clock).get(of.index()).is_some_and(|known| *known > earlier)
    }

    /// An event before which the thread stood at this operation and could not go on has let it go on, or kept others from it:
    /// the operation could not have preceded that one, but perhaps one before it on the same queue. So the candidate is, for
    /// each queue, the last event before which the thread was not blocked there; all earlier ones happen before that.
    pub(super) fn race_before_enabling(
        &mut self,
        thread: ThreadId,
        op: &Op,
        enabled: &Enabled<'_>,
        races: &mut Vec<Race>,
    ) {
        let own = self.events_of(thread).last().map_or(0, |&e| e + 1);
        let mut left: Vec<_> = op.accesses().collect();
        for position in (0..self.events.len() as u32).rev() {
            let event = &self.events[position as usize];
            if event.thread == thread || !dependent(&event.op, op) || self.past.covers(position, event.thread) {
                continue;
            }
            if position >= own && !enabled(position as usize, thread) {
                continue;
            }
            let met = meeting(&left, &event.op);
            if met.is_empty() {
                continue;
            }
            let changes = event.op.accesses().any(|(_, _, access)| access != Access::Read);
            self.race_with(thread, position, races);
            if changes {
                for (object, mask) in met {
                    left.iter_mut().filter(|l| l.0 == object).for_each(|l| l.1 &= !mask);
                }
            }
            if left.iter().all(|l| l.1 == 0) {
                break;
            }
        }
    }

    /// A race with an event that came between the operation and what let it go on: whoever did that can go first. If nobody did, and
    /// the thread was blocked, the event itself has let it go on.
    pub(super) fn race_unless_blocked(
        &self,
        thread: ThreadId,
        earlier: u32,
        enabled: &Enabled<'_>,
        races: &mut Vec<Race>,
    ) {
        let is_next = self.first_event_after(thread, earlier).is_none();
        let before = races.len();
        self.race_with(thread, earlier, races);
        let own = ThreadSet::from_iter([thread]);
        if is_next && !enabled(earlier as usize, thread) && races[before..].iter().all(|r| r.initials == own) {
            races.truncate(before);
        }
    }
}
