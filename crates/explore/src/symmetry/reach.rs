//! Where the accesses of a branch can be at all: most accesses from before it are elsewhere.

use symdpor_abi::object::ObjectId;
use symdpor_trace::{PlainAccess, saved};

const WORDS: usize = 4;
const BITS: u32 = WORDS as u32 * u64::BITS;

/// A bit for every 256th granule of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Reach {
    words: [u64; WORDS],
}

/// The word and the bit of each granule of an access.
fn places(access: &PlainAccess) -> impl Iterator<Item = (usize, u64)> {
    let first = (access.object.0 / 8) as u32;
    let granules = (0..access.granules).map(move |g| first.wrapping_add(g) % BITS);
    granules.map(|granule| ((granule / u64::BITS) as usize, 1 << (granule % u64::BITS)))
}

fn is_anywhere(access: &PlainAccess) -> bool {
    access.object == ObjectId::NONE || access.granules >= BITS
}

impl Reach {
    const EVERYWHERE: Reach = Reach { words: [u64::MAX; WORDS] };

    fn of(access: &PlainAccess) -> Reach {
        if is_anywhere(access) {
            return Reach::EVERYWHERE;
        }
        let mut reach = Reach::default();
        places(access).for_each(|(word, bit)| reach.words[word] |= bit);
        reach
    }

    fn add(&mut self, other: Reach) {
        self.words.iter_mut().zip(other.words).for_each(|(mine, theirs)| *mine |= theirs);
    }

    fn may_meet(&self, access: &PlainAccess) -> bool {
        if is_anywhere(access) {
            return *self != Reach::default();
        }
        places(access).any(|(word, bit)| self.words[word] & bit != 0)
    }
}

saved!(Reach { words });

/// Where accesses can be, and where those can be that write. There may be more in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    all: Reach,
    written: Reach,
}

impl Extent {
    pub fn add(&mut self, access: &PlainAccess) {
        let reach = Reach::of(access);
        self.all.add(reach);
        if access.write {
            self.written.add(reach);
        }
    }

    pub fn unite(&mut self, other: &Extent) {
        self.all.add(other.all);
        self.written.add(other.written);
    }

    /// Whether an access may overlap one of these, and one of the two writes.
    pub fn may_conflict(&self, access: &PlainAccess) -> bool {
        if access.write { &self.all } else { &self.written }.may_meet(access)
    }
}

impl<'a> FromIterator<&'a PlainAccess> for Extent {
    fn from_iter<I: IntoIterator<Item = &'a PlainAccess>>(accesses: I) -> Extent {
        let mut extent = Extent::default();
        accesses.into_iter().for_each(|access| extent.add(access));
        extent
    }
}

saved!(Extent { all, written });

#[cfg(test)]
mod tests {
    use super::*;
    use symdpor_trace::ThreadId;

    #[test]
    fn whatever_overlaps_may_meet() {
        let access = |object: u64, granules| PlainAccess {
            thread: ThreadId(1),
            object: ObjectId(object),
            granules,
            mask: 0xff,
            write: true,
        };
        let granule = |g: u64| (1 << 60) + 8 * g;
        let starts = (0..540).step_by(3).map(granule).chain([0]);
        for (start, granules) in starts.flat_map(|s| [1, 2, 9, 64, 255, 256, 270].map(|g| (s, g))) {
            let reach = Reach::of(&access(start, granules));
            for other in (0..540).map(|g| access(granule(g), 1)) {
                assert!(!other.overlaps(&access(start, granules)) || reach.may_meet(&other));
            }
        }
        assert!(!Reach::of(&access(granule(0), 2)).may_meet(&access(granule(2), 1)));
    }
}
