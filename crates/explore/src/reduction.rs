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

use crate::explorer::{Explorer, Statistics};
use crate::history::{History, Race};
use crate::tree::{Node, Tree};
use symdpor_trace::{End, Execution, PendingOp, Plan, ThreadSet};

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
    races: Vec<Race>,
    statistics: Statistics,
}

impl<S: Strategy> Default for Reduction<S> {
    fn default() -> Self {
        Reduction {
            strategy: S::default(),
            tree: Tree::new(S::SLEEP_SETS),
            history: History::default(),
            races: Vec::new(),
            statistics: Statistics::default(),
        }
    }
}

impl<S: Strategy> Reduction<S> {
    pub fn new() -> Self {
        Reduction::default()
    }

    fn analyse(&mut self, execution: &Execution) {
        let Some(first_new) = self.tree.first_new(&execution.steps) else { return };
        for (position, step) in execution.steps.iter().enumerate().skip(first_new) {
            self.tree.push(position, step);
            self.history.push(step.thread, &step.op, &mut self.races);
            self.reverse_races();
        }
        for pending in &execution.pending {
            self.analyse_pending(pending, execution);
            self.reverse_races();
        }
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

    fn reverse_races(&mut self) {
        for race in self.races.drain(..) {
            self.strategy.reverse(self.tree.node_mut(race.earlier), &race);
        }
    }
}

impl<S: Strategy> Explorer for Reduction<S> {
    fn first(&mut self) -> Plan {
        Plan::default()
    }

    fn next(&mut self, last: &Execution) -> Option<Plan> {
        self.statistics.count(last);
        self.analyse(last);
        let plan = self.tree.branch();
        self.history.truncate(self.tree.depth().saturating_sub(1));
        plan
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn depth(&self) -> usize {
        self.tree.depth()
    }
}
