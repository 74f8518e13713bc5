//! The current execution as symmetry sees it: local states, plain accesses, joins.

use crate::history::{History, named_thread};
use crate::symmetry::joins::{Join, Run, closes};
use crate::symmetry::locals::Locals;
use crate::symmetry::order::{Bound, Order, PlaceId, after_epoch, op_epoch, tail_epoch};
use crate::symmetry::origin::{Acquired, After, Counts, Origin, Via, short};
use crate::symmetry::reach::Extent;
use crate::symmetry::summary::Summary;
use crate::symmetry::tables::{Phase, Tables};
use rustc_hash::FxHashMap;
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::Access;
use symdpor_trace::saved::{Reader, Saved};
use symdpor_trace::{Execution, Fence, LocalState, Op, OpKind, PlainAccess, ThreadId, saved};

/// An access of the current execution.
#[derive(Clone, Copy)]
pub struct Logged {
    pub epoch: u32,
    pub access: PlainAccess,
    pub atomic: bool,
}

#[derive(Clone, Copy, Default)]
struct Event {
    identified: bool,
    /// How many accesses there were before it.
    accesses_before: u32,
}

/// How many events of a thread are looked through for what it acquired.
const LOOK_BACK: usize = 12;

pub struct Past<const W: usize> {
    pub locals: Locals,
    pub(super) accesses: Vec<Vec<Logged>>,
    /// Where the first of each thread's can be, and how many these are. More than that: what is taken back stays.
    extents: Vec<(Extent, usize)>,
    pub(super) joins: Vec<Join>,
    /// By the joiner's local state before a join.
    pub(super) runs: FxHashMap<LocalState, Run>,
    /// Blocks, by the position of the event that allocated them.
    blocks: Vec<(u32, ObjectId, u64)>,
    /// Memory whose address was compared with another's, by the position of the event.
    ordered: Vec<(u32, ThreadId, ObjectId)>,
    /// Fences, by the position of the event before them.
    fences: Vec<(u32, Fence)>,
    events: Vec<Event>,
    /// For each event, how many events each thread has had up to it; as many as fit.
    counted: Vec<Counts<W>>,
    /// Whose accesses have been added, in that order.
    accessed_by: Vec<ThreadId>,
    pub(super) least: Order<W>,
    pub(super) most: Order<W>,
}

impl<const W: usize> Default for Past<W> {
    fn default() -> Self {
        Past {
            locals: Locals::default(),
            accesses: Vec::new(),
            extents: Vec::new(),
            joins: Vec::new(),
            runs: FxHashMap::default(),
            blocks: Vec::new(),
            ordered: Vec::new(),
            fences: Vec::new(),
            events: Vec::new(),
            counted: Vec::new(),
            accessed_by: Vec::new(),
            least: Order::new(Bound::Least),
            most: Order::new(Bound::Most),
        }
    }
}

pub fn grow<T: Default>(list: &mut Vec<T>, thread: ThreadId) -> &mut T {
    if list.len() <= thread.index() {
        list.resize_with(thread.index() + 1, T::default);
    }
    &mut list[thread.index()]
}

/// Drops what is too late from the end of a list. Mostly that is little.
fn drop_last<T>(list: &mut Vec<T>, late: impl Fn(&T) -> bool) {
    let kept = list.iter().rposition(|item| !late(item)).map_or(0, |last| last + 1);
    list.truncate(kept);
}

/// Whether an operation has accesses of its own, see [`atomic_accesses`].
pub fn touches_memory(op: &Op) -> bool {
    let atomic = matches!(op.kind, OpKind::AtomicLoad | OpKind::AtomicStore | OpKind::AtomicRmw | OpKind::AtomicCas);
    atomic || op.futex_word().is_some()
}

/// The accesses of an atomic operation.
pub fn atomic_accesses(thread: ThreadId, op: &Op) -> impl Iterator<Item = PlainAccess> {
    let write = match op.kind {
        OpKind::AtomicLoad => Some(false),
        OpKind::AtomicStore | OpKind::AtomicRmw | OpKind::AtomicCas => Some(true),
        _ => None,
    };
    let access = move |(object, mask)| Some(PlainAccess { thread, object, granules: 1, mask, write: write? });
    let second = (op.object2.0 != 0).then_some((op.object2, op.mask2));
    let word = op.futex_word().map(|(object, mask, class)| {
        let write = class == Access::Write;
        PlainAccess { thread, object, granules: 1, mask, write }
    });
    [Some((op.object, op.mask)), second].into_iter().flatten().filter_map(access).chain(word)
}

