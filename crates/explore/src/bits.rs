//! Sets of threads with small numbers, as bits. Of others nothing is in them.

use symdpor_trace::ThreadId;

const WORDS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bits([u64; WORDS]);

/// A bit for each of eight numbers that is greater than the given one.
#[inline(always)]
fn greater(numbers: [i16; 8], than: i16) -> u64 {
    let found = numbers.map(|number| u8::from(number > than));
    // Multiplying brings the lowest bits of all bytes together in the highest byte.
    u64::from_le_bytes(found).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

impl Bits {
    /// How many threads fit.
    pub const ROOM: usize = WORDS * 64;

    /// The threads whose number in the list is greater than the given one.
    #[inline(always)]
    pub fn greater<const W: usize>(numbers: &[i16; W], than: i16) -> Bits {
        let mut bits = Bits::default();
        let (groups, rest) = numbers.as_chunks::<8>();
        for (i, group) in groups.iter().enumerate() {
            bits.0[i / 8] |= greater(*group, than) << (i % 8 * 8);
        }
        if !rest.is_empty() {
            let mut group = [i16::MIN; 8];
            group[..rest.len()].copy_from_slice(rest);
            bits.0[groups.len() / 8] |= greater(group, than) << (groups.len() % 8 * 8);
        }
        bits
    }

    #[inline]
    pub fn contains(&self, thread: ThreadId) -> bool {
        let word = self.0.get(thread.index() / 64);
        word.is_some_and(|bits| bits >> (thread.index() % 64) & 1 != 0)
    }

    #[inline]
    pub fn insert(&mut self, thread: ThreadId) {
        if let Some(bits) = self.0.get_mut(thread.index() / 64) {
            *bits |= 1 << (thread.index() % 64);
        }
    }

    #[inline]
    pub fn remove(&mut self, thread: ThreadId) {
        if let Some(bits) = self.0.get_mut(thread.index() / 64) {
            *bits &= !(1 << (thread.index() % 64));
        }
    }

    /// With two threads exchanged.
    #[inline]
    pub fn exchanged(mut self, one: ThreadId, other: ThreadId) -> Bits {
        if self.contains(one) != self.contains(other) {
            let (from, to) = if self.contains(one) { (one, other) } else { (other, one) };
            self.remove(from);
            self.insert(to);
        }
        self
    }

    pub fn retain(&mut self, good: impl Fn(ThreadId) -> bool) {
        for thread in self.iter().filter(|t| !good(*t)) {
            self.remove(thread);
        }
    }

    /// The highest first: what was created later mostly knows more.
    #[inline]
    pub fn iter(self) -> Iter {
        Iter { words: self.0, word: WORDS - 1 }
    }
}

pub struct Iter {
    words: [u64; WORDS],
    word: usize,
}

impl Iterator for Iter {
    type Item = ThreadId;

    #[inline]
    fn next(&mut self) -> Option<ThreadId> {
        while self.words[self.word] == 0 {
            self.word = self.word.checked_sub(1)?;
        }
        let thread = self.words[self.word].ilog2();
        self.words[self.word] &= !(1 << thread);
        Some(ThreadId((64 * self.word as u32 + thread) as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<const W: usize>(of: &[usize]) -> [i16; W] {
        let mut numbers = [-3; W];
        of.iter().for_each(|&t| numbers[t] = i16::MAX - 1);
        numbers
    }

    fn is_found<const W: usize>(of: &[usize]) {
        let bits = Bits::greater(&numbers::<W>(of), 7);
        let found: Vec<usize> = bits.iter().map(ThreadId::index).collect();
        assert_eq!(found, of.iter().rev().copied().collect::<Vec<_>>());
        assert!((0..W).all(|t| bits.contains(ThreadId(t as u16)) == of.contains(&t)));
    }

    #[test]
    fn what_is_greater_is_found() {
        is_found::<4>(&[0, 3]);
        is_found::<8>(&[1, 2, 7]);
        is_found::<32>(&[0, 8, 9, 31]);
        is_found::<256>(&[0, 63, 64, 127, 128, 200, 255]);
        is_found::<256>(&[]);
    }

    #[test]
    fn exchanging_twice_changes_nothing() {
        let bits = Bits::greater(&numbers::<256>(&[2, 100]), 0);
        let once = bits.exchanged(ThreadId(2), ThreadId(130));
        assert_eq!(once.iter().map(|t| t.0).collect::<Vec<_>>(), [130, 100]);
        assert_eq!(once.exchanged(ThreadId(2), ThreadId(130)), bits);
        assert_eq!(bits.exchanged(ThreadId(2), ThreadId(100)), bits);
        assert_eq!(bits.exchanged(ThreadId(300), ThreadId(2)).iter().map(|t| t.0).collect::<Vec<_>>(), [100]);
    }

    #[test]
    fn some_stay() {
        let mut bits = Bits::greater(&numbers::<32>(&[1, 5, 9]), 0);
        bits.retain(|t| t.0 != 5);
        assert_eq!(bits.iter().map(|t| t.0).collect::<Vec<_>>(), [9, 1]);
    }
}
