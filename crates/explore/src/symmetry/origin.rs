//! Where an operation or an access of a branch comes from: what it certainly knows of what was before the branch.
//!
//! An operation beyond a state knows what happened before that state in two ways: through a thread that has gone on from there and
//! happens before it, or through an object that was released before the state and acquired after it. Both are there with
//! the twins exchanged, too.

use crate::bits::Bits;
use crate::history::History;
use crate::symmetry::order::PlaceId;
use crate::symmetry::past::widened;
use symdpor_trace::saved::{Reader, Saved};
use symdpor_trace::{ThreadId, ThreadSet};

const MAX_VIA: usize = 3;

/// For each thread, one more than a position. Of how few threads makes a difference, see [`width`](super::width). Positions that do
/// not fit count as the last one that does ([`short`]), which is to know less.
pub type After<const W: usize> = [i16; W];

pub const FARTHEST: i16 = i16::MAX;

/// A position, or one more than that, as it is kept.
#[inline]
pub fn short(position: u32) -> i16 {
    position.min(FARTHEST as u32) as i16
}

/// An object that the thread itself acquired, and since when what was released to it is still there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Via {
    pub place: PlaceId,
    /// The number of the thread's event that acquired it, the least of all occurrences.
    pub number: i16,
    /// One more than the position of the last release before it that ended what had been released until then, the most of all; 0 for
    /// none. [`GROWING`] where any later release is by one who knows the earlier ones.
    pub released: i16,
}

pub const GROWING: i16 = -1;

impl Via {
    fn is_none(&self) -> bool {
        self.place == PlaceId::NONE
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin<const W: usize> {
    /// For each thread, one more than the position of its last event that happens before the operation, or of its
    /// being joined; the least of all occurrences. If that is beyond a state, the operation knows all that the thread has
    /// done and known up to that state.
    pub after: After<W>,
    /// Those that there are come first.
    via: [Via; MAX_VIA],
    /// How many events of each thread happen before the operation, the least of all occurrences; as many as fit. All of them, if the
    /// thread was joined.
    pub counts: Counts<W>,
    /// The number of the last event of the thread that has it: how many events the thread had had by then.
    pub last: u32,
}

pub type Counts<const W: usize> = [u8; W];

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

impl<const W: usize> Origin<W> {
    pub fn new(after: After<W>, acquired: &Acquired, counts: Counts<W>, last: u32) -> Origin<W> {
        Origin { after, via: acquired.via, counts, last }
    }

    /// The same where more threads are known of, but none of them here.
    pub fn widened<const V: usize>(&self) -> Origin<V> {
        Origin { after: widened(&self.after), via: self.via, counts: widened(&self.counts), last: self.last }
    }

    /// Keeps what is certain of an occurrence of either.
    #[inline]
    pub fn merge(&mut self, other: &Origin<W>) {
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
                let (number, released) = (mine.number.min(theirs.number), mine.released.max(theirs.released));
                self.via[kept] = Via { number, released, ..mine };
                kept += 1;
            }
        }
        self.via[kept..].fill(Via::default());
    }

    /// Whether merging the other one would change nothing.
    #[inline]
    pub fn covers(&self, other: &Origin<W>) -> bool {
        let known = (0..W).fold(true, |all, t| all & (self.after[t] <= other.after[t]));
        let counted = (0..W).fold(true, |all, t| all & (self.counts[t] <= other.counts[t]));
        known
            && counted
            && self.last >= other.last
            && self.via.iter().take_while(|v| !v.is_none()).all(|mine| {
                let same = other.via.iter().find(|v| v.place == mine.place);
                same.is_some_and(|v| mine.number <= v.number && mine.released >= v.released)
            })
    }

    /// The threads that an occurrence beyond `position` has certainly come after, `thread`, its own, not among them.
    #[inline]
    pub fn after(&self, position: u32, thread: ThreadId) -> Bits {
        let mut threads = Bits::greater(&self.after, short(position));
        threads.remove(thread);
        threads
    }

    /// Those of them that go on from here, too, before it does: some threads have moved since that position.
    #[inline]
    pub fn after_from(&self, position: u32, thread: ThreadId, moved: &ThreadSet, history: &History) -> Bits {
        let mut threads = self.after(position, thread);
        if !moved.is_empty() {
            threads.retain(|t| !moved.contains(t) || self.is_after(t, history.number(t)));
        }
        threads
    }

    /// Whether the thread, which has had so many events in a state, has certainly gone on from there before this.
    #[inline]
    pub fn is_after(&self, thread: ThreadId, number: u32) -> bool {
        self.counts.get(thread.index()).is_some_and(|known| u32::from(*known) > number)
    }

    /// The objects that the thread acquired after its first `number` events, with all that had been released to them before
    /// `position`.
    #[inline]
    pub fn via(&self, position: u32, number: u32) -> impl Iterator<Item = Via> + '_ {
        let (position, number) = (short(position), short(number));
        let crosses = move |v: &&Via| v.number > number && v.released <= position && position != FARTHEST;
        self.via.iter().take_while(|v| !v.is_none()).filter(crosses).copied()
    }

    /// As seen from before `child` was created.
    pub fn before_creation(&self, child: ThreadId, by_child: bool) -> Origin<W> {
        let mut before = *self;
        if let Some(after) = before.after.get_mut(child.index()) {
            *after = 0;
            before.counts[child.index()] = 0;
        }
        if by_child {
            // How far the creator has gone says nothing about how far the child has, of which nothing is before that.
            before.last = u32::MAX;
            before.via.iter_mut().filter(|via| !via.is_none()).for_each(|via| via.number = FARTHEST);
        }
        before
    }

    /// The same in another branch, in which that much is known of the threads. `numbers`: how many events the two threads have
    /// had by now, the one that does it and the one that did it. `acquired`: what is acquired there, too.
    #[inline]
    pub fn moved(
        &self,
        (after, counts): (After<W>, Counts<W>),
        (now, then): (u32, u32),
        acquired: &Acquired,
    ) -> Origin<W> {
        let last = match self.last {
            u32::MAX => u32::MAX,
            last => (i64::from(last) - i64::from(then) + i64::from(now)).max(1) as u32,
        };
        Origin { after, via: acquired.via, counts, last }
    }
}

/// Positions and numbers are not negative.
impl Saved for Via {
    fn save(&self, into: &mut Vec<u8>) {
        let Via { place, number, released } = self;
        (*place, *number as u16, (i32::from(*released) - i32::from(GROWING)) as u16).save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Via> {
        let (place, number, released): (PlaceId, u16, u16) = Saved::load(from)?;
        let released = (i32::from(released) + i32::from(GROWING)).try_into().ok()?;
        Some(Via { place, number: number.try_into().ok()?, released })
    }
}

impl<const W: usize> Saved for Origin<W> {
    fn save(&self, into: &mut Vec<u8>) {
        let Origin { after, via, counts, last } = self;
        after.map(|position| position as u16).save(into);
        via.save(into);
        counts.save(into);
        last.save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Origin<W>> {
        let saved: [u16; W] = Saved::load(from)?;
        let mut after = [0; W];
        for (position, saved) in after.iter_mut().zip(saved) {
            *position = saved.try_into().ok()?;
        }
        Some(Origin { after, via: Saved::load(from)?, counts: Saved::load(from)?, last: u32::load(from)? })
    }
}
