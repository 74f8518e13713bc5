//! Uses the whole interface as the runtime does, without std: compiled by the test beside it, never run.
#![no_std]

use core::cell::UnsafeCell;
use symdpor_detect::heap::{Heap, HeapError, HeapFault};
use symdpor_detect::{Detector, MapPages, Race};

struct Shared<T>(UnsafeCell<T>);
// SAFETY: never run.
unsafe impl<T> Sync for Shared<T> {}

static DETECTOR: Shared<Detector> = Shared(UnsafeCell::new(Detector::new()));
static HEAP: Shared<Heap> = Shared(UnsafeCell::new(Heap::new(|_, _| false)));

unsafe extern "C" {
    fn probe_panicked() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: never run.
    unsafe { probe_panicked() }
}

fn detector() -> &'static mut Detector {
    // SAFETY: never run.
    unsafe { &mut *DETECTOR.0.get() }
}

fn heap() -> &'static mut Heap {
    // SAFETY: never run.
    unsafe { &mut *HEAP.0.get() }
}

#[unsafe(no_mangle)]
pub fn probe_start(map: MapPages) -> bool {
    detector().init(map);
    detector().begin_execution();
    detector().exhausted()
}

#[unsafe(no_mangle)]
pub fn probe_access(t: u16, address: usize, len: usize) -> [Option<Race>; 4] {
    let d = detector();
    d.forget(address, len);
    [d.read(t, address, len), d.write(t, address, len), d.atomic_read(t, address, len), d.atomic_write(t, address, len)]
}

#[unsafe(no_mangle)]
pub fn probe_synchronise(t: u16, other: u16, object: usize, order: u8) -> u32 {
    let d = detector();
    d.thread_created(t, other);
    d.thread_joined(t, other);
    d.acquire(t, object);
    d.release(t, object);
    d.release_merge(t, object);
    d.atomic_load(t, object, order);
    d.atomic_store(t, object, order);
    d.atomic_rmw(t, object, order);
    d.fence(t, order);
    d.epoch(t)
}

#[unsafe(no_mangle)]
pub fn probe_allocate(t: u16, size: usize, align: usize, site: u32) -> [*mut u8; 2] {
    [heap().allocate(t, size, align, site), heap().allocate_zeroed(t, size, align, site)]
}

#[unsafe(no_mangle)]
pub fn probe_free(t: u16, address: usize, site: u32) -> Result<Option<usize>, HeapError> {
    let size = heap().usable_size(address);
    heap().free(t, address, site).map(|block| size.or(Some(block.size)))
}

#[unsafe(no_mangle)]
pub fn probe_check(address: usize, len: usize) -> Result<bool, HeapFault> {
    heap().check(address, len).map(|()| heap().describe(address).is_some())
}
