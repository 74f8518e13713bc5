//! Operations, accesses and origins by number.
//!
//! The same few operations, and accesses of steps, come up in every summary, over and over: each is kept once. Origins differ nearly
//! always; they are put one behind the other, and from time to time those that nobody has any more are thrown away
//! ([`Tables::sweep`]). So a summary is lists of numbers, and renaming a thread in it is renaming a number.
//!
//! Numbers change with a sweep: nothing may depend on them but the order of lists.

use crate::symmetry::bundle::{Bundle, Key};
use crate::symmetry::origin::Origin;
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use std::hash::Hash;
use symdpor_trace::saved::{Reader, Saved};
use symdpor_trace::{Op, PlainAccess, ThreadId};

/// A visible operation of a thread: the number of the operation, and the thread in the highest bits, so that lists have what each
/// thread does together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OpId(u64);

/// The plain accesses of a thread in one step, or those of an atomic operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BundleId(u64);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OriginId(u32);

const THREAD_SHIFT: u32 = u64::BITS - u16::BITS;

fn with_thread(number: usize, thread: ThreadId) -> u64 {
    number as u64 | u64::from(thread.0) << THREAD_SHIFT
}

fn number(id: u64) -> usize {
    (id & ((1 << THREAD_SHIFT) - 1)) as usize
}

fn thread(id: u64) -> ThreadId {
    ThreadId((id >> THREAD_SHIFT) as u16)
}

impl OpId {
    fn number(self) -> usize {
        number(self.0)
    }

    pub fn thread(self) -> ThreadId {
        thread(self.0)
    }

    /// The same of another thread.
    pub fn of(self, thread: ThreadId) -> OpId {
        OpId(with_thread(self.number(), thread))
    }
}

impl BundleId {
    fn number(self) -> usize {
        number(self.0)
    }

    pub fn thread(self) -> ThreadId {
        thread(self.0)
    }

    pub fn of(self, thread: ThreadId) -> BundleId {
        BundleId(with_thread(self.number(), thread))
    }
}

impl OriginId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// So many origins are kept before the first sweep: no more than a processor's nearer caches hold.
const FEW: usize = 1 << 10;

type Set<T> = IndexSet<T, FxBuildHasher>;

/// How many threads a thread has joined. What it does after joining others comes after all that these have done, so that it is kept
/// apart from the same done before. This is all it is for: nothing is concluded from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Phase(u8);

impl Phase {
    pub fn after(joins: usize) -> Phase {
        Phase(joins.min(u8::MAX.into()) as u8)
    }
}

pub struct Tables<const W: usize> {
    ops: Set<(Op, Phase)>,
    bundles: Set<Bundle>,
    origins: Vec<Origin<W>>,
    /// When to sweep origins, and when the rest as well.
    limit: usize,
    limit_of_rest: usize,
    /// Memory for the origins that are left after the next sweep, and for a list of accesses.
    spare: Vec<Origin<W>>,
    list: Vec<PlainAccess>,
}

impl<const W: usize> Default for Tables<W> {
    fn default() -> Self {
        let (ops, bundles) = (Set::default(), Set::default());
        let (origins, spare, list) = (Vec::new(), Vec::new(), Vec::new());
        Tables { ops, bundles, origins, limit: FEW, limit_of_rest: FEW, spare, list }
    }
}

impl<const W: usize> Tables<W> {
    pub fn op_id(&mut self, thread: ThreadId, op: &Op, phase: Phase) -> OpId {
        OpId(with_thread(self.ops.insert_full((*op, phase)).0, thread))
    }

    pub fn op(&self, id: OpId) -> &Op {
        &self.ops[id.number()].0
    }

    /// The same operation of a thread on other objects.
    pub fn with_op(&mut self, id: OpId, thread: ThreadId, op: &Op) -> OpId {
        self.op_id(thread, op, self.ops[id.number()].1)
    }

    pub fn bundle_id(
        &mut self,
        thread: ThreadId,
        accesses: impl Iterator<Item = PlainAccess>,
        atomic: bool,
        phase: Phase,
    ) -> BundleId {
        self.list.clear();
        self.list.extend(accesses.map(|access| PlainAccess { thread: ThreadId::MAIN, ..access }));
        let key = Key { accesses: &self.list, atomic, phase };
        let number = match self.bundles.get_index_of(&key) {
            Some(number) => number,
            None => self.bundles.insert_full(Bundle::new(key)).0,
        };
        BundleId(with_thread(number, thread))
    }

    pub fn bundle(&self, id: BundleId) -> &Bundle {
        &self.bundles[id.number()]
    }

    pub fn accesses(&self, id: BundleId) -> impl Iterator<Item = PlainAccess> {
        self.bundle(id).of(id.thread())
    }

    /// The same accesses to other memory, by another thread, or some of them.
    pub fn changed(
        &mut self,
        id: BundleId,
        thread: ThreadId,
        change: impl Fn(&PlainAccess) -> Option<PlainAccess>,
    ) -> BundleId {
        let bundle = self.bundle(id);
        let (atomic, phase) = (bundle.atomic, bundle.phase());
        let changed: Vec<PlainAccess> = bundle.of(id.thread()).filter_map(|access| change(&access)).collect();
        self.bundle_id(thread, changed.into_iter(), atomic, phase)
    }

