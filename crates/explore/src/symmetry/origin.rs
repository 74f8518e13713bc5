//! Where an operation or an access of a branch comes from: what it certainly knows of what was before the branch.
//!
//! An operation beyond a state knows what happened before that state in two ways: through a thread that has gone on from there and
//! happens before it, or through an object that was released before the state and acquired after it. Both are there with
//! the twins exchanged, too.

use crate::symmetry::exchange::Exchange;
use std::hash::{Hash, Hasher};
use symdpor_abi::object::ObjectId;
use symdpor_trace::{ThreadId, saved};

/// Of so many threads it is known whether they have gone before. Knowing less is safe.
pub const TRACKED: usize = 16;
const MAX_VIA: usize = 3;

/// An object that the thread itself acquired, and the releases before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
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

/// By whole words: origins are looked up by their content all the time.
impl Hash for Origin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Origin { after, via, last } = self;
        after.as_chunks::<2>().0.iter().for_each(|[low, high]| state.write_u64(pair(*low, *high)));
        for via in via.iter().filter(|v| v.object != ObjectId::NONE) {
            state.write_u64(via.object.0 ^ u64::from(via.byte));
            state.write_u64(pair(via.acquired, via.released));
        }
        state.write_u32(*last);
    }
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// The objects that a thread has acquired last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acquired {
    via: [Via; MAX_VIA],
}

impl Acquired {
    /// The latest come first. False if there is no room for more.
    pub fn add(&mut self, via: Via) -> bool {
        let known = |v: &&mut Via| v.object == ObjectId::NONE || (v.object, v.byte) == (via.object, via.byte);
        match self.via.iter_mut().find(known) {
            Some(free) if free.object == ObjectId::NONE => *free = via,
            Some(_) => {}
            None => return false,
        }
        true
    }
}

impl Origin {
    pub fn new(after: [u32; TRACKED], acquired: &Acquired, last: u32) -> Origin {
        Origin { after, via: acquired.via, last }
    }

    /// Several occurrences of the same.
    pub fn merge(&mut self, other: &Origin) {
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
        let last = match self.last {
            u32::MAX => u32::MAX,
            last => (i64::from(last) - i64::from(then) + i64::from(now)).max(1) as u32,
        };
        let mut acquired = Acquired::default();
        // What was acquired from memory of its own was released elsewhere.
        let same = |v: &Via| objects.is_some_and(|e| e.object(v.object) == v.object);
        for via in self.via(since).filter(same) {
            acquired.add(Via { acquired: position, ..via });
        }
        Origin::new(after, &acquired, last)
    }
}

saved!(Via { object, byte, acquired, released });
saved!(Origin { after, via, last });
