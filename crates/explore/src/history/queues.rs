//! Races of operations that wait for more than one other, or there is no telling for whom: writers for readers, and whoever waits for a
//! pipe or its like.

use super::{Enabled, Event, History, Race};
use crate::clock::Past;
use symdpor_abi::op::{Access, Op, dependent};
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
    /// A writer can come before one reader and yet after others that have released the lock meanwhile. That begins with these, not with
    /// the writer: it may be that the one has been explored, and the other not.
    pub(super) fn race_after_other_readers(
        &mut self,
        thread: ThreadId,
        op: &Op,
        candidates: &[u32],
        races: &mut Vec<Race>,
    ) {
        let mut before = Past::default();
        before.become_like(&self.past);
        let readers: Vec<u32> = self.objects.acquisitions(op).collect();
        for reader in readers {
            for &release in candidates {
                let releases = |e: &Event| e.op.access() == Some(Access::SharedRelease);
                if self.events.get(release as usize).is_some_and(releases) && !self.is_before(reader, release) {
                    self.join(release);
                }
            }
            self.race_with(thread, reader, races);
            self.past.become_like(&before);
        }
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
