//! Data races: two conflicting accesses, at least one of them plain, that happens-before does not order.
//!
//! After FastTrack (Flanagan and Freund, PLDI 2009) and ThreadSanitizer, but exact: each byte has its own history,
//! nothing is ever evicted, and every kind of access (plain or atomic, read or write) is kept as long as it could still
//! race. Up to the first race of an execution the verdict equals that of a check of all pairs of accesses. A racing
//! access is reported and not recorded, so later verdicts are exact too, as if it had not been made.
//!
//! Not covered: accesses the runtime does not tell of; more than 2^24 chain nodes in one execution or no more
//! memory, after which [`Detector::exhausted`] says that races may be missed.

use crate::MapPages;
use crate::chain::Chains;
use crate::clock::Threads;
use crate::log::AccessLog;
use crate::objects::Space;
use crate::pages::Pages;
use crate::race::{Race, View};
use crate::record::{Kind, Record};
use crate::shadow::{Cell, Shadow};
use crate::sync::Sync;

/// The happens-before relation and the access history of the running execution. Thread numbers are below
/// [`crate::MAX_THREADS`] (taken modulo it); addresses outside the user address space are ignored.
pub struct Detector {
    shadow: Shadow,
    threads: Threads,
    chains: Chains,
    sync: Sync,
    pages: Pages,
    log: AccessLog,
}

impl Default for Detector {
    fn default() -> Detector {
        Detector::new()
    }
}

impl Detector {
    pub const fn new() -> Detector {
        Detector {
            shadow: Shadow::new(),
            threads: Threads::new(),
            chains: Chains::new(),
            sync: Sync::new(),
            pages: Pages::new(),
            log: AccessLog::new(),
        }
    }

    /// To be called once, before anything else: until then (and if memory is out already) nothing is checked.
    pub fn init(&mut self, map: MapPages) {
        self.pages.init(map);
        let ready = self.shadow.init(&mut self.pages)
            && self.chains.init(&mut self.pages)
            && self.sync.init(&mut self.pages)
            && self.threads.init(&mut self.pages);
        if ready {
            self.begin_execution();
        }
    }

    /// Everything so far happened before everything to come, and only main runs.
    pub fn begin_execution(&mut self) {
        if !self.threads.is_ready() {
            return;
        }
        if self.threads.must_wrap() {
            self.clear();
        }
        self.threads.begin_execution();
        self.chains.begin_execution();
        self.sync.begin_execution();
    }

    #[cold]
    fn clear(&mut self) {
        self.shadow.clear();
        self.threads.clear();
        self.sync.clear();
    }

    /// Whether something ran out, so that races may have been missed.
    pub fn exhausted(&self) -> bool {
        self.pages.exhausted()
    }

    /// The thread's own clock: it changes whenever the thread releases something.
    pub fn epoch(&self, t: u16) -> u32 {
        if self.threads.is_ready() { self.threads.epoch(t as usize) } else { 0 }
    }

    /// The plain accesses since it was last cleared, if it is on.
    pub fn log(&mut self) -> &mut AccessLog {
        &mut self.log
    }

    /// Has the thread's next accesses checked, and logged, as if it had made none yet.
    pub fn new_epoch(&mut self, t: u16) {
        if self.threads.is_ready() {
            self.threads.tick_quietly(t as usize % crate::MAX_THREADS);
        }
    }

    /// A plain read.
    #[inline]
    pub fn read(&mut self, t: u16, address: usize, len: usize) -> Option<Race> {
        self.access(t, address, len, Kind::READ)
    }

    /// A plain write.
    #[inline]
    pub fn write(&mut self, t: u16, address: usize, len: usize) -> Option<Race> {
        self.access(t, address, len, Kind::WRITE)
    }

    /// The read of an atomic load; what it synchronises with is [`Detector::atomic_load`]'s.
    #[inline]
    pub fn atomic_read(&mut self, t: u16, address: usize, len: usize) -> Option<Race> {
        self.access(t, address, len, Kind::ATOMIC_READ)
    }

    /// The write of an atomic store or read-modify-write.
    #[inline]
    pub fn atomic_write(&mut self, t: u16, address: usize, len: usize) -> Option<Race> {
        self.access(t, address, len, Kind::ATOMIC_WRITE)
    }

