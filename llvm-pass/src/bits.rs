//! Sets of small numbers, for dataflow.

#[derive(Clone, PartialEq, Eq, Default)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub fn new(capacity: usize) -> Bits {
        Bits { words: vec![0; capacity.div_ceil(64)] }
    }

    pub fn insert(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
    }

    pub fn remove(&mut self, index: usize) {
        self.words[index / 64] &= !(1 << (index % 64));
    }

    pub fn contains(&self, index: usize) -> bool {
        self.words[index / 64] >> (index % 64) & 1 != 0
    }

    /// Whether anything was added.
    pub fn union(&mut self, other: &Bits) -> bool {
        let mut grown = false;
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            grown |= *theirs & !*mine != 0;
            *mine |= theirs;
        }
        grown
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> {
        let words = self.words.iter().enumerate();
        words.flat_map(|(i, &word)| (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| i * 64 + bit))
    }
}
