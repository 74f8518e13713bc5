//! What the heap says of single wrong accesses, frees and requests.

mod common;

use common::Random;
use common::heap::new_heap;
use symdpor_detect::MAX_THREADS;
use symdpor_detect::heap::{
    ARENA_SIZE, COMMIT_CHUNK, HEAP_BASE, HEAP_SIZE, Heap, HeapError, HeapFault, MAX_ALIGN, QUARANTINE_BYTES,
};

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

/// A freed block's link that was overwritten leads nowhere, not into somebody's data.
#[test]
fn an_overwritten_link_does_not_reach_other_blocks() {
    let (_turn, mut heap) = new_heap();
    let live = heap.allocate(0, 4096, 16, 0);
    // Words that would do as a header's size class.
    // SAFETY: a live block.
    let content = unsafe { std::slice::from_raw_parts_mut(live.cast::<u32>(), 1024) };
    content.fill(1);
    let victim = heap.allocate(0, 976, 16, 0);
    let after = heap.allocate(0, 976, 16, 0);
    heap.free(0, victim as usize, 0).unwrap();
    heap.free(0, after as usize, 0).unwrap();
    // The link is the header's first word: offset in the arena in units of 16 bytes.
    // SAFETY: the header of a freed block, which is mapped.
    unsafe { *victim.sub(32).cast::<u32>() = ((live as usize + 1024 - HEAP_BASE) / 16) as u32 };
    for _ in 0..2 * QUARANTINE_BYTES / 1024 {
        let block = heap.allocate(0, 976, 16, 0) as usize;
        heap.free(0, block, 0).unwrap();
    }
    assert!(content.iter().all(|&word| word == 1));
    assert_eq!(heap.check(live as usize, 4096), Ok(()));
}

/// The memory behind the last block may not even be committed.
#[test]
fn checks_do_not_look_beyond_what_is_committed() {
    let (_turn, mut heap) = new_heap();
    let mut last = heap.allocate(0, 976, 16, 0) as usize;
    while COMMIT_CHUNK - (last + 992) % COMMIT_CHUNK >= 2048 {
        last = heap.allocate(0, 976, 16, 0) as usize;
    }
    let left = COMMIT_CHUNK - (last + 992) % COMMIT_CHUNK;
    heap.allocate(0, left / 2 / 16 * 16 - 48, 16, 0);
    let left = left - left / 2 / 16 * 16;
    let last = heap.allocate(0, left - 48, 16, 0) as usize;
    assert_eq!((last + left - 32) % COMMIT_CHUNK, 0, "the last piece ends where committed memory does");
    for from in 0..left - 48 {
        let Err(HeapFault::OutOfBounds(block, at)) = heap.check(last + from, 1 << 20) else { panic!() };
        assert_eq!((block.base, at), (last, (left - 48) as isize));
    }
    assert!(heap.check(last + left + 4000, 8).is_err());
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
