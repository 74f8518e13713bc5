//! Which addresses the heap gives out: the same after a restore, whatever other threads do, and when it uses memory again.

mod common;

use common::Random;
use common::heap::{commit, new_heap};
use symdpor_detect::heap::{
    COMMIT_CHUNK, HEAP_BASE, HEAP_SIZE, Heap, HeapError, HeapFault, POISON, QUARANTINE_BYTES, SHADOW_BASE, SHADOW_SIZE,
};

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
fn what_others_free_is_not_used_again() {
    let (_turn, mut heap) = new_heap();
    let blocks: Vec<usize> = (0..2 * QUARANTINE_BYTES / 1024).map(|_| heap.allocate(0, 976, 16, 0) as usize).collect();
    for &block in &blocks {
        heap.free(1, block, 0).unwrap();
    }
    let next = heap.allocate(0, 976, 16, 0) as usize;
    assert_eq!(next, blocks.last().unwrap() + 1024);
    assert!(blocks.iter().all(|&block| matches!(heap.check(block, 1), Err(HeapFault::UseAfterFree(_)))));
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

/// Pieces used again for blocks of another alignment keep nothing of the old ones' headers.
#[test]
fn reused_memory_forgets_the_block_before() {
    let (_turn, mut heap) = new_heap();
    let mut random = Random::new(8);
    // All pieces are of one class, so they lie side by side.
    const PIECE: usize = 2560;
    let first = heap.allocate(0, PIECE - 48, 16, 0) as usize - 32;
    let piece = |block: usize| (block - first) / PIECE;
    let mut old: Vec<Vec<usize>> = Vec::new();
    let mut reused = 0;
    for _ in 0..20_000 {
        let align = random.pick(&[16, 256, 1024, 2048]);
        let size = 2500 - align - random.below(300);
        let block = heap.allocate(0, size, align, 0) as usize;
        old.resize((piece(block) + 1).max(old.len()), Vec::new());
        for &stale in old[piece(block)].iter().filter(|&&stale| stale != block) {
            reused += 1;
            match heap.free(0, stale, 0) {
                Err(HeapError::InteriorPointer(told)) => assert_eq!(told.base, block),
                Err(HeapError::NotABlock { nearest }) => assert!(nearest.is_some()),
                other => panic!("{other:?} for {stale:#x} beside {block:#x}+{size}"),
            }
        }
        old[piece(block)].push(block);
        heap.free(0, block, 0).unwrap();
    }
    assert!(reused > 1000, "{reused}");
}

/// When nothing more can be committed, freed blocks are used again at once, larger ones for smaller ones too.
#[test]
fn out_of_memory_takes_larger_pieces() {
    let (_turn, _) = new_heap();
    let only_the_first_chunk = |address: usize, len: usize| {
        let offset = if address >= SHADOW_BASE { (address - SHADOW_BASE) * 8 } else { address - HEAP_BASE };
        offset == 0 && commit(address, len)
    };
    let mut heap = Box::new(Heap::new(only_the_first_chunk));
    let allocate_all = |heap: &mut Heap, size: usize, align: usize| -> Vec<usize> {
        std::iter::repeat_with(|| heap.allocate(0, size, align, 0) as usize).take_while(|&block| block != 0).collect()
    };
    let large = allocate_all(&mut heap, 100, 2048);
    let rest = allocate_all(&mut heap, 16, 16);
    assert!(large.len() > 50 && rest.len() < 60);
    assert!(heap.allocate(1, 16, 16, 0).is_null());
    large.iter().for_each(|&block| assert!(heap.free(0, block, 0).is_ok()));
    let small = allocate_all(&mut heap, 16, 16);
    assert_eq!(small.len(), large.len());
    for &stale in large.iter().filter(|stale| !small.contains(stale)) {
        assert!(matches!(heap.free(0, stale, 0), Err(HeapError::NotABlock { .. })));
    }
    small.iter().chain(&rest).for_each(|&block| assert!(heap.free(0, block, 0).is_ok()));
}

#[test]
fn small_blocks_touch_few_pages() {
    let (_turn, mut heap) = new_heap();
    let blocks: Vec<usize> = (0..20).map(|_| heap.allocate(0, 48, 16, 0) as usize).collect();
    let pages: std::collections::BTreeSet<usize> = blocks.iter().map(|b| b / 4096).collect();
    assert_eq!(pages, [HEAP_BASE / 4096].into());
}
