//! 128-bit hashes of structure: SipHash-1-3 with fixed keys, the same in every process.

use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher;

const KEYS: (u64, u64) = (0x7379_6d64_706f_7231, 0x7265_7369_6475_616c);

pub struct Structure {
    sip: SipHasher13,
}

impl Structure {
    /// Each kind of thing has a tag of its own, so that no two kinds can be taken for one another.
    pub fn new(tag: u64) -> Structure {
        let mut structure = Structure { sip: SipHasher13::new_with_keys(KEYS.0, KEYS.1) };
        structure.word(tag);
        structure
    }

    pub fn word(&mut self, word: u64) {
        self.sip.write(&word.to_le_bytes());
    }

    pub fn words(&mut self, words: &[u64]) {
        words.iter().for_each(|&w| self.word(w));
    }

    pub fn wide(&mut self, value: u128) {
        self.sip.write(&value.to_le_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        self.sip.write(bytes);
    }

    pub fn finish(&self) -> u128 {
        self.sip.finish128().as_u128()
    }
}

/// A quick mixture of two words, for keys that only decide an order.
pub fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd6e8_feb8_6659_fd93);
    ((product >> 64) as u64 ^ product as u64).rotate_left(23).wrapping_add(a)
}
