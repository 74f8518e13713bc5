//! What each thread knows of the others' plain accesses: the order that data races are judged by, from below and from
//! above.
//!
//! The race detector in the runtime decides by the declared memory orders, fences included, which this does not repeat exactly.
//! [`Bound::Least`] has only what it certainly has: the exact address. [`Bound::Most`] has whatever it may have: every byte that two
//! atomic operations have in common.
//!
//! A fence lies between two operations, among the plain accesses there. Where it lies is known only if it comes before or after
//! all of these; if not, the one bound puts it where it does least, and the other where it does most.
//!
//! A component is an *epoch*: 2i + 1 for the operation of the event at position i, 2i + 2 for the plain accesses after it. What
//! an operation releases covers itself and not what comes after it in the same transition.

use crate::history::named_thread;
use crate::symmetry::origin::{GROWING, Via, short};
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind};
use symdpor_trace::saved::{Reader, Saved};
use symdpor_trace::{Fence, ThreadId};

/// What something is released to and acquired from: an object and its lowest byte. By number, from 1 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlaceId(u32);

impl PlaceId {
    pub const NONE: PlaceId = PlaceId(0);

    fn index(self) -> usize {
        (self.0 as usize).wrapping_sub(1)
    }
}

/// Per thread, the last epoch that is known. Of threads beyond the tracked ones nothing is known from below, and
/// everything from above.
pub type Clock<const W: usize> = [u32; W];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    Least,
    Most,
}

/// What was released to an object, and one more than the position of the last release; 0 if there is none. The same of the last one
/// that ended what had been released before: what operations that read and write release comes in addition.
#[derive(Clone, Copy)]
struct Released<const W: usize> {
    clock: Clock<W>,
    after: u32,
    anew: u32,
}

impl<const W: usize> Released<W> {
    const NOTHING: Released<W> = Released { clock: [0; W], after: 0, anew: 0 };
}

/// What a thread's fences will do or have done.
#[derive(Clone, Copy)]
pub struct Fences<const W: usize> {
    /// What its operations have seen that acquire nothing: what its next acquiring fence acquires.
    pub seen: Clock<W>,
    /// What it knew at its last releasing fence: what its operations release that are no releases themselves.
    pub released: Clock<W>,
    /// There was an acquiring fence since its last operation, of which it is not known what comes after it.
    late: bool,
}

impl<const W: usize> Fences<W> {
    const NONE: Fences<W> = Fences { seen: [0; W], released: [0; W], late: false };
}

#[derive(Clone, Copy)]
enum Undo<const W: usize> {
    Thread(usize, Clock<W>),
    Fences(usize, Fences<W>),
    Place(PlaceId, Released<W>),
    Post(u64),
}

/// Instead of a byte: what the readers of a lock have released.
const READERS: u8 = 8;

/// Places that an operation releases to or acquires from: objects, and of each some bytes, as bits.
#[derive(Clone, Copy, Default)]
struct Keys([(u64, u16); 2]);

impl Keys {
    const NONE: Keys = Keys([(0, 0); 2]);

    /// That of an object that is no atomic.
    fn object(object: ObjectId) -> Keys {
        Keys([(object.0, 1), (0, 0)])
    }

    fn first(self) -> Option<(u64, u8)> {
        self.iter().next()
    }

    fn iter(self) -> impl Iterator<Item = (u64, u8)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (object, bits) = rest.iter_mut().find(|(_, bits)| *bits != 0)?;
            let lowest = bits.trailing_zeros();
            *bits &= *bits - 1;
            Some((*object, lowest as u8))
        })
    }
}

