//! Accesses checked against the shadow, and addresses explained by the block nearest to them.

use super::block::{Block, Header, State};
use super::shadow::{self, Mark};
use super::{ARENA_SIZE, HEAP_BASE, Heap};

/// What is wrong with an access to the heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeapFault {
    UseAfterFree(Block),
    /// The offset of the first bad byte from the block's beginning.
    OutOfBounds(Block, isize),
    /// No block is anywhere near.
    Wild,
}

/// An access farther than this from every block is wild.
const NEAR: usize = 64 << 10;

const ALL_ADDRESSABLE: u64 = u64::from_ne_bytes([Mark::ADDRESSABLE.0; 8]);
const ALL_FREED: u64 = u64::from_ne_bytes([Mark::FREED.0; 8]);

impl Heap {
    /// Whether all of a range may be accessed; a range that does not begin in the heap is none of the heap's business.
    #[inline]
    pub fn check(&self, address: usize, len: usize) -> Result<(), HeapFault> {
        if self.is_accessible(address, len) { Ok(()) } else { Err(self.fault(address, len)) }
    }

    /// Whether a range is part of one granule and may be accessed: the usual case, in few instructions.
    #[inline(always)]
    pub fn is_small_and_accessible(&self, address: usize, len: usize) -> bool {
        let end = (address % 8).saturating_add(len);
        end <= 8 && self.is_used(address) && shadow::mark(address).allows(end)
    }

    #[inline]
    fn is_accessible(&self, address: usize, len: usize) -> bool {
        if !Heap::contains(address) || len == 0 {
            return true;
        }
        if !self.is_used(address) {
            return false;
        }
        let end = (address % 8).saturating_add(len);
        match end {
            ..=8 => shadow::mark(address).allows(end),
            // The next granule's shadow is there: what follows a block belongs to its piece.
            9..=16 if shadow::mark(address) != Mark::ADDRESSABLE => false,
            9..=16 => shadow::mark(address + 8).allows(end - 8),
            _ => self.range_is_accessible(address, len),
        }
    }

    /// A range that begins in a used part and touches more than one granule. All but its last granule must be wholly
    /// addressable, as a block has a partial one only at its end.
    #[inline(never)]
    fn range_is_accessible(&self, address: usize, len: usize) -> bool {
        let Some(end) = address.checked_add(len).filter(|&end| self.is_used(end - 1)) else { return false };
        let (mut granule, last) = (address & !7, (end - 1) & !7);
        while last - granule >= 64 {
            if shadow::marks(granule) != ALL_ADDRESSABLE {
                return false;
            }
            granule += 64;
        }
        while granule < last {
            if shadow::mark(granule) != Mark::ADDRESSABLE {
                return false;
            }
            granule += 8;
        }
        shadow::mark(last).allows(end - last)
    }

    #[cold]
    #[inline(never)]
    fn fault(&self, address: usize, len: usize) -> HeapFault {
        let bad = self.first_bad_byte(address, len);
        match self.describe(bad) {
            Some(block) if block.distance.unsigned_abs() > NEAR => HeapFault::Wild,
            Some(block) if block.state == State::Freed => HeapFault::UseAfterFree(block),
            Some(block) => HeapFault::OutOfBounds(block, bad as isize - block.base as isize),
            None => HeapFault::Wild,
        }
    }

    fn first_bad_byte(&self, address: usize, len: usize) -> usize {
        let end = address.saturating_add(len);
        let mut byte = address;
        while byte < end && self.is_used(byte) {
            let granule = byte & !7;
            let good = shadow::mark(granule).count();
            if byte - granule >= good || good < 8 {
                return byte.max(granule + good);
            }
            byte = granule + 8;
        }
        byte
    }

    /// The block that contains `address`, or the nearest one of the same arena.
    pub fn describe(&self, address: usize) -> Option<Block> {
        let thread = address.wrapping_sub(HEAP_BASE) / ARENA_SIZE;
        let arena = HEAP_BASE.wrapping_add(thread.wrapping_mul(ARENA_SIZE));
        let limit = arena + *self.used.get(thread)? as usize * 16;
        if limit == arena {
            return None;
        }
        let below = header_at_or_below(address.min(limit - 8), arena).map(|h| (h, self.block_at(h).seen_from(address)));
        match below {
            Some((_, block)) if block.distance == 0 => Some(block),
            // In the header itself: the block that ends before it may be nearer.
            Some((header, block)) if block.distance < 0 => {
                let before = header_at_or_below(header - 8, arena).map(|h| self.block_at(h).seen_from(address));
                nearer(before, Some(block))
            }
            _ => {
                let reach = below.map_or(ARENA_SIZE, |(_, block)| block.distance.unsigned_abs());
                let above = header_above(address, limit, reach).map(|h| self.block_at(h).seen_from(address));
                nearer(below.map(|(_, block)| block), above)
            }
        }
    }

    /// The live block that an address is in.
    pub fn live_block(&self, address: usize) -> Option<Block> {
        self.describe(address).filter(|b| b.distance == 0 && b.state == super::State::Live)
    }

    /// The block whose header is at `header`, which the shadow must confirm.
    pub(super) fn block_at(&self, header: usize) -> Block {
        let base = header + Header::SIZE;
        // SAFETY: the shadow says that there is a header.
        let found = unsafe { &*(header as *const Header) };
        let state = if shadow::mark(header) == Mark::HEADER_LIVE { State::Live } else { State::Freed };
        let freed = state == State::Freed;
        let intact = found.is_intact();
        Block {
            base,
            size: if intact { found.size as usize } else { self.size_by_shadow(base) },
            state,
            thread: found.thread(),
            alloc_site: if intact { found.alloc_site } else { 0 },
            free_thread: if freed { found.free_thread } else { 0 },
            free_site: if freed { found.free_site } else { 0 },
            distance: 0,
        }
    }

    /// The size of a block whose header cannot be trusted: as far as the shadow is of one kind.
    fn size_by_shadow(&self, base: usize) -> usize {
        let mut end = base;
        while self.is_used(end) && matches!(shadow::mark(end), Mark::ADDRESSABLE | Mark::FREED) {
            end += 8;
        }
        end - base + if self.is_used(end) { shadow::mark(end).count() } else { 0 }
    }
}

/// Ties go to the first: an access between two blocks is more likely one too far than one too early.
fn nearer(a: Option<Block>, b: Option<Block>) -> Option<Block> {
    match (a, b) {
        (Some(a), Some(b)) if b.distance.unsigned_abs() < a.distance.unsigned_abs() => Some(b),
        (a, b) => a.or(b),
    }
}

/// The last header in `arena` that begins at or before `address`, in the used part.
fn header_at_or_below(address: usize, arena: usize) -> Option<usize> {
    let mut granule = address & !7;
    while granule >= arena {
        if shadow::mark(granule).is_header() {
            return Some(granule);
        }
        // Most of the way is through a block or unused memory, where eight marks are the same.
        let skip = granule >= arena + 64 && matches!(shadow::marks(granule - 64), 0 | ALL_ADDRESSABLE | ALL_FREED);
        granule -= if skip { 72 } else { 8 };
    }
    None
}

/// The first header that begins above `address`, below `limit`, at most `reach` bytes away.
fn header_above(address: usize, limit: usize, reach: usize) -> Option<usize> {
    let mut granule = (address & !7).saturating_add(8);
    let end = limit.min(address.saturating_add(reach));
    while granule < end {
        if shadow::mark(granule).is_header() {
            return Some(granule);
        }
        granule += 8;
    }
    None
}