    pub fn add_origin(&mut self, origin: Origin<W>) -> OriginId {
        self.origins.push(origin);
        OriginId(self.origins.len() as u32 - 1)
    }

    pub fn origin(&self, id: OriginId) -> &Origin<W> {
        &self.origins[id.index()]
    }

    /// The origin of what has occurred with either.
    pub fn merge(&mut self, mine: OriginId, other: OriginId) -> OriginId {
        if mine == other {
            return mine;
        }
        if self.origin(mine).covers(self.origin(other)) {
            return mine;
        }
        self.origins.extend_from_within(mine.index()..=mine.index());
        if let Some((merged, before)) = self.origins.split_last_mut() {
            merged.merge(&before[other.index()]);
        }
        OriginId(self.origins.len() as u32 - 1)
    }

    /// With room for more threads, of which nothing is known.
    pub fn widened<const V: usize>(self) -> Tables<V> {
        let Tables { ops, bundles, origins, limit, limit_of_rest, spare: _, list } = self;
        let origins = origins.iter().map(Origin::widened).collect();
        Tables { ops, bundles, origins, limit, limit_of_rest, spare: Vec::new(), list }
    }

    /// Whether there is so much that it is worth looking what of it is still needed.
    pub fn is_full(&self) -> bool {
        self.origins.len() > self.limit || self.rest() > self.limit_of_rest
    }

    fn rest(&self) -> usize {
        self.ops.len().max(self.bundles.len())
    }

    /// Begins to throw away what nobody has any more: whoever has numbers asks for the new ones.
    pub fn sweep(&mut self) -> Sweep<W> {
        let mut old = std::mem::take(self);
        let rest = old.rest() > old.limit_of_rest;
        let mut new = Tables { origins: std::mem::take(&mut old.spare), ..Tables::default() };
        if !rest {
            (new.ops, new.bundles) = (std::mem::take(&mut old.ops), std::mem::take(&mut old.bundles));
        }
        Sweep { moved: vec![None; old.origins.len()], old, new, rest }
    }
}

/// The numbers of before, and those that they become.
pub struct Sweep<const W: usize> {
    old: Tables<W>,
    new: Tables<W>,
    /// Origins may be shared.
    moved: Vec<Option<OriginId>>,
    /// Whether it is about operations and accesses too.
    rest: bool,
}

impl<const W: usize> Sweep<W> {
    pub fn op(&mut self, id: OpId) -> OpId {
        if !self.rest {
            return id;
        }
        let (op, phase) = self.old.ops[id.number()];
        self.new.op_id(id.thread(), &op, phase)
    }

    pub fn bundle(&mut self, id: BundleId) -> BundleId {
        if !self.rest {
            return id;
        }
        let bundle = self.old.bundle(id);
        self.new.bundle_id(id.thread(), bundle.of(id.thread()), bundle.atomic, bundle.phase())
    }

    pub fn origin(&mut self, id: OriginId) -> OriginId {
        *self.moved[id.index()].get_or_insert_with(|| self.new.add_origin(*self.old.origin(id)))
    }

    /// The next sweep is due when there is several times as much.
    pub fn finish(self) -> Tables<W> {
        let Sweep { mut old, new: mut tables, rest, .. } = self;
        tables.limit = FEW.max(4 * tables.origins.len());
        tables.limit_of_rest = if rest { FEW.max(4 * tables.rest()) } else { old.limit_of_rest };
        old.origins.clear();
        tables.spare = old.origins;
        tables
    }
}

fn save_set<T: Saved>(set: &Set<T>, into: &mut Vec<u8>) {
    set.len().save(into);
    set.iter().for_each(|item| item.save(into));
}

fn load_set<T: Saved + Eq + Hash>(from: &mut Reader<'_>) -> Option<Set<T>> {
    let items: Vec<T> = Vec::load(from)?;
    let count = items.len();
    Some(items.into_iter().collect::<Set<T>>()).filter(|set| set.len() == count)
}

impl<const W: usize> Saved for Tables<W> {
    fn save(&self, into: &mut Vec<u8>) {
        let Tables { ops, bundles, origins, limit, limit_of_rest, spare: _, list: _ } = self;
        save_set(ops, into);
        save_set(bundles, into);
        origins.save(into);
        limit.save(into);
        limit_of_rest.save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Tables<W>> {
        let (ops, bundles) = (load_set(from)?, load_set(from)?);
        let (origins, limit, limit_of_rest) = <_>::load(from)?;
        Some(Tables { ops, bundles, origins, limit, limit_of_rest, ..Tables::default() })
    }
}

macro_rules! saved_ids {
    ($($id:ident),*) => {
        $(impl Saved for $id {
            fn save(&self, into: &mut Vec<u8>) {
                self.0.save(into);
            }

            fn load(from: &mut Reader<'_>) -> Option<$id> {
                Saved::load(from).map($id)
            }
        })*
    };
}

saved_ids!(OpId, BundleId, OriginId, Phase);

/// Whether numbers that were read are numbers of something.
impl<const W: usize> Tables<W> {
    pub fn has_op(&self, id: OpId) -> bool {
        id.number() < self.ops.len()
    }

    pub fn has_bundle(&self, id: BundleId) -> bool {
        id.number() < self.bundles.len()
    }

    pub fn has_origin(&self, id: OriginId) -> bool {
        id.index() < self.origins.len()
    }
}
