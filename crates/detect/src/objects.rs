//! The clocks of synchronisation objects and atomics, by address: a hash table with open addressing.
//!
//! An entry of an earlier execution counts as free, so the table is emptied by starting another execution. Within an
//! execution nothing is removed.

use crate::clock::Clock;
use crate::pages::Pages;

/// What lives at an address: a mutex and an atomic at the same place have nothing to do with each other.
#[derive(Clone, Copy)]
pub(crate) enum Space {
    Object = 0,
    Atomic = 1,
}

fn key(space: Space, address: usize) -> u64 {
    address as u64 ^ (space as u64) << 63
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Entry {
    key: u64,
    clock: Clock,
}

const FIRST_LEN: usize = 1024;

pub(crate) struct Objects {
    entries: *mut Entry,
    /// A power of two.
    len: usize,
    /// Entries of this execution.
    used: usize,
}

impl Objects {
    pub(crate) const fn new() -> Objects {
        Objects { entries: core::ptr::null_mut(), len: 0, used: 0 }
    }

    pub(crate) fn init(&mut self, pages: &mut Pages) -> bool {
        self.entries = pages.take(FIRST_LEN);
        self.len = FIRST_LEN;
        !self.entries.is_null()
    }

    pub(crate) fn begin_execution(&mut self) {
        self.used = 0;
    }

    pub(crate) fn clear(&mut self) {
        for i in 0..self.len {
            // SAFETY: the table is `len` long.
            unsafe { (*self.entries.add(i)).clock = Clock::NONE };
        }
    }

    /// The entry of `key`, or the free one where it belongs.
    fn probe(&self, key: u64, execution: u32) -> *mut Entry {
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let mut index = hash as usize & (self.len - 1);
        loop {
            // SAFETY: the table is `len` long; it is at most half full, so the search ends.
            let entry = unsafe { self.entries.add(index) };
            // SAFETY: as above.
            let found = unsafe { &*entry };
            if found.key == key || !found.clock.is_valid(execution) {
                return entry;
            }
            index = (index + 1) & (self.len - 1);
        }
    }

    /// The clock of the object, if it has one in this execution.
    pub(crate) fn get(&mut self, space: Space, address: usize, execution: u32) -> Option<&mut Clock> {
        let entry = self.probe(key(space, address), execution);
        // SAFETY: an entry of the table; the detector uses one at a time.
        let entry = unsafe { &mut *entry };
        entry.clock.is_valid(execution).then_some(&mut entry.clock)
    }

    /// The clock of the object, empty if it had none. None if memory is out.
    pub(crate) fn get_or_insert(
        &mut self,
        space: Space,
        address: usize,
        execution: u32,
        pages: &mut Pages,
    ) -> Option<&mut Clock> {
        if self.used >= self.len / 2 {
            self.grow(execution, pages)?;
        }
        let key = key(space, address);
        let entry = self.probe(key, execution);
        // SAFETY: an entry of the table; the detector uses one at a time.
        let entry = unsafe { &mut *entry };
        if !entry.clock.is_valid(execution) {
            *entry = Entry { key, clock: Clock::empty(execution) };
            self.used += 1;
        }
        Some(&mut entry.clock)
    }

    fn grow(&mut self, execution: u32, pages: &mut Pages) -> Option<()> {
        let (old, old_len) = (self.entries, self.len);
        let entries: *mut Entry = pages.take(old_len * 2);
        if entries.is_null() {
            return None;
        }
        (self.entries, self.len) = (entries, old_len * 2);
        for i in 0..old_len {
            // SAFETY: the old table is `old_len` long.
            let entry = unsafe { *old.add(i) };
            if entry.clock.is_valid(execution) {
                // SAFETY: an entry of the new table.
                unsafe { *self.probe(entry.key, execution) = entry };
            }
        }
        Some(())
    }
}
