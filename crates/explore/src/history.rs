//! The current execution with its happens-before relation, and the races of each new operation with it.
//!
//! Happens-before here is the order that the *dependence* of operations gives (`abi::op`), which says which executions
//! are equivalent; it is not the order of declared memory orders that data races are judged by. Its edges: program order,
//! dependent operations, creation to the new thread's first event, a thread's last event to its join, a signal or
//! broadcast to the next event of the thread that it woke.
//!
//! A *race* is an event and a later operation of another thread that depend on each other, are not ordered by anything
//! between them, and could go the other way round. (Abdulla et al., POPL 2014, Definition 3.3; for locks see
//! [`History::races`].)
//!
//! Events are kept as a stack: the search takes back the events after the point where it branches off, and the cost of
//! adding one does not depend on how many there are.

mod queues;
mod wakes;

use crate::bits::Bits;
use crate::clock::{Clock, ClockStore, Past};
use crate::objects::{Mark, NONE, Objects};
use symdpor_abi::op::{Access, MAY_BE_CANCELLED, Op, OpKind, dependent};
use symdpor_trace::{ObjectId, ThreadId, ThreadSet};

/// An event that an operation of another thread could have preceded.
#[derive(Clone, Debug)]
pub struct Race {
    /// Position of the event.
    pub earlier: usize,
    /// The thread of the later operation.
    pub thread: ThreadId,
    /// The threads that can begin an execution, from the state before the event, in which the later operation goes
    /// first: those whose next events there depend on nothing that has to come in between.
    pub initials: ThreadSet,
    /// One of the initials: the thread that did begin it.
    pub first: ThreadId,
}

/// What an operation of a thread is known to come after: all that it and other threads have done and known by now, the last release
/// of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    thread: ThreadId,
    /// Of threads that have no place there nothing is known.
    threads: Bits,
    objects: [ObjectId; 3],
}

impl Known {
    pub fn new(thread: ThreadId, threads: Bits, objects: impl Iterator<Item = ObjectId>) -> Known {
        let mut known = Known { thread, threads, objects: [ObjectId::NONE; 3] };
        known.objects.iter_mut().zip(objects).for_each(|(room, object)| *room = object);
        known
    }

    fn has(&self, thread: ThreadId) -> bool {
        self.thread == thread || self.threads.contains(thread)
    }
}

#[derive(Clone)]
struct Event {
    thread: ThreadId,
    op: Op,
    clock: Clock,
    /// What those who were woken by it come after, besides itself: more than its own past if others had to come as well.
    wakes_after: Clock,
    /// One more than the last position of another thread's event that happens before this one, or 0.
    reach: u32,
    /// The event that had woken the thread, or `NONE`.
    woken_by: u32,
    /// What was the last event that depends on everything.
    global_before: u32,
    clocks_before: usize,
    objects_before: Mark,
}

struct Thread {
    /// Positions of its events.
    events: Vec<u32>,
    created_by: u32,
    /// The signal or broadcast that woke it, until its next event.
    woken_by: u32,
}

pub struct History {
    events: Vec<Event>,
    /// How often events have been added or taken back.
    changes: u64,
    /// The last event that depends on everything, or `NONE`.
    global: u32,
    threads: Vec<Thread>,
    clocks: ClockStore,
    objects: Objects,
    past: Past,
    /// Lists of events that are made again and again.
    candidates: Vec<u32>,
    needed: Vec<u32>,
    /// The last that was asked about, and its past.
    known: Option<Known>,
    known_past: Past,
}

impl Default for History {
    fn default() -> Self {
        History {
            events: Vec::new(),
            changes: 0,
            global: NONE,
            threads: Vec::new(),
            clocks: ClockStore::default(),
            objects: Objects::default(),
            past: Past::default(),
            candidates: Vec::new(),
            needed: Vec::new(),
            known: None,
            known_past: Past::default(),
        }
    }
}

/// Whether an operation waits until its object is free.
fn waits(op: &Op) -> bool {
    let acquires = matches!(op.access(), Some(Access::Acquire | Access::SharedAcquire));
    op.kind == OpKind::OnceDone || acquires && !op.may_be_cancelled()
}

