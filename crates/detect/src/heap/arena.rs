//! Where blocks come from and go to: bump allocation, quarantine, free lists by size class.
//!
//! A *piece* is what a block is made from: header, block, pattern, and padding, rounded up to a size class. Pieces are
//! carved off the unused end of the arena and never split or joined.

use super::block::Header;
use super::shadow::{self, Mark};
use super::{
    ARENA_SIZE, COMMIT_CHUNK, HEAP_BASE, Heap, MAX_ALIGN, POISON, POISON_BYTES, QUARANTINE_BYTES, SHADOW_BASE,
};
use crate::MAX_THREADS;
use crate::pages::fill;

/// Multiples of 16 up to this have a class each; above it there are four classes to a doubling.
const FINE_LIMIT: usize = 1024;
const FINE_CLASSES: usize = FINE_LIMIT / 16;
const CLASSES: usize = FINE_CLASSES + 4 * (32 - 10) + 1;

/// The class of a piece of at least `size` bytes, and the exact size of such pieces.
fn class_of(size: usize) -> (usize, usize) {
    if size <= FINE_LIMIT {
        let class = size.div_ceil(16);
        return (class, class * 16);
    }
    let power = (size - 1).ilog2() as usize;
    let step = 1 << (power - 2);
    let steps = (size - (1 << power)).div_ceil(step);
    (FINE_CLASSES + (power - 10) * 4 + steps, (1 << power) + steps * step)
}

/// The size of pieces of a class.
fn class_size(class: usize) -> usize {
    if class <= FINE_CLASSES {
        return class * 16;
    }
    let (power, steps) = (10 + (class - FINE_CLASSES - 1) / 4, (class - FINE_CLASSES - 1) % 4 + 1);
    (1 << power) + steps * (1 << (power - 2))
}

/// At the beginning of an arena: its lists of freed blocks, linked through their headers. Zeroed memory is empty lists.
#[repr(C)]
struct Lists {
    /// Freed by the owner, oldest first.
    oldest: u32,
    newest: u32,
    quarantined: u64,
    /// Freed by others, newest first.
    foreign: u32,
    /// Ready to be used again.
    free: [u32; CLASSES],
}

/// Offset of an arena's first piece.
const FIRST_PIECE: usize = size_of::<Lists>().next_multiple_of(64);

/// A piece about to become a block.
struct Piece {
    start: usize,
    class: usize,
    fresh: bool,
}

impl Heap {
    /// The base of a new block, and whether its memory was never used before.
    pub(super) fn place(&mut self, thread: u16, size: usize, align: usize, site: u32) -> Option<(usize, bool)> {
        let aligned = align == 0 || align.is_power_of_two() && align <= MAX_ALIGN;
        if thread as usize >= MAX_THREADS || !aligned || size >= ARENA_SIZE {
            return None;
        }
        let align = align.max(16);
        let needed = Header::SIZE + size.max(1) + Header::CANARY + (align - 16);
        if needed > ARENA_SIZE {
            return None;
        }
        let piece = self.find_piece(thread as usize, needed)?;
        let base = (piece.start + Header::SIZE).next_multiple_of(align);
        let header = Header::of_block(base);
        // SAFETY: inside the piece, which is committed and belongs to no block.
        unsafe {
            *header = Header::new(size, header as usize - piece.start, piece.class, site);
            (*header).seal();
        }
        mark_block(&piece, base, size);
        Some((base, piece.fresh))
    }

    fn find_piece(&mut self, thread: usize, needed: usize) -> Option<Piece> {
        let (class, size) = class_of(needed);
        self.ensure_arena(thread)?;
        if let Some(piece) = self.take_free(thread, class) {
            return Some(piece);
        }
        if let Some(start) = self.bump(thread, size) {
            return Some(Piece { start, class, fresh: true });
        }
        // The range is used up: take what was held back, a larger piece if need be.
        self.flush(thread);
        (class..CLASSES).find_map(|class| self.take_free(thread, class))
    }

    fn ensure_arena(&mut self, thread: usize) -> Option<()> {
        match *self.used.get(thread)? {
            0 => self.bump(thread, FIRST_PIECE).map(|_| ()),
            _ => Some(()),
        }
    }

    /// Takes `size` bytes, a multiple of 16, off the unused end. What is committed ends at the next multiple of the
    /// chunk size, so it needs no counter of its own.
    fn bump(&mut self, thread: usize, size: usize) -> Option<usize> {
        let used = *self.used.get(thread)? as usize * 16;
        let end = used.checked_add(size).filter(|&end| end <= ARENA_SIZE)?;
        let (from, to) = (used.next_multiple_of(COMMIT_CHUNK), end.next_multiple_of(COMMIT_CHUNK));
        let arena = thread * ARENA_SIZE;
        if to > from {
            let heap = (self.commit)(HEAP_BASE + arena + from, to - from);
            if !heap || !(self.commit)(SHADOW_BASE + (arena + from) / 8, (to - from) / 8) {
                return None;
            }
        }
        *self.used.get_mut(thread)? = (end / 16) as u32;
        Some(HEAP_BASE + arena + used)
    }

