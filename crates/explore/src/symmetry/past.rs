//! The current execution as symmetry sees it: local states, plain accesses, joins.

use crate::history::{History, named_thread};
use crate::symmetry::exchange::{Exchange, Pair};
use crate::symmetry::left_out::After;
use crate::symmetry::order::{Bound, Clock, Order, after_epoch, op_epoch, tail_epoch};
use crate::symmetry::origin::{Origin, TRACKED, Via};
use crate::symmetry::rule::Rule;
use crate::symmetry::summary::{PlainEntry, Summary};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use symdpor_abi::local::stack_of;
use symdpor_abi::object::{ObjectId, Region};
use symdpor_abi::op::Access;
use symdpor_trace::saved::{Reader, Saved};
use symdpor_trace::{Execution, LocalState, Op, OpKind, PlainAccess, ThreadId, ThreadMemory, ThreadSet, saved};

/// An access of the current execution.
#[derive(Clone, Copy)]
struct Logged {
    epoch: u32,
    access: PlainAccess,
    atomic: bool,
}

/// What the rest of a run of joins came to in an execution that was not cut off before its end. Which threads it joins
/// is decided by the joiner's local state, and by what it reads in between.
struct Run {
    targets: ThreadSet,
    /// Its plain accesses between the joins, and whether results were used.
    between: Vec<PlainAccess>,
    results: bool,
}

