//! Where an operation or an access of a branch comes from: what it certainly knows of what was before the branch.
//!
//! An operation beyond a state knows what happened before that state in two ways: through a thread that has gone on from there and
//! happens before it, or through an object that was released before the state and acquired after it. Both are there with
//! the twins exchanged, too.

use crate::symmetry::exchange::Exchange;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use symdpor_abi::object::ObjectId;
use symdpor_trace::{ThreadId, saved};

/// Of so many threads it is known whether they have gone before. Knowing less is safe.
pub const TRACKED: usize = 16;
const MAX_VIA: usize = 3;

/// An object that the thread itself acquired, and the releases before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Via {
    pub object: ObjectId,
    /// The lowest byte.
    pub byte: u8,
    /// Position of the acquisition, the least of all occurrences.
    pub acquired: u32,
    /// One more than the position of the last release before it, the most of all; 0 for none.
    pub released: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// For each thread, one more than the position of its last event that happens before the operation, or of its
    /// being joined; the least of all occurrences. If that is beyond a state, the operation knows all that the thread has
    /// done and known up to that state.
    pub after: [u32; TRACKED],
    via: [Via; MAX_VIA],
    /// The number of the last event of the thread that has it: how many events the thread had had by then.
    pub last: u32,
}

impl Origin {
    pub fn new(after: [u32; TRACKED], last: u32) -> Origin {
        Origin { after, via: [Via::default(); MAX_VIA], last }
    }

    /// The latest come first. False if there is no room for more.
    pub fn add_via(&mut self, via: Via) -> bool {
        let known = |v: &&mut Via| v.object == ObjectId::NONE || (v.object, v.byte) == (via.object, via.byte);
        match self.via.iter_mut().find(known) {
            Some(free) if free.object == ObjectId::NONE => *free = via,
            Some(_) => {}
            None => return false,
        }
        true
    }

    fn merge(&mut self, other: &Origin) {
        self.after.iter_mut().zip(&other.after).for_each(|(mine, theirs)| *mine = (*mine).min(*theirs));
        self.last = self.last.max(other.last);
        for mine in &mut self.via {
            match other.via.iter().find(|v| (v.object, v.byte) == (mine.object, mine.byte)) {
                Some(theirs) => {
                    mine.acquired = mine.acquired.min(theirs.acquired);
                    mine.released = mine.released.max(theirs.released);
                }
                None => *mine = Via::default(),
            }
        }
        self.via.sort_unstable_by_key(|v| v.object == ObjectId::NONE);
    }

    /// The threads that an occurrence beyond `position` has certainly come after, `thread`, its own, not among them.
    pub fn after(&self, position: u32, thread: ThreadId) -> impl Iterator<Item = ThreadId> + '_ {
        let later = move |(t, p): (usize, &u32)| (*p > position).then_some(ThreadId(t as u16));
        self.after.iter().enumerate().filter_map(later).filter(move |t| *t != thread)
    }

    /// The objects that were last released before `position` and acquired beyond it.
    pub fn via(&self, position: u32) -> impl Iterator<Item = Via> + '_ {
        let crosses = move |v: &&Via| v.object != ObjectId::NONE && v.acquired >= position && v.released <= position;
        self.via.iter().filter(crosses).copied()
    }

    /// As seen from before `child` was created.
    pub fn before_creation(&self, child: ThreadId, by_child: bool) -> Origin {
        let mut before = *self;
        if let Some(after) = before.after.get_mut(child.index()) {
            *after = 0;
        }
        if by_child {
            // How far the creator has gone says nothing about how far the child has.
            before.last = u32::MAX;
        }
        before
    }

    /// The same in another branch, in which that much is known of the threads. `numbers`: how many events the two threads have
    /// had by now, the one that does it and the one that did it. `objects`: how they correspond, if they are in the same
    /// state. `places`: where the branch that it is from begins, and where the other one does.
    pub fn moved(
        &self,
        after: [u32; TRACKED],
        (now, then): (u32, u32),
        objects: Option<&Exchange>,
        (since, position): (u32, u32),
    ) -> Origin {
        let mut moved = Origin::new(after, self.last);
        if self.last != u32::MAX {
            moved.last = (i64::from(self.last) - i64::from(then) + i64::from(now)).max(1) as u32;
        }
        // What was acquired from memory of its own was released elsewhere.
        let same = |v: &Via| objects.is_some_and(|e| e.object(v.object) == v.object);
        for via in self.via(since).filter(same) {
            moved.add_via(Via { acquired: position, ..via });
        }
        moved
    }
}

/// Brings together the origins of several occurrences. Operations and accesses of one step have the same origin, of which there is one
/// copy: what has been worked out for one of them serves the next.
#[derive(Default)]
pub struct Merger {
    last: Option<[Rc<Origin>; 3]>,
}

impl Merger {
    pub fn merge(&mut self, mine: &mut Rc<Origin>, other: &Rc<Origin>) {
        if Rc::ptr_eq(mine, other) {
            return;
        }
        if let Some([a, b, merged]) = &self.last
            && Rc::ptr_eq(a, mine)
            && Rc::ptr_eq(b, other)
        {
            *mine = merged.clone();
            return;
        }
        let mut merged = **mine;
        merged.merge(other);
        let merged = if merged == **mine { mine.clone() } else { Rc::new(merged) };
        self.last = Some([mine.clone(), other.clone(), merged.clone()]);
        *mine = merged;
    }
}

/// What origins become in another view of them, each copy once. `K`: what it depends on besides.
pub struct Translated<K>(FxHashMap<(*const Origin, K), Translation>);

/// The original is kept along with it, so that nothing else gets its address meanwhile.
struct Translation {
    _original: Rc<Origin>,
    translated: Rc<Origin>,
}

impl<K> Default for Translated<K> {
    fn default() -> Self {
        Translated(FxHashMap::default())
    }
}

impl<K: Eq + std::hash::Hash> Translated<K> {
    pub fn get(&mut self, origin: &Rc<Origin>, key: K, new: impl FnOnce() -> Origin) -> Rc<Origin> {
        let entry = self.0.entry((Rc::as_ptr(origin), key));
        let new = || Translation { _original: origin.clone(), translated: Rc::new(new()) };
        entry.or_insert_with(new).translated.clone()
    }
}

saved!(Via { object, byte, acquired, released });
saved!(Origin { after, via, last });
