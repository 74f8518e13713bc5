//! Randomness that is the same in every execution: a generator seeded by the controller.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
//! Not covered: the processor's own instruction (`rdrand`), other than through `std::random_device`.

use super::errno::{EFAULT, EINVAL};
use super::kernel;
use super::{Args, state};

pub struct Generator {
    /// Steps made; the seed is added when a number is asked for, so that nothing depends on when it is known.
    steps: u64,
}

impl Generator {
    pub const fn new() -> Generator {
        Generator { steps: 0 }
    }

    fn next(&mut self, seed: u64) -> u64 {
        self.steps += 1;
        let mut z = seed.wrapping_add(self.steps.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// The next 64 bits.
pub fn next() -> u64 {
    let seed = if crate::channel::is_attached() { crate::channel::header().seed } else { 0 };
    state().random.next(seed)
}

pub fn fill(bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&next().to_le_bytes()[..chunk.len()]);
    }
}

/// Fills a buffer of the program; as many bytes as `read` on a random device or `getrandom` would give.
pub fn fill_program(address: usize, len: usize) -> isize {
    const MOST_AT_ONCE: usize = (1 << 25) - 1;
    let Some(bytes) = kernel::bytes_mut(address, len.min(MOST_AT_ONCE)) else { return EFAULT };
    fill(bytes);
    bytes.len() as isize
}

pub fn getrandom(_: usize, args: Args) -> isize {
    const KNOWN_FLAGS: usize = 7;
    if args[2] & !KNOWN_FLAGS != 0 { EINVAL } else { fill_program(args[0], args[1]) }
}
