//! The heap against a model: random allocations, frees and accesses by several threads.

mod common;

use common::Random;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use symdpor_detect::MAX_THREADS;
use symdpor_detect::heap::{
    ARENA_SIZE, Block, COMMIT_CHUNK, HEAP_BASE, HEAP_SIZE, Heap, HeapError, HeapFault, MAX_ALIGN, POISON,
    QUARANTINE_BYTES, SHADOW_BASE, SHADOW_SIZE, State,
};

/// The heap has fixed addresses, so one test at a time uses it.
static TURN: Mutex<()> = Mutex::new(());

fn map_fixed(address: usize, len: usize, protection: i32) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: only the heap's and its shadow's ranges, which nothing else in the test process uses.
    unsafe { libc::mmap(address as *mut _, len, protection, flags, -1, 0) != libc::MAP_FAILED }
}

fn commit(address: usize, len: usize) -> bool {
    let (base, size, unit) = match address {
        a if a >= SHADOW_BASE => (SHADOW_BASE, SHADOW_SIZE, COMMIT_CHUNK / 8),
        _ => (HEAP_BASE, HEAP_SIZE, COMMIT_CHUNK),
    };
    assert!(address >= base && address + len <= base + size);
    assert!(address.is_multiple_of(unit) && len.is_multiple_of(unit));
    // SAFETY: a part of the heap's ranges, as asserted, which `new_heap` has reserved.
    unsafe { libc::mprotect(address as *mut _, len, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// An empty heap; whatever is not committed faults.
fn new_heap() -> (MutexGuard<'static, ()>, Box<Heap>) {
    let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    assert!(map_fixed(HEAP_BASE, HEAP_SIZE, libc::PROT_NONE) && map_fixed(SHADOW_BASE, SHADOW_SIZE, libc::PROT_NONE));
    (turn, Box::new(Heap::new(commit)))
}

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
            _ => self.random.below(200_000),
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

/// What a snapshot of the heap holds: the heap itself, and the used part of arena 0 with its shadow.
struct Snapshot {
    heap: Vec<u8>,
    arena: Vec<u8>,
    shadow: Vec<u8>,
}

impl Snapshot {
    fn take(heap: &Heap) -> Snapshot {
        let bytes = |from: usize, len: usize| {
            // SAFETY: committed memory, and the heap itself.
            unsafe { std::slice::from_raw_parts(from as *const u8, len).to_vec() }
        };
        Snapshot {
            heap: bytes(heap as *const Heap as usize, size_of::<Heap>()),
            arena: bytes(HEAP_BASE, COMMIT_CHUNK),
            shadow: bytes(SHADOW_BASE, COMMIT_CHUNK / 8),
        }
    }

    /// Everything as it was; what was not committed then stays committed, and is zero.
    fn restore(&self, heap: &mut Heap) {
        for (base, size) in [(HEAP_BASE, HEAP_SIZE), (SHADOW_BASE, SHADOW_SIZE)] {
            // SAFETY: drops the content of the heap's own private mappings.
            assert_eq!(unsafe { libc::madvise(base as *mut _, size, libc::MADV_DONTNEED) }, 0);
        }
        let copy = |to: usize, bytes: &[u8]| {
            // SAFETY: the places the bytes came from.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) };
        };
        copy(heap as *mut Heap as usize, &self.heap);
        copy(HEAP_BASE, &self.arena);
        copy(SHADOW_BASE, &self.shadow);
    }
}

#[test]
fn a_restored_heap_does_the_same_again() {
    let (_turn, mut heap) = new_heap();
    let kept = heap.allocate(0, 100, 16, 1) as usize;
    let gone = heap.allocate(0, 100, 16, 2) as usize;
    heap.free(0, gone, 3).unwrap();
    let snapshot = Snapshot::take(&heap);
    let mut runs = Vec::new();
    for _ in 0..3 {
        let mut addresses = Vec::new();
        for i in 0..2000 {
            let block = heap.allocate(i % 3, 500 + i as usize, 16, 0) as usize;
            addresses.push(block);
            assert_eq!(heap.check(block, 500 + i as usize), Ok(()));
            // SAFETY: fresh memory is zero, after a restore too.
            assert_eq!(unsafe { *(block as *const u64).add(10) }, 0);
            // SAFETY: the block just allocated.
            unsafe { (block as *mut u8).write_bytes(0x77, 500) };
            if i % 2 == 0 {
                heap.free(0, block, 0).unwrap();
            }
        }
        heap.free(0, kept, 0).unwrap();
        runs.push(addresses);
        snapshot.restore(&mut heap);
        assert_eq!(heap.usable_size(kept), Some(100));
        assert!(matches!(heap.check(gone, 1), Err(HeapFault::UseAfterFree(block)) if block.free_site == 3));
        assert!(heap.check(runs[0][1], 1).is_err());
    }
    assert!(runs[0] == runs[1] && runs[1] == runs[2]);
}

#[test]
fn addresses_depend_only_on_the_own_history() {
    let alone: Vec<usize> = {
        let (_turn, mut heap) = new_heap();
        (0..200).map(|i| heap.allocate(3, 10 + i, 16, 0) as usize).collect()
    };
    let (_turn, mut heap) = new_heap();
    let mut others = Vec::new();
    for (i, &expected) in alone.iter().enumerate() {
        others.push(heap.allocate((i % 3) as u16, 1000, 16, 0) as usize);
        assert_eq!(heap.allocate(3, 10 + i, 16, 0) as usize, expected);
        // Frees by others of what thread 3 has allocated, and the other way round.
        heap.free(1, expected, 0).unwrap();
        heap.free(3, others[i], 0).unwrap();
    }
}

#[test]
fn quarantine_holds_back_and_then_lets_go() {
    let (_turn, mut heap) = new_heap();
    let first = heap.allocate(0, 976, 16, 0) as usize;
    heap.free(0, first, 0).unwrap();
    let mut freed = 1024;
    loop {
        let block = heap.allocate(0, 976, 16, 0) as usize;
        if block == first {
            break;
        }
        heap.free(0, block, 0).unwrap();
        freed += 1024;
        assert!(freed < 2 * QUARANTINE_BYTES, "never used again");
    }
    assert!(freed > QUARANTINE_BYTES, "used again after {freed} bytes");
    assert_eq!(heap.check(first, 976), Ok(()));
    // SAFETY: a live block.
    unsafe { assert_eq!(*(first as *const u8), POISON) };
    heap.free(0, first, 0).unwrap();
}

#[test]
fn zeroed_blocks_are_zero_when_reused() {
    let (_turn, mut heap) = new_heap();
    for _ in 0..3 {
        let block = heap.allocate_zeroed(0, QUARANTINE_BYTES + 5, 16, 0);
        // SAFETY: a live block.
        let content = unsafe { std::slice::from_raw_parts_mut(block, QUARANTINE_BYTES + 5) };
        assert!(content.iter().all(|&b| b == 0));
        content.fill(1);
        heap.free(0, block as usize, 0).unwrap();
    }
}

#[test]
fn a_full_arena_takes_back_what_others_freed() {
    let (_turn, mut heap) = new_heap();
    let size = 512 << 20;
    let mut blocks: Vec<usize> = Vec::new();
    loop {
        let block = heap.allocate_zeroed(0, size, 16, 0) as usize;
        if block == 0 {
            break;
        }
        blocks.push(block);
    }
    assert!((5..=7).contains(&blocks.len()), "{}", blocks.len());
    heap.free(1, blocks[2], 0).unwrap();
    heap.free(0, blocks[1], 0).unwrap();
    let mut again = [heap.allocate(0, size, 16, 0) as usize, heap.allocate(0, size, 16, 0) as usize];
    again.sort();
    assert_eq!(again, [blocks[1], blocks[2]]);
    assert!(heap.allocate(0, size, 16, 0).is_null());
    assert!(!heap.allocate(1, size, 16, 0).is_null());
}

#[test]
fn overwritten_ends_are_found_when_freed() {
    let (_turn, mut heap) = new_heap();
    for offset in (-32..0).chain(24..40) {
        let before = heap.allocate(0, 8, 16, 0) as usize;
        let block = heap.allocate(0, 24, 16, 7);
        // SAFETY: in the redzones, which are mapped.
        unsafe { *block.offset(offset) ^= 0x40 };
        match heap.free(0, block as usize, 0) {
            Err(HeapError::Corrupted(told)) => assert_eq!((told.base, told.size), (block as usize, 24)),
            other => panic!("{other:?} at {offset}"),
        }
        heap.free(0, before, 0).unwrap();
    }
}

#[test]
fn overwritten_lists_do_no_harm() {
    let (_turn, mut heap) = new_heap();
    let mut random = Random::new(5);
    for round in 0..2000 {
        let size = 40_000 + random.below(8);
        let block = heap.allocate(0, size, 16, 0);
        heap.free(0, block as usize, 0).unwrap();
        if round % 3 == 0 {
            let (at, value) = (random.below(32) + 1, random.next() as u8);
            // SAFETY: the header of a freed block, which is mapped.
            unsafe { *block.sub(at) = value };
        }
    }
    let block = heap.allocate(0, 100, 16, 0) as usize;
    assert_eq!(heap.check(block, 100), Ok(()));
}

#[test]
fn wrong_requests_and_pointers() {
    let (_turn, mut heap) = new_heap();
    for (size, align) in [(ARENA_SIZE, 16), (usize::MAX, 16), (1, 3), (1, MAX_ALIGN * 2), (ARENA_SIZE - 1, MAX_ALIGN)] {
        assert!(heap.allocate(0, size, align, 0).is_null());
    }
    assert!(heap.allocate(MAX_THREADS as u16, 1, 16, 0).is_null());
    for address in
        [0, 8, 16, 31, HEAP_BASE, HEAP_BASE + 16, HEAP_BASE + 7 * ARENA_SIZE + 64, HEAP_BASE + HEAP_SIZE, usize::MAX]
    {
        assert_eq!(heap.free(0, address, 0), Err(HeapError::NotABlock { nearest: None }));
        assert_eq!(heap.describe(address), None);
        assert_eq!(heap.usable_size(address), None);
    }
    assert_eq!(heap.check(HEAP_BASE + 5 * ARENA_SIZE, 1), Err(HeapFault::Wild));
    assert_eq!(heap.check(0x1000, 8), Ok(()));
    assert!(!Heap::contains(HEAP_BASE - 1) && !Heap::contains(HEAP_BASE + HEAP_SIZE));
}

#[test]
fn far_away_is_wild_and_large_blocks_are_explained() {
    let (_turn, mut heap) = new_heap();
    let block = heap.allocate_zeroed(2, 64 << 20, MAX_ALIGN, 11) as usize;
    assert!(block.is_multiple_of(MAX_ALIGN));
    assert_eq!(heap.check(block, 64 << 20), Ok(()));
    assert_eq!(heap.describe(block + (40 << 20)).unwrap().base, block);
    assert_eq!(heap.check(block + (96 << 20), 1), Err(HeapFault::Wild));
    let Err(HeapFault::OutOfBounds(told, at)) = heap.check(block + (1 << 20), 64 << 20) else { panic!() };
    assert_eq!((told.base, at), (block, 64 << 20));
    let Err(HeapFault::OutOfBounds(told, at)) =
        heap.check(block + usize::MAX / 2, 1).and(heap.check(block + 8, usize::MAX))
    else {
        panic!()
    };
    assert_eq!((told.base, at), (block, 64 << 20));
}

#[test]
fn empty_blocks_are_distinct_and_inaccessible() {
    let (_turn, mut heap) = new_heap();
    let (a, b) = (heap.allocate(0, 0, 16, 0) as usize, heap.allocate(0, 0, 16, 0) as usize);
    assert_ne!(a, b);
    assert!(matches!(heap.check(a, 1), Err(HeapFault::OutOfBounds(block, 0)) if block.base == a));
    assert_eq!(heap.usable_size(a), Some(0));
    heap.free(0, a, 0).unwrap();
    assert!(matches!(heap.free(0, a, 0), Err(HeapError::DoubleFree(_))));
    assert!(matches!(heap.check(a, 1), Err(HeapFault::UseAfterFree(_))));
}

#[test]
fn small_blocks_touch_few_pages() {
    let (_turn, mut heap) = new_heap();
    let blocks: Vec<usize> = (0..20).map(|_| heap.allocate(0, 48, 16, 0) as usize).collect();
    let pages: std::collections::BTreeSet<usize> = blocks.iter().map(|b| b / 4096).collect();
    assert_eq!(pages, [HEAP_BASE / 4096].into());
}
