//! The runtime's own memory: mapped in a window of its own, so that the snapshot can leave it out by address.

use super::raw::{nr, syscall6};
use crate::cell::Global;

pub const PAGE: usize = 4096;

/// All memory that the runtime maps for itself lies here.
pub const WINDOW: core::ops::Range<usize> = 0x4000_0000_0000..0x4800_0000_0000;

pub const PROT_READ: usize = 1;
pub const PROT_WRITE: usize = 2;
const MAP_PRIVATE: usize = 2;
const MAP_SHARED: usize = 1;
const MAP_ANONYMOUS: usize = 0x20;
const MAP_NORESERVE: usize = 0x4000;
const MAP_FIXED_NOREPLACE: usize = 0x10_0000;

static NEXT: Global<usize> = Global::new(WINDOW.start);

pub const fn round_up(len: usize) -> usize {
    (len + PAGE - 1) & !(PAGE - 1)
}

/// Zeroed pages of the runtime's own, or null. Never given back.
pub fn map(len: usize) -> *mut u8 {
    let next = NEXT.get();
    let len = round_up(len);
    let address = *next;
    *next += len + PAGE;
    if map_at(address, len) { address as *mut u8 } else { core::ptr::null_mut() }
}

/// Zeroed, private, readable and writable pages at a fixed address where nothing is mapped yet.
pub fn map_at(address: usize, len: usize) -> bool {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    // SAFETY: nothing that is mapped already can be replaced.
    let got = unsafe { syscall6(nr::MMAP, address, len, PROT_READ | PROT_WRITE, flags, usize::MAX, 0) };
    got == address as isize
}

/// Maps a shared memory file into the runtime's window.
pub fn map_file(fd: usize, len: usize) -> Option<*mut u8> {
    let next = NEXT.get();
    let address = *next;
    *next += round_up(len) + PAGE;
    // SAFETY: nothing that is mapped already can be replaced.
    let got = unsafe {
        syscall6(
            nr::MMAP,
            address,
            len,
            PROT_READ | PROT_WRITE,
            MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
            fd,
            0,
        )
    };
    (got == address as isize).then_some(address as *mut u8)
}

pub fn protect(address: usize, len: usize, protection: usize) -> bool {
    // SAFETY: callers change only memory that the snapshot manages, or guard pages of their own.
    unsafe { syscall6(nr::MPROTECT, address, len, protection, 0, 0, 0) == 0 }
}
