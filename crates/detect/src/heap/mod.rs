//! The heap behind the program's malloc and new.
//!
//! Every thread has its own range of addresses, so the address of an allocation depends only on the thread and on what
//! it allocated and freed itself. Everything the heap knows lies in memory that is restored between executions: the
//! [`Heap`] itself, the arenas at [`HEAP_BASE`], and their shadow at [`SHADOW_BASE`], one byte for eight. Restoring
//! costs per dirtied page, hence bump allocation, adjacent blocks, and an arena's own bookkeeping in its first page,
//! before its first block.
//!
//! ```text
//! arena t:   | lists | header block ... canary | header block ... canary | ... | not yet used, zero
//! ```
//!
//! * `shadow`: what may be accessed; zero means never allocated.
//! * `block`: headers, checksums, what is told of a block.
//! * `arena`: where blocks come from and go to.
//! * `check`: accesses checked, addresses explained.
//!
//! A freed block is reused only by its own thread, only if that thread freed it, and only after [`QUARANTINE_BYTES`]
//! more were freed; blocks that others freed are taken when the range is used up. Until then every access to them is
//! found. Not covered: an access that jumps over redzones into another live block.

mod arena;
mod block;
mod check;
mod shadow;

pub use block::{Block, State};
pub use check::HeapFault;

use crate::MAX_THREADS;
use crate::pages::fill;
use block::Header;
use shadow::Mark;

/// Where the arenas are: thread t's is [`ARENA_SIZE`] bytes from `HEAP_BASE + t * ARENA_SIZE`.
pub const HEAP_BASE: usize = 0x1000_0000_0000;
pub const ARENA_SIZE: usize = 1 << 32;
pub const HEAP_SIZE: usize = ARENA_SIZE * MAX_THREADS;
/// The shadow byte of a heap address is at `SHADOW_BASE + (address - HEAP_BASE) / 8`.
pub const SHADOW_BASE: usize = 0x1800_0000_0000;
pub const SHADOW_SIZE: usize = HEAP_SIZE / 8;
/// Memory is committed in multiples of this (an eighth for the shadow), aligned to it.
pub const COMMIT_CHUNK: usize = 256 << 10;
/// Freed blocks of one thread that wait before they are used again, in bytes.
pub const QUARANTINE_BYTES: usize = 16 << 20;
/// The largest alignment served.
pub const MAX_ALIGN: usize = 1 << 20;

/// Freed memory is filled with this, at most [`POISON_BYTES`] of a block.
pub const POISON: u8 = 0xdf;
pub const POISON_BYTES: usize = 4096;

/// Makes a range readable and writable, zeroed where it was not so already, and says whether it could. The range is
/// aligned to [`COMMIT_CHUNK`], or to an eighth of it in the shadow. Called again for the same range after a restore.
pub type Commit = fn(address: usize, len: usize) -> bool;

/// Why a pointer cannot be freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeapError {
    DoubleFree(Block),
    /// Not the beginning of any block.
    NotABlock {
        nearest: Option<Block>,
    },
    /// Points into a block, not to its beginning.
    InteriorPointer(Block),
    /// Something wrote to the memory just before or after the block.
    Corrupted(Block),
}

/// The arenas' extents. Must lie in memory that is restored with the program's.
#[repr(C)]
pub struct Heap {
    /// How much of each arena has ever been used, in units of 16 bytes.
    used: [u32; MAX_THREADS],
    commit: Commit,
}

impl Heap {
    pub const fn new(commit: Commit) -> Heap {
        Heap { used: [0; MAX_THREADS], commit }
    }

    /// Whether an address is in the range of the heap, allocated or not.
    #[inline]
    pub fn contains(address: usize) -> bool {
        address.wrapping_sub(HEAP_BASE) < HEAP_SIZE
    }

    /// A block of `size` bytes, or null if `align` is neither 0 nor a power of two up to [`MAX_ALIGN`], the arena is full or
    /// memory is out. Blocks of size 0 have an address of their own, too. Aligned to 16 at least. The content is whatever
    /// this thread's history left there, zero in fresh memory.
    pub fn allocate(&mut self, thread: u16, size: usize, align: usize, site: u32) -> *mut u8 {
        match self.place(thread, size, align, site) {
            Some((base, _)) => base as *mut u8,
            None => core::ptr::null_mut(),
        }
    }

    /// The same, with zeroed content; touches no page of a large block in fresh memory but its ends.
    pub fn allocate_zeroed(&mut self, thread: u16, size: usize, align: usize, site: u32) -> *mut u8 {
        let Some((base, fresh)) = self.place(thread, size, align, site) else { return core::ptr::null_mut() };
        if !fresh {
            // SAFETY: the block was just allocated with `size` bytes.
            unsafe { fill(base as *mut u8, 0, size) };
        }
        base as *mut u8
    }

    /// Frees a block and gives what is known of it.
    pub fn free(&mut self, thread: u16, address: usize, site: u32) -> Result<Block, HeapError> {
        let header = match self.header_mark(address) {
            Mark::HEADER_LIVE => Header::of_block(address),
            Mark::HEADER_FREED => return Err(HeapError::DoubleFree(self.block_at(address - Header::SIZE))),
            _ => return Err(self.not_a_block(address)),
        };
        let offset = address - Header::SIZE;
        // SAFETY: the shadow says that there is a header.
        if !unsafe { (*header).surroundings_are_intact() } {
            return Err(HeapError::Corrupted(self.block_at(offset)));
        }
        self.retire(thread, header, site);
        Ok(self.block_at(offset))
    }

    /// The size asked for, if `address` is the beginning of a live block.
    pub fn usable_size(&self, address: usize) -> Option<usize> {
        if self.header_mark(address) != Mark::HEADER_LIVE {
            return None;
        }
        // SAFETY: the shadow says that there is a header.
        let header = unsafe { &*Header::of_block(address) };
        header.is_intact().then_some(header.size as usize)
    }

    /// The shadow's word on where the header of a block at `address` would be.
    fn header_mark(&self, address: usize) -> Mark {
        let header = address.wrapping_sub(Header::SIZE);
        if address.is_multiple_of(16) && self.is_used(header) { shadow::mark(header) } else { Mark::UNUSED }
    }

    /// Whether `address` is in a used part of an arena, so that its shadow is there.
    #[inline]
    fn is_used(&self, address: usize) -> bool {
        let offset = address.wrapping_sub(HEAP_BASE);
        match self.used.get(offset / ARENA_SIZE) {
            Some(&used) => offset % ARENA_SIZE < used as usize * 16,
            None => false,
        }
    }

    /// The thread in whose arena an address of the heap is.
    pub fn arena_of(address: usize) -> u16 {
        (address.wrapping_sub(HEAP_BASE) / ARENA_SIZE) as u16
    }

    /// The used part of a thread's arena.
    pub fn used(&self, thread: usize) -> (usize, usize) {
        let start = HEAP_BASE + thread * ARENA_SIZE;
        (start, start + self.used.get(thread).map_or(0, |used| *used as usize * 16))
    }

    fn not_a_block(&self, address: usize) -> HeapError {
        match self.describe(address) {
            Some(block) if block.distance == 0 => HeapError::InteriorPointer(block),
            nearest => HeapError::NotABlock { nearest },
        }
    }
}
