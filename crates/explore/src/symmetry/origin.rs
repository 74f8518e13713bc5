//! Where an operation or an access of a branch comes from: what it certainly knows of what was before the branch.
//!
//! An operation beyond a state knows what happened before that state in two ways: through a thread that has gone on from there and
//! happens before it, or through an object that was released before the state and acquired after it. Both are there with
//! the twins exchanged, too.

use crate::symmetry::exchange::Exchange;
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

impl Via {
    fn is_same(&self, other: &Via) -> bool {
        self.object == other.object && self.byte == other.byte
    }
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

/// Some of the threads that are known of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Threads(u32);

impl Iterator for Threads {
    type Item = ThreadId;

    #[inline]
    fn next(&mut self) -> Option<ThreadId> {
        let thread = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (thread < u32::BITS).then_some(ThreadId(thread as u16))
    }
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

    /// Keeps what is certain of an occurrence of either.
    pub fn merge(&mut self, other: &Origin) {
        self.after.iter_mut().zip(&other.after).for_each(|(mine, theirs)| *mine = (*mine).min(*theirs));
        self.last = self.last.max(other.last);
        let mut kept = 0;
        for i in 0..MAX_VIA {
            let mine = self.via[i];
            if mine.object == ObjectId::NONE {
                break;
            }
            if let Some(theirs) = other.via.iter().find(|v| v.is_same(&mine)) {
                let acquired = mine.acquired.min(theirs.acquired);
                self.via[kept] = Via { acquired, released: mine.released.max(theirs.released), ..mine };
                kept += 1;
            }
        }
        self.via[kept..].fill(Via::default());
    }

    /// Whether merging the other one would change nothing.
    pub fn covers(&self, other: &Origin) -> bool {
        let known = self.after.iter().zip(&other.after).fold(true, |all, (mine, theirs)| all & (mine <= theirs));
        known && self.last >= other.last && self.via.iter().all(|mine| {
            let later = |v: &Via| v.is_same(mine) && mine.acquired <= v.acquired && mine.released >= v.released;
            mine.object == ObjectId::NONE || other.via.iter().any(later)
        })
    }

    /// The threads that an occurrence beyond `position` has certainly come after, `thread`, its own, not among them.
    pub fn after(&self, position: u32, thread: ThreadId) -> Threads {
        let bits = (0..TRACKED).fold(0, |bits, t| bits | u32::from(self.after[t] > position) << t);
        Threads(bits & !1u32.checked_shl(thread.0.into()).unwrap_or(0))
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
        let mut via = [Via::default(); MAX_VIA];
        if let Some(exchange) = objects {
            // What was acquired from memory of its own was released elsewhere.
            let same = |v: &Via| exchange.object(v.object) == v.object;
            let crossing = self.via(since).filter(same).map(|v| Via { acquired: position, ..v });
            via.iter_mut().zip(crossing).for_each(|(room, crossing)| *room = crossing);
        }
        Origin { after, via, last }
    }
}

saved!(Via { object, byte, acquired, released });
saved!(Origin { after, via, last });