impl<const W: usize> Past<W> {
    pub fn push(&mut self, position: usize, execution: &Execution) {
        let step = &execution.steps[position];
        let footprint = execution.footprints.get(position);
        let prints = &execution.footprints;
        let accesses_before = self.accessed_by.len() as u32;
        if touches_memory(&step.op) {
            for access in atomic_accesses(step.thread, &step.op) {
                self.log(Logged { epoch: op_epoch(position), access, atomic: true });
            }
        }
        for &access in prints.accesses(position) {
            self.log(Logged { epoch: tail_epoch(position), access, atomic: false });
        }
        self.locals.push(position, step.thread, prints);
        if let (OpKind::ThreadJoin, Some(target)) = (step.op.kind, named_thread(&step.op)) {
            let result = footprint.and_then(|f| f.result);
            let closes = closes(position, execution);
            self.joins.push(Join { position: position as u32, joiner: step.thread, target, closes, result });
        }
        self.blocks.extend(prints.blocks(position).iter().map(|b| (position as u32, b.0, b.1)));
        self.ordered.extend(prints.ordered(position).iter().map(|o| (position as u32, o.0, o.1)));
        self.fences.extend(prints.fences(position).iter().map(|f| (position as u32, *f)));
        let mut counted = self.counted.last().copied().unwrap_or([0; W]);
        if let Some(count) = counted.get_mut(step.thread.index()).filter(|_| !step.op.is_inside_section()) {
            *count = count.saturating_add(1);
        }
        self.counted.push(counted);
        let identified = footprint.is_some_and(|f| f.identified);
        self.events.push(Event { identified, accesses_before });
    }

    /// The same with room for more threads, of which there are no events yet.
    pub fn widened<const V: usize>(self) -> Past<V> {
        Past {
            locals: self.locals,
            accesses: self.accesses,
            extents: self.extents,
            joins: self.joins,
            runs: self.runs,
            blocks: self.blocks,
            ordered: self.ordered,
            fences: self.fences,
            events: self.events,
            counted: self.counted.iter().map(widened).collect(),
            accessed_by: self.accessed_by,
            least: self.least.widened(),
            most: self.most.widened(),
        }
    }

    fn log(&mut self, logged: Logged) {
        grow(&mut self.accesses, logged.access.thread).push(logged);
        self.accessed_by.push(logged.access.thread);
    }

    /// The accesses of each thread.
    pub fn logs(&self) -> impl Iterator<Item = (ThreadId, &[Logged])> {
        self.accesses.iter().enumerate().map(|(t, log)| (ThreadId(t as u16), &log[..]))
    }

    /// Whether an access may conflict with one of a thread at all.
    pub fn may_conflict(&self, of: ThreadId, access: &PlainAccess) -> bool {
        self.extents.get(of.index()).is_some_and(|(extent, _)| extent.may_conflict(access))
    }

    /// Brings where the accesses of each thread can be up to date.
    pub fn catch_up_with_accesses(&mut self) {
        self.extents.resize(self.accesses.len(), (Extent::default(), 0));
        for ((extent, known), log) in self.extents.iter_mut().zip(&self.accesses) {
            log[*known..].iter().for_each(|l| extent.add(&l.access));
            *known = log.len();
        }
    }

    pub fn truncate(&mut self, len: usize) {
        let Some(&Event { accesses_before, .. }) = self.events.get(len) else { return };
        self.events.truncate(len);
        self.counted.truncate(len);
        self.locals.truncate(len);
        for thread in self.accessed_by.drain(accesses_before as usize..) {
            self.accesses[thread.index()].pop();
        }
        for ((_, known), log) in self.extents.iter_mut().zip(&self.accesses) {
            *known = log.len().min(*known);
        }
        drop_last(&mut self.joins, |j| j.position as usize >= len);
        drop_last(&mut self.blocks, |b| b.0 as usize >= len);
        drop_last(&mut self.ordered, |o| o.0 as usize >= len);
        drop_last(&mut self.fences, |f| f.0 as usize >= len);
        self.least.truncate(len);
        self.most.truncate(len);
    }

    pub fn identifies(&self, position: usize) -> bool {
        self.events.get(position).is_some_and(|e| e.identified)
    }

