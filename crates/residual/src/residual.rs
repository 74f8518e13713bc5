//! The residual code of a point, with the locals that it still needs.

use crate::canonical::Written;
use crate::function::{LiveLocal, ObjectKind};
use crate::section::{Rest, Side};
use rustc_hash::FxHashMap;

/// What a frame may still do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residual {
    /// Equal only if the code does the same, given equal contents of the live locals; then the lists of live locals
    /// have equal shape, and the i-th local of one corresponds to the i-th of the other.
    pub code: u128,
    pub live: Vec<Live>,
    /// False if something in it can be compared with nothing: a live value that is in no slot, an object whose size is
    /// not known, code that the digest does not cover, a function that calls `setjmp`.
    pub comparable: bool,
}

impl Residual {
    /// The slot of a live value of one word.
    pub fn slot_of(&self, local: u32) -> Option<u32> {
        let found = self.live.iter().find(|l| l.local == local && l.kind == LiveKind::Value { words: 1 });
        found.filter(|_| self.comparable).map(|l| l.slot)
    }
}

/// A local whose content matters to the residual code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// First slot of a value; for an object, the slot that holds its address. Meaningless if the residual code is not
    /// comparable.
    pub slot: u32,
    pub kind: LiveKind,
    /// An object whose content matters only if somebody has its address: the code does not read it before it overwrites it.
    pub weak: bool,
    /// Number of the local in its function.
    pub local: u32,
    /// The variable in the source, if debug info knows it.
    pub name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LiveKind {
    /// In so many consecutive slots.
    Value { words: u32 },
    /// In memory, so many bytes.
    Object { kind: ObjectKind, size: u64 },
}

impl LiveKind {
    fn words(self) -> [u64; 3] {
        match self {
            LiveKind::Value { words } => [1, words.into(), 0],
            LiveKind::Object { kind, size } => [2, kind as u64, size],
        }
    }
}

/// Tags of declarations, behind the code.
mod tag {
    pub const DECLARATION: u64 = 32;
    pub const ADDRESS: u64 = 33;
    pub const LIVE: u64 = 34;
    pub const REMAINDER: u64 = 35;
}

pub fn residual(rest: &Rest<'_>, written: Written) -> Residual {
    let function = rest.function;
    let needed = rest.live().map(|l| (l.local, *l)).collect();
    let mut list = List { rest, needed, live: Vec::new(), written };
    list.declare_met();
    list.declare_others();
    let comparable = list.written.comparable && !function.returns_twice;
    Residual { code: list.written.text.finish(), live: list.live, comparable }
}

struct List<'a> {
    rest: &'a Rest<'a>,
    /// Live locals that are not listed yet.
    needed: FxHashMap<u32, LiveLocal>,
    live: Vec<Live>,
    written: Written,
}

impl List<'_> {
    /// All values that the code mentions, in their order: type, the object it is the address of, and what is live.
    fn declare_met(&mut self) {
        let defined = self.defined();
        for local in std::mem::take(&mut self.written.met) {
            self.written.text.word(tag::DECLARATION);
            self.written.text.wide(self.rest.function.values[local as usize].ty);
            let known = self.list(local);
            let is_address = self.declare_object(local);
            // Live by what the code says, but not by the digest's own list: then one of them is wrong.
            self.written.comparable &= known || is_address || defined[local as usize];
        }
    }

    /// The address of an object is the same throughout; its content is a local of its own.
    fn declare_object(&mut self, address: u32) -> bool {
        let function = self.rest.function;
        let Some(&index) = function.object_at.get(&address) else { return false };
        let object = &function.objects[index];
        self.written.text.words(&[tag::ADDRESS, object.kind as u64, object.size]);
        self.list((function.values.len() + index) as u32);
        true
    }

    /// Values that the residual code computes itself, if they are among those that were met.
    fn defined(&self) -> Vec<bool> {
        let function = self.rest.function;
        let mut defined = vec![false; function.values.len()];
        if self.written.exact {
            return defined;
        }
        let instructions = self.rest.sections().flat_map(|s| &function.instructions[s]);
        for result in instructions.chain(self.rest.under_way()).filter_map(|i| i.result) {
            defined[result as usize] = true;
        }
        defined
    }

    /// Live locals that the code does not mention, such as objects that only others use.
    fn declare_others(&mut self) {
        if self.written.exact {
            let values = self.rest.function.values.len() as u32;
            self.needed.retain(|&local, _| local >= values);
        }
        let mut others: Vec<(LiveKind, Option<u32>, u32)> =
            self.needed.values().map(|l| (self.kind(l.local).0, l.slot, l.local)).collect();
        others.sort_unstable();
        // What is weak is no part of what the code needs.
        others.sort_by_key(|o| self.is_weak(o.2));
        let strong = others.iter().filter(|o| !self.is_weak(o.2)).count();
        self.written.text.words(&[tag::REMAINDER, strong as u64]);
        for (.., local) in others {
            if self.is_weak(local) {
                self.append(local);
            } else {
                self.list(local);
            }
        }
    }

    fn is_weak(&self, local: u32) -> bool {
        let before = self.rest.side == Side::Before;
        self.needed.get(&local).is_some_and(|l| if before { l.weak_before } else { l.weak_after })
    }

    /// Appends a local to the list if it is live.
    fn list(&mut self, local: u32) -> bool {
        if !self.needed.contains_key(&local) {
            return false;
        }
        self.written.text.words(&[tag::LIVE, self.is_weak(local).into()]);
        self.written.text.words(&self.kind(local).0.words());
        self.append(local);
        true
    }

    fn append(&mut self, local: u32) {
        let weak = self.is_weak(local);
        let Some(live) = self.needed.remove(&local) else { return };
        let (kind, readable) = self.kind(local);
        self.written.comparable &= readable && live.slot.is_some_and(|slot| self.fits(slot, kind));
        self.live.push(Live { slot: live.slot.unwrap_or(0), kind, weak, local, name: None });
    }

    fn fits(&self, slot: u32, kind: LiveKind) -> bool {
        let words = if let LiveKind::Value { words } = kind { words } else { 1 };
        slot.checked_add(words).is_some_and(|end| end <= self.rest.function.slots)
    }

    /// Kind, and whether there is a way to read it.
    fn kind(&self, local: u32) -> (LiveKind, bool) {
        let function = self.rest.function;
        match (function.object(local), function.values.get(local as usize)) {
            (Some(object), _) => (LiveKind::Object { kind: object.kind, size: object.size }, object.size != 0),
            (None, Some(value)) => (LiveKind::Value { words: value.words.unwrap_or(0) }, value.words.is_some()),
            (None, None) => (LiveKind::Value { words: 0 }, false),
        }
    }
}
