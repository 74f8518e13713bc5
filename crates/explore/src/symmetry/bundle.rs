//! The accesses of a thread in one step, as one thing: they come together and know the same, and are renamed together.

use crate::symmetry::exchange::Exchange;
use crate::symmetry::reach::Extent;
use crate::symmetry::tables::Phase;
use indexmap::Equivalent;
use std::hash::{Hash, Hasher};
use symdpor_abi::object::ObjectId;
use symdpor_trace::saved::{Reader, Saved};
use symdpor_trace::{PlainAccess, ThreadId};

/// What makes one out.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key<'a> {
    /// As main's.
    pub accesses: &'a [PlainAccess],
    /// Whether they are those of an atomic operation.
    pub atomic: bool,
    pub phase: Phase,
}

#[derive(Clone, Debug)]
pub struct Bundle {
    accesses: Box<[PlainAccess]>,
    pub atomic: bool,
    phase: Phase,
    // What follows from the accesses: where they can be at all, the lowest and the highest object, and whether one is a futex.
    extent: Extent,
    lowest: u64,
    highest: u64,
    has_futex: bool,
}

impl Bundle {
    pub fn new(Key { accesses, atomic, phase }: Key<'_>) -> Bundle {
        let objects = || accesses.iter().map(|a| a.object.0);
        Bundle {
            accesses: accesses.into(),
            atomic,
            phase,
            extent: accesses.iter().collect(),
            lowest: objects().min().unwrap_or(u64::MAX),
            highest: objects().max().unwrap_or(0),
            has_futex: accesses.iter().any(|a| a.object.is_futex()),
        }
    }

    pub fn key(&self) -> Key<'_> {
        Key { accesses: &self.accesses, atomic: self.atomic, phase: self.phase }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn extent(&self) -> &Extent {
        &self.extent
    }

    pub fn len(&self) -> usize {
        self.accesses.len()
    }

    /// The accesses, as those of a thread.
    pub fn of(&self, thread: ThreadId) -> impl Iterator<Item = PlainAccess> {
        self.accesses.iter().map(move |access| PlainAccess { thread, ..*access })
    }

    /// Whether one of them conflicts with an access.
    pub fn conflicts(&self, access: &PlainAccess) -> bool {
        let conflicts = |mine: &PlainAccess| (access.write || mine.write) && access.overlaps(mine);
        self.extent.may_conflict(access) && self.accesses.iter().any(conflicts)
    }

    /// Whether one of them begins in a range.
    pub fn begins_in(&self, start: ObjectId, bytes: u64) -> bool {
        let apart = self.highest < start.0 || self.lowest.wrapping_sub(start.0) >= bytes && self.lowest >= start.0;
        !apart && self.accesses.iter().any(|a| a.object.0.wrapping_sub(start.0) < bytes)
    }

    /// Whether one of them may be to something else with the threads exchanged. A quick no.
    pub fn is_concerned(&self, exchange: &Exchange) -> bool {
        self.has_futex || exchange.may_change_between(self.lowest, self.highest)
    }
}

impl PartialEq for Bundle {
    fn eq(&self, other: &Bundle) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Bundle {}

impl Hash for Bundle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl Equivalent<Bundle> for Key<'_> {
    fn equivalent(&self, bundle: &Bundle) -> bool {
        *self == bundle.key()
    }
}

impl Saved for Bundle {
    fn save(&self, into: &mut Vec<u8>) {
        let Key { accesses, atomic, phase } = self.key();
        accesses.len().save(into);
        accesses.iter().for_each(|access| access.save(into));
        (atomic, phase).save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Bundle> {
        let (accesses, atomic, phase): (Vec<PlainAccess>, bool, Phase) = Saved::load(from)?;
        Some(Bundle::new(Key { accesses: &accesses, atomic, phase }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(object: u64, granules: u32, write: bool) -> PlainAccess {
        PlainAccess { thread: ThreadId::MAIN, object: ObjectId(object), granules, mask: 0xff, write }
    }

    fn bundle(accesses: &[PlainAccess]) -> Bundle {
        Bundle::new(Key { accesses, atomic: false, phase: Phase::default() })
    }

    #[test]
    fn one_of_several_is_enough() {
        let both = bundle(&[access(800, 2, false), access(80, 1, true)]);
        assert!(both.conflicts(&access(808, 1, true)) && !both.conflicts(&access(808, 1, false)));
        assert!(both.conflicts(&access(80, 1, false)) && !both.conflicts(&access(88, 1, true)));
        assert!(both.begins_in(ObjectId(80), 8) && both.begins_in(ObjectId(790), 11));
        assert!(!both.begins_in(ObjectId(88), 712) && !both.begins_in(ObjectId(808), 8));
        assert!(!both.begins_in(ObjectId(0), 80) && !bundle(&[]).begins_in(ObjectId(0), u64::MAX));
    }

    #[test]
    fn what_was_saved_is_found_by_its_key() {
        let one = bundle(&[access(80, 1, true), access(800, 3, false)]);
        let mut bytes = Vec::new();
        one.save(&mut bytes);
        let read = Bundle::load(&mut Reader::new(&bytes)).expect("it was written whole");
        assert!(read == one && one.key().equivalent(&read));
        assert!(read != bundle(&[access(800, 3, false), access(80, 1, true)]));
    }
}