    /// The plain accesses of a thread in the event at `position`.
    pub fn accesses_by(&self, thread: ThreadId, position: usize) -> impl Iterator<Item = PlainAccess> + '_ {
        let epoch = tail_epoch(position);
        let list = self.accesses.get(thread.index()).map_or(&[][..], |list| list);
        let start = list.partition_point(|l| l.epoch < epoch);
        list[start..].iter().take_while(move |l| l.epoch == epoch).filter(|l| !l.atomic).map(|l| l.access)
    }

    /// Adds the event at `position`, which is the last one of the history, with its plain accesses. `op`: if its operation counts.
    pub fn add_event(
        &mut self,
        (position, thread, op): (usize, ThreadId, Option<&Op>),
        history: &History,
        (summary, tables): (&mut Summary, &mut Tables<W>),
    ) {
        catch_up(&mut self.least, history, &self.fences);
        let (acquired, phase) = (self.acquired(thread, 0, history), self.phase(thread));
        if let Some(op) = op {
            // By the order of dependence.
            let mut after = [0; W];
            history.after(position, &mut after);
            let origin = self.complete(after, thread, &acquired, history);
            summary.add_op((thread, phase), op, tables.add_origin(origin), tables);
            if touches_memory(op) {
                // Races of the operation itself are judged before it acquires anything.
                let after = self.least.clock_before(position).map(after_epoch);
                let origin = self.complete(after, thread, &self.acquired(thread, 1, history), history);
                let origin = tables.add_origin(origin);
                let accesses = tables.bundle_id(thread, atomic_accesses(thread, op), true, phase);
                summary.add_accesses(accesses, origin, tables);
            }
        }
        let any = |list: &Vec<Logged>| list.last().is_some_and(|l| l.epoch >= tail_epoch(position));
        for of in (0..self.accesses.len()).map(|t| ThreadId(t as u16)) {
            if any(&self.accesses[of.index()]) {
                let acquired = if of == thread { acquired } else { self.acquired(of, 0, history) };
                let after = self.least.clock(of).map(after_epoch);
                let origin = tables.add_origin(self.complete(after, of, &acquired, history));
                let phase = self.phase(of);
                let accesses = tables.bundle_id(of, self.accesses_by(of, position), false, phase);
                summary.add_accesses(accesses, origin, tables);
            }
        }
    }

    fn phase(&self, thread: ThreadId) -> Phase {
        Phase::after(self.joins.iter().filter(|j| j.joiner == thread).count())
    }

    /// Adds an operation that is pending at the end.
    pub fn add_pending(
        &mut self,
        thread: ThreadId,
        op: &Op,
        history: &mut History,
        to: (&mut Summary, &mut Tables<W>),
    ) {
        let (summary, tables) = to;
        let mut after = [0; W];
        history.past_of(thread, None, &mut after);
        catch_up(&mut self.least, history, &self.fences);
        let (acquired, phase) = (self.acquired(thread, 0, history), self.phase(thread));
        let mut origin = self.complete(after, thread, &acquired, history);
        origin.last += 1;
        summary.add_op((thread, phase), op, tables.add_origin(origin), tables);
        if touches_memory(op) {
            let after = self.least.clock(thread).map(after_epoch);
            let mut origin = self.complete(after, thread, &acquired, history);
            origin.last += 1;
            let origin = tables.add_origin(origin);
            let accesses = tables.bundle_id(thread, atomic_accesses(thread, op), true, phase);
            summary.add_accesses(accesses, origin, tables);
        }
    }

    /// What a thread knows in the current state: by the order of dependence, and by that of races. If `op` is given, once it has
    /// done that.
    pub fn known_by(&mut self, thread: ThreadId, op: Option<&Op>, history: &mut History) -> [After<W>; 2] {
        catch_up(&mut self.least, history, &self.fences);
        let mut dependence = [0; W];
        history.past_of(thread, op, &mut dependence);
        let races = op.map_or(self.least.clock(thread), |op| self.least.clock_after(thread, op)).map(after_epoch);
        [dependence, races].map(|known| self.with_joined(known, thread))
    }

    fn complete(&self, known: [u32; W], thread: ThreadId, acquired: &Acquired, history: &History) -> Origin<W> {
        let after = self.with_joined(known, thread);
        let mut counts = [0; W];
        for t in (0..history.threads().min(W)).map(|t| ThreadId(t as u16)) {
            // Of one that was joined all events are known.
            let joined = after[t.index()] > short(known[t.index()]);
            let position = if joined { history.len() } else { known[t.index()] as usize };
            counts[t.index()] = self.number_before(t, position);
        }
        Origin::new(after, acquired, counts, history.number(thread))
    }

    /// How many events of a thread, of those that are known of, are before a position; as many as fit.
    #[inline]
    pub fn number_before(&self, thread: ThreadId, position: usize) -> u8 {
        let Some(last) = position.min(self.counted.len()).checked_sub(1) else { return 0 };
        self.counted[last].get(thread.index()).copied().unwrap_or(0)
    }

    /// With the threads that have been joined by an event that is known, or by the thread itself.
    fn with_joined(&self, known: [u32; W], thread: ThreadId) -> After<W> {
        let mut after = known;
        if !self.joins.is_empty() {
            self.joined(|t, at| t == thread || known.get(t.index()).is_some_and(|a| *a > at), &mut after);
        }
        after.map(short)
    }

    /// What the thread has acquired last, by the order of races, which has caught up. `skip`: how many of its last events do not count.
    fn acquired(&self, thread: ThreadId, skip: usize, history: &History) -> Acquired {
        let mut acquired = Acquired::default();
        for (index, position) in history.events_of(thread).iter().enumerate().rev().skip(skip).take(LOOK_BACK) {
            if let Some(via) = self.least.acquired_at(*position as usize)
                && !acquired.add(Via { number: short(index as u32 + 1), ..via })
            {
                break;
            }
        }
        acquired
    }

    /// The blocks that the event at `position` has allocated.
    pub fn blocks_of(&self, position: usize) -> &[(u32, ObjectId, u64)] {
        let start = self.blocks.partition_point(|b| (b.0 as usize) < position);
        let end = self.blocks.partition_point(|b| (b.0 as usize) <= position);
        &self.blocks[start..end]
    }

    /// The memory whose address the event at `position` compared with another's, and in whose part of memory it lies.
    pub fn ordered(&self, position: usize) -> &[(u32, ThreadId, ObjectId)] {
        let start = self.ordered.partition_point(|o| (o.0 as usize) < position);
        let end = self.ordered.partition_point(|o| o.0 as usize <= position);
        &self.ordered[start..end]
    }

    /// The object that was acquired.
    pub fn object(&self, place: PlaceId) -> ObjectId {
        self.least.object(place)
    }

    /// Brings both orders up to the current state.
    pub fn catch_up(&mut self, history: &History) {
        catch_up(&mut self.least, history, &self.fences);
        catch_up(&mut self.most, history, &self.fences);
    }
}