/// A join of the current execution.
#[derive(Clone, Copy)]
struct Join {
    position: u32,
    joiner: ThreadId,
    target: ThreadId,
    /// Whether the joiner's next operation is something else.
    closes: bool,
    result: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct Event {
    identified: bool,
}

/// What a thread has been since an event.
#[derive(Clone)]
struct Local {
    position: u32,
    state: LocalState,
    /// What it had to itself when that was last asked for, how often others had an address of it, and where it was asked for.
    memory: Option<Rc<ThreadMemory>>,
    refused: u8,
    asked_at: u32,
}

impl Local {
    fn new(position: usize, state: LocalState) -> Local {
        Local { position: position as u32, state, memory: None, refused: 0, asked_at: 0 }
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
    accesses: Vec<Vec<Logged>>,
    joins: Vec<Join>,
    /// By the joiner's local state before a join.
    runs: FxHashMap<LocalState, Run>,
    /// Blocks, by the position of the event that allocated them.
    blocks: Vec<(u32, ObjectId, u64)>,
    events: Vec<Event>,
    /// Whether two threads have ever had the same local state, and as long as they have not, who had which.
    twins: bool,
    seen: FxHashMap<LocalState, ThreadId>,
    least: Order,
    most: Order,
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

/// The accesses of an atomic operation.
fn atomic_accesses(thread: ThreadId, op: &Op) -> impl Iterator<Item = PlainAccess> {
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

/// Whether an operation is a plain access that was made visible.
fn is_plain(kind: OpKind) -> bool {
    matches!(kind, OpKind::PlainLoad | OpKind::PlainStore)
}

/// Whether the thread's operation after the step at `position` is no join. Plain accesses do not count.
fn closes(position: usize, execution: &Execution) -> bool {
    let thread = execution.steps[position].thread;
    let mine = execution.steps[position + 1..].iter().filter(|s| s.thread == thread).map(|s| s.op.kind);
    let pending = execution.pending.iter().filter(|p| p.thread == thread).map(|p| p.op.kind);
    mine.chain(pending).find(|k| !is_plain(*k)) != Some(OpKind::ThreadJoin)
}

impl Past {
    pub fn push(&mut self, position: usize, execution: &Execution) {
        let step = &execution.steps[position];
        let footprint = execution.footprints.get(position);
        let (log, prints) = (&mut self.accesses, &execution.footprints);
        for access in atomic_accesses(step.thread, &step.op) {
            grow(log, access.thread).push(Logged { epoch: op_epoch(position), access, atomic: true });
        }
        for &access in prints.accesses(position) {
            grow(log, access.thread).push(Logged { epoch: tail_epoch(position), access, atomic: false });
        }
        // A thread that has moved is what it was told to be, or unknown.
        grow(&mut self.locals, step.thread).push(Local::new(position, LocalState::UNKNOWN));
        for &(thread, local) in prints.locals(position) {
            if !self.twins && local.is_known() {
                let first = *self.seen.entry(local).or_insert(thread);
                self.twins = first != thread || self.seen.len() > MANY;
            }
            grow(&mut self.locals, thread).push(Local::new(position, local));
        }
        if let (OpKind::ThreadJoin, Some(target)) = (step.op.kind, named_thread(&step.op)) {
            let result = footprint.and_then(|f| f.result);
            let closes = closes(position, execution);
            self.joins.push(Join { position: position as u32, joiner: step.thread, target, closes, result });
        }
        self.blocks.extend(prints.blocks(position).iter().map(|b| (position as u32, b.0, b.1)));
        self.events.push(Event { identified: footprint.is_some_and(|f| f.identified) });
    }

    pub fn truncate(&mut self, len: usize) {
        if self.events.len() <= len {
            return;
        }
        self.events.truncate(len);
        self.locals.iter_mut().for_each(|list| drop_last(list, |l| l.position as usize >= len));
        self.accesses.iter_mut().for_each(|list| drop_last(list, |l| l.epoch > 2 * len as u32));
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

    /// Whether two threads are twins in the state before `position`.
    pub fn twins(&self, one: ThreadId, other: ThreadId, position: usize) -> Twins {
        let (Some(a), Some(b)) = (self.local(one), self.local(other)) else { return Twins::No };
        if a.state != b.state {
            return Twins::No;
        }
        if let (Some(a), Some(b)) = (&a.memory, &b.memory)
            && let Some(memory) = corresponding(a, b)
        {
            return Twins::Yes(Exchange { one, other, memory });
        }
        let unknown = a.memory.is_none() || b.memory.is_none();
        let again = |l: &Local| l.refused < QUESTIONS && (l.asked_at as usize) < position;
        if unknown || again(a) && again(b) { Twins::Ask } else { Twins::No }
    }

    /// Takes the answer to a question asked in the state before `position`.
    pub fn remember(&mut self, memory: &[ThreadMemory], position: usize) {
        for answer in memory {
            if let Some(local) = self.locals.get_mut(answer.thread.index()).and_then(|l| l.last_mut()) {
                local.memory = Some(Rc::new(answer.clone()));
                local.refused = local.refused.saturating_add(1);
                local.asked_at = position as u32;
            }
        }
        // Whoever is not in the answer has no local state after all; main is never asked for.
        for local in self.locals.iter_mut().skip(1).filter_map(|l| l.last_mut()).filter(|l| l.memory.is_none()) {
            local.state = LocalState::UNKNOWN;
        }
    }

    pub fn identifies(&self, position: usize) -> bool {
        self.events.get(position).is_some_and(|e| e.identified)
    }

    /// The plain accesses of the event at `position`.
    pub fn accesses_of(&self, position: usize) -> impl Iterator<Item = PlainAccess> + '_ {
        let epoch = tail_epoch(position);
        self.accesses.iter().flat_map(move |list| {
            let start = list.partition_point(|l| l.epoch < epoch);
            list[start..].iter().take_while(move |l| l.epoch == epoch).filter(|l| !l.atomic).map(|l| l.access)
        })
    }

    /// Where the event at `position`, which is the last one of the history, comes from: by the order of dependence.
    pub fn origin(&mut self, position: usize, thread: ThreadId, history: &History) -> Origin {
        let mut after = [0; TRACKED];
        history.after(position, &mut after);
        self.complete(after, thread, history)
    }

    /// The same of an operation that is pending at the end.
    pub fn origin_of_pending(&mut self, thread: ThreadId, history: &mut History) -> Origin {
        let mut after = [0; TRACKED];
        history.past_of(thread, None, &mut after);
        let mut origin = self.complete(after, thread, history);
        origin.last += 1;
        origin
    }

    /// What a thread knows in the current state: by the order of dependence, and by that of races. If `op` is given, once it has
    /// done that.
    pub fn known_by(&mut self, thread: ThreadId, op: Option<&Op>, history: &mut History) -> [After; 2] {
        catch_up(&mut self.least, history);
        let mut dependence = [0; TRACKED];
        history.past_of(thread, op, &mut dependence);
        let races = op.map_or(self.least.clock(thread), |op| self.least.clock_after(thread, op)).map(after_epoch);
        [dependence, races].map(|known| {
            let mut after = known;
            self.joined(|t, at| t == thread || known.get(t.index()).is_some_and(|a| *a > at), &mut after);
            after
        })
    }

    fn complete(&mut self, after: [u32; TRACKED], thread: ThreadId, history: &History) -> Origin {
        catch_up(&mut self.least, history);
        let known = after;
        let mut after = after;
        self.joined(|t, at| t == thread || known.get(t.index()).is_some_and(|a| *a > at), &mut after);
        let mut origin = Origin::new(after, history.number(thread));
        for position in history.events_of(thread).iter().rev().take(LOOK_BACK) {
            if let Some(via) = self.least.acquired_at(*position as usize)
                && !origin.add_via(via)
            {
                break;
            }
        }
        origin
    }

    /// Adds the plain accesses of the event at `position`, which is the last one of the history.
    pub fn add_accesses(&mut self, position: usize, history: &History, summary: &mut Summary) {
        let any = |list: &Vec<Logged>| list.last().is_some_and(|l| l.epoch >= tail_epoch(position));
        for thread in 0..self.accesses.len() {
            if !any(&self.accesses[thread]) {
                continue;
            }
            let thread = ThreadId(thread as u16);
            catch_up(&mut self.least, history);
            let after = self.least.clock(thread).map(after_epoch);
            let origin = self.complete(after, thread, history);
            summary.add_accesses(self.accesses_of(position).filter(|a| a.thread == thread), origin);
        }
    }

    /// Notes in `after` which threads have been joined by an event that `known` tells of.
    pub fn joined(&self, known: impl Fn(ThreadId, u32) -> bool, after: &mut [u32; TRACKED]) {
        for join in self.joins.iter().filter(|j| known(j.joiner, j.position)) {
            if let Some(mine) = after.get_mut(join.target.index()) {
                *mine = (*mine).max(join.position + 1);
            }
        }
    }

    /// The joins of a thread's run that its last join belongs to, the last first, up to and including `position`.
    fn run(&self, joiner: ThreadId, position: u32) -> impl Iterator<Item = &Join> {
        let own = self.joins.iter().rev().filter(move |j| j.joiner == joiner && j.position <= position);
        own.enumerate().take_while(|(i, j)| *i == 0 || !j.closes).map(|(_, j)| j)
    }

    /// What the join at `position`, if it is one, tells apart.
    pub fn joins(
        &mut self,
        position: usize,
        thread: ThreadId,
        results: bool,
        summary: &mut Summary,
        history: &History,
    ) {
        let run: Vec<Join> = self.run(thread, position as u32).copied().collect();
        let Some((last, before)) = run.split_first() else { return };
        if last.closes {
            let targets: ThreadSet = run.iter().map(|j| j.target).collect();
            summary.add_group(&targets);
            self.remember_run(thread, &run, history);
        } else {
            self.accesses_of(position).filter(|a| a.thread == thread).for_each(|a| summary.add_between(a));
        }
        for join in before.iter().filter(|j| results && j.result != last.result) {
            summary.add_apart(join.target, last.target);
        }
    }

    /// Adds a visible plain access to what lies between two joins, if it does.
    pub fn plain_in_run(&self, position: usize, thread: ThreadId, op: &Op, summary: &mut Summary) {
        let last = self.joins.iter().rev().find(|j| j.joiner == thread && (j.position as usize) < position);
        if is_plain(op.kind) && last.is_some_and(|j| !j.closes) {
            let write = op.kind == OpKind::PlainStore;
            summary.add_between(PlainAccess { thread, object: op.object, granules: 1, mask: op.mask, write });
        }
    }

    /// Whether a run has visible plain accesses between its joins.
    fn has_plain(run: &[Join], joiner: ThreadId, history: &History) -> bool {
        let (Some(last), Some(first)) = (run.first(), run.last()) else { return false };
        let inside = |p: &&u32| first.position < **p && **p < last.position;
        history.events_of(joiner).iter().filter(inside).count() + 2 > run.len().max(2)
    }

    /// Notes how a run went, for executions in which it does not come to its end. `run`: the last join first.
    fn remember_run(&mut self, joiner: ThreadId, run: &[Join], history: &History) {
        let plain = Past::has_plain(run, joiner, history);
        let (mut targets, mut between, mut results) = (ThreadSet::new(), Vec::new(), plain);
        for (i, join) in run.iter().enumerate() {
            targets.insert(join.target);
            results |= join.result.is_some();
            if i > 0 {
                between.extend(self.accesses_of(join.position as usize).filter(|a| a.thread == joiner));
            }
            let Some(local) = self.local_before(joiner, join.position) else { continue };
            let known = self.runs.entry(local).or_insert_with(|| Run {
                targets: targets.clone(),
                between: Vec::new(),
                results: false,
            });
            known.targets.retain(|t| targets.contains(t));
            let new: Vec<PlainAccess> = between.iter().filter(|a| !known.between.contains(a)).copied().collect();
            known.between.extend(new);
            known.results |= results;
        }
    }

    /// Whether the thread has made visible plain accesses since the last join of a run.
    fn pending_plain(&self, joiner: ThreadId, run: &[Join], history: &History) -> bool {
        run.first().is_some_and(|j| history.events_of(joiner).last().is_some_and(|&e| e > j.position))
    }

    /// A thread's local state before its event at `position`.
    fn local_before(&self, thread: ThreadId, position: u32) -> Option<LocalState> {
        let list = self.locals.get(thread.index())?;
        let at = list.partition_point(|l| l.position < position);
        list[..at].last().map(|l| l.state).filter(|l| l.is_known())
    }

    /// The blocks that the event at `position` has allocated.
    pub fn blocks_of(&self, position: usize) -> &[(u32, ObjectId, u64)] {
        let start = self.blocks.partition_point(|b| (b.0 as usize) < position);
        let end = self.blocks.partition_point(|b| (b.0 as usize) <= position);
        &self.blocks[start..end]
    }

    /// The thread is blocked joining `target` where nothing goes on: threads that have ended are told apart from that one,
    /// except those joined just before it, if nothing but reading has been done meanwhile.
    ///
    /// Those that the run would have joined after it are not told apart either, if that is known.
    pub fn blocked_join(
        &self,
        (thread, target): (ThreadId, ThreadId),
        ended: &ThreadSet,
        summary: &mut Summary,
        history: &History,
    ) {
        let open = |j: &&Join| !j.closes;
        let last = self.joins.iter().rev().find(|j| j.joiner == thread).filter(open).map(|j| j.position);
        let run: Vec<&Join> = last.map_or(Vec::new(), |p| self.run(thread, p).collect());
        let inside = run.iter().flat_map(|j| self.accesses_of(j.position as usize)).filter(|a| a.thread == thread);
        let before: Vec<PlainAccess> = inside.collect();
        let owned: Vec<Join> = run.iter().map(|j| **j).collect();
        let plain = Past::has_plain(&owned, thread, history) || self.pending_plain(thread, &owned, history);
        let joined = !plain && !run.iter().any(|j| j.result.is_some()) && !before.iter().any(|a| a.write);
        let known = self.local_before(thread, u32::MAX).and_then(|l| self.runs.get(&l));
        let known = known.filter(|r| !r.results && !r.between.iter().any(|a| a.write));
        for other in ended.iter() {
            if joined && run.iter().any(|j| j.target == other) {
                before.iter().for_each(|a| summary.add_between(*a));
            } else if let Some(known) = known.filter(|r| r.targets.contains(other)) {
                known.between.iter().for_each(|a| summary.add_between(*a));
            } else {
                summary.add_apart(target, other);
            }
        }
        // Whoever was joined in this run has ended, and others have not: as long as the run does not join those too, that tells.
        let exists = |t: &ThreadId| *t != thread && history.exists(*t) && !ended.contains(*t);
        for other in (0..history.threads()).map(|t| ThreadId(t as u16)).filter(exists) {
            let follows = other == target || known.is_some_and(|r| r.targets.contains(other));
            if !joined || !follows {
                run.iter().for_each(|j| summary.add_apart(j.target, other));
            }
        }
    }

    /// Brings both orders up to the current state.
    pub fn catch_up(&mut self, history: &History) {
        catch_up(&mut self.least, history);
        catch_up(&mut self.most, history);
    }

    /// Whether plain accesses between two joins of a run meet others, of the branch or from before it.
    pub fn between_matters(&self, summary: &Summary) -> bool {
        let conflicts =
            |a: &PlainAccess, b: &PlainAccess| a.thread != b.thread && (a.write || b.write) && a.overlaps(b);
        summary.between().iter().any(|between| {
            let branch = summary.plain().iter().any(|e| conflicts(between, &e.access));
            let visible = || {
                let ops = summary.visible().iter().flat_map(|e| atomic_accesses(e.thread, &e.op));
                ops.into_iter().any(|a| conflicts(between, &a))
            };
            let known = component_of(&self.least, between.thread);
            let before = || {
                let unknown = |l: &&Logged| l.epoch > known(l.access.thread);
                self.accesses.iter().flatten().filter(unknown).any(|l| conflicts(between, &l.access))
            };
            branch || visible() || before()
        })
    }

    /// Whether no access before the branch relates otherwise to what would happen in it than it does to what happened in
    /// the twin's.
    ///
    /// `first`: who would begin it, and with what. If it is neither of the twins, it goes on in the same state for both.
    pub fn is_alike(&self, branch: &Branch<'_>, exchange: &Exchange, first: (ThreadId, &Op), rule: &Rule) -> bool {
        if !rule.plain {
            return true;
        }
        let (twin, thread) = (exchange.one, exchange.other);
        let (known_now, known_then) = match first {
            (actor, op) if actor == thread => {
                (self.least.clock_after(thread, op), self.most.clock_after(twin, &exchange.op(op)))
            }
            _ => (self.least.clock(thread), self.most.clock(twin)),
        };
        let view = View { past: self, branch, exchange, rule, known_now };
        view.unchanged(twin, &known_then, thread, &view.known_now)
            && view.unchanged(thread, &self.most.clock(thread), twin, &self.least.clock(twin))
    }
}

fn catch_up(order: &mut Order, history: &History) {
    order.truncate(history.len());
    while let Some((thread, op)) = history.event(order.len()) {
        order.push(thread, op);
    }
}

/// The twin's branch.
pub struct Branch<'a> {
    pub summary: &'a Summary,
    /// Where it was explored, and who has moved since then.
    pub since: u32,
    pub moved: &'a ThreadSet,
    pub history: &'a History,
}

impl Branch<'_> {
    /// Whether something is still to come.
    fn is_ahead(&self, thread: ThreadId, origin: &Origin) -> bool {
        origin.last > self.history.number(thread)
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

fn component_of(order: &Order, thread: ThreadId) -> impl Fn(ThreadId) -> u32 + '_ {
    let clock = order.clock(thread);
    move |of| if of == thread { u32::MAX } else { order.component(&clock, of) }
}

struct View<'a> {
    past: &'a Past,
    branch: &'a Branch<'a>,
    exchange: &'a Exchange,
    rule: &'a Rule,
    /// What the skipped thread would know after its first operation.
    known_now: Clock,
}

impl View<'_> {
    /// No access that `before` knows of and `after` does not would race in the branch.
    fn unchanged(&self, before: ThreadId, known: &Clock, after: ThreadId, known_after: &Clock) -> bool {
        for (t, log) in self.past.accesses.iter().enumerate() {
            let of = ThreadId(t as u16);
            let upper = if of == before { u32::MAX } else { self.past.most.component(known, of) };
            let lower = if of == after { u32::MAX } else { self.past.least.component(known_after, of) };
            if upper <= lower {
                continue;
            }
            let start = log.partition_point(|l| l.epoch <= lower);
            if log[start..].iter().take_while(|l| l.epoch <= upper).any(|l| self.would_race(l)) {
                return false;
            }
        }
        true
    }