pub struct Order<const W: usize> {
    bound: Bound,
    threads: Vec<Clock<W>>,
    fences: Vec<Fences<W>>,
    /// All places that there have been. Only looked up: their order decides nothing.
    places: IndexSet<(u64, u8), FxBuildHasher>,
    released: Vec<Released<W>>,
    /// What each post to a semaphore has released, in their order. From below: from above that is one place like any other.
    posts: FxHashMap<u64, Vec<Clock<W>>>,
    undo: Vec<Undo<W>>,
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

fn set(clock: &mut [u32], thread: usize, epoch: u32) {
    if let Some(own) = clock.get_mut(thread) {
        *own = epoch;
    }
}

pub fn join<const W: usize>(clock: &mut Clock<W>, other: &Clock<W>) {
    clock.iter_mut().zip(other).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
}

#[derive(Clone, Copy)]
enum Release {
    /// Ends what was released before.
    Set,
    Merge,
    /// The same with what the thread knew at its last releasing fence.
    Fenced,
    MergeFenced,
}

fn acquires(order: u8) -> bool {
    !matches!(order, 0 | 3)
}

fn releases(order: u8) -> bool {
    order >= 3
}

impl<const W: usize> Order<W> {
    pub fn new(bound: Bound) -> Order<W> {
        let (places, released, posts) = (IndexSet::default(), Vec::new(), FxHashMap::default());
        let (threads, fences) = (Vec::new(), Vec::new());
        Order { bound, threads, fences, places, released, posts, undo: Vec::new(), marks: Vec::new() }
    }

    /// With room for more threads: the places that there have been keep their numbers, the rest follows from the history.
    pub fn widened<const V: usize>(self) -> Order<V> {
        let mut wider = Order::new(self.bound);
        self.places.into_iter().for_each(|key| _ = wider.place(key));
        wider
    }

    fn find(&self, key: (u64, u8)) -> Option<&Released<W>> {
        self.places.get_index_of(&key).and_then(|i| self.released.get(i)).filter(|r| r.after != 0)
    }

    fn place(&mut self, key: (u64, u8)) -> PlaceId {
        let index = self.places.insert_full(key).0;
        if self.released.len() <= index {
            self.released.resize(index + 1, Released::NOTHING);
        }
        PlaceId(index as u32 + 1)
    }

    /// The object of a place.
    pub fn object(&self, place: PlaceId) -> ObjectId {
        self.places.get_index(place.index()).map_or(ObjectId::NONE, |key| ObjectId(key.0))
    }

    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// What the thread knows.
    pub fn clock(&self, thread: ThreadId) -> Clock<W> {
        *self.known_by(thread)
    }

    pub fn known_by(&self, thread: ThreadId) -> &Clock<W> {
        self.threads.get(thread.index()).unwrap_or(&[0; W])
    }

    /// What a clock tells of a thread.
    pub fn component(&self, clock: &Clock<W>, of: ThreadId) -> u32 {
        match clock.get(of.index()) {
            Some(epoch) => *epoch,
            None if self.bound == Bound::Least => 0,
            None => u32::MAX,
        }
    }

    /// What the thread would know once it had done the operation.
    pub fn clock_after(&self, thread: ThreadId, op: &Op) -> Clock<W> {
        let mut clock = self.clock(thread);
        self.acquire(&mut clock, op);
        clock
    }

    /// The same with an acquiring fence after it.
    pub fn clock_after_fence(&self, thread: ThreadId, op: &Op) -> Clock<W> {
        let mut clock = self.clock_after(thread, op);
        self.join_all(&mut clock, self.seen(op));
        clock
    }

    /// What the thread's fences have done and will do.
    pub fn fences_of(&self, thread: ThreadId) -> &Fences<W> {
        self.fences.get(thread.index()).unwrap_or(&Fences::NONE)
    }

    fn join_all(&self, clock: &mut Clock<W>, keys: Keys) {
        for released in keys.iter().filter_map(|key| self.find(key)) {
            join(clock, &released.clock);
        }
    }

