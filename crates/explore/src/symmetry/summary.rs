//! What happens in a part of the search tree: everything that could have to do with what came before it.
//!
//! A branch that is left out because its twin's was explored would have shown races with the events before the branching
//! point. Which ones follows from this summary, with the twins exchanged.

use crate::symmetry::left_out::{By, LeftOut};
use crate::symmetry::origin::{Merger, Origin, Translated};
use std::cmp::Ordering;
use std::rc::Rc;
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind, TRIED};
use symdpor_trace::{PlainAccess, ThreadId, ThreadSet, saved};

/// More plain accesses than this are taken for accesses to anything.
const MAX_PLAIN: usize = 2048;

/// A visible operation, however often it occurs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub thread: ThreadId,
    pub op: Op,
    /// By the order that dependence gives.
    pub origin: Rc<Origin>,
}

impl Entry {
    fn key(&self) -> (u16, u64, u8, u8, u8, u64, u32) {
        let op = &self.op;
        (self.thread.0, op.object.0, op.kind as u8, op.mask, op.mask2, op.object2.0, op.arg)
    }
}

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

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlainEntry {
    pub access: PlainAccess,
    /// By the order that races are judged by.
    pub origin: Rc<Origin>,
}

impl PlainEntry {
    fn key(&self) -> (u16, u64, u32, u8, bool) {
        access_key(&self.access)
    }
}

fn access_key(a: &PlainAccess) -> (u16, u64, u32, u8, bool) {
    (a.thread.0, a.object.0, a.granules, a.mask, a.write)
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Sorted, each once.
    visible: Vec<Entry>,
    plain: Vec<PlainEntry>,
    /// Sorted: pairs that are told apart, the lower first.
    apart: Vec<(ThreadId, ThreadId)>,
    /// Threads in such a set are told apart from all that are not.
    groups: Vec<ThreadSet>,
    /// Plain accesses of a thread between two joins of a run.
    between: Vec<PlainAccess>,
    /// Something is missing, because nobody was going to ask for it.
    partial: bool,
}

/// Puts one into a sorted list.
fn insert<T, K: Ord>(into: &mut Vec<T>, item: T, key: impl Fn(&T) -> K, both: impl FnOnce(&mut T, &T)) {
    match into.binary_search_by(|x| key(x).cmp(&key(&item))) {
        Ok(at) => both(&mut into[at], &item),
        Err(at) => into.insert(at, item),
    }
}

/// Puts the members of a sorted list into another.
fn unite<T: Clone, K: Ord>(into: &mut Vec<T>, from: &[T], key: impl Fn(&T) -> K, mut both: impl FnMut(&mut T, &T)) {
    if into.is_empty() {
        into.extend_from_slice(from);
        return;
    }
    let mut missing = Vec::new();
    let mut i = 0;
    for item in from {
        let wanted = key(item);
        let order = loop {
            match into.get(i).map(|mine| key(mine).cmp(&wanted)) {
                Some(Ordering::Less) => i += 1,
                order => break order,
            }
        };
        match order {
            Some(Ordering::Equal) => both(&mut into[i], item),
            _ => missing.push((i, item)),
        }
    }
    interleave(into, &missing);
}

/// Puts each item before the member at its place. Places come in order.
fn interleave<T: Clone>(into: &mut Vec<T>, missing: &[(usize, &T)]) {
    let [(first, _), ..] = missing else { return };
    let rest = into.split_off(*first);
    into.reserve(rest.len() + missing.len());
    let mut missing = missing.iter().peekable();
    for (place, item) in (*first..).zip(rest) {
        while let Some((_, new)) = missing.next_if(|(at, _)| *at == place) {
            into.push((*new).clone());
        }
        into.push(item);
    }
    into.extend(missing.map(|(_, new)| (*new).clone()));
}

fn unite_visible(into: &mut Vec<Entry>, from: &[Entry]) {
    let mut merger = Merger::default();
    unite(into, from, Entry::key, |mine, other| merger.merge(&mut mine.origin, &other.origin));
}

fn unite_plain(into: &mut Vec<PlainEntry>, from: &[PlainEntry]) {
    let mut merger = Merger::default();
    unite(into, from, PlainEntry::key, |mine, other| merger.merge(&mut mine.origin, &other.origin));
}

impl Summary {
    pub fn visible(&self) -> &[Entry] {
        &self.visible
    }

    pub fn plain(&self) -> &[PlainEntry] {
        &self.plain
    }

    pub fn between(&self) -> &[PlainAccess] {
        &self.between
    }

    pub fn add_op(&mut self, entry: Entry) {
        let both = |mine: &mut Entry, other: &Entry| Merger::default().merge(&mut mine.origin, &other.origin);
        insert(&mut self.visible, entry, Entry::key, both);
    }

    /// Adds plain accesses that come after the same events.
    pub fn add_accesses(&mut self, accesses: impl Iterator<Item = PlainAccess>, origin: &Rc<Origin>) {
        let entry = |access| PlainEntry { access, origin: origin.clone() };
        let mut entries: Vec<PlainEntry> = accesses.map(entry).collect();
        entries.sort_unstable_by_key(PlainEntry::key);
        entries.dedup_by_key(|e| e.key());
        unite_plain(&mut self.plain, &entries);
    }

    pub fn add_between(&mut self, access: PlainAccess) {
        insert(&mut self.between, access, access_key, |_, _| {});
    }

