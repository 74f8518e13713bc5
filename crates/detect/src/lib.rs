//! Data race detection and the heap of the program under test.
//!
//! Both run inside the program under test, on its one kernel thread, never concurrently. Hence the ground rules: no
//! libc, no allocator, no thread-locals, no panic whatever the input; not even the `memcpy` that the compiler likes to
//! call, because the runtime interposes it. All memory comes from a [`MapPages`] or is committed through a callback.
//!
//! The two halves differ in what happens between executions. The [`Detector`] is *persistent*: it is never restored,
//! its clocks keep rising, and so everything older than the current execution means "before". The [`heap::Heap`] is
//! *restored* with the rest of the program, so that every execution allocates at the same addresses.
#![no_std]

#[cfg(test)]
extern crate std;

mod chain;
mod clock;
mod detector;
pub mod heap;

pub mod log;
mod objects;
mod pages;
mod race;
mod record;
mod shadow;
mod sync;

pub use detector::Detector;
pub use race::Race;

/// Gives zeroed pages of at least `len` bytes, aligned to a page, or null if memory is out. They are never given back.
pub type MapPages = fn(len: usize) -> *mut u8;

/// The most threads of one execution: thread numbers are below this. The same as the contract's limit; this crate has
/// no dependencies, a test compares the two.
pub const MAX_THREADS: usize = 1024;
