//! Threads that spin: turns in vain are not followed.
//!
//! A *turn in vain* is a step with which a thread comes round to a state of its own that it has been in, having changed nothing. An
//! execution with such a step is no different without it: the same states, at least the same data races (less is ordered). So the
//! step is treated as one that cannot be done, as if the thread waited for a lock: its races with what came before are reversed
//! as ever, then the thread sleeps until something depends on what it looked at, and another goes first.
//!
//! Unlike a lock's, whether such a step can be done is only known once it has been tried. A state from which nothing else
//! can be done is the end of an execution; whether it is a livelock is found out by letting the threads take their turns. One whose turn is
//! outdated gets on after all, since what it looked at first has changed meanwhile: then it is no end but a redundant execution, which
//! without that turn is run elsewhere.

use crate::reduction::{Reduction, Strategy, Waiting};
use symdpor_trace::{End, Execution, Plan, ThreadId};

impl<S: Strategy> Reduction<S> {
    /// A thread to be run from the last node where all that has been run came round in vain.
    pub(crate) fn instead_of_in_vain(&self, position: usize) -> Option<ThreadId> {
        self.tree.awake(position).filter(|_| !self.tree.is_fruitful(position))
    }

    /// The last node has no more branches. If it never had one but turns in vain, that was the end.
    pub(crate) fn nothing_but_in_vain(&mut self, position: usize) -> Option<Plan> {
        if self.tree.is_fruitful(position) {
            return None;
        }
        if !self.tree.is_all_in_vain(position) {
            self.suspect_at(position);
            return None;
        }
        self.waiting = Some(Waiting::InVain);
        Some(self.tree.awakened(position))
    }

    /// The same at the end of an execution where only sleeping threads are left.
    pub(crate) fn ends_in_vain(&mut self, execution: &Execution) -> Option<Plan> {
        let mut left = execution.pending.iter().filter(|p| p.enabled).map(|p| p.thread).peekable();
        let first = left.peek().copied().filter(|_| execution.end == End::SleepBlocked)?;
        if !left.all(|t| self.tree.ends_in_vain(t)) {
            return None;
        }
        self.waiting = Some(Waiting::InVainAtEnd);
        Some(self.tree.beyond(first))
    }

    /// They have been let go.
    pub(crate) fn tried_in_vain(&mut self, waiting: &Waiting, execution: &Execution) -> Option<Plan> {
        self.tree.count();
        // Without the turns that these threads were in the midst of it is another execution, which is run as well.
        let gets_on = execution.end == End::Complete;
        if gets_on {
            self.statistics.count_cut(execution);
        } else {
            self.statistics.count(execution);
        }
        match waiting {
            Waiting::InVain => {
                let position = self.tree.depth().saturating_sub(1);
                self.tree.is_dealt_with(position);
                if let Some(symmetry) = self.symmetry.as_mut().filter(|_| !gets_on) {
                    symmetry.is_partial_at(position);
                }
                self.branch_on()
            }
            _ => {
                if let Some(symmetry) = self.symmetry.as_mut().filter(|_| !gets_on) {
                    symmetry.is_incomplete();
                }
                self.branch_from_end()
            }
        }
    }
}
