//! Where the detector's memory comes from, and moving it without the compiler's `memcpy` and `memset`.
//!
//! The loops below write through volatile accesses or string instructions: an ordinary loop would be turned into a call
//! of the libc function that the runtime interposes.

use crate::MapPages;

/// The page source, and whether it ever ran dry.
pub(crate) struct Pages {
    map: Option<MapPages>,
    exhausted: bool,
}

impl Pages {
    pub(crate) const fn new() -> Pages {
        Pages { map: None, exhausted: false }
    }

    pub(crate) fn init(&mut self, map: MapPages) {
        self.map = Some(map);
    }

    /// Room for `count` zeroed values, or null.
    pub(crate) fn take<T>(&mut self, count: usize) -> *mut T {
        let pages = match self.map {
            Some(map) => map(count.saturating_mul(size_of::<T>())),
            None => core::ptr::null_mut(),
        };
        self.exhausted |= pages.is_null();
        pages.cast()
    }

    pub(crate) fn exhausted(&self) -> bool {
        self.exhausted
    }

    /// Something else than memory ran out: from here on races may be missed.
    pub(crate) fn give_up(&mut self) {
        self.exhausted = true;
    }
}

/// Zeroes `count` words, without touching pages that are zero already.
///
/// # Safety
/// The words must be valid for reading and writing.
pub(crate) unsafe fn clear_words(words: *mut u64, count: usize) {
    for i in 0..count {
        // SAFETY: within the words that the caller vouches for.
        unsafe {
            if words.add(i).read() != 0 {
                words.add(i).write_volatile(0);
            }
        }
    }
}

/// Sets `len` bytes.
///
/// # Safety
/// The bytes must be valid for writing.
#[inline]
pub(crate) unsafe fn fill(bytes: *mut u8, value: u8, len: usize) {
    // SAFETY: the caller's, for both.
    unsafe { if len < 16 { fill_few(bytes, value, len) } else { fill_many(bytes, value, len) } }
}

/// Up to 15 bytes, by words that may overlap.
unsafe fn fill_few(bytes: *mut u8, value: u8, len: usize) {
    let word = u64::from_ne_bytes([value; 8]);
    // SAFETY: each store is within the `len` bytes that the caller of `fill` vouches for.
    unsafe {
        if len >= 8 {
            bytes.cast::<u64>().write_unaligned(word);
            return bytes.add(len - 8).cast::<u64>().write_unaligned(word);
        }
        for i in 0..len {
            bytes.add(i).write_volatile(value);
        }
    }
}

/// At least 16 bytes, by double words of which the last two may overlap.
unsafe fn fill_many(bytes: *mut u8, value: u8, len: usize) {
    let word = u128::from_ne_bytes([value; 16]);
    let last = len - 16;
    let mut at = 0;
    while at < last {
        // SAFETY: `at + 16` is below `len`. The assembly is empty: it may touch memory for all the compiler knows, which
        // keeps the loop from becoming a memset.
        unsafe {
            bytes.add(at).cast::<u128>().write_unaligned(word);
            core::arch::asm!("", options(nostack, preserves_flags));
        }
        at += 16;
    }
    // SAFETY: the last 16 bytes.
    unsafe { bytes.add(last).cast::<u128>().write_unaligned(word) };
}