    fn would_race(&self, logged: &Logged) -> bool {
        let access = &logged.access;
        let conflicts = |other: &PlainAccess| (access.write || other.write) && access.overlaps(other);
        let summary = self.branch.summary;
        if (!logged.atomic || self.rule.mixed)
            && summary
                .plain()
                .iter()
                .any(|e| conflicts(&self.exchange.access(&e.access)) && self.is_unordered(logged, e))
        {
            return true;
        }
        if !logged.atomic && self.rule.mixed {
            let ahead = summary.visible().iter().filter(|e| self.branch.is_ahead(e.thread, &e.origin));
            let ops = ahead.flat_map(|e| atomic_accesses(e.thread, &e.op));
            let mut others = ops.map(|a| self.exchange.access(&a)).filter(conflicts);
            return others.any(|a| self.is_unknown(logged, a.thread));
        }
        false
    }

    /// Whether a plain access of the branch, with the threads exchanged, would not be ordered after the logged one.
    fn is_unordered(&self, logged: &Logged, entry: &PlainEntry) -> bool {
        let (by, of, origin) = (entry.access.thread, logged.access.thread, &entry.origin);
        if !self.is_unknown(logged, self.exchange.thread(by)) || !self.branch.is_ahead(by, origin) {
            return false;
        }
        let came_before = origin.after(self.branch.since, by).filter(|t| !self.branch.moved.contains(*t));
        if came_before.map(|t| self.exchange.thread(t)).any(|t| t == of || self.knows(t, logged)) {
            return false;
        }
        // Nobody has moved since: the objects are as they were.
        let mut through = origin.via(self.branch.since).filter(|_| self.branch.moved.is_empty());
        !through.any(|via| self.is_released(&Via { object: self.exchange.object(via.object), ..via }, logged))
    }

