//! malloc and its relatives, on the runtime's heap. C++'s operators new and delete call these.

use crate::access;
use crate::end::{self, Details};
use crate::exec;
use crate::footprint;
use crate::init;
use crate::races;
use crate::snapshot;
use crate::spin;
use crate::stack;
use symdpor_abi::channel::ErrorKind;
use symdpor_detect::Detector;
use symdpor_detect::heap::{Block, HeapError};

const ENOMEM: i32 = 12;
const EINVAL: i32 = 22;
const ALIGN: usize = 16;

unsafe extern "C" {
    fn __errno_location() -> *mut i32;
}

fn allocate(size: usize, align: usize) -> usize {
    init::ensure();
    let exec = exec::get();
    spin::changed();
    let block = exec.heap.allocate(exec.current, size, align, stack::here_id()) as usize;
    footprint::allocated(block, size);
    or_errno(block)
}

fn or_errno(block: usize) -> usize {
    if block == 0 {
        // SAFETY: libc's errno of the running context.
        unsafe { *__errno_location() = ENOMEM };
    }
    block
}

fn release(block: usize) {
    if block == 0 {
        return;
    }
    spin::changed();
    let exec = exec::get();
    // A free conflicts with every access to the block that is not ordered before it.
    if snapshot::is_taken()
        && let Some(size) = exec.heap.usable_size(block)
    {
        write_what_was_used(block, size);
        crate::accesses::frees();
    }
    crate::addresses::freed();
    if let Err(error) = exec::get().heap.free(exec.current, block, stack::here_id()) {
        report(error, block);
    }
}

/// A free as a write to the whole block, but for large parts of it that nobody has ever accessed: there is nothing that it could
/// conflict with, and whoever accesses them later uses freed memory.
fn write_what_was_used(block: usize, size: usize) {
    const LARGE: usize = 1 << 20;
    if size < LARGE || !races::is_all() {
        return access::write(block, size);
    }
    let (mut at, end) = (block, block + size);
    while at < end {
        let next = Detector::next_part(at).min(end);
        if races::detector().knows_part(at) {
            access::write(at, next - at);
        }
        at = next;
    }
}

#[cold]
fn report(error: HeapError, address: usize) -> ! {
    let mut details = Details::at(0);
    details.address = address;
    let mut of = |block: &Block| access::block_details(&mut details, block);
    let message = match &error {
        HeapError::DoubleFree(block) => {
            of(block);
            "a block is freed a second time"
        }
        HeapError::InteriorPointer(block) => {
            of(block);
            "a pointer into the middle of a block is freed"
        }
        HeapError::Corrupted(block) => {
            of(block);
            "a block is freed whose edges were overwritten"
        }
        HeapError::NotABlock { .. } => "a pointer is freed that malloc never returned",
    };
    end::error(ErrorKind::Memory, &details, format_args!("{message}"))
}

#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> usize {
    allocate(size, ALIGN)
}

#[unsafe(no_mangle)]
pub extern "C" fn free(block: usize) {
    release(block);
}

#[unsafe(no_mangle)]
pub extern "C" fn cfree(block: usize) {
    release(block);
}

#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> usize {
    let Some(total) = count.checked_mul(size) else { return allocate(usize::MAX, ALIGN) };
    init::ensure();
    let exec = exec::get();
    spin::changed();
    let block = exec.heap.allocate_zeroed(exec.current, total, ALIGN, stack::here_id()) as usize;
    footprint::allocated(block, total);
    or_errno(block)
}

#[unsafe(no_mangle)]
pub extern "C" fn realloc(old: usize, size: usize) -> usize {
    if old == 0 {
        return allocate(size, ALIGN);
    }
    let Some(old_size) = exec::get().heap.usable_size(old) else {
        release(old);
        return 0;
    };
    let block = allocate(size, ALIGN);
    if block != 0 {
        access::read(old, old_size.min(size));
        // SAFETY: both blocks are at least that long.
        unsafe { core::ptr::copy_nonoverlapping(old as *const u8, block as *mut u8, old_size.min(size)) };
        release(old);
    }
    block
}

#[unsafe(no_mangle)]
pub extern "C" fn reallocarray(old: usize, count: usize, size: usize) -> usize {
    match count.checked_mul(size) {
        Some(total) => realloc(old, total),
        None => allocate(usize::MAX, ALIGN),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> usize {
    if !align.is_power_of_two() {
        // SAFETY: libc's errno of the running context.
        unsafe { *__errno_location() = EINVAL };
        return 0;
    }
    allocate(size, align.max(ALIGN))
}

#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> usize {
    aligned_alloc(align.next_power_of_two(), size)
}

#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> usize {
    allocate(size, 4096)
}

#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> usize {
    allocate(size.next_multiple_of(4096), 4096)
}

#[unsafe(no_mangle)]
pub extern "C" fn posix_memalign(out: usize, align: usize, size: usize) -> i32 {
    if !align.is_power_of_two() || !align.is_multiple_of(8) {
        return EINVAL;
    }
    let block = allocate(size, align.max(ALIGN));
    if block == 0 {
        return ENOMEM;
    }
    super::threads::store_word(out, block);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn malloc_usable_size(block: usize) -> usize {
    exec::get().heap.usable_size(block).unwrap_or(0)
}
