//! For each object, the last accesses that a new one could conflict with.
//!
//! Per byte of an object's granule the last write, and the reads since; an access that a later write has covered is
//! found through that write, because it happens before it. Acquiring and releasing are writes here, observing is a read, and
//! so is what readers do to a lock that they share; the last acquisitions are kept besides, since they are what a later
//! one competes with, and the posts of a semaphore, since each lets one wait through. Reads do not conflict with
//! each other, except as `abi::op::dependent` says of failed compare-and-exchanges.
//!
//! A state is small and copied before it is changed, so that the changes of the last events can be taken back.

use rustc_hash::FxHashMap;
use symdpor_abi::op::{Access, Op, OpKind};
use symdpor_trace::{ObjectId, ThreadId};

/// The halves of an object.
const LOW: u8 = 0x0f;
const HIGH: u8 = 0xf0;

/// No event, no record.
pub const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct ObjectState {
    /// The last write of each byte, as an event.
    writes: [u32; 8],
    /// The last of the reads, as a record.
    reads: u32,
    /// The bytes that the reads touch.
    read_bytes: u8,
    /// Whether the reads are of different places, and whether there are failed exchanges among them.
    mixed: bool,
    failed: bool,
    /// The event that last acquired the object alone: its lower and its upper half, where two small ones may be.
    acquired: [u32; 2],
    /// Those that have acquired it together with others since, and the posts, as links: the last of each.
    shared: u32,
    posts: u32,
    /// Those who have come to a barrier since it opened last, and those who came before that since the time before, as links.
    arrivals: u32,
    passed: u32,
}

const UNTOUCHED: ObjectState = ObjectState {
    writes: [NONE; 8],
    reads: NONE,
    read_bytes: 0,
    mixed: false,
    failed: false,
    acquired: [NONE; 2],
    shared: NONE,
    posts: NONE,
    arrivals: NONE,
    passed: NONE,
};

impl ObjectState {
    fn forget_reads(&mut self) {
        (self.reads, self.read_bytes, self.mixed, self.failed) = (NONE, 0, false, false);
    }
}

/// What an operation reads, as seen from one of its objects: the bytes, and those of its other object.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    mask: u8,
    other_mask: u8,
    other: ObjectId,
}

impl Place {
    fn of(op: &Op, object: ObjectId, mask: u8) -> Place {
        let (first, first_mask, second, second_mask) = op.place();
        let (other, other_mask) = if object == first { (second, second_mask) } else { (first, first_mask) };
        Place { mask, other_mask, other }
    }
}

/// A read of bytes that have not been written since, and the one before it.
#[derive(Clone, Copy)]
struct ReadRecord {
    event: u32,
    next: u32,
    thread: ThreadId,
    /// Those of its bytes that have not been written since.
    mask: u8,
    failed: bool,
    place: Place,
}

impl ReadRecord {
    /// Whether whatever conflicts with an earlier read of the same thread conflicts with this one too.
    fn replaces(&self, earlier: &ReadRecord) -> bool {
        let same = self.thread == earlier.thread && self.place == earlier.place;
        same && earlier.mask & !self.mask == 0 && (self.failed || !earlier.failed)
    }
}

/// An event and the link before it.
#[derive(Clone, Copy)]
struct Link {
    event: u32,
    before: u32,
}

/// What [`Objects`] was before an event.
#[derive(Clone, Copy, Default)]
pub struct Mark {
    saved: usize,
    reads: usize,
    links: usize,
}

#[derive(Default)]
pub struct Objects {
    /// Dense numbers for objects. Only looked up, never iterated: its order decides nothing.
    index: FxHashMap<ObjectId, u32>,
    states: Vec<ObjectState>,
    reads: Vec<ReadRecord>,
    links: Vec<Link>,
    saved: Vec<(u32, ObjectState)>,
}

fn writes(access: Access) -> bool {
    access.changes()
}

fn bytes(mask: u8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |b| mask & (1 << b) != 0)
}

