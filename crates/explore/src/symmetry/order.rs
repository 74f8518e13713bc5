//! What each thread knows of the others' plain accesses: the order that data races are judged by, from below and from
//! above.
//!
//! The race detector in the runtime decides by the declared memory orders, fences included, which this does not repeat exactly.
//! [`Bound::Least`] has only what it certainly has: no fences, no failed exchanges, the exact address. [`Bound::Most`] has
//! whatever it may have: every atomic read acquires from every write to the same granule.
//!
//! A component is an *epoch*: 2i + 1 for the operation of the event at position i, 2i + 2 for the plain accesses after it. What
//! an operation releases covers itself and not what comes after it in the same transition.

use crate::history::named_thread;
use crate::symmetry::origin::{TRACKED, Via};
use rustc_hash::FxHashMap;
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind};
use symdpor_trace::ThreadId;

/// Per thread, the last epoch that is known. Of threads beyond the tracked ones nothing is known from below, and
/// everything from above.
pub type Clock = [u32; TRACKED];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    Least,
    Most,
}

/// What was released to an object, and the position of the last release.
#[derive(Clone, Copy)]
struct Released {
    clock: Clock,
    position: u32,
}

#[derive(Clone, Copy)]
enum Undo {
    Thread(usize, Clock),
    Object((u64, u8), Option<Released>),
}

/// Instead of a byte: what the readers of a lock have released.
const READERS: u8 = 0xff;

pub struct Order {
    bound: Bound,
    threads: Vec<Clock>,
    objects: FxHashMap<(u64, u8), Released>,
    undo: Vec<Undo>,
    /// For each event, the length of `undo` before it, and the object that it acquired.
    marks: Vec<(usize, Via)>,
}

pub fn op_epoch(position: usize) -> u32 {
    2 * position as u32 + 1
}

pub fn tail_epoch(position: usize) -> u32 {
    2 * position as u32 + 2
}

/// One more than the position of the event that an epoch belongs to; 0 for none.
pub fn after_epoch(epoch: u32) -> u32 {
    epoch.div_ceil(2)
}

fn set(clock: &mut Clock, thread: usize, epoch: u32) {
    if let Some(own) = clock.get_mut(thread) {
        *own = epoch;
    }
}

fn join(clock: &mut Clock, other: &Clock) {
    clock.iter_mut().zip(other).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
}

enum Release {
    No,
    /// Ends what was released before.
    Forget,
    Set,
    Merge,
}

fn acquires(order: u8) -> bool {
    !matches!(order, 0 | 3)
}

