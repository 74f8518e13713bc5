//! Sets of threads as bits, of which only the words that are in use are looked at.

use symdpor_abi::MAX_THREADS;

pub const WORDS: usize = MAX_THREADS / 64;

/// Zeroed memory is the empty set. Numbers are taken modulo [`MAX_THREADS`].
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct ThreadBits(pub [u64; WORDS]);

impl ThreadBits {
    pub const EMPTY: ThreadBits = ThreadBits([0; WORDS]);

    /// How many words hold `count` threads.
    pub fn words_for(count: u16) -> usize {
        (count as usize).div_ceil(64).min(WORDS)
    }

    #[inline(always)]
    pub fn contains(&self, number: u16) -> bool {
        self.0[number as usize / 64 % WORDS] >> (number % 64) & 1 != 0
    }

    #[inline(always)]
    pub fn insert(&mut self, number: u16) {
        self.0[number as usize / 64 % WORDS] |= 1 << (number % 64);
    }

    #[inline(always)]
    pub fn remove(&mut self, number: u16) {
        self.0[number as usize / 64 % WORDS] &= !(1 << (number % 64));
    }

    /// The first member in `from..` that is not in `except` and for which `good` holds; only `words` words count.
    #[inline]
    pub fn find(&self, from: u16, words: usize, except: &ThreadBits, good: impl Fn(u16) -> bool) -> Option<u16> {
        let first = from as usize / 64;
        for (i, (word, not)) in self.0[..words].iter().zip(&except.0).enumerate().skip(first) {
            let low = if i == first { !0 << (from % 64) } else { !0 };
            let found = Members { bits: word & !not & low, base: i as u16 * 64 }.find(|&n| good(n));
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

/// The members of one word of a set, lowest first.
pub struct Members {
    pub bits: u64,
    /// The number of the word's first thread.
    pub base: u16,
}

impl Iterator for Members {
    type Item = u16;

    #[inline(always)]
    fn next(&mut self) -> Option<u16> {
        if self.bits == 0 {
            return None;
        }
        let number = self.base + self.bits.trailing_zeros() as u16;
        self.bits &= self.bits - 1;
        Some(number)
    }
}
