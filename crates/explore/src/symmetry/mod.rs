//! Transition symmetry: leaving out the branch of a thread whose twin's branch has been explored.
//!
//! Yang, Chen, Gopalakrishnan and Wang, "Automatic Discovery of Transition Symmetry in Multithreaded Programs using Dynamic
//! Analysis". Two threads are *twins* in a state if what they may still do and what they know is the same
//! ([`LocalState`](symdpor_trace::LocalState)). Their rule, to skip one if the other was explored, loses errors: the twins are alike from that
//! state on, but what came before relates differently to them, and others may tell them apart. `docs/soundness.md` has the
//! rule that is used here, and the argument.
//!
//! - [`summary`]: what happened in the twin's branch, as numbers of [`tables`].
//! - [`bundle`]: the accesses of a step.
//! - [`exchange`]: the renaming of the twins.
//! - [`left_out`]: the state in which a branch is left out.
//! - [`order`]: what each thread knows of plain accesses.
//! - [`joins`]: whom joins tell apart.
//! - [`alike`]: whether what came before relates to both in the same way.
//! - [`past`]: the accesses of the current execution.
//! - [`locals`]: its threads' local states, and who are twins.
//! - [`width`]: of how many threads it is kept what is known of them.

mod alike;
mod bundle;
mod exchange;
mod joins;
mod left_out;
mod locals;
mod order;
mod origin;
mod past;
mod reach;
pub mod rule;
mod saved;
mod summary;
mod tables;
pub mod timer;
mod width;

use crate::history::{History, Known, Settled, named_thread};
use alike::Branch;
use exchange::Exchange;
use left_out::{LeftOut, Notes};
use locals::Twins;
use past::Past;
use rule::Rule;
use std::rc::Rc;
use summary::Summary;
use symdpor_abi::op::Access;
use symdpor_trace::{Execution, Op, OpKind, ThreadId, ThreadMemory, ThreadSet};
use tables::Tables;
pub use width::Symmetry;

/// How often the rule was asked, and what it said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Branches left out.
    pub skipped: u64,
    /// Twins whose branch was explored all the same, by the reason.
    pub told_apart: u64,
    pub past_differs: u64,
    /// Executions cut off because they began with the twin of a sleeping thread.
    pub cut: u64,
    /// Questions for the threads' memory.
    pub asked: u64,
    /// What all of it has taken, if there is a clock.
    pub nanos: u64,
}

/// A branch that has been explored: the thread, its operation, and what happened.
struct Explored {
    thread: ThreadId,
    op: Op,
    summary: Rc<Summary>,
}

/// Of one node of the search tree.
#[derive(Default)]
struct Branches {
    /// The one under way: all ways of it that have ended, and those ways by the thread that was woken.
    current: Rc<Summary>,
    ways: Vec<(ThreadId, Rc<Summary>)>,
    explored: Vec<Explored>,
    /// Of all that were left out.
    total: Rc<Summary>,
    /// What joins tell apart that were blocked after a turn in vain: if there is nothing but such turns, they stay so.
    in_vain: Summary,
}

impl Branches {
    /// Keeps the memory.
    fn clear(&mut self) {
        let Branches { current, ways, explored, total, in_vain } = self;
        clear(current);
        ways.clear();
        explored.clear();
        clear(total);
        in_vain.clear();
    }
}

/// A branch that may be left out.
pub struct Skip {
    pub exchange: Exchange,
    /// The operation that it would begin with, and the thread that does it.
    pub op: Op,
    pub actor: ThreadId,
    pub summary: Rc<Summary>,
    /// Where the twin was explored.
    pub since: usize,
}

/// The node that is looked at, and the one where the twin was explored.
#[derive(Clone, Copy)]
struct Places {
    position: usize,
    since: usize,
}

/// Whether a branch may be left out.
pub enum Answer {
    No,
    Skip(Skip),
    /// It has to be known first what memory the threads have to themselves in this state.
    Ask,
}

/// Where an execution ends that has been looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// Nothing can go on.
    Here,
    /// A turn in vain was the last step, from this node.
    InVain(usize),
    /// What can go on does so in executions that are run elsewhere.
    Elsewhere,
}

/// As the value of a semaphore: more than there ever are posts.
const NO_POST: u32 = u32::MAX;

/// So many summaries are kept for their memory.
const SPARE: usize = 64;

/// The analysis for so many threads.
struct Analysis<const W: usize> {
    rule: Rule,
    past: Past<W>,
    nodes: Vec<Branches>,
    /// The summary of the part below the node that is looked at next.
    carry: Rc<Summary>,
    tables: Tables<W>,
    notes: Notes<W>,
    /// Summaries that are not needed any more: their memory is. They are empty.
    spare: Vec<Rc<Summary>>,
    counters: Counters,
}

