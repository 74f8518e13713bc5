//! The heap against a model: random allocations, frees and accesses by several threads.

mod common;

use common::Random;
use common::heap::new_heap;
use std::collections::BTreeMap;
use symdpor_detect::heap::{ARENA_SIZE, Block, HEAP_BASE, Heap, HeapError, HeapFault, POISON, State};

/// What the model knows of a block.
#[derive(Clone, Copy)]
struct Known {
    size: usize,
    thread: u16,
    site: u32,
    freed: Option<(u16, u32)>,
}

struct Model {
    heap: Box<Heap>,
    random: Random,
    /// By base; freed ones as long as no other block overlaps them.
    blocks: BTreeMap<usize, Known>,
    live: Vec<usize>,
    /// Of all blocks ever, for picking one.
    bases: Vec<usize>,
    site: u32,
}

impl Model {
    fn allocate(&mut self, size: usize, align: usize) {
        self.site += 1;
        let thread = self.random.below(4) as u16;
        let pointer = self.heap.allocate(thread, size, align, self.site);
        assert!(!pointer.is_null());
        let base = pointer as usize;
        assert!(base.is_multiple_of(align.max(16)) && Heap::contains(base));
        assert_eq!((base - HEAP_BASE) / ARENA_SIZE, thread as usize);
        self.assert_apart(base, size);
        self.blocks.insert(base, Known { size, thread, site: self.site, freed: None });
        self.live.push(base);
        self.bases.push(base);
        // SAFETY: the block is `size` long.
        unsafe { pointer.write_bytes(self.site as u8, size) };
    }

    /// The new block has 16 bytes to all live blocks; freed ones that it takes the place of are forgotten.
    fn assert_apart(&mut self, base: usize, size: usize) {
        // Known blocks do not overlap, so the first that ends well before the new one is the last to look at.
        let mut near = Vec::new();
        for (&other, &known) in self.blocks.range(..base + size + 64).rev() {
            near.push((other, known));
            if other + known.size + 64 < base {
                break;
            }
        }
        for (other, known) in near {
            let apart = other + known.size.max(1) + 16 <= base || base + size.max(1) + 16 <= other;
            assert!(apart || known.freed.is_some(), "{base:#x}+{size} is too near to {other:#x}+{}", known.size);
            if !apart {
                self.blocks.remove(&other);
            }
        }
    }

    fn free(&mut self) {
        let Some(index) = (!self.live.is_empty()).then(|| self.random.below(self.live.len())) else { return };
        let base = self.live.swap_remove(index);
        let known = self.blocks.get_mut(&base).unwrap();
        let content = vec![known.site as u8; known.size];
        // SAFETY: a live block.
        assert_eq!(unsafe { std::slice::from_raw_parts(base as *const u8, known.size) }, content);
        let thread = if self.random.one_in(4) { self.random.below(4) as u16 } else { known.thread };
        self.site += 1;
        let freed = self.heap.free(thread, base, self.site).expect("a live block can be freed");
        known.freed = Some((thread, self.site));
        assert_same(freed, base, *known);
    }

    fn check(&mut self) {
        if self.bases.is_empty() {
            return;
        }
        let base = self.random.pick(&self.bases);
        let Some(&known) = self.blocks.get(&base) else { return };
        match known.freed {
            None => self.check_live(base, known),
            Some(_) => self.check_freed(base, known),
        }
    }

