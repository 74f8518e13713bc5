//! What the partial order reductions have in common: find the races of each execution, and see to it that each is run
//! the other way round as well.
//!
//! Only the steps after the branching point are looked at. An operation's races are found when it is executed, and at
//! the end of the execution for those operations that were not:
//!
//! - A blocked operation (a lock that is held) is looked at as if it were executed, at sleep-blocked ends too.
//! - What ends the execution, be it the end of the process or an error, keeps all others from going on. So every thread
//!   that could have run in its place is to be explored from that state.
//! - A sleeping thread's operation has been explored elsewhere, with its races.
//!
//! With symmetry, a branch may be left out because its twin's has been explored (`symmetry`): a twin in the same node,
//! or one that sleeps there. In the second case the execution may have gone past the node already, since it was the worker that
//! chose the thread: then the rest of it is not looked at.

use crate::explorer::{Explorer, Statistics};
use crate::history::{History, Race};
use crate::symmetry::rule::Rule;
use crate::symmetry::{Counters, Skip, Symmetry};
use crate::tree::{Node, Tree};
use symdpor_trace::{End, Execution, Op, PendingOp, Plan, ThreadId, ThreadSet};

/// How an algorithm has a race reversed.
pub trait Strategy: Default {
    const SLEEP_SETS: bool;

    /// Adds to the node before the race's earlier event what it takes to run the later operation first.
    fn reverse(&mut self, node: &mut Node, race: &Race);
}

/// A search that reverses races.
pub struct Reduction<S> {
    strategy: S,
    tree: Tree,
    history: History,
    symmetry: Option<Symmetry>,
    races: Vec<Race>,
    mirrored: Vec<(usize, ThreadId)>,
    sleepers: Vec<(ThreadId, usize)>,
    statistics: Statistics,
}

impl<S: Strategy> Default for Reduction<S> {
    fn default() -> Self {
        Reduction {
            strategy: S::default(),
            tree: Tree::new(S::SLEEP_SETS),
            history: History::default(),
            symmetry: None,
            races: Vec::new(),
            mirrored: Vec::new(),
            sleepers: Vec::new(),
            statistics: Statistics::default(),
        }
    }
}

/// How far an execution was looked at.
enum Analysed {
    ToItsEnd,
    /// Up to this state, from which another thread is to be run.
    UpTo,
    /// Up to this state, from which nothing is to be run.
    Blocked,
}

impl<S: Strategy> Reduction<S> {
    pub fn new() -> Self {
        Reduction::default()
    }

    /// Leaves out branches by symmetry.
    pub fn with_symmetry(rule: Rule) -> Self {
        Reduction { symmetry: Some(Symmetry::new(rule)), ..Reduction::default() }
    }

    fn analyse(&mut self, execution: &Execution) -> Analysed {
        let Some(first_new) = self.tree.first_new(&execution.steps) else { return Analysed::ToItsEnd };
        for (position, step) in execution.steps.iter().enumerate().skip(first_new) {
            let opened = position == self.tree.depth();
            self.tree.push(position, step);
            if opened && let Some(symmetry) = &mut self.symmetry {
                symmetry.open(position);
                if self.may_skip(position, step.thread, true) {
                    return self.elsewhere(position, execution);
                }
            }
            if let Some(symmetry) = &mut self.symmetry {
                symmetry.push(position, execution);
            }
            self.history.push(step.thread, &step.op, &mut self.races);
            self.reverse_races();
        }
        for pending in &execution.pending {
            self.analyse_pending(pending, execution);
            self.reverse_races();
        }
        if execution.end == End::Cut {
            self.tree.cut();
        }
        self.end(execution, execution.steps.len());
        Analysed::ToItsEnd
    }

    fn analyse_pending(&mut self, pending: &PendingOp, execution: &Execution) {
        if execution.end == End::SleepBlocked && pending.enabled {
            return;
        }
        let ends = |step: &&symdpor_trace::Step| execution.end == End::Cut || step.op.is_global();
        match execution.steps.last().filter(ends) {
            Some(last) if last.enabled.contains(pending.thread) => self.races.push(Race {
                earlier: execution.steps.len() - 1,
                thread: pending.thread,
                initials: ThreadSet::from_iter([pending.thread]),
                first: pending.thread,
            }),
            _ => self.history.races(pending.thread, &pending.op, &mut self.races),
        }
    }

    /// The thread that the worker chose in a new node is the twin of one that sleeps there: looks for another.
    fn elsewhere(&mut self, position: usize, execution: &Execution) -> Analysed {
        while let Some(thread) = self.tree.awake(position) {
            self.tree.take(position, thread);
            if !self.may_skip(position, thread, true) {
                return Analysed::UpTo;
            }
        }
        for (thread, op) in self.pending_at(position, execution) {
            self.history.races(thread, &op, &mut self.races);
            self.reverse_races();
        }
        self.end(execution, position);
        self.tree.pop();
        Analysed::Blocked
    }