    fn acquire(&self, clock: &mut Clock<W>, op: &Op) {
        if op.kind == OpKind::ThreadJoin {
            if let Some(ended) = named_thread(op).and_then(|t| self.threads.get(t.index())) {
                join(clock, ended);
            }
            return;
        }
        if self.bound == Bound::Least && matches!(op.kind, OpKind::SemWait | OpKind::SemTaken) {
            let enabling = self.enabling_post(op);
            return enabling.into_iter().for_each(|released| join(clock, released));
        }
        self.join_all(clock, self.acquired(op));
    }

    /// What was released by the post that lets a wait through, if it was none of those that the semaphore began with.
    fn enabling_post(&self, op: &Op) -> Option<&Clock<W>> {
        let posts = self.posts.get(&op.object.0)?;
        posts.get(posts.len().checked_sub(op.arg as usize)?)
    }

    /// What the thread of the event at `position` knew just before it.
    pub fn clock_before(&self, position: usize) -> Clock<W> {
        match self.marks.get(position).and_then(|m| self.undo.get(m.0)) {
            Some(Undo::Thread(_, clock)) => *clock,
            _ => [0; W],
        }
    }

    /// The object that an operation acquires, by itself or by a fence right after it.
    fn via(&mut self, op: &Op, fenced: bool) -> Via {
        if self.bound == Bound::Most {
            return Via::default();
        }
        let seen = if fenced { self.seen(op).first() } else { None };
        // A lock that readers share has no last release to name.
        let shared = matches!(op.kind, OpKind::RwRead | OpKind::RwWrite | OpKind::SemWait | OpKind::SemTaken);
        let Some(key) = self.acquired(op).first().or(seen) else { return Via::default() };
        if shared || matches!(op.kind, OpKind::BarrierArrive | OpKind::BarrierMeet | OpKind::BarrierPass) {
            return Via::default();
        }
        let place = self.place(key);
        // Who releases a mutex has acquired it, and knows all that was released to it before.
        let released = match op.kind {
            OpKind::MutexLock => GROWING,
            _ => short(self.released[place.index()].anew),
        };
        Via { place, released, ..Via::default() }
    }

    /// The object that the event at `position` acquired, if it did.
    pub fn acquired_at(&self, position: usize) -> Option<Via> {
        self.marks.get(position).map(|m| m.1).filter(|v| v.place != PlaceId::NONE)
    }

    /// What is known to have been released to a place, with its object renamed.
    pub fn released_to(&self, place: PlaceId, rename: impl Fn(ObjectId) -> ObjectId) -> Option<&Clock<W>> {
        let (object, byte) = *self.places.get_index(place.index())?;
        let renamed = rename(ObjectId(object)).0;
        let released = if renamed == object { self.released.get(place.index()) } else { self.find((renamed, byte)) };
        released.filter(|r| r.after != 0).map(|r| &r.clock)
    }

    /// Those of an atomic, or of a file.
    fn keys(&self, op: &Op) -> Keys {
        let bytes = |mask: u8| if mask == 0 { 1 } else { u16::from(mask) };
        match self.bound {
            Bound::Least => Keys([(op.object.0, bytes(op.mask & op.mask.wrapping_neg())), (0, 0)]),
            Bound::Most if op.object2.0 == 0 => Keys([(op.object.0, bytes(op.mask)), (0, 0)]),
            Bound::Most => Keys([(op.object.0, bytes(op.mask)), (op.object2.0, bytes(op.mask2))]),
        }
    }

    /// What an operation reads without acquiring it. A failed exchange has the order that was declared for that.
    fn seen(&self, op: &Op) -> Keys {
        match op.kind {
            OpKind::AtomicLoad | OpKind::AtomicRmw | OpKind::AtomicCas if !acquires(op.order) => self.keys(op),
            _ => Keys::NONE,
        }
    }