    pub fn add_apart(&mut self, x: ThreadId, y: ThreadId) {
        if x != y {
            insert(&mut self.apart, (x.min(y), x.max(y)), |p| *p, |_, _| {});
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

    /// The same as [`Summary::merge`], without a copy where there is nothing yet.
    pub fn take_in(&mut self, other: Summary) {
        if self.is_empty() {
            *self = other;
        } else {
            self.merge(&other);
        }
    }

    fn is_empty(&self) -> bool {
        let Summary { visible, plain, apart, groups, between, partial } = self;
        let nothing = visible.is_empty() && plain.is_empty() && apart.is_empty() && groups.is_empty();
        nothing && between.is_empty() && !partial
    }

    pub fn set_partial(&mut self) {
        self.partial = true;
    }

    pub fn is_partial(&self) -> bool {
        self.partial
    }

    pub fn merge(&mut self, other: &Summary) {
        self.partial |= other.partial;
        unite_visible(&mut self.visible, &other.visible);
        unite_plain(&mut self.plain, &other.plain);
        unite(&mut self.apart, &other.apart, |p| *p, |_, _| {});
        unite(&mut self.between, &other.between, access_key, |_, _| {});
        other.groups.iter().for_each(|g| self.add_group(g));
        self.limit();
    }

    fn limit(&mut self) {
        if self.plain.len() > MAX_PLAIN {
            let all = std::mem::take(&mut self.plain);
            for mut entry in all {
                anything(&mut entry.access);
                unite_plain(&mut self.plain, &[entry]);
            }
        }
        if self.between.len() > MAX_PLAIN {
            self.between.iter_mut().for_each(anything);
            self.between.dedup();
        }
    }

    /// The summary of the branch that is left out. What happened before is left out of it.
    pub fn exchanged(&self, state: &mut LeftOut<'_>) -> Summary {
        let exchange = state.exchange;
        let mut visible = Vec::with_capacity(self.visible.len());
        for entry in &self.visible {
            if state.is_ahead(entry.thread, &entry.origin) {
                let origin = state.exchanged(entry.thread, &entry.origin, By::Dependence);
                visible.push(Entry { thread: exchange.thread(entry.thread), op: exchange.op(&entry.op), origin });
            }
        }
        visible.sort_unstable_by_key(Entry::key);
        let mut plain = Vec::with_capacity(self.plain.len());
        for entry in &self.plain {
            if state.is_ahead(entry.access.thread, &entry.origin) {
                let origin = state.exchanged(entry.access.thread, &entry.origin, By::Races);
                plain.push(PlainEntry { access: exchange.access(&entry.access), origin });
            }
        }
        plain.sort_unstable_by_key(PlainEntry::key);
        let mut between: Vec<PlainAccess> = self.between.iter().map(|a| exchange.access(a)).collect();
        between.sort_unstable_by_key(access_key);
        let pair = |&(x, y): &(ThreadId, ThreadId)| {
            let (x, y) = (exchange.thread(x), exchange.thread(y));
            (x.min(y), x.max(y))
        };
        let mut apart: Vec<_> = self.apart.iter().map(pair).collect();
        apart.sort_unstable();
        let groups = self.groups.iter().map(|g| exchange.threads(g)).collect();
        Summary { visible, plain, apart, groups, between, partial: self.partial }
    }

    /// Leaves out what happens to a block of memory.
    pub fn forget(&mut self, start: ObjectId, bytes: u64) {
        let inside = |o: ObjectId| o.0.wrapping_sub(start.0) < bytes.max(1);
        self.plain.retain(|e| !inside(e.access.object));
        self.between.retain(|a| !inside(a.object));
        let inside = |o: ObjectId| inside(o.memory());
        self.visible.retain(|e| !inside(e.op.object) || (e.op.object2 != ObjectId::NONE && !inside(e.op.object2)));
    }

    /// The summary as seen from before `child` was created: what it does is its creator's doing.
    pub fn before_creation(&mut self, child: ThreadId, creator: ThreadId) {
        let mut translated = Translated::default();
        let mut before = |origin: &mut Rc<Origin>, by_child: bool| {
            *origin = translated.get(origin, by_child, || origin.before_creation(child, by_child));
        };
        self.visible.iter_mut().for_each(|e| before(&mut e.origin, e.thread == child));
        self.plain.iter_mut().for_each(|e| before(&mut e.origin, e.access.thread == child));
        let mut mine: Vec<Entry> = self.visible.extract_if(.., |e| e.thread == child).collect();
        mine.iter_mut().for_each(|e| e.thread = creator);
        mine.sort_unstable_by_key(Entry::key);
        unite_visible(&mut self.visible, &mine);
        let mut mine: Vec<PlainEntry> = self.plain.extract_if(.., |e| e.access.thread == child).collect();
        mine.iter_mut().for_each(|e| e.access.thread = creator);
        mine.sort_unstable_by_key(PlainEntry::key);
        unite_plain(&mut self.plain, &mine);
        if self.between.iter().any(|a| a.thread == child) {
            self.between.iter_mut().filter(|a| a.thread == child).for_each(|a| a.thread = creator);
            self.between.sort_unstable_by_key(access_key);
            self.between.dedup();
        }
        self.apart.retain(|&(x, y)| x != child && y != child);
        self.groups.iter_mut().for_each(|g| {
            g.remove(child);
        });
    }
}

fn anything(access: &mut PlainAccess) {
    *access =
        PlainAccess { object: symdpor_abi::object::ObjectId::NONE, granules: 1, mask: 0xff, write: true, ..*access };
}

saved!(Entry { thread, op, origin });
saved!(PlainEntry { access, origin });
saved!(Summary { visible, plain, apart, groups, between, partial });
