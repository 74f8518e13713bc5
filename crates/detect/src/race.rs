//! One access held against the records of its granule: does it race, and what must still be kept of them.

use crate::clock::Threads;
use crate::record::Record;

/// A data race between the access just made and an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Race {
    /// The first byte that both accesses touch.
    pub address: usize,
    /// The granule it is in: eight aligned bytes.
    pub granule: usize,
    /// The bytes of the granule that both touch.
    pub mask: u8,
    pub other_thread: u16,
    pub this_writes: bool,
    pub other_writes: bool,
    pub this_atomic: bool,
    pub other_atomic: bool,
}

impl Race {
    pub(crate) fn new(granule: usize, access: Record, other: Record) -> Race {
        let mask = access.bytes() & other.bytes();
        Race {
            address: granule + mask.trailing_zeros() as usize,
            granule,
            mask,
            other_thread: other.thread(),
            this_writes: access.kind().writes(),
            other_writes: other.kind().writes(),
            this_atomic: access.kind().is_atomic(),
            other_atomic: other.kind().is_atomic(),
        }
    }
}

/// The access being checked, and what its thread knows.
#[derive(Clone, Copy)]
pub(crate) struct View {
    pub(crate) access: Record,
    pub(crate) row: *const u32,
    pub(crate) base: u32,
}

impl View {
    /// Whether the record (or the name of a chain) is left over from an earlier execution.
    #[inline]
    fn is_stale(&self, record: Record) -> bool {
        record.clock() <= self.base
    }

    #[inline]
    fn happened_before(&self, record: Record) -> bool {
        Threads::happened_before(self.row, record.thread(), record.clock())
    }

    /// What must still be kept of an older record, or None if it races with the access. A record that is the same but
    /// for its bytes is taken into `stored` instead.
    #[inline]
    pub(crate) fn rest_of(&self, record: Record, stored: &mut Record) -> Option<Record> {
        if self.is_stale(record) {
            return Some(Record::EMPTY);
        }
        if self.happened_before(record) {
            if record.is_twin(self.access) {
                *stored = stored.with_bytes_of(record);
                return Some(Record::EMPTY);
            }
            return Some(record.covered_by(self.access));
        }
        (!self.conflicts(record)).then_some(record)
    }

    #[inline]
    fn conflicts(&self, record: Record) -> bool {
        record.bytes() & self.access.bytes() != 0 && record.kind().conflicts(self.access.kind())
    }

    /// Of a record and the racing one found so far (or none, empty), the one that races on the lowest byte.
    #[inline]
    pub(crate) fn lowest(&self, record: Record, found: Record) -> Record {
        if self.is_stale(record) || self.happened_before(record) || !self.conflicts(record) {
            return found;
        }
        let byte = |r: Record| (r.bytes() & self.access.bytes()).trailing_zeros();
        if byte(record) < byte(found) { record } else { found }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn race(&self, granule: usize, records: [Record; 2]) -> Option<Race> {
        let lowest = self.lowest(records[1], self.lowest(records[0], Record::EMPTY));
        (!lowest.is_empty()).then(|| Race::new(granule, self.access, lowest))
    }
}
