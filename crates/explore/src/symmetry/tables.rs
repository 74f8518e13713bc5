//! Operations, accesses and origins by number.
//!
//! The same few of them come up in every summary, over and over. So each is kept once, summaries are lists of numbers, and what
//! two origins come to together is worked out once.
//!
//! Numbers say nothing of what they stand for, and may change when what nobody has any more is thrown away
//! ([`Tables::sweep`]): nothing may depend on their order but the order of lists.

use crate::symmetry::origin::Origin;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::Hash;
use symdpor_trace::saved::{Reader, Saved};
use symdpor_trace::{Op, PlainAccess, ThreadId};

/// A visible operation of a thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OpId(u32);

/// A plain access of a thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AccessId(u32);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OriginId(u32);

impl OriginId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// So many origins are kept before the first sweep.
const FEW: usize = 1 << 14;

type Set<T> = IndexSet<T, FxBuildHasher>;

pub struct Tables {
    ops: Set<(ThreadId, Op)>,
    accesses: Set<PlainAccess>,
    origins: Set<Origin>,
    merged: FxHashMap<(OriginId, OriginId), OriginId>,
    /// When to sweep.
    limit: usize,
}

impl Default for Tables {
    fn default() -> Self {
        Tables {
            ops: Set::default(),
            accesses: Set::default(),
            origins: Set::default(),
            merged: FxHashMap::default(),
            limit: FEW,
        }
    }
}

impl Tables {
    pub fn op_id(&mut self, thread: ThreadId, op: &Op) -> OpId {
        OpId(self.ops.insert_full((thread, *op)).0 as u32)
    }

    pub fn op(&self, id: OpId) -> &(ThreadId, Op) {
        &self.ops[id.0 as usize]
    }

    pub fn access_id(&mut self, access: &PlainAccess) -> AccessId {
        AccessId(self.accesses.insert_full(*access).0 as u32)
    }

    pub fn access(&self, id: AccessId) -> &PlainAccess {
        &self.accesses[id.0 as usize]
    }

    pub fn origin_id(&mut self, origin: &Origin) -> OriginId {
        OriginId(self.origins.insert_full(*origin).0 as u32)
    }

    pub fn origin(&self, id: OriginId) -> &Origin {
        &self.origins[id.0 as usize]
    }

    /// The origin of what has occurred with either.
    pub fn merge(&mut self, mine: OriginId, other: OriginId) -> OriginId {
        if mine == other {
            return mine;
        }
        if let Some(merged) = self.merged.get(&(mine, other)) {
            return *merged;
        }
        let mut origin = *self.origin(mine);
        origin.merge(self.origin(other));
        let merged = self.origin_id(&origin);
        self.merged.insert((mine, other), merged);
        merged
    }

    /// Whether there is so much that it is worth looking what of it is still needed.
    pub fn is_full(&self) -> bool {
        self.origins.len().max(self.ops.len()).max(self.accesses.len()).max(self.merged.len() / 2) > self.limit
    }

    /// Begins to throw away what nobody has any more: whoever has numbers asks for the new ones.
    pub fn sweep(&mut self) -> Sweep {
        Sweep { old: std::mem::take(self), new: Tables::default() }
    }
}

/// The numbers of before, and those that they become.
pub struct Sweep {
    old: Tables,
    new: Tables,
}

impl Sweep {
    pub fn op(&mut self, id: OpId) -> OpId {
        let (thread, op) = self.old.op(id);
        self.new.op_id(*thread, op)
    }

    pub fn access(&mut self, id: AccessId) -> AccessId {
        self.new.access_id(self.old.access(id))
    }

    pub fn origin(&mut self, id: OriginId) -> OriginId {
        self.new.origin_id(self.old.origin(id))
    }

    /// The next sweep is due when there is twice as much.
    pub fn finish(self) -> Tables {
        let mut tables = self.new;
        tables.limit = FEW.max(2 * tables.origins.len().max(tables.ops.len()).max(tables.accesses.len()));
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

/// What origins come to together can be worked out again.
impl Saved for Tables {
    fn save(&self, into: &mut Vec<u8>) {
        let Tables { ops, accesses, origins, merged: _, limit } = self;
        save_set(ops, into);
        save_set(accesses, into);
        save_set(origins, into);
        limit.save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Tables> {
        let (ops, accesses) = (load_set(from)?, load_set(from)?);
        let (origins, limit) = (load_set(from)?, usize::load(from)?);
        Some(Tables { ops, accesses, origins, merged: FxHashMap::default(), limit })
    }
}

macro_rules! id {
    ($($id:ident),*) => {
        $(impl Saved for $id {
            fn save(&self, into: &mut Vec<u8>) {
                self.0.save(into);
            }

            fn load(from: &mut Reader<'_>) -> Option<$id> {
                u32::load(from).map($id)
            }
        })*
    };
}

id!(OpId, AccessId, OriginId);

impl Tables {
    /// Whether numbers that were read are numbers of something.
    pub fn has_op(&self, id: OpId) -> bool {
        (id.0 as usize) < self.ops.len()
    }

    pub fn has_access(&self, id: AccessId) -> bool {
        (id.0 as usize) < self.accesses.len()
    }

    pub fn has_origin(&self, id: OriginId) -> bool {
        id.index() < self.origins.len()
    }
}
