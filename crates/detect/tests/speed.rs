//! How long a check takes. Prints, and judges nothing: the machine decides. Meant for
//! `cargo test --release -p symdpor-detect --test speed -- --nocapture --test-threads=1`.

mod common;

use common::map_pages;
use std::hint::black_box;
use std::time::Instant;
use symdpor_detect::heap::{HEAP_BASE, HEAP_SIZE, Heap, SHADOW_BASE, SHADOW_SIZE};
use symdpor_detect::{Detector, Race};

const ROUNDS: usize = if cfg!(debug_assertions) { 2_000 } else { 100_000 };

/// The best of many short runs (the machine may be busy), in nanoseconds per operation.
fn measure(what: &str, per_round: usize, mut round: impl FnMut(usize)) {
    let mut best = f64::INFINITY;
    for _ in 0..if cfg!(debug_assertions) { 2 } else { 30 } {
        let start = Instant::now();
        (0..ROUNDS / per_round).for_each(&mut round);
        best = best.min(start.elapsed().as_nanos() as f64 / (ROUNDS / per_round * per_round) as f64);
    }
    println!("{what:55} {best:7.2} ns");
}

fn expect(race: Option<Race>) {
    assert!(race.is_none());
}

fn detector(threads: u16) -> Box<Detector> {
    let mut detector = Box::new(Detector::new());
    detector.init(map_pages);
    (1..threads).for_each(|t| detector.thread_created(0, t));
    detector
}

const DATA: usize = 0x5555_0000_0000;

#[test]
fn accesses() {
    let mut d = detector(2);
    measure("write again, one granule", 1, |_| expect(d.write(black_box(1), black_box(DATA), 8)));
    measure("read again, one granule", 1, |_| expect(d.read(black_box(1), black_box(DATA), 4)));
    measure("write again, 1000 granules", 1, |i| expect(d.write(1, black_box(DATA + i % 1000 * 8), 8)));
    measure("read again, 1000 granules", 1, |i| expect(d.read(1, black_box(DATA + i % 1000 * 8), 8)));
    measure("read or write in 8 heap arenas", 1, |i| {
        expect(d.write(1, black_box(0x1000_0000_0280 + ((i % 8) << 32)), 8))
    });
    measure("write, every time in a new epoch (with its release)", 1, |_| {
        expect(d.write(1, black_box(DATA), 8));
        d.release(1, 8);
    });
    measure("write in an epoch for the first time, 1000 granules", 1000, |i| {
        let t = (i % 2) as u16;
        d.acquire(t, 8);
        (0..1000).for_each(|g| expect(d.write(t, black_box(DATA + g * 8), 8)));
        d.release(t, 8);
    });
    measure("read in an epoch for the first time, 1000 granules", 1000, |i| {
        let t = (i % 2) as u16;
        d.acquire(t, 8);
        (0..1000).for_each(|g| expect(d.read(t, black_box(DATA + g * 8), 8)));
        d.release(t, 8);
    });
    measure("two threads reading in turn", 2, |_| {
        expect(d.read(0, black_box(DATA + 0x10000), 8));
        expect(d.read(1, black_box(DATA + 0x10000), 8));
    });
    measure("range of 4096 bytes, per granule", 512, |_| expect(d.write(1, black_box(DATA), 4096)));
}

#[test]
fn readers_and_atomics() {
    let mut d = detector(8);
    measure("eight threads reading in turn", 8, |_| {
        (0..8).for_each(|t| expect(d.read(t, black_box(DATA), 8)));
    });
    measure("eight threads adding atomically, acq_rel", 8, |_| {
        (0..8).for_each(|t| {
            expect(d.atomic_write(t, black_box(DATA + 64), 8));
            d.atomic_rmw(t, black_box(DATA + 64), 4);
        });
    });
}

#[test]
fn synchronisation() {
    for threads in [2, 9, 256] {
        let mut d = detector(threads);
        measure(&format!("acquire and release of a mutex, {threads} threads"), 1, |i| {
            d.acquire((i % 2) as u16, black_box(DATA));
            d.release((i % 2) as u16, black_box(DATA));
        });
    }
    let mut d = detector(1);
    measure("an execution of 9 threads, empty", 1, |_| {
        d.begin_execution();
        (1..9).for_each(|t| d.thread_created(0, t));
    });
}

fn reserve(address: usize, len: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: only the heap's and its shadow's ranges, which nothing else in the test process uses.
    unsafe { libc::mmap(address as *mut _, len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) != libc::MAP_FAILED }
}

#[test]
fn heap() {
    assert!(reserve(HEAP_BASE, HEAP_SIZE) && reserve(SHADOW_BASE, SHADOW_SIZE));
    let mut heap = Box::new(Heap::new(|_, _| true));
    let block = heap.allocate(0, 4096, 16, 0) as usize;
    measure("heap check of 8 bytes", 1, |i| assert!(heap.check(black_box(block + i % 512 * 8), 8).is_ok()));
    measure("heap check of 16 bytes", 1, |i| assert!(heap.check(black_box(block + i % 255 * 16), 16).is_ok()));
    measure("heap check of 4096 bytes", 1, |_| assert!(heap.check(black_box(block), 4096).is_ok()));
    measure("allocate and free 48 bytes", 1, |_| {
        let block = black_box(heap.allocate(0, 48, 16, 0));
        heap.free(0, block as usize, 0).unwrap();
    });
    measure("allocate and free 1000 bytes", 1, |_| {
        let block = black_box(heap.allocate(1, 1000, 16, 0));
        heap.free(1, block as usize, 0).unwrap();
    });
}
