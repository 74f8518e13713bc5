//! Thread numbers and sets of them.

use serde::{Deserialize, Serialize};

/// A thread of the program, numbered in the order of creation; main is 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ThreadId(pub u16);

impl ThreadId {
    pub const MAIN: ThreadId = ThreadId(0);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of threads, ordered by number. The first 64 threads need no allocation.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ThreadSet {
    low: u64,
    /// Threads 64 and up; no trailing zero words, so that equal sets are equal values.
    high: Vec<u64>,
}

impl ThreadSet {
    pub fn new() -> ThreadSet {
        ThreadSet::default()
    }

    /// From words of 64 threads each, lowest first.
    pub fn from_words(words: &[u64]) -> ThreadSet {
        let low = words.first().copied().unwrap_or(0);
        let mut set = ThreadSet { low, high: words.get(1..).unwrap_or(&[]).to_vec() };
        set.trim();
        set
    }

    fn trim(&mut self) {
        while self.high.last() == Some(&0) {
            self.high.pop();
        }
    }

    pub fn insert(&mut self, thread: ThreadId) -> bool {
        let (word, bit) = (thread.index() / 64, 1u64 << (thread.index() % 64));
        let slot = if word == 0 {
            &mut self.low
        } else {
            if self.high.len() < word {
                self.high.resize(word, 0);
            }
            &mut self.high[word - 1]
        };
        let fresh = *slot & bit == 0;
        *slot |= bit;
        fresh
    }

    pub fn remove(&mut self, thread: ThreadId) -> bool {
        let (word, bit) = (thread.index() / 64, 1u64 << (thread.index() % 64));
        let slot = match word {
            0 => Some(&mut self.low),
            _ => self.high.get_mut(word - 1),
        };
        let Some(slot) = slot else { return false };
        let present = *slot & bit != 0;
        *slot &= !bit;
        self.trim();
        present
    }

    pub fn contains(&self, thread: ThreadId) -> bool {
        let (word, bit) = (thread.index() / 64, 1u64 << (thread.index() % 64));
        match word {
            0 => self.low & bit != 0,
            _ => self.high.get(word - 1).is_some_and(|w| w & bit != 0),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.low == 0 && self.high.is_empty()
    }

    pub fn len(&self) -> usize {
        self.words().map(|w| w.count_ones() as usize).sum()
    }

    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        std::iter::once(self.low).chain(self.high.iter().copied())
    }

    /// The members, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = ThreadId> + '_ {
        self.words().enumerate().flat_map(|(i, word)| Bits(word).map(move |b| ThreadId((i * 64 + b as usize) as u16)))
    }

    pub fn first(&self) -> Option<ThreadId> {
        self.iter().next()
    }

    pub fn union_with(&mut self, other: &ThreadSet) {
        self.low |= other.low;
        if self.high.len() < other.high.len() {
            self.high.resize(other.high.len(), 0);
        }
        for (mine, theirs) in self.high.iter_mut().zip(&other.high) {
            *mine |= theirs;
        }
    }

    pub fn intersects(&self, other: &ThreadSet) -> bool {
        self.low & other.low != 0 || self.high.iter().zip(&other.high).any(|(a, b)| a & b != 0)
    }
}

impl FromIterator<ThreadId> for ThreadSet {
    fn from_iter<I: IntoIterator<Item = ThreadId>>(threads: I) -> ThreadSet {
        let mut set = ThreadSet::new();
        for thread in threads {
            set.insert(thread);
        }
        set
    }
}

struct Bits(u64);

impl Iterator for Bits {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(bit)
    }
}
