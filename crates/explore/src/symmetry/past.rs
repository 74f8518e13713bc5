//! The current execution as symmetry sees it: local states, plain accesses, joins.

use crate::history::{History, named_thread};
use crate::symmetry::exchange::{Exchange, Pair};
use crate::symmetry::joins::{Join, Run, closes};
use crate::symmetry::order::{Bound, Order, PlaceId, after_epoch, op_epoch, tail_epoch};
use crate::symmetry::origin::{Acquired, After, Origin, TRACKED, short};
use crate::symmetry::summary::Summary;
use crate::symmetry::tables::{Phase, Tables};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use symdpor_abi::local::stack_of;
use symdpor_abi::object::{ObjectId, Region};
use symdpor_abi::op::Access;
use symdpor_trace::saved::{Reader, Saved};
use symdpor_trace::{Execution, LocalState, Op, OpKind, PlainAccess, ThreadId, ThreadMemory, saved};

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
    /// How many local states and accesses there were before it.
    locals_before: u32,
    accesses_before: u32,
}

/// What a thread has been since an event.
#[derive(Clone)]
struct Local {
    position: u32,
    state: LocalState,
    memory: Told,
}

/// What a thread had to itself when that was last told, how often it was asked for, and in which state it was told.
///
/// As long as the thread does not move nobody can get an address of its memory who had none. But others can forget one: what
/// is so in a state need not have been so in the states before it.
#[derive(Clone, Default)]
struct Told {
    memory: Option<Rc<ThreadMemory>>,
    asked: u8,
    at: u32,
}

/// What was told of a thread, and what had been told of it before.
struct Telling {
    thread: ThreadId,
    local: u32,
    at: u32,
    before: Told,
}

impl Local {
    fn new(position: usize, state: LocalState) -> Local {
        Local { position: position as u32, state, memory: Told::default() }
    }
}

/// Whether two threads are twins.
pub enum Twins {
    No,
    Yes(Exchange),
    /// It has to be known first what memory they have to themselves.
    Ask,
}

/// How many events of a thread are looked through for what it acquired.
const LOOK_BACK: usize = 12;

/// So many local states are not kept to find two threads that had the same one.
const MANY: usize = 1 << 18;

/// What others know can be forgotten again; but it is not asked for ever.
const QUESTIONS: u8 = 2;

pub struct Past {
    /// Per thread, in the order of the events that left them.
    locals: Vec<Vec<Local>>,
    pub(super) accesses: Vec<Vec<Logged>>,
    pub(super) joins: Vec<Join>,
    /// By the joiner's local state before a join.
    pub(super) runs: FxHashMap<LocalState, Run>,
    /// Blocks, by the position of the event that allocated them.
    blocks: Vec<(u32, ObjectId, u64)>,
    events: Vec<Event>,
    /// Whose local states and accesses have been added, in that order.
    left_by: Vec<ThreadId>,
    accessed_by: Vec<ThreadId>,
    tellings: Vec<Telling>,
    /// Whether two threads have ever had the same local state, and as long as they have not, who had which.
    twins: bool,
    seen: FxHashMap<LocalState, ThreadId>,
    pub(super) least: Order,
    pub(super) most: Order,
}

impl Default for Past {
    fn default() -> Self {
        Past {
            locals: Vec::new(),
            accesses: Vec::new(),
            joins: Vec::new(),
            runs: FxHashMap::default(),
            blocks: Vec::new(),
            events: Vec::new(),
            left_by: Vec::new(),
            accessed_by: Vec::new(),
            tellings: Vec::new(),
            twins: false,
            seen: FxHashMap::default(),
            least: Order::new(Bound::Least),
            most: Order::new(Bound::Most),
        }
    }
}

