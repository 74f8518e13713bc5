//! The shadow table: two words for each granule of the 47-bit address space, three levels, and a cache of leaves.
//!
//! A walk of three dependent loads costs more than the check itself, so [`Shadow::cached`] first looks into a small
//! direct-mapped cache of leaves. Leaves are made at the first access and stay for ever.

use crate::pages::{Pages, clear_words};
use crate::record::Record;

const ADDRESS_BITS: u32 = 47;
/// A leaf covers 256 KiB of the program's memory.
const LEAF_BITS: u32 = 18;
const MIDDLE_BITS: u32 = 14;
const TOP_BITS: u32 = ADDRESS_BITS - LEAF_BITS - MIDDLE_BITS;
const LEAF_CELLS: usize = 1 << (LEAF_BITS - 3);
const LINES: usize = 256;

/// The state of a granule. `first` holds the newest write if there is room, `second` the newest read, or the name of a
/// chain with all records but `first`.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct Cell {
    pub(crate) first: Record,
    pub(crate) second: Record,
}

/// The page number is stored inverted, so that the zeroed line matches no address.
#[derive(Clone, Copy)]
struct Line {
    inverted_page: usize,
    leaf: *mut Cell,
}

type Middle = *mut *mut Cell;

pub(crate) struct Shadow {
    lines: [Line; LINES],
    top: *mut Middle,
}

impl Shadow {
    pub(crate) const fn new() -> Shadow {
        let line = Line { inverted_page: 0, leaf: core::ptr::null_mut() };
        Shadow { lines: [line; LINES], top: core::ptr::null_mut() }
    }

    pub(crate) fn init(&mut self, pages: &mut Pages) -> bool {
        self.top = pages.take(1 << TOP_BITS);
        !self.top.is_null()
    }

    /// Bits 32 and up are mixed in because the heap's arenas are 4 GiB apart.
    #[inline]
    fn line_of(page: usize) -> usize {
        (page ^ (page >> 14)) % LINES
    }

    /// The cell of `address` if its leaf is in the cache.
    #[inline]
    pub(crate) fn cached(&self, address: usize) -> Option<*mut Cell> {
        let page = address >> LEAF_BITS;
        let line = &self.lines[Shadow::line_of(page)];
        if line.inverted_page != !page {
            return None;
        }
        // SAFETY: a line holds a leaf of LEAF_CELLS cells.
        Some(unsafe { line.leaf.add((address >> 3) % LEAF_CELLS) })
    }

    /// The cell of `address`, made if need be. None if the address is no user address or memory is out.
    pub(crate) fn find(&mut self, address: usize, pages: &mut Pages) -> Option<*mut Cell> {
        if let Some(cell) = self.cached(address) {
            return Some(cell);
        }
        let slot = self.leaf_slot(address, Some(pages))?;
        // SAFETY: `leaf_slot` gives a valid slot.
        let leaf = unsafe { fill_slot(slot, LEAF_CELLS, pages) }?;
        let page = address >> LEAF_BITS;
        self.lines[Shadow::line_of(page)] = Line { inverted_page: !page, leaf };
        self.cached(address)
    }

    /// The cell of `address` if its leaf exists.
    pub(crate) fn existing(&self, address: usize) -> Option<*mut Cell> {
        if let Some(cell) = self.cached(address) {
            return Some(cell);
        }
        let slot = self.leaf_slot(address, None)?;
        // SAFETY: a slot of a middle table; a leaf in it has LEAF_CELLS cells.
        unsafe {
            let leaf = *slot;
            (!leaf.is_null()).then(|| leaf.add((address >> 3) % LEAF_CELLS))
        }
    }

    /// The first address above `address` that is in another leaf.
    pub(crate) fn next_leaf(address: usize) -> usize {
        (address | ((1 << LEAF_BITS) - 1)).saturating_add(1)
    }

    fn leaf_slot(&self, address: usize, pages: Option<&mut Pages>) -> Option<*mut *mut Cell> {
        if address >> ADDRESS_BITS != 0 || self.top.is_null() {
            return None;
        }
        // SAFETY: the index is below 1 << TOP_BITS, the length of the top table.
        let slot = unsafe { self.top.add(address >> (LEAF_BITS + MIDDLE_BITS)) };
        let middle = match pages {
            // SAFETY: as above.
            Some(pages) => unsafe { fill_slot(slot, 1 << MIDDLE_BITS, pages) }?,
            // SAFETY: as above.
            None => unsafe { *slot },
        };
        // SAFETY: the index is below 1 << MIDDLE_BITS, the length of a middle table.
        (!middle.is_null()).then(|| unsafe { middle.add((address >> LEAF_BITS) % (1 << MIDDLE_BITS)) })
    }

    /// Forgets every record.
    pub(crate) fn clear(&mut self) {
        for_each_slot(self.top, 1 << TOP_BITS, |middle| {
            for_each_slot(middle, 1 << MIDDLE_BITS, |leaf| {
                // SAFETY: a leaf is LEAF_CELLS cells of two words.
                unsafe { clear_words(leaf.cast(), LEAF_CELLS * 2) }
            });
        });
    }
}

/// The table that `slot` points to, made with `len` zeroed entries if there is none.
///
/// # Safety
/// `slot` must be valid.
unsafe fn fill_slot<T>(slot: *mut *mut T, len: usize, pages: &mut Pages) -> Option<*mut T> {
    // SAFETY: the caller's.
    unsafe {
        if (*slot).is_null() {
            *slot = pages.take(len);
        }
        (!(*slot).is_null()).then(|| *slot)
    }
}

fn for_each_slot<T>(table: *mut *mut T, len: usize, visit: impl Fn(*mut T)) {
    for i in 0..if table.is_null() { 0 } else { len } {
        // SAFETY: tables are `len` long.
        let entry = unsafe { *table.add(i) };
        if !entry.is_null() {
            visit(entry);
        }
    }
}