/// Empties a summary, and keeps its memory if nobody else has it.
fn clear(summary: &mut Rc<Summary>) {
    match Rc::get_mut(summary) {
        Some(own) => own.clear(),
        None => *summary = Rc::default(),
    }
}

/// The same as [`Summary::merge`], without a copy where there is nothing yet. What is left of the other is of no use.
fn take_in<const W: usize>(into: &mut Rc<Summary>, other: &mut Rc<Summary>, tables: &mut Tables<W>) {
    if into.is_empty() {
        std::mem::swap(into, other);
    } else {
        Rc::make_mut(into).merge(other, tables);
    }
}

impl<const W: usize> Analysis<W> {
    fn new(rule: Rule) -> Self {
        Analysis {
            rule,
            past: Past::default(),
            nodes: Vec::new(),
            carry: Rc::default(),
            tables: Tables::default(),
            notes: Notes::default(),
            spare: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Adds the step at `position` of an execution.
    pub fn push(&mut self, position: usize, execution: &Execution) {
        self.past.push(position, execution);
        if self.nodes.len() <= position {
            self.nodes.resize_with(position + 1, Branches::default);
        }
    }

    /// A node is new.
    pub fn open(&mut self, position: usize) {
        if let Some(node) = self.nodes.get_mut(position) {
            node.clear();
        } else {
            self.nodes.resize_with(position + 1, Branches::default);
        }
    }

    pub fn truncate(&mut self, len: usize) {
        self.past.truncate(len);
    }

    /// The execution has ended, or is to be looked at no further, with these operations pending and those threads ended.
    pub fn end(&mut self, pending: &[(ThreadId, Op)], ended: &ThreadSet, ends: Ends, history: &mut History) {
        clear(&mut self.carry);
        if !self.past.locals.has_twins() {
            return;
        }
        let carry = Rc::make_mut(&mut self.carry);
        for (thread, op) in pending {
            if self.rule.pending && op.access().is_some() {
                self.past.add_pending(*thread, op, history, (&mut *carry, &mut self.tables));
            }
            if let (true, OpKind::ThreadJoin, Some(target)) = (self.rule.pending_joins, op.kind, named_thread(op)) {
                let told = match ends {
                    Ends::InVain(position) if position < self.nodes.len() => &mut self.nodes[position].in_vain,
                    _ => &mut *carry,
                };
                let is_end = ends != Ends::Elsewhere;
                self.past.blocked_join((*thread, target), (ended, is_end), (told, &mut self.tables), history);
            }
        }
    }

    /// Adds what lies below the node, and the step that leads there, to the node's current branch.
    pub fn absorb(&mut self, position: usize, thread: ThreadId, op: &Op, history: &History) {
        let mut part = std::mem::replace(&mut self.carry, self.spare.pop().unwrap_or_default());
        let below = Rc::make_mut(&mut part);
        if !self.past.locals.has_twins() {
            // As long as no two threads have been alike nobody asks.
            below.set_partial();
            take_in(&mut self.nodes[position].current, &mut part, &mut self.tables);
            return self.put_back(part);
        }
        let counts = op.access().is_some() || op.is_global();
        let event = (position, thread, Some(op).filter(|_| counts));
        self.past.add_event(event, history, (&mut *below, &mut self.tables));
        if op.kind == OpKind::AtomicSection {
            // What it did is not known in the detail that is needed.
            below.set_partial();
        }
        if self.rule.joins {
            if op.kind == OpKind::ThreadJoin {
                self.past.joins(position, thread, self.rule.results, (&mut *below, &mut self.tables), history);
            }
            self.past.plain_in_run(position, thread, op, (&mut *below, &mut self.tables));
        }
        for &(_, owner, object) in self.past.ordered(position) {
            below.add_ordered(owner, object);
        }
        // Memory that comes into being here has no past.
        self.past.blocks_of(position).iter().for_each(|b| below.forget(b.1, b.2, &mut self.tables));
        if self.past.identifies(position) {
            below.add_group(&ThreadSet::from_iter([thread]));
        }
        if let (OpKind::ThreadCreate, Some(child)) = (op.kind, named_thread(op)) {
            below.before_creation(child, thread, &mut self.tables);
        }
        let node = &mut self.nodes[position];
        if let (OpKind::CondSignal | OpKind::FutexWake, Some(woken)) = (op.kind, named_thread(op)) {
            Rc::make_mut(&mut node.current).merge(below, &mut self.tables);
            node.ways.push((woken, part));
        } else {
            take_in(&mut node.current, &mut part, &mut self.tables);
            self.put_back(part);
        }
    }

    fn put_back(&mut self, mut summary: Rc<Summary>) {
        if let Some(own) = Rc::get_mut(&mut summary).filter(|_| self.spare.len() < SPARE) {
            own.clear();
            self.spare.push(summary);
        }
    }

    /// Throws away what no summary has any more, if there is much. `depth`: how many nodes the current execution has.
    pub fn sweep(&mut self, depth: usize) {
        if !self.tables.is_full() {
            return;
        }
        let mut sweep = self.tables.sweep();
        self.nodes.truncate(depth);
        for node in &mut self.nodes {
            let Branches { current, ways, explored, total, in_vain } = node;
            let finished = ways.iter_mut().map(|w| &mut w.1).chain(explored.iter_mut().map(|e| &mut e.summary));
            finished.chain([current, total]).for_each(|summary| Rc::make_mut(summary).sweep(&mut sweep));
            in_vain.sweep(&mut sweep);
        }
        Rc::make_mut(&mut self.carry).sweep(&mut sweep);
        self.tables = sweep.finish();
        self.notes.forget();
    }

    /// What would have come after the end of the execution was seen elsewhere.
    pub fn is_incomplete(&mut self) {
        Rc::make_mut(&mut self.carry).set_partial();
    }

    /// What would have come after the end of the execution comes from the state at a position, which it has come back to.
    pub fn comes_back_to(&mut self, position: usize) {
        Rc::make_mut(&mut self.carry).comes_back_to(position);
    }

    /// What would have come after a node was seen elsewhere.
    pub fn is_partial_at(&mut self, position: usize) {
        if let Some(node) = self.nodes.get_mut(position) {
            Rc::make_mut(&mut node.total).set_partial();
        }
    }

    /// Whether a signal need not wake `thread`, because it has been explored how it wakes a twin of it.
    pub fn may_skip_way(
        &mut self,
        position: usize,
        thread: ThreadId,
        signal: (ThreadId, Op),
        history: &mut History,
    ) -> Answer {
        let mut ask = false;
        for i in 0..self.nodes[position].ways.len() {
            let (twin, summary) = self.nodes[position].ways[i].clone();
            let places = Places { position, since: position };
            match self.try_skip(places, (thread, twin), signal, summary, history) {
                Answer::No => {}
                Answer::Ask => ask = true,
                skip => return skip,
            }
        }
        self.counters.asked += ask as u64;
        if ask { Answer::Ask } else { Answer::No }
    }

    /// A thread's branch has been explored in all ways.
    pub fn finish_branch(&mut self, position: usize, thread: ThreadId, op: Op) {
        let fresh = self.spare.pop().unwrap_or_default();
        let node = &mut self.nodes[position];
        node.ways.clear();
        let summary = std::mem::replace(&mut node.current, fresh);
        node.explored.push(Explored { thread, op, summary });
    }

    /// All of a node's branches have been explored. `fruitful`: not only turns in vain.
    pub fn finish_node(&mut self, position: usize, fruitful: bool) {
        let node = &mut self.nodes[position];
        std::mem::swap(&mut self.carry, &mut node.total);
        clear(&mut node.total);
        if !fruitful {
            Rc::make_mut(&mut self.carry).merge(&node.in_vain, &mut self.tables);
        }
        while let Some(mut explored) = self.nodes[position].explored.pop() {
            take_in(&mut self.carry, &mut explored.summary, &mut self.tables);
            self.put_back(explored.summary);
        }
        // Of many threads one execution alone leaves much behind.
        self.sweep(position);
    }

    /// Nothing is to be run from a node: all that could have been was left out.
    pub fn finish_blocked(&mut self, position: usize) {
        let left_out = &mut self.nodes[position].total;
        take_in(&mut self.carry, left_out, &mut self.tables);
        clear(left_out);
    }

    /// Takes the answer to a question asked in the state before `position`.
    pub fn remember(&mut self, memory: &[ThreadMemory], position: usize) {
        self.past.locals.remember(memory, position);
    }

    /// Whether the branch of `thread` at a node may be left out. `sleepers`: threads asleep there since they were explored
    /// at the given positions.
    pub fn may_skip(
        &mut self,
        position: usize,
        thread: ThreadId,
        sleepers: &[(ThreadId, usize)],
        history: &mut History,
    ) -> Answer {
        let mut ask = false;
        let here = self.nodes.get(position).map_or(0, |n| n.explored.len());
        for i in 0..here {
            let explored = &self.nodes[position].explored[i];
            let (twin, op, summary) = (explored.thread, explored.op, explored.summary.clone());
            match self.try_skip(Places { position, since: position }, (thread, twin), (twin, op), summary, history) {
                Answer::No => {}
                Answer::Ask => ask = true,
                skip => return skip,
            }
        }
        let sleepers = if self.rule.sleepers { sleepers } else { &[] };
        for &(twin, since) in sleepers {
            // A summary does not tell of threads that were created beyond its state.
            if history.creates_since(since) {
                continue;
            }
            let Some(explored) = self.nodes[since].explored.iter().find(|e| e.thread == twin) else { continue };
            let (op, summary) = (explored.op, explored.summary.clone());
            match self.try_skip(Places { position, since }, (thread, twin), (twin, op), summary, history) {
                Answer::No => {}
                Answer::Ask => ask = true,
                skip => return skip,
            }
        }
        self.counters.asked += ask as u64;
        if ask { Answer::Ask } else { Answer::No }
    }

    fn try_skip(
        &mut self,
        Places { position, since }: Places,
        (thread, twin): (ThreadId, ThreadId),
        (actor, op): (ThreadId, Op),
        summary: Rc<Summary>,
        history: &mut History,
    ) -> Answer {
        if !self.past.locals.may_be_twins(twin, thread) || history.has_global() {
            return Answer::No;
        }
        // A waiter that may give up is like no other that has been woken, though neither has moved since it began to wait.
        if history.may_give_up(twin) != history.may_give_up(thread) {
            return Answer::No;
        }
        let exchange = match self.past.locals.twins(twin, thread, position) {
            Twins::Yes(exchange) => exchange,
            Twins::No => return Answer::No,
            Twins::Ask => return Answer::Ask,
        };
        let (actor, mut op) = (exchange.thread(actor), exchange.op(&op));
        if since != position && matches!(op.kind, OpKind::SemWait | OpKind::SemTaken) {
            // Which post lets it through may be another by now.
            op.arg = NO_POST;
        }
        if !summary.is_whole(since, since != position) {
            return Answer::No;
        }
        self.past.catch_up(history);
        let matters = |past: &mut Past<W>| {
            let are_apart = summary.are_apart(twin, thread) || summary.orders(&exchange);
            are_apart || past.between_matters(&summary, &self.tables)
        };
        if self.rule.joins && matters(&mut self.past) {
            self.counters.told_apart += 1;
            return Answer::No;
        }
        let moved = history.moved_since(since);
        let branch = Branch { summary: &summary, tables: &self.tables, since: since as u32, moved: &moved, history };
        if !self.past.is_alike(&branch, &exchange, (actor, &op), &self.rule) {
            self.counters.past_differs += 1;
            return Answer::No;
        }
        self.counters.skipped += 1;
        Answer::Skip(Skip { exchange, op, actor, summary, since })
    }

    /// The events that would have raced with the skipped branch, each with the thread to run instead. `settled`: whether that thread
    /// is to be run there anyway.
    pub fn mirrored_races(
        &self,
        position: usize,
        skip: &Skip,
        history: &mut History,
        settled: &Settled<'_>,
        races: &mut Vec<(usize, ThreadId)>,
    ) {
        if !self.rule.visible {
            return;
        }
        let moved = history.moved_since(skip.since);
        debug_assert!(position >= skip.since);
        let (since, exchange) = (skip.since as u32, &skip.exchange);
        let first = (skip.actor, skip.op);
        for (thread, op, origin) in skip.summary.visible(&self.tables) {
            let origin = self.tables.origin(origin);
            if origin.last <= history.number(thread) {
                continue;
            }
            let before = origin.after_from(since, thread, &moved, history).exchanged(exchange.one, exchange.other);
            let via = origin.via(since, history.number(thread)).map(|v| self.past.object(v.place));
            // The operation itself is no crossing: what it acquires is what is asked for. Who releases has acquired before.
            let releases = matches!(op.access(), Some(Access::Release | Access::SharedRelease));
            let through = via.filter(|object| *object != op.object || releases).map(|object| exchange.object(object));
            let past = Known::new(exchange.thread(thread), before, through);
            history.uncovered(&exchange.op(op), &past, &first, settled, races);
        }
        history.forget_known();
    }

    /// Adds the way that was left out to its branch's summary.
    pub fn add_skipped_way(&mut self, position: usize, skip: &Skip, history: &mut History) {
        let mut left_out = self.left_out(skip, history);
        take_in(&mut self.nodes[position].current, &mut left_out, &mut self.tables);
        self.put_back(left_out);
    }

    /// Adds the branch that was left out to its node's summary.
    pub fn add_skipped(&mut self, position: usize, skip: &Skip, history: &mut History) {
        let mut left_out = self.left_out(skip, history);
        take_in(&mut self.nodes[position].total, &mut left_out, &mut self.tables);
        self.put_back(left_out);
    }

    fn left_out(&mut self, skip: &Skip, history: &mut History) -> Rc<Summary> {
        let mut left_out = self.spare.pop().unwrap_or_default();
        let mut state = LeftOut::new(skip, &mut self.past, history, &mut self.notes);
        skip.summary.exchanged(&mut state, &mut self.tables, Rc::make_mut(&mut left_out));
        left_out
    }
}
