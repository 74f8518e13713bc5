//! The state in which a branch is left out, and what would be known in that branch of what came before.
//!
//! The branch would be the twin's with the threads exchanged, but only from this state on: what came before is what it is. So
//! an operation of it comes after the threads, exchanged, that had gone on from here before it in the twin's branch, and knows
//! what these know *here*. Exchanging what was known in the twin's branch claims an order that does not hold.

use crate::history::History;
use crate::symmetry::Skip;
use crate::symmetry::exchange::Exchange;
use crate::symmetry::order::after_epoch;
use crate::symmetry::origin::{Acquired, After, Counts, FARTHEST, Origin, Via, short};
use crate::symmetry::past::Past;
use crate::symmetry::tables::{OriginId, Tables};
use symdpor_trace::{Op, ThreadId, ThreadSet};

/// Which order is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    Dependence,
    Races,
}

fn raise<const W: usize>(after: &mut After<W>, known: &After<W>) {
    after.iter_mut().zip(known).for_each(|(mine, known)| *mine = (*mine).max(*known));
}

/// What is worked out for a state on demand. Kept to be used again for the next one.
pub struct Notes<const W: usize> {
    /// What each thread knows here, by both orders. It is the same as long as the history is.
    known: Vec<Option<[After<W>; 2]>>,
    changes: u64,
    /// The same of the first one, once it has begun.
    begun: Option<[After<W>; 2]>,
    /// By both orders, what each of the two knows, and all that each has done itself.
    twins: [Option<Twins<W>>; 2],
    /// By the number of an origin, what it becomes for a thread and an order, and in which state.
    exchanged: Vec<Option<Exchanged>>,
    /// The number of the state.
    state: u64,
}

#[derive(Clone, Copy)]
struct Exchanged {
    state: u64,
    thread: ThreadId,
    by: By,
    origin: OriginId,
}

#[derive(Clone, Copy)]
struct Twins<const W: usize> {
    known: [After<W>; 2],
    /// The same, for what each has done itself.
    with_own: [After<W>; 2],
    /// What each has only seen, and what it knows once its next fence has acquired that.
    seen: [After<W>; 2],
    with_seen: [After<W>; 2],
}

impl<const W: usize> Default for Notes<W> {
    fn default() -> Self {
        Notes { known: Vec::new(), changes: 0, begun: None, twins: [None; 2], exchanged: Vec::new(), state: 0 }
    }
}

impl<const W: usize> Notes<W> {
    fn begin(&mut self, history: &History) {
        self.state += 1;
        if self.changes != history.changes() {
            self.known.clear();
            self.changes = history.changes();
        }
        (self.begun, self.twins) = (None, [None; 2]);
    }

    /// Numbers mean something else now.
    pub fn forget(&mut self) {
        self.exchanged.clear();
    }
}

pub struct LeftOut<'a, const W: usize> {
    pub exchange: &'a Exchange,
    /// What the branch would begin with, and who would do it.
    first: (ThreadId, Op),
    /// Where the twin was explored, and who has moved since then.
    since: u32,
    moved: ThreadSet,
    /// Here.
    position: u32,
    /// How many threads there are, of those that can be known of, and how many events each has had; as many as fit.
    threads: usize,
    numbers: Counts<W>,
    past: &'a mut Past<W>,
    history: &'a mut History,
    notes: &'a mut Notes<W>,
    own_touched: Option<bool>,
}

impl<'a, const W: usize> LeftOut<'a, W> {
    pub fn new(skip: &'a Skip, past: &'a mut Past<W>, history: &'a mut History, notes: &'a mut Notes<W>) -> Self {
        let Skip { exchange, since, actor, op, .. } = skip;
        let (since, first) = (*since, (*actor, *op));
        let moved = history.moved_since(since);
        let position = history.len() as u32;
        let threads = history.threads().min(W);
        let mut numbers = [0; W];
        for (t, number) in numbers.iter_mut().enumerate().take(threads) {
            *number = history.number(ThreadId(t as u16)).min(u8::MAX.into()) as u8;
        }
        notes.begin(history);
        LeftOut {
            exchange,
            first,
            since: since as u32,
            moved,
            position,
            threads,
            numbers,
            past,
            history,
            notes,
            own_touched: None,
        }
    }

    /// Whether something of the twin's branch is still to come.
    pub fn is_ahead(&self, thread: ThreadId, origin: &Origin<W>) -> bool {
        origin.last > self.history.number(thread)
    }

