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
    if len > 32 {
        // SAFETY: the caller's.
        return unsafe { fill_many(bytes, value, len) };
    }
    for i in 0..len {
        // SAFETY: within the bytes that the caller vouches for.
        unsafe { bytes.add(i).write_volatile(value) };
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn fill_many(bytes: *mut u8, value: u8, len: usize) {
    // SAFETY: stores `len` bytes from `bytes` upwards, the direction flag being clear as the ABI demands.
    unsafe {
        core::arch::asm!("rep stosb", inout("rcx") len => _, inout("rdi") bytes => _, in("al") value,
            options(nostack, preserves_flags));
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn fill_many(bytes: *mut u8, value: u8, len: usize) {
    for i in 0..len {
        // SAFETY: within the bytes that the caller of `fill` vouches for.
        unsafe { bytes.add(i).write_volatile(value) };
    }
}