/// Whether an event, which is no acquisition and which an operation that waits depends on, may have left room for that one to go
/// first: it saw a semaphore's value, or failed to write where others read.
fn leaves_room(op: &Op) -> bool {
    op.kind == OpKind::SemValue && op.arg > 0 || op.kind == OpKind::RwWriteFailed
}

/// Whether a thread whose last operation this is waits to be woken by another.
fn goes_to_sleep(op: &Op) -> bool {
    matches!(op.kind, OpKind::CondWait | OpKind::FutexWait)
}

/// The threads that an operation's argument names as bits.
fn named_threads(op: &Op) -> impl Iterator<Item = ThreadId> + use<> {
    let bits = op.arg;
    (0..32).filter(move |t| bits & 1 << t != 0).map(ThreadId)
}

/// Whether a thread could go on before the event at a position.
pub type Enabled<'a> = dyn Fn(usize, ThreadId) -> bool + 'a;

/// Whether it makes no difference that an operation of a thread races with the event at a position.
pub type Settled<'a> = dyn Fn(usize, ThreadId) -> bool + 'a;

/// The thread that an operation's argument names.
pub fn named_thread(op: &Op) -> Option<ThreadId> {
    u16::try_from(op.arg).ok().map(ThreadId)
}

impl History {
    /// Adds an event, and its races with the events before it to `races`.
    pub fn push(&mut self, thread: ThreadId, op: &Op, enabled: &Enabled<'_>, races: &mut Vec<Race>) {
        let position = self.events.len() as u32;
        self.changes += 1;
        if op.is_inside_section() {
            return self.push_inside(thread, op);
        }
        self.races(thread, op, enabled, races);
        self.timeouts(op, position, enabled, races);
        if let (OpKind::ThreadJoin, Some(target)) = (op.kind, named_thread(op)) {
            self.join(self.last_event(target));
        }
        let before = (self.clocks.len(), self.objects.mark());
        let (clock, reach) = (self.past.store(&mut self.clocks), self.past.reach());
        let wakes_after = self.meet(op).unwrap_or(clock);
        self.objects.record(op, position, thread);
        let goes_on = if op.kind == OpKind::BarrierMeet && op.opens_barrier() { position } else { NONE };
        let state = self.thread(thread);
        let woken_by = std::mem::replace(&mut state.woken_by, goes_on);
        state.events.push(position);
        self.wake(op, position);
        let (clocks_before, objects_before) = before;
        let global_before = self.global;
        if op.is_global() {
            self.global = position;
        }
        self.events.push(Event {
            thread,
            op: *op,
            clock,
            wakes_after,
            reach,
            woken_by,
            global_before,
            clocks_before,
            objects_before,
        });
    }

    /// What those who have come to a barrier together come after once the last one has.
    fn meet(&mut self, op: &Op) -> Option<Clock> {
        if op.kind != OpKind::BarrierMeet || !op.opens_barrier() {
            return None;
        }
        let others: Vec<u32> = self.objects.arrivals(op.object).collect();
        others.into_iter().for_each(|other| self.join(other));
        Some(self.past.store(&mut self.clocks))
    }

    /// A step that goes on within an atomic section. It has a position and is no event: the section is, as a whole.
    fn push_inside(&mut self, thread: ThreadId, op: &Op) {
        let (clocks_before, objects_before) = (self.clocks.len(), self.objects.mark());
        let (clock, wakes_after, global_before) = (Clock::default(), Clock::default(), self.global);
        let (reach, woken_by) = (0, NONE);
        self.events.push(Event {
            thread,
            op: *op,
            clock,
            wakes_after,
            reach,
            woken_by,
            global_before,
            clocks_before,
            objects_before,
        });
    }

    /// Whether something depends on everything that comes after it.
    pub fn has_global(&self) -> bool {
        self.global != NONE
    }