    /// The blocked operations in the state before the step at `position`.
    fn pending_at(&self, position: usize, execution: &Execution) -> Vec<(ThreadId, Op)> {
        let (rest, at_end) = (&execution.steps[position..], position == execution.steps.len());
        let mut seen = ThreadSet::new();
        let mut pending: Vec<(ThreadId, Op)> = Vec::new();
        let later = rest.iter().map(|s| (s.thread, s.op));
        for (thread, op) in later.chain(execution.pending.iter().map(|p| (p.thread, p.op))) {
            let enabled = rest.first().is_some_and(|s| s.enabled.contains(thread));
            if seen.insert(thread) && !enabled && self.exists(thread) && !self.history.is_waiting(thread) {
                pending.push((thread, op));
            }
        }
        if at_end {
            let skip = |p: &&PendingOp| execution.end != End::SleepBlocked || !p.enabled;
            return execution.pending.iter().filter(skip).map(|p| (p.thread, p.op)).collect();
        }
        pending
    }

    fn exists(&self, thread: ThreadId) -> bool {
        thread == ThreadId::MAIN || self.history.exists(thread)
    }

    /// Tells symmetry that an execution is looked at up to the state before `position`.
    fn end(&mut self, execution: &Execution, position: usize) {
        if self.symmetry.is_none() {
            return;
        }
        let pending = self.pending_at(position, execution);
        let alive: ThreadSet = execution.steps[position..]
            .iter()
            .map(|s| s.thread)
            .chain(execution.pending.iter().map(|p| p.thread))
            .collect();
        let ended = (0..self.history.threads())
            .map(|t| ThreadId(t as u16))
            .filter(|t| self.exists(*t) && !alive.contains(*t))
            .collect();
        if let Some(symmetry) = &mut self.symmetry {
            symmetry.end(&pending, &ended, &mut self.history);
        }
    }

    fn reverse_races(&mut self) {
        for race in self.races.drain(..) {
            self.strategy.reverse(self.tree.node_mut(race.earlier), &race);
        }
    }

    /// Leaves out the branch of a thread if it may be.
    fn may_skip(&mut self, position: usize, thread: ThreadId, opened: bool) -> bool {
        let Some(symmetry) = &mut self.symmetry else { return false };
        self.sleepers.clear();
        self.tree.inherited(position, &mut self.sleepers);
        let Some(skip) = symmetry.may_skip(position, thread, &self.sleepers, &mut self.history) else { return false };
        if opened {
            symmetry.counters.cut += 1;
        }
        self.skip(position, thread, &skip);
        true
    }

    fn skip(&mut self, position: usize, thread: ThreadId, skip: &Skip) {
        self.history.races(thread, &skip.op, &mut self.races);
        self.reverse_races();
        if let Some(symmetry) = &mut self.symmetry {
            symmetry.mirrored_races(position, skip, &mut self.history, &mut self.mirrored);
            symmetry.add_skipped(position, skip);
        }
        for (earlier, thread) in self.mirrored.drain(..) {
            self.tree.require(earlier, thread);
        }
        self.tree.leave_out(position, thread, skip.op, skip.since != position);
    }

    /// Takes the next branch: another way of the deepest node's operation, then another of its threads, then the node
    /// above. `None` when nothing is left.
    fn branch(&mut self) -> Option<Plan> {
        while let Some(position) = self.tree.depth().checked_sub(1) {
            if self.next_choice(position) {
                return Some(self.tree.plan());
            }
            if let Some(symmetry) = &mut self.symmetry {
                symmetry.finish_node(position);
            }
            self.tree.pop();
        }
        None
    }

    fn next_choice(&mut self, position: usize) -> bool {
        let (thread, op) = self.tree.current(position);
        if let (Some(symmetry), Some(op)) = (&mut self.symmetry, op) {
            self.history.truncate(position + 1);
            symmetry.truncate(position + 1);
            symmetry.absorb(position, thread, &op, &self.history);
            symmetry.truncate(position);
        }
        self.history.truncate(position);
        if self.tree.next_alternative(position) {
            return true;
        }
        self.tree.finish_branch(position);
        if let (Some(symmetry), Some(op)) = (&mut self.symmetry, op) {
            symmetry.finish_branch(position, thread, op);
        }
        while let Some(thread) = self.tree.candidate(position) {
            if !self.may_skip(position, thread, false) {
                self.tree.take(position, thread);
                return true;
            }
        }
        false
    }
}

impl<S: Strategy> Explorer for Reduction<S> {
    fn first(&mut self) -> Plan {
        Plan::default()
    }

    fn next(&mut self, last: &Execution) -> Option<Plan> {
        match self.analyse(last) {
            Analysed::ToItsEnd => {
                self.statistics.count(last);
                self.branch()
            }
            Analysed::UpTo => {
                self.statistics.count_cut(last);
                Some(self.tree.plan())
            }
            Analysed::Blocked => {
                self.statistics.count_cut(last);
                self.branch()
            }
        }
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn symmetry(&self) -> Counters {
        self.symmetry.as_ref().map_or(Counters::default(), |s| s.counters)
    }

    fn depth(&self) -> usize {
        self.tree.depth()
    }
}
