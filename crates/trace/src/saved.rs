//! State as bytes: how a search is put aside and taken up again.
//!
//! Everything that a search has in memory is written, field by field, and read back the same. This is not the trace file's
//! encoding because the records of `abi` are part of the state, and that crate depends on nothing; a trait of our own can be
//! theirs too. Whoever reads must know that the bytes are whole (a checksum) and were written by the same version: what is
//! read is checked only as far as is needed not to panic here.
//!
//! [`saved!`](crate::saved!) names every field of a record; a field that is added later and not named does not compile.

use crate::{Choice, End, Execution, Fence, Footprint, Footprints, LocalState, PendingOp, PlainAccess, Plan, Step};
use crate::{ThreadId, ThreadMemory};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::rc::Rc;
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind};

/// The rest of what was written.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
}

/// What can be written and read back.
pub trait Saved: Sized {
    fn save(&self, into: &mut Vec<u8>);

    /// None if the bytes are not what was written.
    fn load(from: &mut Reader<'_>) -> Option<Self>;
}

/// Writes and reads a record field by field, all of them.
#[macro_export]
macro_rules! saved {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl $crate::saved::Saved for $type {
            fn save(&self, into: &mut Vec<u8>) {
                let $type { $($field),* } = self;
                $($crate::saved::Saved::save($field, into);)*
            }

            fn load(from: &mut $crate::saved::Reader<'_>) -> Option<Self> {
                Some($type { $($field: $crate::saved::Saved::load(from)?),* })
            }
        }
    };
}