    /// The same events again.
    pub fn again(events: &[(ThreadId, Op)]) -> History {
        let (mut history, mut races) = (History::default(), Vec::new());
        for (thread, op) in events {
            history.push(*thread, op, &|_, _| true, &mut races);
            races.clear();
        }
        history
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// As long as this is the same, so is the history.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The event at a position.
    pub fn event(&self, position: usize) -> Option<(ThreadId, &Op)> {
        self.events.get(position).map(|e| (e.thread, &e.op))
    }

    /// How many threads are known.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Whether a thread has been created.
    pub fn exists(&self, thread: ThreadId) -> bool {
        self.threads.get(thread.index()).is_some_and(|t| t.created_by != NONE || !t.events.is_empty())
    }

    /// A waiter with a time limit that is woken by `op` could have given up before, or been cancelled: then it has no such
    /// event, and nothing else shows that it could.
    fn timeouts(&self, op: &Op, position: u32, enabled: &Enabled<'_>, races: &mut Vec<Race>) {
        let woken = match op.kind {
            OpKind::CondSignal | OpKind::CondCancel | OpKind::FutexWake => named_thread(op).into_iter().collect(),
            OpKind::FutexWakeSet | OpKind::FutexRequeue | OpKind::FutexWakeOp => named_threads(op).collect(),
            OpKind::CondBroadcast | OpKind::FutexWakeAll => self.waiters(op.object),
            _ => return,
        };
        for thread in woken.into_iter().filter(|&t| self.is_waiting(t) && self.has_limit(t)) {
            if self.waits_to_be_cancelled(thread) && !enabled(position as usize, thread) {
                continue;
            }
            let initials = ThreadSet::from_iter([thread]);
            races.push(Race { earlier: position as usize, thread, initials, first: thread });
        }
    }

    /// Whether a thread's last event is a wait that ends early only if the thread is cancelled.
    fn waits_to_be_cancelled(&self, thread: ThreadId) -> bool {
        let last = self.events_of(thread).last().and_then(|&e| self.events.get(e as usize));
        last.is_some_and(|e| e.op.arg == MAY_BE_CANCELLED)
    }

    /// Whether a thread's last event is a wait with a time limit, or that can be cancelled.
    pub fn has_limit(&self, thread: ThreadId) -> bool {
        let last = self.events_of(thread).last().and_then(|&e| self.events.get(e as usize));
        last.is_some_and(|e| goes_to_sleep(&e.op) && e.op.arg != 0)
    }

    /// Whether a thread waits on a condition variable or a futex and has not been woken.
    pub fn is_waiting(&self, thread: ThreadId) -> bool {
        let Some(state) = self.threads.get(thread.index()) else { return false };
        let last = state.events.last().and_then(|&e| self.events.get(e as usize));
        state.woken_by == NONE && last.is_some_and(|e| goes_to_sleep(&e.op))
    }

    /// Whether a thread waits with a time limit and has not been woken.
    pub fn may_give_up(&self, thread: ThreadId) -> bool {
        self.is_waiting(thread) && self.has_limit(thread)
    }

    /// The threads that wait on a condition variable or a futex, in the order in which they began to. Not after threads have
    /// been moved from one futex to another.
    pub fn waiters(&self, condition: ObjectId) -> Vec<ThreadId> {
        let waits = |t: &ThreadId| {
            let last = self.threads[t.index()].events.last().and_then(|&e| self.events.get(e as usize));
            self.is_waiting(*t) && last.is_some_and(|e| e.op.object == condition)
        };
        let mut waiters: Vec<ThreadId> = (0..self.threads.len()).map(|t| ThreadId(t as u16)).filter(waits).collect();
        waiters.sort_by_key(|t| self.threads[t.index()].events.last().copied());
        waiters
    }

    /// Whether waiters have been moved from one futex to another.
    pub fn has_moved(&self) -> bool {
        self.events.iter().any(|e| e.op.kind == OpKind::FutexRequeue)
    }

    /// For each thread, one more than the position of its last event that happens before the event at `position`, or is it.
    pub fn after(&self, position: usize, after: &mut [u32]) {
        let Some(event) = self.events.get(position) else { return };
        after.iter_mut().zip(self.clocks.get(event.clock)).for_each(|(mine, theirs)| *mine = *theirs);
        if let Some(own) = after.get_mut(event.thread.index()) {
            *own = position as u32 + 1;
        }
    }

    /// The same for a thread's next event, if `op` is given with what it gets from that operation.
    pub fn past_of(&mut self, thread: ThreadId, op: Option<&Op>, after: &mut [u32]) {
        self.start(thread);
        if let Some(op) = op {
            self.join_candidates(op);
        }
        for (t, mine) in after.iter_mut().enumerate() {
            *mine = self.past.component(ThreadId(t as u16));
        }
        if let Some(own) = after.get_mut(thread.index()) {
            *own = self.events.len() as u32 + 1;
        }
    }

    /// Adds what an operation depends on to the past.
    fn join_candidates(&mut self, op: &Op) {
        let mut needed = std::mem::take(&mut self.needed);
        needed.clear();
        self.gather(op, &mut needed);
        needed.iter().for_each(|&event| self.join(event));
        self.needed = needed;
    }

    /// The threads with events from a position on.
    pub fn moved_since(&self, position: usize) -> ThreadSet {
        self.events.get(position..).unwrap_or(&[]).iter().map(|e| e.thread).collect()
    }

    /// Whether threads have been created from a position on.
    pub fn creates_since(&self, position: usize) -> bool {
        self.events.get(position..).unwrap_or(&[]).iter().any(|e| e.op.kind == OpKind::ThreadCreate)
    }

    /// How many events a thread has had.
    pub fn number(&self, thread: ThreadId) -> u32 {
        self.threads.get(thread.index()).map_or(0, |t| t.events.len() as u32)
    }

    /// The positions of a thread's events.
    pub fn events_of(&self, thread: ThreadId) -> &[u32] {
        self.threads.get(thread.index()).map_or(&[], |t| &t.events)
    }

    /// Adds the events that `op`, done later, would race with if it came after what is known. `first`: what one of the threads will
    /// have done next. Until [`History::forget_known`] that must be the same, and nothing may change. `settled`: whether it makes no
    /// difference that a thread's operation races with the event at a position.
    pub fn uncovered(
        &mut self,
        op: &Op,
        known: &Known,
        first: &(ThreadId, Op),
        settled: &Settled<'_>,
        races: &mut Vec<(usize, ThreadId)>,
    ) {
        let thread = known.thread;
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        let on_channels = !waits(op) && op.is_on_channels();
        if on_channels {
            // Whatever it depends on, see below.
        } else if waits(op) {
            let room = |&e: &u32| self.events.get(e as usize).is_some_and(|e| leaves_room(&e.op));
            if matches!(op.kind, OpKind::SemWait | OpKind::RwRead) {
                self.gather(op, &mut candidates);
                candidates.retain(room);
            }
            candidates.extend(self.objects.acquisitions(op));
        } else {
            self.gather(op, &mut candidates);
        }
        let meets = op.kind == OpKind::BarrierMeet;
        if meets {
            // It may come once these have gone on.
            candidates.extend(self.objects.arrivals(op.object));
        }
        // Its own events it comes after anyway.
        candidates.retain(|&e| self.events.get(e as usize).is_some_and(|e| e.thread != thread));
        if on_channels {
            self.assume(known, first);
            return self.all_uncovered(thread, op, candidates, races);
        }
        if candidates.iter().all(|&e| settled(e as usize, thread)) {
            self.candidates = candidates;
            return;
        }
        self.assume(known, first);
        for &event in &candidates {
            if self.events.get(event as usize).is_some_and(|e| !self.past.covers(event, e.thread)) {
                races.push((event as usize, thread));
            }
            if !meets {
                self.join(event);
            }
        }
        self.candidates = candidates;
    }

    /// Makes the past that of an operation of which this is known.
    fn assume(&mut self, known: &Known, first: &(ThreadId, Op)) {
        if self.known == Some(*known) {
            return self.past.become_like(&self.known_past);
        }
        self.start(known.thread);
        known.threads.iter().for_each(|t| self.join_thread(t));
        let objects = known.objects.into_iter().filter(|o| *o != ObjectId::NONE);
        objects.for_each(|o| self.join(self.objects.last_write(o)));
        if known.has(first.0) {
            self.join_candidates(&first.1);
        }
        self.known_past.become_like(&self.past);
        self.known = Some(*known);
    }

    /// What has been worked out for [`History::uncovered`] does not hold any more.
    pub fn forget_known(&mut self) {
        self.known = None;
    }

    /// Whatever it depends on: which of them it had to wait for is not known.
    fn all_uncovered(&mut self, thread: ThreadId, op: &Op, kept: Vec<u32>, races: &mut Vec<(usize, ThreadId)>) {
        for (position, event) in self.events.iter().enumerate().rev() {
            if dependent(&event.op, op) && !self.past.covers(position as u32, event.thread) {
                races.push((position, thread));
            }
        }
        self.candidates = kept;
    }

    /// Adds all that a thread has done and known to the past.
    fn join_thread(&mut self, thread: ThreadId) {
        let Some(state) = self.threads.get(thread.index()) else { return };
        let (last, woken_by, created_by) = (state.events.last().copied(), state.woken_by, state.created_by);
        self.join(last.unwrap_or(created_by));
        self.join_waker(woken_by);
    }

    /// Takes back the events from position `len` on.
    pub fn truncate(&mut self, len: usize) {
        while self.events.len() > len {
            self.pop();
        }
    }

    fn pop(&mut self) {
        let Some(event) = self.events.pop() else { return };
        self.changes += 1;
        if event.op.is_inside_section() {
            return;
        }
        self.global = event.global_before;
        self.unwake(&event.op, self.events.len() as u32);
        let state = self.thread(event.thread);
        state.events.pop();
        state.woken_by = event.woken_by;
        self.clocks.truncate(event.clocks_before);
        self.objects.undo(event.objects_before);
    }

    /// Adds the races that `op`, done by `thread` now, would have with the events. Leaves its causal past in `self.past`.
    ///
    /// Candidates are looked at latest first, and each is added to the past once it has been looked at: whatever happens
    /// before a later candidate is thereby no race any more.
    ///
    /// What waits for an object (a lock) cannot precede the release before it, but can precede the *acquisition* before that,
    /// unless it is ordered after it by something other than the object. So this one is its only candidate; whether the
    /// object has been released since, or is still held and the operation pending, makes no difference. (Several, if readers
    /// shared it. For a semaphore also whoever looked at its value while there was one.)
    ///
    /// What is done to pipes and their like may wait too, but there is no telling from the operations what they waited for: see
    /// [`History::race_before_enabling`].
    pub fn races(&mut self, thread: ThreadId, op: &Op, enabled: &Enabled<'_>, races: &mut Vec<Race>) {
        self.start(thread);
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        self.gather(op, &mut candidates);
        if waits(op) {
            for event in self.objects.acquisitions(op) {
                self.race_with(thread, event, races);
            }
            for &event in &candidates {
                if self.events.get(event as usize).is_some_and(|e| leaves_room(&e.op)) {
                    self.race_with(thread, event, races);
                }
            }
            // An atomic section may take and release what it likes.
            self.race_with(thread, self.global, races);
            self.race_after_others(thread, op, &candidates, races);
            candidates.iter().for_each(|&event| self.join(event));
        } else if op.is_on_channels() {
            self.race_before_enabling(thread, op, enabled, races);
            for &event in &candidates {
                self.race_unless_blocked(thread, event, enabled, races);
                self.join(event);
            }
        } else if op.kind == OpKind::BarrierMeet {
            // Instead of any one of those who came together.
            candidates.iter().for_each(|&event| self.race_with(thread, event, races));
            candidates.iter().for_each(|&event| self.join(event));
        } else {
            if op.kind == OpKind::SemTaken {
                self.race_before_take(thread, op, &mut candidates, races);
            }
            for &event in &candidates {
                self.race_with(thread, event, races);
                self.join(event);
            }
        }
        self.candidates = candidates;
    }

    /// The events that `op` depends on, latest first. The end of the process and atomic sections depend on everything.
    fn gather(&self, op: &Op, candidates: &mut Vec<u32>) {
        if op.is_global() {
            let depends = |e: &&u32| dependent(&self.events[**e as usize].op, op);
            candidates.extend(self.threads.iter().filter_map(|t| t.events.iter().rev().find(depends)));
        } else {
            self.objects.conflicts(op, candidates);
            let depends = |e: &Event| dependent(&e.op, op);
            candidates.extend(self.events.get(self.global as usize).filter(|e| depends(e)).map(|_| self.global));
        }
        if matches!(op.kind, OpKind::SemWait | OpKind::SemTaken) {
            let enabling = self.objects.post(op.object, op.arg);
            candidates.extend(Some(enabling).filter(|&e| e != NONE));
        }
        if candidates.len() > 1 {
            candidates.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// The past of the thread's next operation, without what it gets from the operation itself.
    fn start(&mut self, thread: ThreadId) {
        let (last, woken_by, created_by) = {
            let state = self.thread(thread);
            (state.events.last().copied(), state.woken_by, state.created_by)
        };
        let (base, reach) = match last {
            Some(event) => (self.events[event as usize].clock, self.events[event as usize].reach),
            None => (Clock::default(), 0),
        };
        self.past.start(thread, &self.clocks, base, reach);
        if last.is_none() {
            self.join(created_by);
        }
        self.join_waker(woken_by);
    }

    fn join(&mut self, event: u32) {
        if let Some(e) = self.events.get(event as usize) {
            self.past.join(event, e.thread, self.clocks.get(e.clock));
        }
    }

    /// Adds what a thread comes after that was woken by an event.
    fn join_waker(&mut self, event: u32) {
        if let Some(e) = self.events.get(event as usize) {
            self.past.join_woken(event, e.thread, self.clocks.get(e.wakes_after));
        }
    }

    fn race_with(&self, thread: ThreadId, earlier: u32, races: &mut Vec<Race>) {
        let Some(event) = self.events.get(earlier as usize) else { return };
        if self.past.covers(earlier, event.thread) {
            return;
        }
        let (initials, first) = self.initials(thread, earlier);
        races.push(Race { earlier: earlier as usize, thread, initials, first });
    }

    /// The threads that can go first from the state before `earlier` towards the operation whose past is `self.past`, and
    /// the one that did. Only the causal past counts: what others did meanwhile need not come before the operation.
    fn initials(&self, thread: ThreadId, earlier: u32) -> (ThreadSet, ThreadId) {
        let mut initials = ThreadSet::new();
        let mut first = (NONE, thread);
        let own = std::iter::once(thread);
        let others = self.past.threads().filter(|&t| t != thread && self.past.component(t) > earlier);
        for t in own.chain(others) {
            let Some(event) = self.first_event_after(t, earlier) else { continue };
            first = first.min((event, t));
            if self.events[event as usize].reach <= earlier {
                initials.insert(t);
            }
        }
        if self.first_event_after(thread, earlier).is_none() && self.past.reach() <= earlier {
            initials.insert(thread);
        }
        (initials, first.1)
    }

    fn first_event_after(&self, thread: ThreadId, position: u32) -> Option<u32> {
        let events = &self.threads.get(thread.index())?.events;
        if *events.last()? <= position {
            return None;
        }
        Some(events[events.partition_point(|&e| e <= position)])
    }

    /// The last event of a thread, or the one that created it if it has none.
    fn last_event(&self, thread: ThreadId) -> u32 {
        self.threads.get(thread.index()).map_or(NONE, |t| t.events.last().copied().unwrap_or(t.created_by))
    }

    fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        while self.threads.len() <= thread.index() {
            self.threads.push(Thread { events: Vec::new(), created_by: NONE, woken_by: NONE });
        }
        &mut self.threads[thread.index()]
    }
}