impl Order {
    pub fn new(bound: Bound) -> Order {
        Order { bound, threads: Vec::new(), objects: FxHashMap::default(), undo: Vec::new(), marks: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// What the thread knows.
    pub fn clock(&self, thread: ThreadId) -> Clock {
        *self.known_by(thread)
    }

    pub fn known_by(&self, thread: ThreadId) -> &Clock {
        self.threads.get(thread.index()).unwrap_or(&[0; TRACKED])
    }

    /// What a clock tells of a thread.
    pub fn component(&self, clock: &Clock, of: ThreadId) -> u32 {
        match clock.get(of.index()) {
            Some(epoch) => *epoch,
            None if self.bound == Bound::Least => 0,
            None => u32::MAX,
        }
    }

    /// What the thread would know once it had done the operation.
    pub fn clock_after(&self, thread: ThreadId, op: &Op) -> Clock {
        let mut clock = self.clock(thread);
        self.acquire(&mut clock, op);
        clock
    }

    fn acquire(&self, clock: &mut Clock, op: &Op) {
        if op.kind == OpKind::ThreadJoin {
            if let Some(ended) = named_thread(op).and_then(|t| self.threads.get(t.index())) {
                join(clock, ended);
            }
            return;
        }
        for key in self.acquired(op).into_iter().flatten() {
            if let Some(released) = self.objects.get(&key) {
                join(clock, &released.clock);
            }
        }
    }

    /// The object that an operation at `position` acquires.
    fn via(&self, op: &Op, position: usize) -> Via {
        // A lock that readers share has no last release to name.
        let shared = matches!(op.kind, OpKind::RwRead | OpKind::RwWrite | OpKind::SemWait | OpKind::SemTaken);
        let [Some(key), _] = self.acquired(op) else { return Via::default() };
        if shared || matches!(op.kind, OpKind::BarrierArrive | OpKind::BarrierPass) {
            return Via::default();
        }
        let released = self.objects.get(&key).map_or(0, |r| r.position + 1);
        Via { object: ObjectId(key.0), byte: key.1, acquired: position as u32, released }
    }

    /// The object that the event at `position` acquired, if it did.
    pub fn acquired_at(&self, position: usize) -> Option<Via> {
        self.marks.get(position).map(|m| m.1).filter(|v| v.object != ObjectId::NONE)
    }

    /// What is known to have been released to an object.
    pub fn released_to(&self, via: &Via) -> Option<&Clock> {
        self.objects.get(&(via.object.0, via.byte)).map(|r| &r.clock)
    }

    fn keys(&self, op: &Op) -> [Option<(u64, u8)>; 2] {
        match self.bound {
            Bound::Least => [Some((op.object.0, op.mask.trailing_zeros() as u8)), None],
            Bound::Most => [Some((op.object.0, 0)), (op.object2.0 != 0).then_some((op.object2.0, 0))],
        }
    }

    fn acquired(&self, op: &Op) -> [Option<(u64, u8)>; 2] {
        let most = self.bound == Bound::Most;
        let object = (op.object.0, 0);
        match op.kind {
            OpKind::AtomicLoad if most || acquires(op.order) && !op.is_failed_exchange() => self.keys(op),
            OpKind::AtomicRmw | OpKind::AtomicCas if most || acquires(op.order) => self.keys(op),
            OpKind::MutexLock | OpKind::OnceDone | OpKind::Once => [Some(object), None],
            OpKind::TryLock if most => [Some(object), None],
            OpKind::RwRead => [Some(object), None],
            OpKind::RwWrite => [Some(object), Some((op.object.0, READERS))],
            OpKind::RwTryRead | OpKind::RwTryWrite if most => [Some(object), Some((op.object.0, READERS))],
            // Which post lets which wait through is not repeated here, nor which arrivals belong together.
            OpKind::SemWait | OpKind::SemTaken | OpKind::SemTry | OpKind::BarrierArrive | OpKind::BarrierPass
                if most =>
            {
                [Some(object), None]
            }
            OpKind::OutsideLook | OpKind::OutsideTake | OpKind::OutsidePut | OpKind::OutsideChange if most => {
                self.keys(op)
            }
            _ => [None, None],
        }
    }

    fn released(&self, op: &Op) -> ([Option<(u64, u8)>; 2], Release) {
        let most = self.bound == Bound::Most;
        let releases = op.order >= 3;
        match op.kind {
            OpKind::AtomicStore | OpKind::AtomicRmw if most => (self.keys(op), Release::Merge),
            OpKind::AtomicStore => (self.keys(op), if releases { Release::Set } else { Release::Forget }),
            OpKind::AtomicRmw if releases => (self.keys(op), Release::Merge),
            OpKind::MutexUnlock | OpKind::OnceEnd => ([Some((op.object.0, 0)), None], Release::Set),
            OpKind::RwUnlockWrite => ([Some((op.object.0, 0)), None], Release::Set),
            OpKind::RwUnlockRead => ([Some((op.object.0, READERS)), None], Release::Merge),
            OpKind::SemPost | OpKind::BarrierArrive if most => ([Some((op.object.0, 0)), None], Release::Merge),
            OpKind::CondWait => ([Some((op.object2.0, 0)), None], Release::Set),
            OpKind::OutsideTake | OpKind::OutsidePut | OpKind::OutsideChange if most => (self.keys(op), Release::Merge),
            _ => ([None, None], Release::No),
        }
    }

    fn save(&mut self, thread: usize) {
        if self.threads.len() <= thread {
            self.threads.resize(thread + 1, [0; TRACKED]);
        }
        self.undo.push(Undo::Thread(thread, self.threads[thread]));
    }

    /// Adds the next event.
    pub fn push(&mut self, thread: ThreadId, op: &Op) {
        let position = self.marks.len();
        self.marks.push((self.undo.len(), self.via(op, position)));
        let t = thread.index();
        self.save(t);
        let mut clock = self.threads[t];
        self.acquire(&mut clock, op);
        set(&mut clock, t, op_epoch(position));
        self.release(op, &clock, position);
        let named = named_thread(op).map(ThreadId::index).filter(|&n| n != t);
        if let (OpKind::ThreadCreate, Some(child)) = (op.kind, named) {
            self.save(child);
            self.threads[child] = clock;
            set(&mut self.threads[child], child, tail_epoch(position));
        }
        set(&mut clock, t, tail_epoch(position));
        self.threads[t] = clock;
    }

    fn release(&mut self, op: &Op, clock: &Clock, position: usize) {
        let (keys, how) = self.released(op);
        for key in keys.into_iter().flatten() {
            let old = self.objects.get(&key).copied();
            match (&how, &old) {
                (Release::No, _) => continue,
                (Release::Forget, _) => {
                    self.objects.remove(&key);
                }
                (Release::Merge, Some(old)) => {
                    let mut merged = Released { clock: old.clock, position: position as u32 };
                    join(&mut merged.clock, clock);
                    self.objects.insert(key, merged);
                }
                (Release::Merge | Release::Set, _) => {
                    self.objects.insert(key, Released { clock: *clock, position: position as u32 });
                }
            }
            self.undo.push(Undo::Object(key, old));
        }
    }

    /// Takes back the events from position `len` on.
    pub fn truncate(&mut self, len: usize) {
        while self.marks.len() > len {
            let (mark, _) = self.marks.pop().unwrap_or_default();
            while self.undo.len() > mark {
                match self.undo.pop() {
                    Some(Undo::Thread(t, clock)) => self.threads[t] = clock,
                    Some(Undo::Object(key, Some(clock))) => {
                        self.objects.insert(key, clock);
                    }
                    Some(Undo::Object(key, None)) => {
                        self.objects.remove(&key);
                    }
                    None => {}
                }
            }
        }
    }
}