/// With nothing known of the threads that come in addition.
pub fn widened<T: Copy + Default, const W: usize, const V: usize>(known: &[T; W]) -> [T; V] {
    let mut wider = [T::default(); V];
    wider.iter_mut().zip(known).for_each(|(mine, known)| *mine = *known);
    wider
}

fn catch_up<const W: usize>(order: &mut Order<W>, history: &History, fences: &[(u32, Fence)]) {
    order.truncate(history.len());
    while let Some((thread, op)) = history.event(order.len()) {
        let position = order.len() as u32;
        let after = fences.partition_point(|f| f.0 < position)..fences.partition_point(|f| f.0 <= position);
        order.push(thread, op, fences[after].iter().map(|f| f.1));
    }
}

saved!(Logged { epoch, access, atomic });
saved!(Event { identified, accesses_before });

/// Without what the orders know: they catch up with the history whenever they are asked.
impl<const W: usize> Saved for Past<W> {
    fn save(&self, into: &mut Vec<u8>) {
        let Past {
            locals,
            accesses,
            extents: _,
            joins,
            runs,
            blocks,
            ordered,
            fences,
            events,
            counted,
            accessed_by,
            least,
            most: _,
        } = self;
        locals.save(into);
        accesses.save(into);
        joins.save(into);
        runs.save(into);
        blocks.save(into);
        ordered.save(into);
        fences.save(into);
        least.save(into);
        events.save(into);
        counted.save(into);
        accessed_by.save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Past<W>> {
        let locals = Locals::load(from)?;
        Some(Past {
            locals,
            accesses: Vec::load(from)?,
            joins: Vec::load(from)?,
            runs: FxHashMap::load(from)?,
            blocks: Vec::load(from)?,
            ordered: Vec::load(from)?,
            fences: Vec::load(from)?,
            least: Order::load(from)?,
            events: Vec::load(from)?,
            counted: Vec::load(from)?,
            accessed_by: Vec::load(from)?,
            ..Past::default()
        })
    }
}