    /// The lists of an arena that is in use.
    fn lists(&mut self, thread: usize) -> &mut Lists {
        // SAFETY: the beginning of an arena in use holds its lists.
        unsafe { &mut *((HEAP_BASE + thread * ARENA_SIZE) as *mut Lists) }
    }

    /// The freed header that a list's link names; None at its end, or if the program has overwritten the link.
    fn follow(&self, thread: usize, link: u32) -> Option<&'static mut Header> {
        let address = HEAP_BASE + thread * ARENA_SIZE + link as usize * 16;
        if link == 0 || !self.is_used(address) || shadow::mark(address) != Mark::HEADER_FREED {
            return None;
        }
        // SAFETY: the shadow says that there is a header; nothing else refers to it now.
        Some(unsafe { &mut *(address as *mut Header) })
    }

    fn take_free(&mut self, thread: usize, class: usize) -> Option<Piece> {
        loop {
            let link = *self.lists(thread).free.get(class)?;
            if link == 0 {
                return None;
            }
            let header = self.follow(thread, link);
            *self.lists(thread).free.get_mut(class)? = header.as_ref().map_or(0, |h| h.next);
            // A header that was overwritten while it lay here can no longer say where its piece begins: leave it.
            if let Some(header) = header.filter(|h| h.is_intact()) {
                return Some(Piece { start: header.address() - header.lead as usize * 16, class, fresh: false });
            }
        }
    }

    /// Marks a live block as freed and puts it where it waits.
    pub(super) fn retire(&mut self, thread: u16, header: *mut Header, site: u32) {
        // SAFETY: the caller found an intact header of a live block here.
        let header = unsafe { &mut *header };
        (header.free_site, header.free_thread, header.next) = (site, thread, 0);
        let (base, size) = (header.base(), header.size as usize);
        shadow::set(header.address(), 8, Mark::HEADER_FREED);
        shadow::set(base, size, Mark::FREED);
        // SAFETY: the block's own memory.
        unsafe { fill(base as *mut u8, POISON, size.min(POISON_BYTES)) };
        let owner = header.thread();
        if owner == thread {
            self.quarantine(owner as usize, header);
            self.release_excess(owner as usize, QUARANTINE_BYTES);
        } else {
            let lists = self.lists(owner as usize);
            header.next = lists.foreign;
            lists.foreign = header.link();
        }
    }

    fn quarantine(&mut self, thread: usize, header: &mut Header) {
        let newest = self.lists(thread).newest;
        if let Some(newest) = self.follow(thread, newest) {
            newest.next = header.link();
        }
        let lists = self.lists(thread);
        if lists.oldest == 0 {
            lists.oldest = header.link();
        }
        lists.newest = header.link();
        lists.quarantined += class_size(header.class as usize) as u64;
    }

    /// Lets the oldest blocks go until at most `limit` bytes wait.
    fn release_excess(&mut self, thread: usize, limit: usize) {
        while self.lists(thread).quarantined > limit as u64 {
            let oldest = self.lists(thread).oldest;
            let Some(header) = self.follow(thread, oldest) else {
                let lists = self.lists(thread);
                (lists.oldest, lists.newest, lists.quarantined) = (0, 0, 0);
                return;
            };
            let lists = self.lists(thread);
            lists.oldest = header.next;
            if header.next == 0 {
                lists.newest = 0;
            }
            let size = class_size((header.class as usize).min(CLASSES - 1));
            lists.quarantined = lists.quarantined.saturating_sub(size as u64);
            self.make_free(thread, header);
        }
    }

    fn make_free(&mut self, thread: usize, header: &mut Header) {
        if let Some(free) = self.lists(thread).free.get_mut(header.class as usize) {
            header.next = *free;
            *free = header.link();
        }
    }

    /// Makes every freed block available.
    fn flush(&mut self, thread: usize) {
        self.release_excess(thread, 0);
        let mut link = core::mem::take(&mut self.lists(thread).foreign);
        while let Some(header) = self.follow(thread, link) {
            link = header.next;
            self.make_free(thread, header);
        }
    }
}

/// Writes the shadow of a new block. In fresh memory what lies around it is inaccessible already.
fn mark_block(piece: &Piece, base: usize, size: usize) {
    let header = base - Header::SIZE;
    let end = base + size.next_multiple_of(8);
    if !piece.fresh {
        shadow::set(piece.start, header - piece.start, Mark::REDZONE);
        shadow::set(end, piece.start + class_size(piece.class) - end, Mark::REDZONE);
    } else {
        shadow::set(end, Header::CANARY, Mark::REDZONE);
    }
    shadow::set(header, 8, Mark::HEADER_LIVE);
    shadow::set(header + 8, Header::SIZE - 8, Mark::REDZONE);
    shadow::open(base, size);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_tight_and_monotone() {
        let mut last = (0, 0);
        for size in (1..9000).chain((1..=32).flat_map(|p| [(1usize << p) - 1, 1 << p])) {
            let (class, rounded) = class_of(size);
            assert!(rounded >= size && (size <= FINE_LIMIT || rounded <= size + size / 4));
            assert_eq!(class_size(class), rounded);
            assert!(class < CLASSES);
            if size > last.0 {
                assert!(class >= last.1);
                last = (size, class);
            }
        }
    }
}