    fn check_live(&mut self, base: usize, known: Known) {
        let size = known.size;
        let from = self.random.below(size + 1);
        let len = self.random.below(size - from + 1);
        assert_eq!(self.heap.check(base + from, len), Ok(()));
        assert_eq!(self.heap.check(base, size), Ok(()));
        assert_eq!(self.heap.usable_size(base), Some(size));
        for beyond in 0..16 {
            assert_out(self.heap.check(base + size + beyond, 1), base, (size + beyond) as isize);
            assert_out(self.heap.check(base - beyond - 1, 1), base, -(beyond as isize) - 1);
        }
        let early = self.random.below(16) + 1;
        assert_out(self.heap.check(base - early, 16), base, -(early as isize));
        let over = self.random.below(64) + 1;
        assert_out(self.heap.check(base + from, size - from + over), base, size as isize);
        assert_same(self.heap.describe(base + from.min(size.saturating_sub(1))).unwrap(), base, known);
        if size > 0 {
            let inside = base + 1 + self.random.below(size);
            let wrong = self.heap.free(0, inside, 1);
            match wrong {
                Err(HeapError::InteriorPointer(block)) if inside < base + size => assert_same(block, base, known),
                Err(HeapError::NotABlock { nearest: Some(block) }) if inside == base + size => {
                    assert_eq!(block.distance, 1)
                }
                _ => panic!("{wrong:?} for {inside:#x} in {base:#x}+{size}"),
            }
        }
    }

    fn check_freed(&mut self, base: usize, known: Known) {
        let byte = base + self.random.below(known.size.max(1));
        match self.heap.check(byte, 1) {
            Err(HeapFault::UseAfterFree(block)) => assert_same(block, base, known),
            other => panic!("{other:?} for a freed block"),
        }
        match self.heap.free(known.thread, base, 1) {
            Err(HeapError::DoubleFree(block)) => assert_same(block, base, known),
            other => panic!("{other:?} for a double free"),
        }
        assert_eq!(self.heap.usable_size(base), None);
        if known.size > 0 {
            // SAFETY: freed, but still mapped.
            assert_eq!(unsafe { *(base as *const u8) }, POISON);
        }
    }

    fn size(&mut self) -> usize {
        match self.random.below(10) {
            0 => 0,
            1..=6 => self.random.below(100),
            7..=8 => self.random.below(3000),
            _ => self.random.below(600_000),
        }
    }
}

/// Whether an access faulted at `offset` of the block, or was put down to a block that is nearer.
fn assert_out(found: Result<(), HeapFault>, base: usize, offset: isize) {
    match found {
        Err(HeapFault::OutOfBounds(block, at)) if block.base == base => assert_eq!(at, offset),
        Err(HeapFault::OutOfBounds(block, _) | HeapFault::UseAfterFree(block)) => {
            let wanted = base as isize + offset;
            assert!(block.distance.unsigned_abs() <= 16, "{block:?} is too far from {wanted:#x}");
        }
        other => panic!("{other:?} at {offset} of {base:#x}"),
    }
}

fn assert_same(block: Block, base: usize, known: Known) {
    let freed = known.freed.unwrap_or_default();
    assert_eq!((block.base, block.size, block.thread), (base, known.size, known.thread));
    assert_eq!(block.state, if known.freed.is_some() { State::Freed } else { State::Live });
    assert_eq!((block.alloc_site, block.free_thread, block.free_site), (known.site, freed.0, freed.1));
}

fn run(seed: u64, steps: usize) -> Vec<usize> {
    let (_turn, heap) = new_heap();
    let mut model = Model {
        heap,
        random: Random::new(seed),
        blocks: BTreeMap::new(),
        live: Vec::new(),
        bases: Vec::new(),
        site: 0,
    };
    let mut addresses = Vec::new();
    for _ in 0..steps {
        match model.random.below(8) {
            0..=2 => {
                let size = model.size();
                let align = if model.random.one_in(6) { 1 << model.random.below(14) } else { 16 };
                model.allocate(size, align);
                addresses.extend(model.live.last());
            }
            3..=4 => model.free(),
            _ => model.check(),
        }
    }
    addresses
}

#[test]
fn random_sequences_agree_with_the_model() {
    for seed in 0..4 {
        run(seed, 20_000);
    }
}

#[test]
fn addresses_are_deterministic() {
    assert_eq!(run(9, 8_000), run(9, 8_000));
}