/// Who comes to a barrier together with others neither conflicts with them nor keeps them from conflicting with others, be it the last.
fn as_recorded(op: &Op, access: Access) -> Access {
    if op.kind == OpKind::BarrierMeet { Access::Read } else { access }
}

/// Whether all bytes are meant, as they are for all synchronisation objects.
fn whole(mask: u8) -> bool {
    mask == 0xff
}

impl Objects {
    pub fn mark(&self) -> Mark {
        Mark { saved: self.saved.len(), reads: self.reads.len(), links: self.links.len() }
    }

    /// Takes back all that was recorded since the mark.
    pub fn undo(&mut self, mark: Mark) {
        while self.saved.len() > mark.saved {
            if let Some((object, state)) = self.saved.pop() {
                self.states[object as usize] = state;
            }
        }
        self.reads.truncate(mark.reads);
        self.links.truncate(mark.links);
    }

    fn state(&self, object: ObjectId) -> Option<&ObjectState> {
        self.index.get(&object).map(|&i| &self.states[i as usize])
    }

    /// The events that an operation that waits for its object competes with: those that hold it, or held it last. Who
    /// wants it alone competes with all who have shared it since then.
    pub fn acquisitions(&self, op: &Op) -> impl Iterator<Item = u32> {
        let state = self.state(op.object).copied().unwrap_or(UNTOUCHED);
        let alone = op.access() != Some(Access::SharedAcquire);
        let shared = if alone { state.shared } else { NONE };
        let [low, high] = state.acquired;
        let holders = [if op.mask & LOW != 0 { low } else { NONE }, if op.mask & HIGH != 0 { high } else { NONE }];
        let count = if shared != NONE { 0 } else { 1 + (holders[0] != holders[1]) as usize };
        // Either half of one that has only one holder names it.
        let holders = if holders[0] == NONE { [holders[1], NONE] } else { holders };
        self.linked(shared).chain(holders.into_iter().take(count).filter(|&e| e != NONE))
    }

    /// The `n`-th of the last posts to a semaphore, or `NONE`; 1 is the last.
    pub fn post(&self, object: ObjectId, n: u32) -> u32 {
        let last = self.state(object).map_or(NONE, |s| s.posts);
        n.checked_sub(1).and_then(|before| self.linked(last).nth(before as usize)).unwrap_or(NONE)
    }

    /// Those who have come to a barrier since it opened last.
    pub fn arrivals(&self, object: ObjectId) -> impl Iterator<Item = u32> {
        self.linked(self.state(object).map_or(NONE, |s| s.arrivals))
    }

    fn linked(&self, last: u32) -> impl Iterator<Item = u32> {
        let links = std::iter::successors(self.links.get(last as usize), |l| self.links.get(l.before as usize));
        links.map(|l| l.event)
    }

    fn link(&mut self, before: u32, event: u32) -> u32 {
        self.links.push(Link { event, before });
        self.links.len() as u32 - 1
    }

    /// The event that last wrote to all of an object, or `NONE`.
    pub fn last_write(&self, object: ObjectId) -> u32 {
        let same = |s: &&ObjectState| s.writes.iter().all(|w| *w == s.writes[0]);
        self.state(object).filter(same).map_or(NONE, |s| s.writes[0])
    }

    /// Adds the events that conflict with `op` and are covered by no later one of them. Several times perhaps, in no order.
    pub fn conflicts(&self, op: &Op, events: &mut Vec<u32>) {
        match op.only_access() {
            Some(only) => self.conflicts_at(op, only, events),
            None => op.accesses().for_each(|access| self.conflicts_at(op, access, events)),
        }
    }

    fn conflicts_at(&self, op: &Op, (object, mask, access): (ObjectId, u8, Access), events: &mut Vec<u32>) {
        let Some(state) = self.state(object) else { return };
        let access = as_recorded(op, access);
        if op.kind == OpKind::BarrierMeet {
            events.extend(self.linked(state.passed));
        }
        if state.writes == [state.writes[0]; 8] {
            events.extend(Some(state.writes[0]).filter(|&e| e != NONE && mask != 0));
        } else {
            let mut last = NONE;
            for write in bytes(mask).map(|byte| state.writes[byte]).filter(|&e| e != NONE) {
                if write != last {
                    last = write;
                    events.push(last);
                }
            }
        }
        if state.read_bytes & mask != 0 {
            let place = Place::of(op, object, mask);
            self.conflicting_reads(state, place, writes(access), op.is_failed_exchange(), events);
        }
    }