    fn acquired(&self, op: &Op) -> Keys {
        let most = self.bound == Bound::Most;
        let object = Keys::object(op.object);
        let with_readers = Keys([(op.object.0, 1 | 1 << READERS), (0, 0)]);
        match op.kind {
            OpKind::AtomicLoad | OpKind::AtomicRmw | OpKind::AtomicCas if acquires(op.order) => self.keys(op),
            OpKind::MutexLock | OpKind::OnceDone | OpKind::Once => object,
            OpKind::TryLock if most => object,
            OpKind::RwRead => object,
            OpKind::RwWrite => with_readers,
            OpKind::RwTryRead | OpKind::RwTryWrite if most => with_readers,
            // Which post lets which wait through is not repeated here, nor which arrivals belong together.
            OpKind::SemWait | OpKind::SemTaken | OpKind::SemTry if most => object,
            OpKind::BarrierArrive | OpKind::BarrierMeet | OpKind::BarrierPass if most => object,
            OpKind::OutsideLook | OpKind::OutsideTake | OpKind::OutsidePut | OpKind::OutsideChange if most => {
                self.keys(op)
            }
            _ => Keys::NONE,
        }
    }

    fn released_by(&self, op: &Op) -> (Keys, Release) {
        let most = self.bound == Bound::Most;
        let releases = releases(op.order);
        let object = Keys::object(op.object);
        match op.kind {
            OpKind::AtomicStore => (self.keys(op), if releases { Release::Set } else { Release::Fenced }),
            OpKind::AtomicRmw => (self.keys(op), if releases { Release::Merge } else { Release::MergeFenced }),
            // Compiled code looks at a byte of it.
            OpKind::OnceEnd if most => (Keys([(op.object.0, 0xff), (0, 0)]), Release::Set),
            OpKind::MutexUnlock | OpKind::OnceEnd => (object, Release::Set),
            OpKind::RwUnlockWrite => (object, Release::Set),
            OpKind::RwUnlockRead => (Keys([(op.object.0, 1 << READERS), (0, 0)]), Release::Merge),
            OpKind::SemPost | OpKind::BarrierArrive | OpKind::BarrierMeet if most => (object, Release::Merge),
            OpKind::CondWait => (Keys::object(op.object2), Release::Set),
            OpKind::OutsideTake | OpKind::OutsidePut | OpKind::OutsideChange if most => (self.keys(op), Release::Merge),
            _ => (Keys::NONE, Release::Set),
        }
    }

    fn save(&mut self, thread: usize) {
        if self.threads.len() <= thread {
            self.threads.resize(thread + 1, [0; W]);
        }
        self.undo.push(Undo::Thread(thread, self.threads[thread]));
    }

    /// Keeps the thread's fences as they are now, to take back what becomes of them.
    fn save_fences(&mut self, thread: usize) -> &mut Fences<W> {
        if self.fences.len() <= thread {
            self.fences.resize(thread + 1, Fences::NONE);
        }
        self.undo.push(Undo::Fences(thread, self.fences[thread]));
        &mut self.fences[thread]
    }

    /// Adds the next event, with the fences that come after its operation.
    pub fn push(&mut self, thread: ThreadId, op: &Op, fences: impl Iterator<Item = Fence> + Clone) {
        let position = self.marks.len();
        let acquiring = |f: Fence| f.thread == thread && f.first && !f.several && acquires(f.order);
        let via = self.via(op, fences.clone().any(acquiring));
        self.marks.push((self.undo.len(), via));
        let t = thread.index();
        self.save(t);
        let mut clock = self.threads[t];
        if self.fences_of(thread).late {
            let fences = self.save_fences(t);
            fences.late = false;
            join(&mut clock, &fences.seen);
        }
        self.acquire(&mut clock, op);
        self.see(t, op);
        set(&mut clock, t, op_epoch(position));
        self.release(t, op, &clock, position);
        let named = named_thread(op).map(ThreadId::index).filter(|&n| n != t);
        if let (OpKind::ThreadCreate, Some(child)) = (op.kind, named) {
            self.save(child);
            self.threads[child] = clock;
            set(&mut self.threads[child], child, tail_epoch(position));
        }
        set(&mut clock, t, tail_epoch(position));
        self.threads[t] = clock;
        fences.for_each(|fence| self.fence(&fence, position));
    }

