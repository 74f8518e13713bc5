//! The shadow: for each eight bytes of an arena, one byte that says how many of them may be accessed.
//!
//! 1 to 8: the first so many. 0: never allocated, because committed memory is zero. Negative: not accessible, with the
//! reason. The shadow lies apart from the blocks, so what it says of a block's state survives a program that overwrites
//! the block's header.

use super::{HEAP_BASE, SHADOW_BASE};
use crate::pages::fill;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mark(pub(super) u8);

impl Mark {
    pub(super) const UNUSED: Mark = Mark(0);
    pub(super) const ADDRESSABLE: Mark = Mark(8);
    /// The first eight bytes of a block's header.
    pub(super) const HEADER_LIVE: Mark = Mark(0xf1);
    pub(super) const HEADER_FREED: Mark = Mark(0xf2);
    /// The rest of a header, and what is between a block's end and the next block.
    pub(super) const REDZONE: Mark = Mark(0xfa);
    pub(super) const FREED: Mark = Mark(0xfd);

    pub(super) fn is_header(self) -> bool {
        self == Mark::HEADER_LIVE || self == Mark::HEADER_FREED
    }

    /// Whether the first `end` bytes of the eight may be accessed.
    #[inline]
    pub(super) fn allows(self, end: usize) -> bool {
        end as isize <= self.0 as i8 as isize
    }

    /// How many of the eight may be accessed.
    pub(super) fn count(self) -> usize {
        (self.0 as i8).max(0) as usize
    }
}

#[inline]
pub(super) fn location(address: usize) -> *mut u8 {
    (SHADOW_BASE + (address.wrapping_sub(HEAP_BASE) >> 3)) as *mut u8
}

/// The mark of an address in the used part of an arena.
#[inline]
pub(super) fn mark(address: usize) -> Mark {
    // SAFETY: the shadow of used memory is committed.
    Mark(unsafe { *location(address) })
}

/// The marks of 64 bytes from `address`, all in the used part of an arena.
#[inline]
pub(super) fn marks(address: usize) -> u64 {
    // SAFETY: the shadow of used memory is committed.
    unsafe { location(address).cast::<u64>().read_unaligned() }
}

/// Marks committed memory from `address` (a multiple of 8) on, `len` bytes rounded up to 8.
pub(super) fn set(address: usize, len: usize, mark: Mark) {
    // SAFETY: the shadow of committed memory is committed.
    unsafe { fill(location(address), mark.0, len.div_ceil(8)) };
}

/// Marks `size` bytes from `address` (a multiple of 8) as accessible.
pub(super) fn open(address: usize, size: usize) {
    set(address, size & !7, Mark::ADDRESSABLE);
    if !size.is_multiple_of(8) {
        set(address + (size & !7), 1, Mark((size % 8) as u8));
    }
}