/// Seven bits a byte, the lowest first: most numbers are small.
fn save_number(mut number: u128, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

fn load_number(from: &mut Reader<'_>) -> Option<u128> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = from.byte()?;
        number |= u128::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

macro_rules! number {
    ($($type:ty),*) => {
        $(impl Saved for $type {
            fn save(&self, into: &mut Vec<u8>) {
                save_number(*self as u128, into);
            }

            fn load(from: &mut Reader<'_>) -> Option<Self> {
                <$type>::try_from(load_number(from)?).ok()
            }
        })*
    };
}

number!(u8, u16, u32, u64, u128, usize);

impl Saved for bool {
    fn save(&self, into: &mut Vec<u8>) {
        into.push(u8::from(*self));
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        match from.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Saved for f64 {
    fn save(&self, into: &mut Vec<u8>) {
        self.to_bits().save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        u64::load(from).map(f64::from_bits)
    }
}

impl<T: Saved> Saved for Option<T> {
    fn save(&self, into: &mut Vec<u8>) {
        self.is_some().save(into);
        if let Some(value) = self {
            value.save(into);
        }
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        if bool::load(from)? { T::load(from).map(Some) } else { Some(None) }
    }
}

impl<T: Saved> Saved for Vec<T> {
    fn save(&self, into: &mut Vec<u8>) {
        self.len().save(into);
        self.iter().for_each(|item| item.save(into));
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        let len = usize::load(from)?;
        (0..len).map(|_| T::load(from)).collect()
    }
}

impl<T: Saved + Copy + Default, const N: usize> Saved for [T; N] {
    fn save(&self, into: &mut Vec<u8>) {
        self.iter().for_each(|item| item.save(into));
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        let mut all = [T::default(); N];
        for item in &mut all {
            *item = T::load(from)?;
        }
        Some(all)
    }
}

/// What is shared is written as often as it is used.
impl<T: Saved> Saved for Rc<T> {
    fn save(&self, into: &mut Vec<u8>) {
        (**self).save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        T::load(from).map(Rc::new)
    }
}

impl<T: Saved> Saved for Box<T> {
    fn save(&self, into: &mut Vec<u8>) {
        (**self).save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        T::load(from).map(Box::new)
    }
}

impl<A: Saved, B: Saved> Saved for (A, B) {
    fn save(&self, into: &mut Vec<u8>) {
        self.0.save(into);
        self.1.save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        Some((A::load(from)?, B::load(from)?))
    }
}

impl<A: Saved, B: Saved, C: Saved> Saved for (A, B, C) {
    fn save(&self, into: &mut Vec<u8>) {
        self.0.save(into);
        self.1.save(into);
        self.2.save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        Some((A::load(from)?, B::load(from)?, C::load(from)?))
    }
}

/// Maps that are only looked up: their order decides nothing, so it need not be kept. It is sorted all the same, so that
/// equal states are equal bytes.
impl<K: Saved + Eq + Hash + Ord, V: Saved, S: BuildHasher + Default> Saved for HashMap<K, V, S> {
    fn save(&self, into: &mut Vec<u8>) {
        self.len().save(into);
        let mut all: Vec<(&K, &V)> = self.iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        for (key, value) in all {
            key.save(into);
            value.save(into);
        }
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        let len = usize::load(from)?;
        (0..len).map(|_| <(K, V)>::load(from)).collect()
    }
}

impl Saved for ObjectId {
    fn save(&self, into: &mut Vec<u8>) {
        self.0.save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        u64::load(from).map(ObjectId)
    }
}

impl Saved for OpKind {
    fn save(&self, into: &mut Vec<u8>) {
        into.push(*self as u8);
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        OpKind::from_u8(from.byte()?)
    }
}

impl Saved for ThreadId {
    fn save(&self, into: &mut Vec<u8>) {
        self.0.save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        u16::load(from).map(ThreadId)
    }
}

impl Saved for LocalState {
    fn save(&self, into: &mut Vec<u8>) {
        self.0.save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        u128::load(from).map(LocalState)
    }
}

impl Saved for End {
    fn save(&self, into: &mut Vec<u8>) {
        into.push(match self {
            End::Complete => 0,
            End::Cut => 1,
            End::SleepBlocked => 2,
            End::Asked => 3,
            End::Repeated(_) => 4,
            End::InVain => 5,
        });
        if let End::Repeated(since) = self {
            since.save(into);
        }
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        match from.byte()? {
            4 => Saved::load(from).map(End::Repeated),
            5 => Some(End::InVain),
            other => [End::Complete, End::Cut, End::SleepBlocked, End::Asked].get(other as usize).copied(),
        }
    }
}

saved!(Op { kind, mask, mask2, order, arg, object, object2 });
saved!(Choice { thread, alternative });
saved!(Plan { choices, sleep, failed, ask, stops_in_vain, in_vain, kept });
saved!(Step { thread, op, alternatives, alternative, enabled });
saved!(PendingOp { thread, op, enabled });
saved!(PlainAccess { thread, object, granules, mask, write });
saved!(ThreadMemory { thread, local, stack, settled, blocks });
saved!(Fence { thread, order, first, last, several });
saved!(Footprint { accesses_end, locals_end, blocks_end, memory_end, fences_end, ordered_end, identified, result });
saved!(Footprints { first, steps, accesses, locals, blocks, memory, fences, ordered });
saved!(Execution { steps, pending, end, dropped, footprints, memory });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadSet;
    use std::collections::BTreeMap;

    fn again<T: Saved>(value: &T) -> Option<T> {
        let mut bytes = Vec::new();
        value.save(&mut bytes);
        for len in 0..bytes.len() {
            assert!(T::load(&mut Reader::new(&bytes[..len])).is_none(), "cut to {len} bytes");
        }
        let mut reader = Reader::new(&bytes);
        T::load(&mut reader).filter(|_| reader.is_empty())
    }

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            assert_eq!(again(&number), Some(number));
        }
        for number in [0, u128::MAX, 1 << 127] {
            assert_eq!(again(&number), Some(number));
        }
        assert_eq!(u8::load(&mut Reader::new(&[0x80, 0x02])), None);
        assert_eq!(u128::load(&mut Reader::new(&[0xff; 40])), None);
        assert_eq!(again(&-0.25), Some(-0.25));
    }

    #[test]
    fn containers_come_back() {
        let set: ThreadSet = [0, 63, 64, 700].map(ThreadId).into_iter().collect();
        assert_eq!(again(&set), Some(set));
        let list = vec![(Some(true), 3u8, Rc::new(7usize)), (None, 0, Rc::new(0))];
        assert_eq!(again(&list), Some(list));
        let map: HashMap<u32, Vec<u16>> = [(3, vec![]), (1, vec![1, 2])].into();
        let sorted = |m: HashMap<u32, Vec<u16>>| m.into_iter().collect::<BTreeMap<_, _>>();
        assert_eq!(again(&map).map(sorted), Some(sorted(map)));
        assert_eq!(again(&[1u32, 2, 3]), Some([1, 2, 3]));
    }

    #[test]
    fn every_kind_of_operation_comes_back() {
        for kind in OpKind::ALL {
            let op = Op { arg: 7, order: 5, ..Op::new(kind, ObjectId(88)) };
            assert_eq!(again(&op), Some(op));
        }
        assert_eq!(OpKind::load(&mut Reader::new(&[250])), None);
    }
}
