//! What happens in a part of the search tree: everything that could have to do with what came before it.
//!
//! A branch that is left out because its twin's was explored would have shown races with the events before the branching
//! point. Which ones follows from this summary, with the twins exchanged.
//!
//! All is kept by its number in [`Tables`].

use crate::symmetry::bundle::Bundle;
use crate::symmetry::exchange::Exchange;
use crate::symmetry::left_out::{By, LeftOut};
use crate::symmetry::reach::Extent;
use crate::symmetry::tables::{BundleId, OpId, OriginId, Phase, Sweep, Tables};
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind, TRIED};
use symdpor_trace::{PlainAccess, ThreadId, ThreadSet, saved};

/// More accesses than this are taken for plain accesses to anything. Steps are counted first.
const MOST: usize = 2048;
const MANY: usize = 128;

/// An operation without what does not matter to whether it conflicts with others.
pub fn plain_op(op: &Op) -> Op {
    let may_be_tried = matches!(op.kind, OpKind::MutexLock | OpKind::AtomicLoad | OpKind::RwRead | OpKind::RwWrite);
    let tried = may_be_tried && op.arg == TRIED;
    if op.kind == OpKind::SemTaken {
        // Which post let it through is another's in another branch.
        return Op { kind: OpKind::SemTry, mask: 0xff, order: 0, arg: 0, ..*op };
    }
    Op { order: 0, arg: if tried { TRIED } else { 0 }, ..*op }
}

/// Each once, in the order of their numbers, with where it comes from, however often it occurs.
type Occurrences<K> = Vec<(K, OriginId)>;

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Visible operations. Their origins are by the order that dependence gives.
    visible: Occurrences<OpId>,
    /// Accesses, plain and atomic, by steps. Their origins are by the order that races are judged by.
    accesses: Occurrences<BundleId>,
    /// Where they can be at all.
    extent: Extent,
    /// Sorted: pairs that are told apart, the lower first.
    apart: Vec<(ThreadId, ThreadId)>,
    /// Threads in such a set are told apart from all that are not.
    groups: Vec<ThreadSet>,
    /// Plain accesses of a thread between two joins of a run, one by one, sorted.
    between: Vec<BundleId>,
    /// Sorted: memory whose address is compared, by order, with another's.
    ordered: Vec<ObjectId>,
    /// What the branches from the state at this position and later ones lack: something that was not going to be asked for, or that comes
    /// after an execution that has come back to that state.
    lacks_from: Option<u32>,
}

/// Puts one into a sorted list.
fn insert<T: Ord>(into: &mut Vec<T>, item: T) {
    if let Err(at) = into.binary_search(&item) {
        into.insert(at, item);
    }
}

fn add<K: Copy + Ord, const W: usize>(into: &mut Occurrences<K>, (key, origin): (K, OriginId), tables: &mut Tables<W>) {
    match into.binary_search_by_key(&key, |o| o.0) {
        Ok(at) => into[at].1 = tables.merge(into[at].1, origin),
        Err(at) => into.insert(at, (key, origin)),
    }
}

/// Puts what occurs in one part of the tree to what occurs in another.
fn unite<K: Copy + Ord, const W: usize>(into: &mut Occurrences<K>, from: &[(K, OriginId)], tables: &mut Tables<W>) {
    let (mut i, mut missing) = (0, 0);
    for &(key, origin) in from {
        while into.get(i).is_some_and(|mine| mine.0 < key) {
            i += 1;
        }
        match into.get_mut(i).filter(|mine| mine.0 == key) {
            Some(mine) => mine.1 = tables.merge(mine.1, origin),
            None => missing += 1,
        }
    }
    if missing > 0 {
        interleave(into, from, missing);
    }
}

/// Puts the members of one list that another lacks into it, from the end on, so that each moves once.
fn interleave<K: Copy + Ord>(into: &mut Occurrences<K>, from: &[(K, OriginId)], missing: usize) {
    let mut mine = into.len();
    let mut rest = from.iter().rev().peekable();
    into.resize(mine + missing, from[0]);
    let mut end = into.len();
    while mine < end {
        end -= 1;
        let Some(&&next) = rest.peek() else { break };
        if mine > 0 && into[mine - 1].0 >= next.0 {
            if into[mine - 1].0 == next.0 {
                rest.next();
            }
            into[end] = into[mine - 1];
            mine -= 1;
        } else {
            into[end] = next;
            rest.next();
        }
    }
}