fn grow<T: Default>(list: &mut Vec<T>, thread: ThreadId) -> &mut T {
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

impl Past {
    pub fn push(&mut self, position: usize, execution: &Execution) {
        let step = &execution.steps[position];
        let footprint = execution.footprints.get(position);
        let prints = &execution.footprints;
        let (locals_before, accesses_before) = (self.left_by.len() as u32, self.accessed_by.len() as u32);
        if touches_memory(&step.op) {
            for access in atomic_accesses(step.thread, &step.op) {
                self.log(Logged { epoch: op_epoch(position), access, atomic: true });
            }
        }
        for &access in prints.accesses(position) {
            self.log(Logged { epoch: tail_epoch(position), access, atomic: false });
        }
        // A thread that has moved is what it was told to be, or unknown.
        self.leave(step.thread, Local::new(position, LocalState::UNKNOWN));
        for &(thread, local) in prints.locals(position) {
            if !self.twins && local.is_known() {
                let first = *self.seen.entry(local).or_insert(thread);
                self.twins = first != thread || self.seen.len() > MANY;
            }
            self.leave(thread, Local::new(position, local));
        }
        self.told(prints.memory(position), position + 1, false);
        if let (OpKind::ThreadJoin, Some(target)) = (step.op.kind, named_thread(&step.op)) {
            let result = footprint.and_then(|f| f.result);
            let closes = closes(position, execution);
            self.joins.push(Join { position: position as u32, joiner: step.thread, target, closes, result });
        }
        self.blocks.extend(prints.blocks(position).iter().map(|b| (position as u32, b.0, b.1)));
        let identified = footprint.is_some_and(|f| f.identified);
        self.events.push(Event { identified, locals_before, accesses_before });
    }

    /// Notes what threads have to themselves in the state before `position`. `asked`: because that was asked for.
    fn told(&mut self, memory: &[ThreadMemory], position: usize, asked: bool) {
        for answer in memory {
            let thread = answer.thread;
            let local = self.locals.get_mut(thread.index()).and_then(|l| l.last_mut());
            if let Some(local) = local.filter(|l| l.state.is_known()) {
                let at = position as u32;
                let asked = local.memory.asked.saturating_add(asked as u8);
                let told = Told { memory: Some(Rc::new(answer.clone())), asked, at };
                let before = std::mem::replace(&mut local.memory, told);
                self.tellings.push(Telling { thread, local: local.position, at, before });
            }
        }
    }

    /// Takes back what was told in states beyond the one before `position`.
    fn untell(&mut self, position: usize) {
        while let Some(telling) = self.tellings.pop_if(|t| t.at as usize > position) {
            let local = self.locals.get_mut(telling.thread.index()).and_then(|l| l.last_mut());
            if let Some(local) = local.filter(|l| l.position == telling.local) {
                // How often it was asked for stays: it is not asked for ever.
                local.memory = Told { asked: local.memory.asked, ..telling.before };
            }
        }
    }

    fn log(&mut self, logged: Logged) {
        grow(&mut self.accesses, logged.access.thread).push(logged);
        self.accessed_by.push(logged.access.thread);
    }

    fn leave(&mut self, thread: ThreadId, local: Local) {
        grow(&mut self.locals, thread).push(local);
        self.left_by.push(thread);
    }

    pub fn truncate(&mut self, len: usize) {
        let Some(&Event { locals_before, accesses_before, .. }) = self.events.get(len) else { return };
        self.events.truncate(len);
        for thread in self.left_by.drain(locals_before as usize..) {
            self.locals[thread.index()].pop();
        }
        self.untell(len);
        for thread in self.accessed_by.drain(accesses_before as usize..) {
            self.accesses[thread.index()].pop();
        }
        drop_last(&mut self.joins, |j| j.position as usize >= len);
        drop_last(&mut self.blocks, |b| b.0 as usize >= len);
        self.least.truncate(len);
        self.most.truncate(len);
    }

    pub fn has_twins(&self) -> bool {
        self.twins
    }

    fn local(&self, thread: ThreadId) -> Option<&Local> {
        self.locals.get(thread.index())?.last().filter(|l| l.state.is_known())
    }

    /// Whether two threads have the same local state: a quick no.
    pub fn may_be_twins(&self, one: ThreadId, other: ThreadId) -> bool {
        matches!((self.local(one), self.local(other)), (Some(a), Some(b)) if a.state == b.state)
    }

    /// Whether two threads are twins in the state before `position`.
    pub fn twins(&self, one: ThreadId, other: ThreadId, position: usize) -> Twins {
        let (Some(a), Some(b)) = (self.local(one), self.local(other)) else { return Twins::No };
        if a.state != b.state {
            return Twins::No;
        }
        if let (Some(a), Some(b)) = (&a.memory.memory, &b.memory.memory)
            && let Some(memory) = corresponding(a, b)
        {
            return Twins::Yes(Exchange::new(one, other, memory));
        }
        let unknown = a.memory.memory.is_none() || b.memory.memory.is_none();
        let again = |l: &Local| l.memory.asked < QUESTIONS && (l.memory.at as usize) < position;
        if unknown || again(a) && again(b) { Twins::Ask } else { Twins::No }
    }

    /// Takes the answer to a question asked in the state before `position`.
    pub fn remember(&mut self, memory: &[ThreadMemory], position: usize) {
        self.told(memory, position, true);
        // Whoever is not in the answer has no local state after all; main is never asked for.
        let untold = |l: &&mut Local| l.memory.memory.is_none();
        for local in self.locals.iter_mut().skip(1).filter_map(|l| l.last_mut()).filter(untold) {
            local.state = LocalState::UNKNOWN;
        }
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
        (summary, tables): (&mut Summary, &mut Tables),
    ) {
        catch_up(&mut self.least, history);
        let (acquired, phase) = (self.acquired(thread, 0, history), self.phase(thread));
        if let Some(op) = op {
            // By the order of dependence.
            let mut after = [0; TRACKED];
            history.after(position, &mut after);
            let origin = self.complete(after, thread, &acquired, history);
            summary.add_op((thread, phase), op, tables.add_origin(origin), tables);
            if touches_memory(op) {
                // Races of the operation itself are judged before it acquires anything.
                let after = self.least.clock_before(position).map(after_epoch);
                let origin = self.complete(after, thread, &self.acquired(thread, 1, history), history);
                let origin = tables.add_origin(origin);
                for access in atomic_accesses(thread, op) {
                    summary.add_access(tables.access_id(&access, true, phase), origin, tables);
                }
            }
        }
        let any = |list: &Vec<Logged>| list.last().is_some_and(|l| l.epoch >= tail_epoch(position));
        for of in (0..self.accesses.len()).map(|t| ThreadId(t as u16)) {
            if any(&self.accesses[of.index()]) {
                let acquired = if of == thread { acquired } else { self.acquired(of, 0, history) };
                let after = self.least.clock(of).map(after_epoch);
                let origin = tables.add_origin(self.complete(after, of, &acquired, history));
                let phase = self.phase(of);
                for access in self.accesses_by(of, position) {
                    summary.add_access(tables.access_id(&access, false, phase), origin, tables);
                }
            }
        }
    }

    fn phase(&self, thread: ThreadId) -> Phase {
        Phase::after(self.joins.iter().filter(|j| j.joiner == thread).count())
    }

    /// Adds an operation that is pending at the end.
    pub fn add_pending(&mut self, thread: ThreadId, op: &Op, history: &mut History, to: (&mut Summary, &mut Tables)) {
        let (summary, tables) = to;
        let mut after = [0; TRACKED];
        history.past_of(thread, None, &mut after);
        catch_up(&mut self.least, history);
        let (acquired, phase) = (self.acquired(thread, 0, history), self.phase(thread));
        let mut origin = self.complete(after, thread, &acquired, history);
        origin.last += 1;
        summary.add_op((thread, phase), op, tables.add_origin(origin), tables);
        if touches_memory(op) {
            let after = self.least.clock(thread).map(after_epoch);
            let mut origin = self.complete(after, thread, &acquired, history);
            origin.last += 1;
            let origin = tables.add_origin(origin);
            for access in atomic_accesses(thread, op) {
                summary.add_access(tables.access_id(&access, true, phase), origin, tables);
            }
        }
    }

    /// What a thread knows in the current state: by the order of dependence, and by that of races. If `op` is given, once it has
    /// done that.
    pub fn known_by(&mut self, thread: ThreadId, op: Option<&Op>, history: &mut History) -> [After; 2] {
        catch_up(&mut self.least, history);
        let mut dependence = [0; TRACKED];
        history.past_of(thread, op, &mut dependence);
        let races = op.map_or(self.least.clock(thread), |op| self.least.clock_after(thread, op)).map(after_epoch);
        [dependence, races].map(|known| self.with_joined(known, thread))
    }

    fn complete(&self, known: [u32; TRACKED], thread: ThreadId, acquired: &Acquired, history: &History) -> Origin {
        let after = self.with_joined(known, thread);
        let mut counts = [0; TRACKED];
        for t in (0..history.threads().min(TRACKED)).map(|t| ThreadId(t as u16)) {
            // Of one that was joined all events are known.
            let joined = after[t.index()] > short(known[t.index()]);
            let number = if joined { history.number(t) } else { history.number_before(t, known[t.index()]) };
            counts[t.index()] = number.min(u8::MAX.into()) as u8;
        }
        Origin::new(after, acquired, counts, history.number(thread))
    }

    /// With the threads that have been joined by an event that is known, or by the thread itself.
    fn with_joined(&self, known: [u32; TRACKED], thread: ThreadId) -> After {
        let mut after = known;
        if !self.joins.is_empty() {
            self.joined(|t, at| t == thread || known.get(t.index()).is_some_and(|a| *a > at), &mut after);
        }
        after.map(short)
    }

    /// What the thread has acquired last, by the order of races, which has caught up. `skip`: how many of its last events do not count.
    fn acquired(&self, thread: ThreadId, skip: usize, history: &History) -> Acquired {
        let mut acquired = Acquired::default();
        for position in history.events_of(thread).iter().rev().skip(skip).take(LOOK_BACK) {
            if let Some(via) = self.least.acquired_at(*position as usize)
                && !acquired.add(via)
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

    /// The object that was acquired.
    pub fn object(&self, place: PlaceId) -> ObjectId {
        self.least.object(place)
    }

    /// Brings both orders up to the current state.
    pub fn catch_up(&mut self, history: &History) {
        catch_up(&mut self.least, history);
        catch_up(&mut self.most, history);
    }

    /// A thread's local state before its event at `position`.
    pub(super) fn local_before(&self, thread: ThreadId, position: u32) -> Option<LocalState> {
        let list = self.locals.get(thread.index())?;
        let at = list.partition_point(|l| l.position < position);
        list[..at].last().map(|l| l.state).filter(|l| l.is_known())
    }
}

fn catch_up(order: &mut Order, history: &History) {
    order.truncate(history.len());
    while let Some((thread, op)) = history.event(order.len()) {
        order.push(thread, op);
    }
}

/// The memory of two threads that corresponds, if each has its own to itself.
fn corresponding(a: &ThreadMemory, b: &ThreadMemory) -> Option<Vec<Pair>> {
    let sizes = |m: &ThreadMemory| m.blocks.iter().map(|b| b.1).collect::<Vec<_>>();
    let alike = a.local.is_known() && a.local == b.local && sizes(a) == sizes(b);
    if !alike || !a.stack || !b.stack {
        return None;
    }
    let stack = |t: ThreadId| ObjectId::new(Region::Stack, stack_of(t.0).0).0;
    let stacks = Pair { one: stack(a.thread), other: stack(b.thread), bytes: stack_of(0).1 };
    let blocks = a.blocks.iter().zip(&b.blocks);
    let pairs = blocks.map(|(a, b)| Pair { one: a.0.0, other: b.0.0, bytes: a.1.div_ceil(8) * 8 });
    // What lies on the stacks besides corresponds by its distance from the end.
    Some(pairs.chain([stacks]).collect())
}

saved!(Logged { epoch, access, atomic });
saved!(Event { identified, locals_before, accesses_before });
saved!(Local { position, state, memory });
saved!(Told { memory, asked, at });
saved!(Telling { thread, local, at, before });

/// Without what the orders know: they catch up with the history whenever they are asked.
impl Saved for Past {
    fn save(&self, into: &mut Vec<u8>) {
        let Past { locals, accesses, joins, runs, blocks, events, left_by, accessed_by, tellings, .. } = self;
        let Past { twins, seen, least, most: _, .. } = self;
        locals.save(into);
        accesses.save(into);
        joins.save(into);
        runs.save(into);
        blocks.save(into);
        least.save(into);
        events.save(into);
        left_by.save(into);
        accessed_by.save(into);
        tellings.save(into);
        twins.save(into);
        seen.save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Past> {
        Some(Past {
            locals: Vec::load(from)?,
            accesses: Vec::load(from)?,
            joins: Vec::load(from)?,
            runs: FxHashMap::load(from)?,
            blocks: Vec::load(from)?,
            least: Order::load(from)?,
            events: Vec::load(from)?,
            left_by: Vec::load(from)?,
            accessed_by: Vec::load(from)?,
            tellings: Vec::load(from)?,
            twins: bool::load(from)?,
            seen: FxHashMap::load(from)?,
            ..Past::default()
        })
    }
}