    fn conflicting_reads(&self, state: &ObjectState, place: Place, writes: bool, failed: bool, events: &mut Vec<u32>) {
        let all_same = !state.mixed && self.reads.get(state.reads as usize).is_some_and(|r| r.place == place);
        if !writes && (all_same || !failed && !state.failed) {
            return;
        }
        let conflicts = |r: &&ReadRecord| writes || (failed || r.failed) && r.place != place;
        let overlapping = self.reads_from(state.reads).filter(|r| r.mask & place.mask != 0);
        events.extend(overlapping.filter(conflicts).map(|r| r.event));
    }

    fn reads_from(&self, head: u32) -> impl Iterator<Item = &ReadRecord> {
        std::iter::successors(self.reads.get(head as usize), |r| self.reads.get(r.next as usize))
    }

    /// Notes that `event` has done `op`.
    pub fn record(&mut self, op: &Op, event: u32, thread: ThreadId) {
        match op.only_access() {
            Some(only) => self.record_at(op, only, event, thread),
            None => op.accesses().for_each(|access| self.record_at(op, access, event, thread)),
        }
    }

    fn record_at(&mut self, op: &Op, (object, mask, access): (ObjectId, u8, Access), event: u32, thread: ThreadId) {
        let index = self.intern(object);
        let access = as_recorded(op, access);
        self.saved.push((index, self.states[index as usize]));
        let mut state = self.states[index as usize];
        match access {
            _ if !writes(access) => {
                let (place, failed) = (Place::of(op, object, mask), op.is_failed_exchange());
                self.add_read(&mut state, ReadRecord { event, next: NONE, thread, mask, failed, place });
            }
            _ => self.add_write(&mut state, event, mask),
        }
        match access {
            Access::Acquire | Access::TryAcquire => {
                let [low, high] = state.acquired;
                let low = if mask & LOW != 0 { event } else { low };
                (state.acquired, state.shared) = ([low, if mask & HIGH != 0 { event } else { high }], NONE);
            }
            Access::SharedAcquire | Access::TryShared => state.shared = self.link(state.shared, event),
            Access::Write if op.kind == OpKind::SemPost => state.posts = self.link(state.posts, event),
            Access::Read if op.kind == OpKind::BarrierMeet => state.arrivals = self.link(state.arrivals, event),
            _ => {}
        }
        if op.opens_barrier() {
            (state.passed, state.arrivals) = (state.arrivals, NONE);
        }
        self.states[index as usize] = state;
    }

    fn intern(&mut self, object: ObjectId) -> u32 {
        let fresh = self.states.len() as u32;
        let index = *self.index.entry(object).or_insert(fresh);
        if index == fresh {
            self.states.push(UNTOUCHED);
        }
        index
    }

    fn add_read(&mut self, state: &mut ObjectState, mut record: ReadRecord) {
        record.next = state.reads;
        if let Some(head) = self.reads.get(state.reads as usize) {
            state.mixed |= head.place != record.place;
            // A thread that reads the same again and again is remembered once.
            if record.replaces(head) {
                record.next = head.next;
            }
        }
        state.failed |= record.failed;
        state.read_bytes |= record.mask;
        state.reads = self.reads.len() as u32;
        self.reads.push(record);
    }

    fn add_write(&mut self, state: &mut ObjectState, event: u32, mask: u8) {
        if whole(mask) {
            state.writes = [event; 8];
        } else {
            bytes(mask).for_each(|byte| state.writes[byte] = event);
        }
        if state.read_bytes & mask != 0 {
            self.drop_reads(state, mask);
        }
    }

