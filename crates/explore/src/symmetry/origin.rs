//! Where an operation or an access of a branch comes from: what it certainly knows of what was before the branch.
//!
//! An operation beyond a state knows what happened before that state in two ways: through a thread that has gone on from there and
//! happens before it, or through an object that was released before the state and acquired after it. Both are there with
//! the twins exchanged, too.

use crate::symmetry::order::PlaceId;
use symdpor_trace::ThreadId;
use symdpor_trace::saved::{Reader, Saved};

/// Of so many threads it is known whether they have gone before. Knowing less is safe.
pub const TRACKED: usize = 16;
const MAX_VIA: usize = 3;

/// For each thread, one more than a position. All of it fits into two registers; positions that do not fit count as the last one
/// that does ([`short`]), which is to know less.
pub type After = [i16; TRACKED];

pub const FARTHEST: i16 = i16::MAX;

/// A position, or one more than that, as it is kept.
#[inline]
pub fn short(position: u32) -> i16 {
    position.min(FARTHEST as u32) as i16
}

/// An object that the thread itself acquired, and the releases before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Via {
    pub place: PlaceId,
    /// Position of the acquisition, the least of all occurrences.
    pub acquired: i16,
    /// One more than the position of the last release before it, the most of all; 0 for none. [`GROWING`] where any later release
    /// is by one who knows the earlier ones: then which was the last does not matter.
    pub released: i16,
}

pub const GROWING: i16 = -1;

impl Via {
    /// Whether what was released to it before a state is known to who acquires it beyond, whoever has released it meanwhile.
    pub fn is_growing(&self) -> bool {
        self.released == GROWING
    }

    fn is_none(&self) -> bool {
        self.place == PlaceId::NONE
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// For each thread, one more than the position of its last event that happens before the operation, or of its
    /// being joined; the least of all occurrences. If that is beyond a state, the operation knows all that the thread has
    /// done and known up to that state.
    pub after: After,
    /// Those that there are come first.
    via: [Via; MAX_VIA],
    /// How many events of each thread happen before the operation, the least of all occurrences; as many as fit. All of them, if the
    /// thread was joined.
    pub counts: Counts,
    /// The number of the last event of the thread that has it: how many events the thread had had by then.
    pub last: u32,
}

pub type Counts = [u8; TRACKED];

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
        match self.via.iter_mut().find(|v| v.is_none() || v.place == via.place) {
            Some(free) if free.is_none() => *free = via,
            Some(_) => {}
            None => return false,
        }
        true
    }
}

impl Origin {
    pub fn new(after: After, acquired: &Acquired, counts: Counts, last: u32) -> Origin {
        Origin { after, via: acquired.via, counts, last }
    }

    /// Keeps what is certain of an occurrence of either.
    #[inline]
    pub fn merge(&mut self, other: &Origin) {
        self.after.iter_mut().zip(&other.after).for_each(|(mine, theirs)| *mine = (*mine).min(*theirs));
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine = (*mine).min(*theirs));
        self.last = self.last.max(other.last);
        let mut kept = 0;
        for i in 0..MAX_VIA {
            let mine = self.via[i];
            if mine.is_none() {
                break;
            }
            if let Some(theirs) = other.via.iter().find(|v| v.place == mine.place) {
                let (acquired, released) = (mine.acquired.min(theirs.acquired), mine.released.max(theirs.released));
                self.via[kept] = Via { acquired, released, ..mine };
                kept += 1;
            }
        }
        self.via[kept..].fill(Via::default());
    }

    /// Whether merging the other one would change nothing.
    #[inline]
    pub fn covers(&self, other: &Origin) -> bool {
        let known = (0..TRACKED).fold(true, |all, t| all & (self.after[t] <= other.after[t]));
        let counted = (0..TRACKED).fold(true, |all, t| all & (self.counts[t] <= other.counts[t]));
        known
            && counted
            && self.last >= other.last
            && self.via.iter().take_while(|v| !v.is_none()).all(|mine| {
                let same = other.via.iter().find(|v| v.place == mine.place);
                same.is_some_and(|v| mine.acquired <= v.acquired && mine.released >= v.released)
            })
    }

    /// The threads that an occurrence beyond `position` has certainly come after, `thread`, its own, not among them.
    #[inline]
    pub fn after(&self, position: u32, thread: ThreadId) -> Threads {
        let position = short(position);
        let bits = (0..TRACKED).fold(0, |bits, t| bits | u32::from(self.after[t] > position) << t);
        Threads(bits & !1u32.checked_shl(thread.0.into()).unwrap_or(0))
    }

    /// Whether the thread, which has had so many events in a state, has certainly gone on from there before this.
    pub fn is_after(&self, thread: ThreadId, number: u32) -> bool {
        self.counts.get(thread.index()).is_some_and(|known| u32::from(*known) > number)
    }

    /// The objects that were last released before `position` and acquired beyond it.
    #[inline]
    pub fn via(&self, position: u32) -> impl Iterator<Item = Via> + '_ {
        let position = short(position);
        let crosses =
            move |v: &&Via| !v.is_none() && v.acquired >= position && v.released <= position && position != FARTHEST;
        self.via.iter().filter(crosses).copied()
    }

    /// As seen from before `child` was created.
    pub fn before_creation(&self, child: ThreadId, by_child: bool) -> Origin {
        let mut before = *self;
        if let Some(after) = before.after.get_mut(child.index()) {
            *after = 0;
            before.counts[child.index()] = 0;
        }
        if by_child {
            // How far the creator has gone says nothing about how far the child has.
            before.last = u32::MAX;
        }
        before
    }

    /// The same in another branch, in which that much is known of the threads. `numbers`: how many events the two threads have
    /// had by now, the one that does it and the one that did it. `same`: whether something is acquired there, too. `places`: where
    /// the branch that it is from begins, and where the other one does.
    #[inline]
    pub fn moved(
        &self,
        (after, counts): (After, Counts),
        (now, then): (u32, u32),
        same: impl Fn(&Via) -> bool,
        (since, position): (u32, u32),
    ) -> Origin {
        let last = match self.last {
            u32::MAX => u32::MAX,
            last => (i64::from(last) - i64::from(then) + i64::from(now)).max(1) as u32,
        };
        let mut via = [Via::default(); MAX_VIA];
        let crossing = self.via(since).filter(same).map(|v| Via { acquired: short(position), ..v });
        via.iter_mut().zip(crossing).for_each(|(room, crossing)| *room = crossing);
        Origin { after, via, counts, last }
    }
}

/// Positions are not negative.
impl Saved for Via {
    fn save(&self, into: &mut Vec<u8>) {
        let Via { place, acquired, released } = self;
        (*place, *acquired as u16, (i32::from(*released) - i32::from(GROWING)) as u16).save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Via> {
        let (place, acquired, released): (PlaceId, u16, u16) = Saved::load(from)?;
        let released = (i32::from(released) + i32::from(GROWING)).try_into().ok()?;
        Some(Via { place, acquired: acquired.try_into().ok()?, released })
    }
}

impl Saved for Origin {
    fn save(&self, into: &mut Vec<u8>) {
        let Origin { after, via, counts, last } = self;
        after.map(|position| position as u16).save(into);
        via.save(into);
        counts.save(into);
        last.save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Origin> {
        let saved: [u16; TRACKED] = Saved::load(from)?;
        let mut after = [0; TRACKED];
        for (position, saved) in after.iter_mut().zip(saved) {
            *position = saved.try_into().ok()?;
        }
        Some(Origin { after, via: Saved::load(from)?, counts: Saved::load(from)?, last: u32::load(from)? })
    }
}