    /// Whether the thread has made this plain access, or a stronger one, in this epoch already: then there is nothing to
    /// check or to record. False if that would take long to find out.
    #[inline(always)]
    pub fn has_seen(&self, t: u16, address: usize, len: usize, writes: bool) -> bool {
        const BYTES: [u8; 16] = [0, 1, 3, 7, 15, 31, 63, 127, 255, 0, 0, 0, 0, 0, 0, 0];
        let bytes = (BYTES[len % 16] as u32) << (address % 8);
        if len > 8 || bytes > 0xff {
            return false;
        }
        let Some(cell) = self.shadow.cached(address) else { return false };
        let kind = if writes { Kind::WRITE } else { Kind::READ };
        // A cached leaf means that `init` went well, so the rows are there.
        let access = Record::new(self.threads.epoch(t as usize), t as usize, kind, bytes as u8);
        // SAFETY: the cache gives valid cells.
        let Cell { first, second } = unsafe { *cell };
        first.absorbs(access) || second.absorbs(access)
    }

    /// Whether the thread has made this plain access, or a stronger one, since it last released anything: then another makes no
    /// difference to any later race. The answer depends on what the thread has done in this execution and on nothing else: not on where
    /// memory is, nor on what earlier executions have left behind. False for what spans more than a few granules.
    pub fn has_made(&self, t: u16, address: usize, len: usize, writes: bool) -> bool {
        const MOST_GRANULES: usize = 8;
        let Some(end) = address.checked_add(len).filter(|&end| end > address) else { return false };
        let granules = (address & !7..end).step_by(8);
        granules.len() <= MOST_GRANULES
            && granules.into_iter().all(|granule| {
                let bytes = bytes_between(address.max(granule) - granule, (end - granule).min(8));
                self.has_made_bytes(t, granule, bytes, if writes { Kind::WRITE } else { Kind::READ })
            })
    }

    fn has_made_bytes(&self, t: u16, granule: usize, bytes: u8, kind: Kind) -> bool {
        let Some(cell) = self.shadow.existing(granule) else { return false };
        let since = self.threads.since(t as usize);
        // A record with the thread's own clock: the same access in that epoch would be absorbed.
        let made = |r: Record| r.clock() >= since && r.absorbs(Record::new(r.clock(), t as usize, kind, bytes));
        // SAFETY: `existing` gives valid cells.
        let Cell { first, second } = unsafe { *cell };
        match second.chain_index(self.threads.base()) {
            None => made(first) || made(second),
            Some(chain) => {
                let mut found = made(first);
                self.chains.visit(chain, |record| found |= made(record));
                found
            }
        }
    }

    #[inline]
    fn access(&mut self, t: u16, address: usize, len: usize, kind: Kind) -> Option<Race> {
        let offset = address % 8;
        if len.wrapping_sub(1) >= 8 - offset {
            return self.access_range(t, address, len, kind);
        }
        self.access_bytes(t, address - offset, (0xffu8 >> (8 - len)) << offset, kind)
    }

    /// The fast path: the thread has done the same, or more, in this epoch already.
    #[inline]
    fn access_bytes(&mut self, t: u16, granule: usize, bytes: u8, kind: Kind) -> Option<Race> {
        if let Some(cell) = self.shadow.cached(granule) {
            // A cached leaf means that `init` went well, so the rows are there.
            let access = Record::new(self.threads.epoch(t as usize), t as usize, kind, bytes);
            // SAFETY: the cache gives valid cells.
            let Cell { first, second } = unsafe { *cell };
            if first.absorbs(access) || second.absorbs(access) {
                return None;
            }
        }
        self.access_granule(t, granule, bytes, kind)
    }

    /// Whether anything near an address has been accessed, in this execution or one before: up to [`Detector::next_part`].
    pub fn knows_part(&mut self, address: usize) -> bool {
        self.shadow.existing(address).is_some()
    }

    pub fn next_part(address: usize) -> usize {
        Shadow::next_leaf(address)
    }

    #[inline(never)]
    fn access_range(&mut self, t: u16, address: usize, len: usize, kind: Kind) -> Option<Race> {
        let end = address.saturating_add(len);
        let mut granule = address & !7;
        while granule < end {
            let bytes = bytes_between(address.max(granule) - granule, (end - granule).min(8));
            if let Some(race) = self.access_bytes(t, granule, bytes, kind) {
                return Some(race);
            }
            granule = granule.checked_add(8)?;
        }
        None
    }

