//! Whether what came before a branch relates to it as it does to the branch of the twin.

use crate::history::History;
use crate::symmetry::exchange::Exchange;
use crate::symmetry::order::{Clock, Order, PlaceId, join, op_epoch};
use crate::symmetry::origin::Origin;
use crate::symmetry::past::{Logged, Past};
use crate::symmetry::rule::Rule;
use crate::symmetry::summary::Summary;
use crate::symmetry::tables::{OriginId, Tables};
use symdpor_trace::{Op, ThreadId, ThreadSet};

/// The twin's branch.
pub struct Branch<'a, const W: usize> {
    pub summary: &'a Summary,
    pub tables: &'a Tables<W>,
    /// Where it was explored, and who has moved since then.
    pub since: u32,
    pub moved: &'a ThreadSet,
    pub history: &'a History,
}

impl<const W: usize> Branch<'_, W> {
    /// Whether something is still to come.
    fn is_ahead(&self, thread: ThreadId, origin: &Origin<W>) -> bool {
        origin.last > self.history.number(thread)
    }
}

impl<const W: usize> Past<W> {
    /// Whether no access before the branch relates otherwise to what would happen in it than it does to what happened in
    /// the twin's.
    ///
    /// `first`: who would begin it, and with what. If it is neither of the twins, it goes on in the same state for both.
    pub fn is_alike(&self, branch: &Branch<'_, W>, exchange: &Exchange, first: (ThreadId, &Op), rule: &Rule) -> bool {
        if !rule.plain {
            return true;
        }
        let (twin, thread) = (exchange.one, exchange.other);
        let (known_now, known_then) = match first {
            (actor, op) if actor == thread => {
                let twins = exchange.op(op);
                // What a fence acquires through memory of its own may be something else for the other. All other memory is one.
                let own = exchange.concerns(op.object) || exchange.concerns(op.object2);
                let after = if own { Order::clock_after_fence } else { Order::clock_after };
                (self.least.clock_after(thread, op), after(&self.most, twin, &twins))
            }
            _ => (self.least.clock(thread), self.most.clock(twin)),
        };
        let view = View { past: self, branch, exchange, rule, known_now };
        view.unchanged(twin, &known_then, thread, &view.known_now)
            && view.unchanged(thread, &self.most.clock(thread), twin, &self.least.clock(twin))
            && view.fences_unchanged(twin, thread)
            && view.fences_unchanged(thread, twin)
    }
}

struct View<'a, const W: usize> {
    past: &'a Past<W>,
    branch: &'a Branch<'a, W>,
    exchange: &'a Exchange,
    rule: &'a Rule,
    /// What the skipped thread would know after its first operation.
    known_now: Clock<W>,
}

