//! A heap at its fixed addresses, in memory that is really reserved and committed.

use std::sync::{Mutex, MutexGuard};
use symdpor_detect::heap::{COMMIT_CHUNK, HEAP_BASE, HEAP_SIZE, Heap, SHADOW_BASE, SHADOW_SIZE};

/// The heap has fixed addresses, so one test at a time uses it.
static TURN: Mutex<()> = Mutex::new(());

pub fn map_fixed(address: usize, len: usize, protection: i32) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: only the heap's and its shadow's ranges, which nothing else in the test process uses.
    unsafe { libc::mmap(address as *mut _, len, protection, flags, -1, 0) != libc::MAP_FAILED }
}

pub fn commit(address: usize, len: usize) -> bool {
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
pub fn new_heap() -> (MutexGuard<'static, ()>, Box<Heap>) {
    let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    assert!(map_fixed(HEAP_BASE, HEAP_SIZE, libc::PROT_NONE) && map_fixed(SHADOW_BASE, SHADOW_SIZE, libc::PROT_NONE));
    (turn, Box::new(Heap::new(commit)))
}