    #[inline(always)]
    fn known(&mut self, thread: ThreadId, by: By) -> &After<W> {
        let (first, op) = &self.first;
        if thread != *first {
            return &self.known_before(thread)[by as usize];
        }
        let begin = || self.past.known_by(thread, Some(op), self.history);
        &self.notes.begun.get_or_insert_with(begin)[by as usize]
    }

    /// What a thread knows before its next operation.
    #[inline]
    fn known_before(&mut self, thread: ThreadId) -> &[After<W>; 2] {
        let (at, known) = (thread.index(), &mut self.notes.known);
        if known.len() <= at {
            known.resize(at + 1, None);
        }
        known[at].get_or_insert_with(|| self.past.known_by(thread, None, self.history))
    }

    /// The origin in the branch that is left out of what `thread` did in the twin's.
    pub fn exchanged(&mut self, thread: ThreadId, origin: OriginId, by: By, tables: &mut Tables<W>) -> OriginId {
        let (at, state) = (origin.index(), self.notes.state);
        if let Some(Some(done)) = self.notes.exchanged.get(at)
            && (done.state, done.thread, done.by) == (state, thread, by)
        {
            return done.origin;
        }
        let exchanged = self.exchange(thread, tables.origin(origin), by);
        let exchanged = tables.add_origin(exchanged);
        if self.notes.exchanged.len() <= at {
            self.notes.exchanged.resize(at + 1, None);
        }
        self.notes.exchanged[at] = Some(Exchanged { state, thread, by, origin: exchanged });
        exchanged
    }

    fn exchange(&mut self, thread: ThreadId, origin: &Origin<W>, by: By) -> Origin<W> {
        let doer = self.exchange.thread(thread);
        let gone_on = self.gone_on(thread, origin);
        let mut after = *self.known(doer, by);
        for t in (0..self.threads).filter(|t| gone_on[*t]) {
            raise(&mut after, self.known(ThreadId(t as u16), by));
        }
        if !self.is_own_touched() {
            self.keep(&mut after, origin, by);
        }
        let acquired = self.acquire(&mut after, thread, origin);
        let counts = self.counts(&mut after, origin, (doer, &gone_on));
        let numbers = (self.history.number(doer), self.history.number(thread));
        origin.moved((after, counts), numbers, &acquired)
    }

    /// Those who have gone on from here before it in the branch that is left out, `thread` itself not among them.
    #[inline(always)]
    fn gone_on(&self, thread: ThreadId, origin: &Origin<W>) -> [bool; W] {
        let mut gone_on = origin.after.map(|after| after > short(self.since));
        _ = gone_on.get_mut(thread.index()).map(|own| *own = false);
        if !self.moved.is_empty() {
            for (t, gone_on) in gone_on.iter_mut().enumerate().take(self.threads).filter(|(_, gone_on)| **gone_on) {
                let t = ThreadId(t as u16);
                *gone_on = !self.moved.contains(t) || origin.is_after(t, self.history.number(t));
            }
        }
        self.exchange_lanes(&mut gone_on, false);
        gone_on
    }

    /// Exchanges what is known of the twins. Of one that has no place nothing is known, nor then of the other.
    #[inline(always)]
    fn exchange_lanes<T: Copy>(&self, known: &mut [T; W], nothing: T) {
        let (one, other) = (self.exchange.one.index(), self.exchange.other.index());
        if one < W && other < W {
            known.swap(one, other);
        } else {
            [one, other].into_iter().for_each(|twin| _ = known.get_mut(twin).map(|known| *known = nothing));
        }
    }

    /// How many events of each thread are known of. Those that have gone on are known of up to here, and as far beyond as their
    /// counterparts were in the twin's branch.
    #[inline(always)]
    fn counts(&self, after: &mut After<W>, origin: &Origin<W>, (doer, gone_on): (ThreadId, &[bool; W])) -> Counts<W> {
        let mut beyond = origin.counts;
        beyond.iter_mut().zip(&self.numbers).for_each(|(known, number)| *known = known.saturating_sub(*number));
        self.exchange_lanes(&mut beyond, 0);
        let here = short(self.position + 1);
        let mut counts = [0; W];
        for t in 0..self.threads {
            if gone_on[t] || t == doer.index() {
                after[t] = here;
                counts[t] = self.numbers[t].saturating_add(beyond[t]);
            } else {
                counts[t] = self.past.number_before(ThreadId(t as u16), after[t] as usize);
            }
        }
        counts
    }