    /// Notes what an operation has seen and not acquired.
    fn see(&mut self, thread: usize, op: &Op) {
        let keys = self.seen(op);
        if keys.iter().any(|key| self.find(key).is_some()) {
            let mut seen = self.save_fences(thread).seen;
            self.join_all(&mut seen, keys);
            self.fences[thread].seen = seen;
        }
    }

    /// Adds a fence that comes after the operation at `position`.
    fn fence(&mut self, fence: &Fence, position: usize) {
        let (t, most) = (fence.thread.index(), self.bound == Bound::Most);
        if fence.several && !most {
            return;
        }
        self.save(t);
        let mut clock = self.threads[t];
        let fences = self.save_fences(t);
        if fence.several || acquires(fence.order) {
            if most || fence.first {
                join(&mut clock, &fences.seen);
            } else {
                fences.late = true;
            }
        }
        if fence.several || releases(fence.order) {
            let covers_tail = if most { !fence.first } else { fence.last };
            fences.released = clock;
            let own = if covers_tail { tail_epoch(position) } else { op_epoch(position) };
            set(&mut fences.released, t, own);
        }
        self.threads[t] = clock;
    }

    fn release(&mut self, thread: usize, op: &Op, clock: &Clock<W>, position: usize) {
        if self.bound == Bound::Least && op.kind == OpKind::SemPost {
            self.posts.entry(op.object.0).or_default().push(*clock);
            self.undo.push(Undo::Post(op.object.0));
        }
        let (keys, how) = self.released_by(op);
        let clock = match how {
            Release::Set | Release::Merge => *clock,
            Release::Fenced | Release::MergeFenced => self.fences_of(ThreadId(thread as u16)).released,
        };
        if matches!(how, Release::MergeFenced) && clock == [0; W] {
            return;
        }
        for key in keys.iter() {
            let place = self.place(key);
            let released = &mut self.released[place.index()];
            self.undo.push(Undo::Place(place, *released));
            // Even if that is nothing: what was released before is not there any more.
            let after = position as u32 + 1;
            if matches!(how, Release::Set | Release::Fenced) {
                *released = Released { anew: after, ..Released::NOTHING };
            }
            join(&mut released.clock, &clock);
            released.after = after;
        }
    }

    /// Takes back the events from position `len` on.
    pub fn truncate(&mut self, len: usize) {
        while self.marks.len() > len {
            let (mark, _) = self.marks.pop().unwrap_or_default();
            while self.undo.len() > mark {
                match self.undo.pop() {
                    Some(Undo::Thread(t, clock)) => self.threads[t] = clock,
                    Some(Undo::Fences(t, fences)) => self.fences[t] = fences,
                    Some(Undo::Place(place, released)) => self.released[place.index()] = released,
                    Some(Undo::Post(object)) => _ = self.posts.get_mut(&object).map(Vec::pop),
                    None => {}
                }
            }
        }
    }
}

/// The numbers of places are all that has to be kept: the rest follows from the history.
impl<const W: usize> Saved for Order<W> {
    fn save(&self, into: &mut Vec<u8>) {
        (self.bound == Bound::Most).save(into);
        self.places.iter().copied().collect::<Vec<_>>().save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Order<W>> {
        let mut order = Order::new(if bool::load(from)? { Bound::Most } else { Bound::Least });
        let places: Vec<(u64, u8)> = Vec::load(from)?;
        places.into_iter().for_each(|key| _ = order.place(key));
        Some(order)
    }
}

impl Saved for PlaceId {
    fn save(&self, into: &mut Vec<u8>) {
        self.0.save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<PlaceId> {
        u32::load(from).map(PlaceId)
    }
}
