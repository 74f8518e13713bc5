//! Block headers, and what is told of a block.
//!
//! A header lies directly before its block, in the redzone. A checksum over what must not change tells whether the
//! program wrote there; sixteen bytes of a fixed pattern directly after the block do the same for its end.

use super::{ARENA_SIZE, HEAP_BASE};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Live,
    Freed,
}

/// A block, as reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    pub base: usize,
    /// The size asked for.
    pub size: usize,
    pub state: State,
    /// Who allocated it, and where.
    pub thread: u16,
    pub alloc_site: u32,
    /// Who freed it, and where; 0 while it lives.
    pub free_thread: u16,
    pub free_site: u32,
    /// Where the address asked about is: 0 inside the block, n > 0 for n bytes beyond its last byte, n < 0 for n bytes
    /// before its first.
    pub distance: isize,
}

impl Block {
    /// Measures the distance of `address`.
    pub(super) fn seen_from(mut self, address: usize) -> Block {
        let offset = address as isize - self.base as isize;
        let beyond = offset - self.size as isize;
        self.distance = match () {
            _ if offset < 0 => offset,
            _ if offset == 0 => 0,
            _ if beyond >= 0 => beyond + 1,
            _ => 0,
        };
        self
    }
}

/// The first three words are zero while the block lives; the checksum is of the others.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Header {
    /// The header that follows in a list of freed ones: its offset in the arena in units of 16 bytes, or 0.
    pub(super) next: u32,
    pub(super) free_site: u32,
    pub(super) free_thread: u16,
    reserved: u16,
    pub(super) size: u32,
    /// From the beginning of the piece of the arena that the block was made from to this header, in units of 16 bytes.
    pub(super) lead: u32,
    pub(super) alloc_site: u32,
    /// Size class of that piece.
    pub(super) class: u32,
    checksum: u32,
}

const CANARY: u128 = 0x9fce_a1b3_c75d_e869_f1a7_3b5d_c9e5_8d6b;
const CHECK: u64 = 0xd6e8_feb8_6659_fd93;

impl Header {
    pub(super) const SIZE: usize = size_of::<Header>();
    /// Bytes of pattern after a block.
    pub(super) const CANARY: usize = size_of::<u128>();

    pub(super) fn new(size: usize, lead: usize, class: usize, site: u32) -> Header {
        Header {
            next: 0,
            free_site: 0,
            free_thread: 0,
            reserved: 0,
            size: size as u32,
            lead: (lead / 16) as u32,
            alloc_site: site,
            class: class as u32,
            checksum: 0,
        }
    }

    pub(super) fn of_block(base: usize) -> *mut Header {
        (base - Header::SIZE) as *mut Header
    }

    pub(super) fn address(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    pub(super) fn base(&self) -> usize {
        self.address() + Header::SIZE
    }

    pub(super) fn thread(&self) -> u16 {
        (self.address().wrapping_sub(HEAP_BASE) / ARENA_SIZE) as u16
    }

    /// The header's offset in its arena in units of 16 bytes, as lists have it.
    pub(super) fn link(&self) -> u32 {
        (self.address() % ARENA_SIZE / 16) as u32
    }

    fn expected_checksum(&self) -> u32 {
        let mut sum = self.address() as u64 ^ CHECK;
        for word in [self.size, self.lead, self.alloc_site, self.class] {
            sum = (sum ^ word as u64).wrapping_mul(CHECK);
            sum ^= sum >> 29;
        }
        sum as u32
    }

    /// Completes a header that is in place, and the pattern after its block.
    pub(super) fn seal(&mut self) {
        self.checksum = self.expected_checksum();
        // SAFETY: allocation leaves room for the pattern after the block.
        unsafe { self.canary().write_unaligned(CANARY) };
    }

    pub(super) fn is_intact(&self) -> bool {
        self.checksum == self.expected_checksum()
    }

    /// Whether nothing was written to what surrounds a live block.
    pub(super) fn surroundings_are_intact(&self) -> bool {
        let unused = self.next == 0 && self.free_site == 0 && self.free_thread == 0 && self.reserved == 0;
        // SAFETY: the size of an intact header is the one the block was allocated with.
        unused && self.is_intact() && unsafe { self.canary().read_unaligned() == CANARY }
    }

    fn canary(&self) -> *mut u128 {
        (self.base() + self.size as usize) as *mut u128
    }
}