impl<const W: usize> View<'_, W> {
    /// No access that `before` knows of and `after` does not would race in the branch.
    fn unchanged(&self, before: ThreadId, known: &Clock<W>, after: ThreadId, known_after: &Clock<W>) -> bool {
        let Past { most, least, .. } = self.past;
        let upper = |of| if of == before { u32::MAX } else { most.component(known, of) };
        let lower = |of| if of == after { u32::MAX } else { least.component(known_after, of) };
        self.none_races(upper, lower)
    }

    /// The same for what the next fence of the one acquires, and for what its last one lets it release.
    fn fences_unchanged(&self, before: ThreadId, after: ThreadId) -> bool {
        let Past { most, least, .. } = self.past;
        let (then, now) = (most.fences_of(before), least.fences_of(after));
        let mut acquired = least.clock(after);
        join(&mut acquired, &now.seen);
        [(&then.seen, &acquired), (&then.released, &now.released)].into_iter().all(|(known, known_after)| {
            let nothing = known.iter().all(|epoch| *epoch == 0);
            nothing || self.none_races(|of| most.component(known, of), |of| least.component(known_after, of))
        })
    }

    /// No access between two epochs of its thread would race in the branch.
    fn none_races(&self, upper: impl Fn(ThreadId) -> u32, lower: impl Fn(ThreadId) -> u32) -> bool {
        for (of, log) in self.past.logs() {
            let (upper, lower) = (upper(of), lower(of));
            if upper <= lower {
                continue;
            }
            let start = log.partition_point(|l| l.epoch <= lower);
            if log[start..].iter().take_while(|l| l.epoch <= upper).any(|l| self.would_race(l)) {
                return false;
            }
        }
        true
    }

    fn would_race(&self, logged: &Logged) -> bool {
        // Exchanging twice changes nothing: so the one access is renamed, not all those of the branch.
        let access = self.exchange.access(&logged.access);
        let Branch { summary, tables, .. } = *self.branch;
        if !summary.may_conflict(&access) {
            return false;
        }
        summary.accesses(tables).any(|(by, bundle, origin)| {
            let atomic = bundle.atomic;
            let counts = !(logged.atomic && atomic) && (self.rule.mixed || !logged.atomic && !atomic);
            counts && bundle.conflicts(&access) && self.is_unordered(logged, by, origin)
        })
    }

    /// Whether an access of the branch, by a thread, would not be ordered after the logged one with the threads exchanged.
    fn is_unordered(&self, logged: &Logged, by: ThreadId, origin: OriginId) -> bool {
        let (of, origin) = (logged.access.thread, self.branch.tables.origin(origin));
        if !self.is_unknown(logged, self.exchange.thread(by)) || !self.branch.is_ahead(by, origin) {
            return false;
        }
        let Branch { since, moved, history, .. } = *self.branch;
        let came_before =
            origin.after_from(since, by, moved, history).exchanged(self.exchange.one, self.exchange.other);
        if came_before.contains(of) || came_before.iter().any(|t| self.knows(t, logged)) {
            return false;
        }
        let mut through = origin.via(since, history.number(by));
        !through.any(|via| self.is_released(via.place, logged)) && !self.comes_from_others(logged, origin)
    }

    /// Whether in the twin's branch it knew of an event before this state that comes after the logged access, and did not learn of it
    /// from one of the twins, or the other one knows the access too. Then it knows of it with the threads exchanged: whoever else
    /// knew, be it a thread or an object, does as well.
    ///
    /// All of it is by the order from below, which is one of its own: what is known by it has come by it.
    fn comes_from_others(&self, logged: &Logged, origin: &Origin<W>) -> bool {
        let (least, of) = (&self.past.least, logged.access.thread);
        let Exchange { one, other, .. } = *self.exchange;
        let in_clock = |clock: &Clock<W>, of: ThreadId, epoch: u32| least.component(clock, of) >= epoch;
        let knows =
            |thread: ThreadId, by: ThreadId, epoch: u32| thread == by || in_clock(least.known_by(thread), by, epoch);
        // What a thread has only seen its next fence acquires.
        let has_seen = |thread: ThreadId, by: ThreadId, epoch: u32| in_clock(&least.fences_of(thread).seen, by, epoch);
        let told = |(from, to): (ThreadId, ThreadId), by: ThreadId, epoch: u32| {
            let known = knows(to, of, logged.epoch);
            known || !knows(from, by, epoch) && (!has_seen(from, by, epoch) || has_seen(to, of, logged.epoch))
        };
        let known = origin.counts.iter().enumerate().filter(|(_, count)| **count > 0).any(|(t, count)| {
            let thread = ThreadId(t as u16);
            let events = self.branch.history.events_of(thread);
            let Some(last) = events.len().min(usize::from(*count)).checked_sub(1) else { return false };
            let (position, epoch) = (events[last] as usize, op_epoch(events[last] as usize));
            let follows = if thread == of {
                epoch > logged.epoch
            } else {
                in_clock(&least.clock_before(position), of, logged.epoch)
            };
            follows && told((one, other), thread, epoch) && told((other, one), thread, epoch)
        });
        known && !self.exchange.is_touched_by_others(self.branch.history)
    }

    fn is_released(&self, place: PlaceId, logged: &Logged) -> bool {
        let least = &self.past.least;
        let released = least.released_to(place, |object| self.exchange.object(object));
        released.is_some_and(|c| least.component(c, logged.access.thread) >= logged.epoch)
    }

    fn is_unknown(&self, logged: &Logged, thread: ThreadId) -> bool {
        let third = thread != self.exchange.one && thread != self.exchange.other;
        thread != logged.access.thread && (self.rule.third || !third) && !self.knows(thread, logged)
    }

    fn knows(&self, thread: ThreadId, logged: &Logged) -> bool {
        let of = logged.access.thread;
        let least = &self.past.least;
        let clock = if thread == self.exchange.other { &self.known_now } else { least.known_by(thread) };
        least.component(clock, of) >= logged.epoch
    }
}