    #[inline(never)]
    fn access_granule(&mut self, t: u16, granule: usize, bytes: u8, kind: Kind) -> Option<Race> {
        if !self.threads.is_ready() {
            return None;
        }
        if self.log.is_on() && !kind.is_atomic() {
            self.log.add(t, granule, bytes, kind.writes());
        }
        let cell = self.shadow.find(granule, &mut self.pages)?;
        // SAFETY: `find` gives valid cells; nobody else uses this one meanwhile.
        let cell = unsafe { &mut *cell };
        let access = Record::new(self.threads.epoch(t as usize), t as usize, kind, bytes);
        let view = View { access, row: self.threads.row(t as usize), base: self.threads.base() };
        match cell.second.chain_index(view.base) {
            None => self.check_cell(cell, view, granule),
            Some(chain) => self.check_chain(cell, chain, view, granule),
        }
    }

    /// The usual case: at most two records.
    #[inline]
    fn check_cell(&mut self, cell: &mut Cell, view: View, granule: usize) -> Option<Race> {
        let mut stored = view.access;
        let first = view.rest_of(cell.first, &mut stored);
        let second = view.rest_of(cell.second, &mut stored);
        let (Some(first), Some(second)) = (first, second) else {
            return view.race(granule, [cell.first, cell.second]);
        };
        *cell = self.place(stored, first, second, view.base);
        None
    }

    /// Puts up to three records into a cell: the new write first, the new read second, if there is room.
    #[inline]
    fn place(&mut self, new: Record, first: Record, second: Record, base: u32) -> Cell {
        if second.is_empty() {
            return if new.kind().writes() { Cell { first: new, second: first } } else { Cell { first, second: new } };
        }
        if first.is_empty() {
            return Cell { first: new, second };
        }
        match self.chains.start(&mut self.pages, first, second) {
            Some(chain) => Cell { first: new, second: Record::chain(base, chain) },
            None => Cell { first: new, second },
        }
    }

    /// Any number of records: `first`, and a chain of others.
    #[inline(never)]
    fn check_chain(&mut self, cell: &mut Cell, chain: u32, view: View, granule: usize) -> Option<Race> {
        let (mut absorbed, mut lowest) = (false, view.lowest(cell.first, Record::EMPTY));
        self.chains.visit(chain, |record| {
            absorbed |= record.absorbs(view.access);
            lowest = view.lowest(record, lowest);
        });
        if absorbed {
            return None;
        }
        if !lowest.is_empty() {
            return view.race(granule, [lowest, Record::EMPTY]);
        }
        let mut stored = view.access;
        let mut rest_of = |record| view.rest_of(record, &mut stored).unwrap_or(record);
        let first = rest_of(cell.first);
        if self.chains.update(chain, rest_of) {
            self.extend(cell, chain, first, stored, view.base);
        } else {
            self.chains.release(chain);
            *cell = self.place(stored, first, Record::EMPTY, view.base);
        }
        None
    }

    /// The newest record stays in the cell, where the fast path finds it; the one it replaces goes to the chain.
    fn extend(&mut self, cell: &mut Cell, chain: u32, first: Record, new: Record, base: u32) {
        cell.first = new;
        if !first.is_empty()
            && let Some(head) = self.chains.push(&mut self.pages, chain, first)
        {
            cell.second = Record::chain(base, head);
        }
    }

    /// Forgets all accesses to a range: it is other memory now (a mapping that is gone, a block given out anew).
    pub fn forget(&mut self, address: usize, len: usize) {
        let end = address.saturating_add(len);
        let mut granule = address & !7;
        while granule < end {
            let Some(cell) = self.shadow.existing(granule) else {
                granule = Shadow::next_leaf(granule);
                continue;
            };
            let bytes = bytes_between(address.max(granule) - granule, (end - granule).min(8));
            // SAFETY: `existing` gives valid cells; nobody else uses this one meanwhile.
            self.forget_bytes(unsafe { &mut *cell }, bytes);
            granule = granule.saturating_add(8);
        }
    }

    fn forget_bytes(&mut self, cell: &mut Cell, bytes: u8) {
        cell.first = cell.first.without_bytes(bytes);
        match cell.second.chain_index(self.threads.base()) {
            None => cell.second = cell.second.without_bytes(bytes),
            Some(chain) => {
                if !self.chains.update(chain, |record| record.without_bytes(bytes)) {
                    self.chains.release(chain);
                    cell.second = Record::EMPTY;
                }
            }
        }
    }
}

/// The edges of happens-before.
impl Detector {
    pub fn thread_created(&mut self, parent: u16, child: u16) {
        if self.threads.is_ready() {
            self.threads.created(parent as usize, child as usize);
        }
    }