    fn is_released(&self, via: &Via, logged: &Logged) -> bool {
        let least = &self.past.least;
        least.released_to(via).is_some_and(|c| least.component(c, logged.access.thread) >= logged.epoch)
    }

    fn is_unknown(&self, logged: &Logged, thread: ThreadId) -> bool {
        let third = thread != self.exchange.one && thread != self.exchange.other;
        thread != logged.access.thread && (self.rule.third || !third) && !self.knows(thread, logged)
    }

    fn knows(&self, thread: ThreadId, logged: &Logged) -> bool {
        let of = logged.access.thread;
        let clock = if thread == self.exchange.other { self.known_now } else { self.past.least.clock(thread) };
        self.past.least.component(&clock, of) >= logged.epoch
    }
}

saved!(Logged { epoch, access, atomic });
saved!(Run { targets, between, results });
saved!(Join { position, joiner, target, closes, result });
saved!(Event { identified });
saved!(Local { position, state, memory, refused, asked_at });

/// Without the orders, which catch up with the history whenever they are asked.
impl Saved for Past {
    fn save(&self, into: &mut Vec<u8>) {
        let Past { locals, accesses, joins, runs, blocks, events, twins, seen, least: _, most: _ } = self;
        locals.save(into);
        accesses.save(into);
        joins.save(into);
        runs.save(into);
        blocks.save(into);
        events.save(into);
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
            events: Vec::load(from)?,
            twins: bool::load(from)?,
            seen: FxHashMap::load(from)?,
            ..Past::default()
        })
    }
}
