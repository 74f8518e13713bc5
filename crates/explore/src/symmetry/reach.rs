//! Where the accesses of a branch can be at all: most accesses from before it are elsewhere.

use crate::symmetry::summary::Summary;
use crate::symmetry::tables::Tables;
use symdpor_abi::object::ObjectId;
use symdpor_trace::PlainAccess;

/// A bit for every 64th granule of memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reach(u64);

fn bits(access: &PlainAccess) -> u64 {
    if access.object == ObjectId::NONE || access.granules >= u64::BITS {
        return u64::MAX;
    }
    let run = (1u64 << access.granules) - 1;
    run.rotate_left((access.object.0 / 8 % 64) as u32)
}

impl Reach {
    pub fn of<const W: usize>(summary: &Summary, tables: &Tables<W>) -> Reach {
        summary.accesses(tables).map(|(access, ..)| access).collect()
    }

    pub fn may_meet(self, access: &PlainAccess) -> bool {
        self.0 & bits(access) != 0
    }
}

impl FromIterator<PlainAccess> for Reach {
    fn from_iter<I: IntoIterator<Item = PlainAccess>>(accesses: I) -> Reach {
        Reach(accesses.into_iter().fold(0, |all, access| all | bits(&access)))
    }
}

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
        let starts = (0..140).map(granule).chain([0]);
        for (start, granules) in starts.flat_map(|s| [1, 2, 9, 63, 64, 70].map(|g| (s, g))) {
            let reach = Reach(bits(&access(start, granules)));
            for other in (0..140).map(|g| access(granule(g), 1)) {
                assert!(!other.overlaps(&access(start, granules)) || reach.may_meet(&other));
            }
        }
        assert!(!Reach(bits(&access(granule(0), 2))).may_meet(&access(granule(2), 1)));
    }
}