    pub fn thread_joined(&mut self, joiner: u16, ended: u16) {
        if self.threads.is_ready() {
            self.threads.joined(joiner as usize, ended as usize);
        }
    }

    /// `t` now knows what was released to the object.
    pub fn acquire(&mut self, t: u16, object: usize) {
        if self.threads.is_ready() {
            self.sync.acquire(&self.threads, t as usize, Space::Object, object);
        }
    }

    /// The object now knows what `t` knows, and nothing else.
    pub fn release(&mut self, t: u16, object: usize) {
        self.release_to(t, object, false);
    }

    /// The object now knows what `t` knows, besides what it knew.
    pub fn release_merge(&mut self, t: u16, object: usize) {
        self.release_to(t, object, true);
    }

    fn release_to(&mut self, t: u16, object: usize, merge: bool) {
        if self.threads.is_ready() {
            self.sync.release(&mut self.threads, t as usize, (Space::Object, object), merge, &mut self.pages);
        }
    }

    /// What an atomic load of memory order `order` synchronises with. A failed compare-exchange is one, too.
    pub fn atomic_load(&mut self, t: u16, address: usize, order: u8) {
        if self.threads.is_ready() {
            self.sync.load(&self.threads, t as usize, address, order, &mut self.pages);
        }
    }

    pub fn atomic_store(&mut self, t: u16, address: usize, order: u8) {
        if self.threads.is_ready() {
            self.sync.store(&mut self.threads, t as usize, address, order, &mut self.pages);
        }
    }

    pub fn atomic_rmw(&mut self, t: u16, address: usize, order: u8) {
        if self.threads.is_ready() {
            self.sync.rmw(&mut self.threads, t as usize, address, order, &mut self.pages);
        }
    }

    pub fn fence(&mut self, t: u16, order: u8) {
        if self.threads.is_ready() {
            self.sync.fence(&mut self.threads, t as usize, order, &mut self.pages);
        }
    }
}

/// The bytes of a granule from `from` up to `to`, at most 8.
fn bytes_between(from: usize, to: usize) -> u8 {
    let up_to = |n: usize| ((1u32 << (n & 15)) - 1) as u8;
    up_to(to) & !up_to(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    fn leak_pages(len: usize) -> *mut u8 {
        Vec::leak(std::vec![0u64; len.div_ceil(8)]).as_mut_ptr().cast()
    }

    /// An ordered and an unordered pair of writes, with everything that leaves clocks behind.
    fn run(detector: &mut Detector) {
        detector.begin_execution();
        for t in 1..20 {
            detector.thread_created(0, t);
            assert_eq!(detector.atomic_write(t, 0x4000, 4), None);
        }
        assert_eq!(detector.write(1, 0x1000, 8), None);
        detector.release(1, 0x2000);
        detector.atomic_store(1, 0x2000, 5);
        detector.fence(1, 3);
        detector.atomic_store(1, 0x2008, 0);
        detector.acquire(2, 0x2000);
        assert_eq!(detector.write(2, 0x1000, 8), None);
        assert_eq!(detector.read(3, 0x1000, 1).map(|race| race.other_thread), Some(2));
        detector.atomic_load(3, 0x2008, 0);
        assert!(detector.write(3, 0x1000, 8).is_some());
        assert!(detector.write(2, 0x4003, 1).is_some());
    }

    #[test]
    fn clocks_start_over_before_they_run_out() {
        let mut detector = Box::new(Detector::new());
        detector.init(leak_pages);
        run(&mut detector);
        detector.threads.age();
        let before = detector.threads.base();
        run(&mut detector);
        assert!(detector.threads.base() > before);
        run(&mut detector);
        assert!(detector.threads.base() < before);
        run(&mut detector);
    }

    /// A granule that gets and loses a chain again and again uses the same nodes.
    #[test]
    fn chains_are_given_back() {
        let mut detector = Box::new(Detector::new());
        detector.init(leak_pages);
        (1..8).for_each(|t| detector.thread_created(0, t));
        let mut used = 0;
        for round in 0..100 {
            for t in 0..8 {
                detector.acquire(t, 8);
                assert_eq!(detector.read(t, 0x1000, 8), None);
                detector.release_merge(t, 16);
            }
            detector.acquire(0, 16);
            assert_eq!(detector.write(0, 0x1000, 8), None);
            detector.release(0, 8);
            if round == 0 {
                used = detector.chains.used();
            }
        }
        assert!(used > 1);
        assert_eq!(detector.chains.used(), used);
    }
}
