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
#[derive(Debug, Default)]
pub struct ThreadSet {
    low: u64,
    /// Threads 64 and up; no trailing zero words, so that equal sets are equal values.
    high: Vec<u64>,
}

/// Not derived: comparing two empty vectors is a call of `memcmp` with addresses at which there is nothing. Some versions of it
/// read there all the same, masked, and the processor takes hundreds of cycles to find that no fault was meant.
impl PartialEq for ThreadSet {
    #[inline]
    fn eq(&self, other: &ThreadSet) -> bool {
        let both_low = self.high.is_empty() && other.high.is_empty();
        self.low == other.low && (both_low || self.high == other.high)
    }
}

impl Eq for ThreadSet {}

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

    #[inline]
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

    #[inline]
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

    #[inline]
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

    pub fn last(&self) -> Option<ThreadId> {
        let (index, word) = match self.high.last() {
            Some(&word) => (self.high.len(), word),
            None => (0, self.low),
        };
        (word != 0).then(|| ThreadId((index * 64 + 63 - word.leading_zeros() as usize) as u16))
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

    /// Keeps the members that are good.
    pub fn retain(&mut self, good: impl Fn(ThreadId) -> bool) {
        let bad: Vec<ThreadId> = self.iter().filter(|t| !good(*t)).collect();
        bad.into_iter().for_each(|t| _ = self.remove(t));
    }

    /// Empties the set, keeping its memory.
    pub fn clear(&mut self) {
        self.low = 0;
        self.high.clear();
    }

    /// The lowest-numbered member that is in neither of the other two.
    #[inline]
    pub fn first_outside(&self, a: &ThreadSet, b: &ThreadSet) -> Option<ThreadId> {
        let low = self.low & !a.low & !b.low;
        if low != 0 {
            return Some(ThreadId(low.trailing_zeros() as u16));
        }
        let word = |set: &ThreadSet, i: usize| set.high.get(i).copied().unwrap_or(0);
        self.high.iter().enumerate().find_map(|(i, mine)| {
            let rest = mine & !word(a, i) & !word(b, i);
            (rest != 0).then(|| ThreadId(((i + 1) * 64) as u16 + rest.trailing_zeros() as u16))
        })
    }

    #[inline]
    pub fn contains_all(&self, other: &ThreadSet) -> bool {
        other.first_outside(self, self).is_none()
    }

    #[inline]
    pub fn intersects(&self, other: &ThreadSet) -> bool {
        self.low & other.low != 0 || self.high.iter().zip(&other.high).any(|(a, b)| a & b != 0)
    }
}

impl Clone for ThreadSet {
    fn clone(&self) -> ThreadSet {
        ThreadSet { low: self.low, high: self.high.clone() }
    }

    /// Keeps the memory of `self`: the explorers copy one set per step.
    #[inline]
    fn clone_from(&mut self, other: &ThreadSet) {
        self.low = other.low;
        self.high.clear();
        if !other.high.is_empty() {
            self.high.extend_from_slice(&other.high);
        }
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

crate::saved!(ThreadSet { low, high });

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn set(threads: &[u16]) -> ThreadSet {
        threads.iter().map(|&t| ThreadId(t)).collect()
    }

    fn members(set: &ThreadSet) -> Vec<u16> {
        set.iter().map(|t| t.0).collect()
    }

    #[test]
    fn the_last_member_is_found_in_any_word() {
        assert_eq!(set(&[]).last(), None);
        for members in [&[0][..], &[3, 63], &[5, 64], &[0, 200]] {
            assert_eq!(set(members).last(), members.last().map(|&t| ThreadId(t)));
        }
    }

    #[test]
    fn members_come_in_order_across_words() {
        assert_eq!(members(&set(&[1023, 64, 0, 63, 128, 65])), [0, 63, 64, 65, 128, 1023]);
        assert_eq!(set(&[1023, 64]).len(), 2);
        assert_eq!(set(&[1023, 64]).first(), Some(ThreadId(64)));
        assert_eq!(set(&[]).first(), None);
    }

    #[test]
    fn insert_and_remove_say_whether_they_changed_anything() {
        let mut s = set(&[]);
        assert!(s.insert(ThreadId(700)) && !s.insert(ThreadId(700)));
        assert!(!s.remove(ThreadId(701)) && !s.remove(ThreadId(9999)) && s.remove(ThreadId(700)));
        assert!(s.is_empty() && !s.remove(ThreadId(700)));
    }

    #[test]
    fn equal_sets_are_equal_values_however_they_came_about() {
        let mut s = set(&[3, 500]);
        s.remove(ThreadId(500));
        assert_eq!(s, set(&[3]));
        assert_eq!(ThreadSet::from_words(&[8, 0, 0]), set(&[3]));
        assert_eq!(ThreadSet::from_words(&[]), set(&[]));
        let mut copy = set(&[900]);
        copy.clone_from(&s);
        assert_eq!(copy, s);
        copy.union_with(&set(&[200]));
        assert_eq!(copy, set(&[3, 200]));
        copy.clear();
        assert_eq!(copy, set(&[]));
    }

    #[test]
    fn first_outside_looks_past_shorter_sets() {
        assert_eq!(set(&[1, 70]).first_outside(&set(&[1]), &set(&[])), Some(ThreadId(70)));
        assert_eq!(set(&[1, 70]).first_outside(&set(&[1]), &set(&[70])), None);
        assert_eq!(set(&[70, 200]).first_outside(&set(&[70, 1000]), &set(&[5])), Some(ThreadId(200)));
    }

    /// Against the standard library's set, on a fixed pseudo-random sequence of operations.
    #[test]
    fn behaves_like_an_ordered_set() {
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x
        };
        let mut sets = [(ThreadSet::new(), BTreeSet::new()), (ThreadSet::new(), BTreeSet::new())];
        for _ in 0..20_000 {
            let thread = (next() % if next() % 2 == 0 { 70 } else { 1024 }) as u16;
            let (set, model) = &mut sets[(next() % 2) as usize];
            match next() % 3 {
                0 => assert_eq!(set.insert(ThreadId(thread)), model.insert(thread)),
                _ => assert_eq!(set.remove(ThreadId(thread)), model.remove(&thread)),
            }
            assert_eq!(members(set), model.iter().copied().collect::<Vec<_>>());
            assert_eq!((set.contains(ThreadId(thread)), set.len()), (model.contains(&thread), model.len()));
            let [(a, ma), (b, mb)] = &sets;
            assert_eq!(a.intersects(b), !ma.is_disjoint(mb));
            assert_eq!(a.first_outside(b, &ThreadSet::new()), ma.difference(mb).next().map(|&t| ThreadId(t)));
        }
    }
}