    /// Forgets the reads of the bytes in `mask`, and of the rest those that a later one of the thread makes up for.
    fn drop_reads(&mut self, state: &mut ObjectState, mask: u8) {
        let mut cursor = if state.read_bytes & !mask == 0 { NONE } else { state.reads };
        let first = self.reads.len();
        while let Some(&record) = self.reads.get(cursor as usize) {
            cursor = record.next;
            let rest = ReadRecord { mask: record.mask & !mask, ..record };
            if rest.mask != 0 && !self.reads[first..].iter().any(|later| later.replaces(&rest)) {
                self.reads.push(rest);
            }
        }
        self.chain(state, first);
    }

    /// Makes the records from `first` on, which are there latest first, the reads of an object.
    fn chain(&mut self, state: &mut ObjectState, first: usize) {
        state.forget_reads();
        for i in (first..self.reads.len()).rev() {
            self.reads[i].next = state.reads;
            state.mixed |= self.reads[i].place != self.reads[first].place;
            state.failed |= self.reads[i].failed;
            state.read_bytes |= self.reads[i].mask;
            state.reads = i as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use symdpor_abi::op::dependent;

    fn xorshift(x: &mut u64) -> u64 {
        *x ^= *x << 13;
        *x ^= *x >> 7;
        *x ^= *x << 17;
        *x
    }

    fn random_op(x: &mut u64) -> Op {
        const KINDS: [OpKind; 4] = [OpKind::AtomicLoad, OpKind::AtomicStore, OpKind::AtomicRmw, OpKind::AtomicLoad];
        let mut op = Op::new(KINDS[(xorshift(x) % 4) as usize], ObjectId(8 + xorshift(x) % 2 * 8));
        op.mask = [0x0f, 0xf0, 0xff, (xorshift(x) % 255) as u8 + 1][(xorshift(x) % 4) as usize];
        op.arg = if op.kind == OpKind::AtomicLoad { (xorshift(x) % 2) as u32 } else { 0 };
        if xorshift(x).is_multiple_of(4) {
            (op.object2, op.mask2) = (ObjectId(24), 0xff);
        }
        op
    }

    /// For each event, those that happen before it, itself included: the closure of dependence and program order.
    fn closure(events: &[(ThreadId, Op)]) -> Vec<Vec<bool>> {
        let mut before: Vec<Vec<bool>> = Vec::new();
        for (j, (thread, op)) in events.iter().enumerate() {
            let mut row = vec![false; events.len()];
            row[j] = true;
            for i in (0..j).filter(|&i| events[i].0 == *thread || dependent(&events[i].1, op)) {
                row.iter_mut().zip(&before[i]).for_each(|(mine, theirs)| *mine |= theirs);
            }
            before.push(row);
        }
        before
    }

    /// What is found are conflicts, and whatever conflicts happens before something found or is a same thread's.
    fn check(objects: &Objects, events: &[(ThreadId, Op)], op: &Op) {
        let mut found = Vec::new();
        objects.conflicts(op, &mut found);
        assert!(found.iter().all(|&e| dependent(&events[e as usize].1, op)));
        let before = closure(events);
        for (i, _) in events.iter().enumerate().filter(|(_, e)| dependent(&e.1, op)) {
            assert!(found.iter().any(|&f| before[f as usize][i]), "event {i} of {events:?} for {op:?}: {found:?}");
        }
    }

    #[test]
    fn conflicts_are_those_of_a_scan_over_the_whole_trace() {
        let mut x = 0x1234_5678_9abc_def1;
        let mut objects = Objects::default();
        let (mut events, mut marks) = (Vec::new(), Vec::new());
        for _ in 0..30_000 {
            if events.len() == 25 {
                let keep = (xorshift(&mut x) % 25) as usize;
                objects.undo(marks[keep]);
                events.truncate(keep);
                marks.truncate(keep);
            }
            let op = random_op(&mut x);
            check(&objects, &events, &op);
            let thread = ThreadId((xorshift(&mut x) % 3) as u16);
            marks.push(objects.mark());
            objects.record(&op, events.len() as u32, thread);
            events.push((thread, op));
        }
    }
}