impl Summary {
    pub fn visible<'a, const W: usize>(
        &'a self,
        tables: &'a Tables<W>,
    ) -> impl Iterator<Item = (ThreadId, &'a Op, OriginId)> {
        self.visible.iter().map(|&(id, origin)| (id.thread(), tables.op(id), origin))
    }

    /// The accesses of steps, and whose they are.
    pub fn accesses<'a, const W: usize>(
        &'a self,
        tables: &'a Tables<W>,
    ) -> impl Iterator<Item = (ThreadId, &'a Bundle, OriginId)> {
        self.accesses.iter().map(|&(id, origin)| (id.thread(), tables.bundle(id), origin))
    }

    pub fn between<'a, const W: usize>(&'a self, tables: &'a Tables<W>) -> impl Iterator<Item = PlainAccess> {
        self.between.iter().flat_map(|&id| tables.accesses(id))
    }

    pub fn has_between(&self) -> bool {
        !self.between.is_empty()
    }

    pub fn add_op<const W: usize>(
        &mut self,
        (thread, phase): (ThreadId, Phase),
        op: &Op,
        origin: OriginId,
        tables: &mut Tables<W>,
    ) {
        let id = tables.op_id(thread, &plain_op(op), phase);
        add(&mut self.visible, (id, origin), tables);
    }

    pub fn add_accesses<const W: usize>(&mut self, id: BundleId, origin: OriginId, tables: &mut Tables<W>) {
        self.extent.unite(tables.bundle(id).extent());
        add(&mut self.accesses, (id, origin), tables);
    }

    /// Whether an access may conflict with one of these at all.
    pub fn may_conflict(&self, access: &PlainAccess) -> bool {
        self.extent.may_conflict(access)
    }

    pub fn add_between<const W: usize>(&mut self, access: &PlainAccess, tables: &mut Tables<W>) {
        insert(&mut self.between, one_by_one(access, tables));
    }

    pub fn add_apart(&mut self, x: ThreadId, y: ThreadId) {
        if x != y {
            insert(&mut self.apart, (x.min(y), x.max(y)));
        }
    }

    pub fn add_group(&mut self, group: &ThreadSet) {
        if !self.groups.contains(group) {
            self.groups.push(group.clone());
        }
    }

    /// Whether something tells the two threads apart.
    pub fn are_apart(&self, x: ThreadId, y: ThreadId) -> bool {
        self.apart.binary_search(&(x.min(y), x.max(y))).is_ok()
            || self.groups.iter().any(|g| g.contains(x) != g.contains(y))
    }

    /// The order of the address of something that lies in the memory of `owner` is asked for. However that lies to other memory, what
    /// lies in another's may lie otherwise.
    pub fn add_ordered(&mut self, owner: ThreadId, object: ObjectId) {
        self.add_group(&ThreadSet::from_iter([owner]));
        insert(&mut self.ordered, object);
    }

    /// Whether the order of something that is exchanged matters.
    pub fn orders(&self, exchange: &Exchange) -> bool {
        self.ordered.iter().any(|object| exchange.owner(*object).is_some())
    }

    pub fn is_empty(&self) -> bool {
        let Summary { visible, accesses, extent: _, apart, groups, between, ordered, lacks_from } = self;
        let nothing = visible.is_empty() && accesses.is_empty() && apart.is_empty() && groups.is_empty();
        nothing && between.is_empty() && ordered.is_empty() && lacks_from.is_none()
    }

    pub fn clear(&mut self) {
        let Summary { visible, accesses, extent, apart, groups, between, ordered, lacks_from } = self;
        ordered.clear();
        visible.clear();
        accesses.clear();
        *extent = Extent::default();
        apart.clear();
        groups.clear();
        between.clear();
        *lacks_from = None;
    }

    /// Something is missing.
    pub fn set_partial(&mut self) {
        self.lacks_from = Some(0);
    }

    /// An execution ends that has come back to the state at a position: what would come next came from there.
    pub fn comes_back_to(&mut self, position: usize) {
        self.lack(Some(position as u32));
    }

    fn lack(&mut self, from: Option<u32>) {
        self.lacks_from = [self.lacks_from, from].into_iter().flatten().min();
    }

    /// Whether nothing is missing in a branch from the state at a position, which is looked at in that state or, `later`, in one after it.
    pub fn is_whole(&self, position: usize, later: bool) -> bool {
        self.lacks_from.is_none_or(|from| from as usize > position && !later)
    }

    pub fn merge<const W: usize>(&mut self, other: &Summary, tables: &mut Tables<W>) {
        self.lack(other.lacks_from);
        unite(&mut self.visible, &other.visible, tables);
        unite(&mut self.accesses, &other.accesses, tables);
        self.extent.unite(&other.extent);
        other.apart.iter().for_each(|pair| insert(&mut self.apart, *pair));
        other.between.iter().for_each(|access| insert(&mut self.between, *access));
        other.groups.iter().for_each(|g| self.add_group(g));
        other.ordered.iter().for_each(|object| insert(&mut self.ordered, *object));
        self.limit(tables);
    }

    fn limit<const W: usize>(&mut self, tables: &mut Tables<W>) {
        let count = |ids: &[(BundleId, OriginId)]| ids.iter().map(|&(id, _)| tables.bundle(id).len()).sum::<usize>();
        if self.accesses.len() > MANY && count(&self.accesses) > MOST {
            for (id, origin) in std::mem::take(&mut self.accesses) {
                let any = one_by_one(&anything(id.thread()), tables);
                self.add_accesses(any, origin, tables);
            }
        }
        if self.between.len() > MOST {
            for id in std::mem::take(&mut self.between) {
                insert(&mut self.between, one_by_one(&anything(id.thread()), tables));
            }
        }
    }

    /// The summary of the branch that is left out. What happened before is left out of it.
    pub fn exchanged<const W: usize>(&self, state: &mut LeftOut<'_, W>, tables: &mut Tables<W>, into: &mut Summary) {
        let exchange = state.exchange;
        into.clear();
        for &(id, origin) in &self.visible {
            if state.is_ahead(id.thread(), tables.origin(origin)) {
                let origin = state.exchanged(id.thread(), origin, By::Dependence, tables);
                into.visible.push((exchanged_op(id, exchange, tables), origin));
            }
        }
        into.visible.sort_unstable();
        into.extent = self.extent;
        for &(id, origin) in &self.accesses {
            if state.is_ahead(id.thread(), tables.origin(origin)) {
                let origin = state.exchanged(id.thread(), origin, By::Races, tables);
                let exchanged = exchanged_accesses(id, exchange, tables);
                if exchanged.of(id.thread()) != id {
                    into.extent.unite(tables.bundle(exchanged).extent());
                }
                into.accesses.push((exchanged, origin));
            }
        }
        into.accesses.sort_unstable();
        into.between.extend(self.between.iter().map(|&id| exchanged_accesses(id, exchange, tables)));
        into.between.sort_unstable();
        let pair = |&(x, y): &(ThreadId, ThreadId)| {
            let (x, y) = (exchange.thread(x), exchange.thread(y));
            (x.min(y), x.max(y))
        };
        into.apart.extend(self.apart.iter().map(pair));
        into.apart.sort_unstable();
        into.groups.extend(self.groups.iter().map(|g| exchange.threads(g)));
        // Of what is exchanged there is none: else the branch would not be left out.
        into.ordered.extend_from_slice(&self.ordered);
        into.lacks_from = self.lacks_from;
    }

    /// Leaves out what happens to a block of memory.
    pub fn forget<const W: usize>(&mut self, start: ObjectId, bytes: u64, tables: &mut Tables<W>) {
        let bytes = bytes.max(1);
        let inside = |o: ObjectId| o.0.wrapping_sub(start.0) < bytes;
        let concerned = self.accesses.extract_if(.., |(id, _)| tables.bundle(*id).begins_in(start, bytes));
        for (id, origin) in concerned.collect::<Vec<_>>() {
            let rest = tables.changed(id, id.thread(), |access| Some(*access).filter(|a| !inside(a.object)));
            if tables.bundle(rest).len() > 0 {
                add(&mut self.accesses, (rest, origin), tables);
            }
        }
        self.between.retain(|&id| !tables.bundle(id).begins_in(start, bytes));
        self.ordered.retain(|object| !inside(*object));
        let inside = |o: ObjectId| inside(o.memory());
        self.visible.retain(|&(id, _)| {
            let op = tables.op(id);
            !inside(op.object) || (op.object2 != ObjectId::NONE && !inside(op.object2))
        });
    }

    /// The summary as seen from before `child` was created: what it does is its creator's doing.
    pub fn before_creation<const W: usize>(&mut self, child: ThreadId, creator: ThreadId, tables: &mut Tables<W>) {
        let before = |origin: OriginId, by: ThreadId, tables: &mut Tables<W>| {
            let before = tables.origin(origin).before_creation(child, by == child);
            tables.add_origin(before)
        };
        let by = |thread: ThreadId| if thread == child { creator } else { thread };
        for (id, origin) in std::mem::take(&mut self.visible) {
            let origin = before(origin, id.thread(), tables);
            add(&mut self.visible, (id.of(by(id.thread())), origin), tables);
        }
        for (id, origin) in std::mem::take(&mut self.accesses) {
            let origin = before(origin, id.thread(), tables);
            add(&mut self.accesses, (id.of(by(id.thread())), origin), tables);
        }
        for id in std::mem::take(&mut self.between) {
            insert(&mut self.between, id.of(by(id.thread())));
        }
        self.apart.retain(|&(x, y)| x != child && y != child);
        self.groups.iter_mut().for_each(|g| {
            g.remove(child);
        });
    }

    /// Asks for the new numbers of all that it has.
    pub fn sweep<const W: usize>(&mut self, sweep: &mut Sweep<W>) {
        for (id, origin) in &mut self.visible {
            (*id, *origin) = (sweep.op(*id), sweep.origin(*origin));
        }
        self.visible.sort_unstable();
        for (id, origin) in &mut self.accesses {
            (*id, *origin) = (sweep.bundle(*id), sweep.origin(*origin));
        }
        self.accesses.sort_unstable();
        self.between.iter_mut().for_each(|id| *id = sweep.bundle(*id));
        self.between.sort_unstable();
    }

    /// Whether all of its numbers are numbers of something.
    pub fn fits<const W: usize>(&self, tables: &Tables<W>) -> bool {
        self.visible.iter().all(|&(id, origin)| tables.has_op(id) && tables.has_origin(origin))
            && self.accesses.iter().all(|&(id, origin)| tables.has_bundle(id) && tables.has_origin(origin))
            && self.between.iter().all(|&id| tables.has_bundle(id))
    }
}

fn exchanged_op<const W: usize>(id: OpId, exchange: &Exchange, tables: &mut Tables<W>) -> OpId {
    let (thread, op) = (exchange.thread(id.thread()), tables.op(id));
    if !exchange.concerns(op.object) && !exchange.concerns(op.object2) {
        return id.of(thread);
    }
    let op = exchange.op(op);
    tables.with_op(id, thread, &op)
}

fn exchanged_accesses<const W: usize>(id: BundleId, exchange: &Exchange, tables: &mut Tables<W>) -> BundleId {
    let thread = exchange.thread(id.thread());
    if !tables.bundle(id).is_concerned(exchange) {
        return id.of(thread);
    }
    tables.changed(id, thread, |access| Some(exchange.access(access)))
}

/// A plain access that stands for itself.
fn one_by_one<const W: usize>(access: &PlainAccess, tables: &mut Tables<W>) -> BundleId {
    tables.bundle_id(access.thread, std::iter::once(*access), false, Phase::default())
}

fn anything(thread: ThreadId) -> PlainAccess {
    PlainAccess { thread, object: ObjectId::NONE, granules: 1, mask: 0xff, write: true }
}

saved!(Summary { visible, accesses, extent, apart, groups, between, ordered, lacks_from });