    /// Adds what has been released by now to the objects that are acquired in the other branch. Returns what is acquired there.
    ///
    /// In the twin's branch another may have released it: there it is what the twin knew of the other, and here the other way round.
    fn acquire(&self, after: &mut After<W>, thread: ThreadId, origin: &Origin<W>) -> Acquired {
        let (exchange, order) = (self.exchange, &self.past.least);
        let (now, then) = (self.history.number(exchange.thread(thread)), self.history.number(thread));
        let mut acquired = Acquired::default();
        for via in origin.via(self.since, then) {
            if let Some(released) = order.released_to(via.place, |object| exchange.object(object)) {
                raise(after, &released.map(|epoch| short(after_epoch(epoch))));
            }
            // What was acquired from memory of its own was released elsewhere.
            let object = order.object(via.place);
            if !exchange.concerns(object) || exchange.object(object) == object {
                let number = i32::from(via.number) - i32::from(short(then)) + i32::from(short(now));
                acquired.add(Via { number: number.min(FARTHEST.into()) as i16, ..via });
            }
        }
        acquired
    }

    /// Adds what is known of what came before in the twin's branch, and in the other one too.
    ///
    /// It came through an object or a thread that is neither of the two: then it does there as well. Or it came from one of the two,
    /// which knew it: then what counts is what the other one knows.
    #[inline(always)]
    fn keep(&mut self, after: &mut After<W>, origin: &Origin<W>, by: By) {
        let known_before = self.known_of_before(origin);
        let Twins { known, with_own, seen, with_seen } = self.twins(by);
        // Without branches, so that several threads are done at once: what did not come from a twin is no bound.
        let bound = |known: i16, is_free: bool| known | -i16::from(is_free) & FARTHEST;
        for t in 0..W {
            let before = known_before[t];
            let from = |twin: usize| {
                let (own, seen) = (with_own[twin][t], seen[twin][t]);
                bound(known[1 - twin][t], before > own).min(bound(with_seen[1 - twin][t], before > seen))
            };
            after[t] = after[t].max(before.min(from(0)).min(from(1)));
        }
    }

    /// What is known in the twin's branch of what came before this state. Where threads have moved since that was explored, as many of
    /// their events are known as were there.
    #[inline(always)]
    fn known_of_before(&self, origin: &Origin<W>) -> After<W> {
        let since = short(self.since);
        let mut before = origin.after.map(|after| after.min(since));
        for t in self.moved.iter().filter(|t| t.index() < W) {
            let events = self.history.events_of(t);
            let known = usize::from(origin.counts[t.index()]).min(events.len());
            if let Some(last) = known.checked_sub(1) {
                before[t.index()] = before[t.index()].max(short(events[last] + 1));
            }
        }
        before
    }

    fn twins(&mut self, by: By) -> &Twins<W> {
        if self.notes.twins[by as usize].is_none() {
            self.notes.twins[by as usize] = Some(self.what_twins_know(by));
        }
        self.notes.twins[by as usize].as_ref().expect("it has just been worked out")
    }

    fn what_twins_know(&mut self, by: By) -> Twins<W> {
        let twins = [self.exchange.one, self.exchange.other];
        let known = twins.map(|twin| *self.known(twin, by));
        // What comes from the other one in the twin's branch it has known before its own next operation.
        let mut with_own = known;
        if self.exchange.other == self.first.0 {
            with_own[1] = self.known_before(self.first.0)[by as usize];
        }
        let (mut seen, mut with_seen) = ([[0; W]; 2], known);
        for (i, twin) in twins.into_iter().enumerate() {
            if by == By::Races {
                seen[i] = self.past.least.fences_of(twin).seen.map(|epoch| short(after_epoch(epoch)));
                raise(&mut with_seen[i], &seen[i]);
            }
            _ = with_own[i].get_mut(twin.index()).map(|own| *own = FARTHEST);
        }
        Twins { known, with_own, seen, with_seen }
    }

    /// Whether someone has done something to memory that is exchanged, and now another's own.
    fn is_own_touched(&mut self) -> bool {
        let (exchange, history) = (self.exchange, &*self.history);
        *self.own_touched.get_or_insert_with(|| exchange.is_touched_by_others(history))
    }
}
