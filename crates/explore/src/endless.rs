//! Livelocks: states from which no end can be reached.
//!
//! The search has found a state that all executions from it came back to. It has left out some, because they are covered
//! elsewhere; whether those lead to an end is found out here, by running all interleavings from that state until one does.

use crate::tree::Tree;
use symdpor_trace::{Choice, End, Execution, OpKind, Plan, saved};

/// Larger livelocks are not taken for one.
const MOST: u32 = 20_000;

pub struct Inquiry {
    /// The way to the state.
    way: Vec<Choice>,
    tree: Tree,
    runs: u32,
}

saved!(Inquiry { way, tree, runs });

pub enum Verdict {
    /// Another execution has to be run.
    Open(Plan),
    /// No execution comes to an end.
    Endless,
    /// Some does, or may.
    Ends,
}

/// Whether a thread is about to end the process. It may be waiting for the others, but not for ever if they take turns.
pub fn may_exit(execution: &Execution) -> bool {
    execution.pending.iter().any(|p| p.op.kind == OpKind::ProcessExit)
}

impl Inquiry {
    pub fn new(way: Vec<Choice>) -> Inquiry {
        Inquiry { way, tree: Tree::new(false), runs: 0 }
    }

    pub fn first(&self) -> Plan {
        Plan { choices: self.way.clone(), ..Plan::default() }
    }

    pub fn next(&mut self, last: &Execution) -> Verdict {
        self.runs += 1;
        let comes_back = !may_exit(last) && matches!(last.end, End::Repeated(since) if since >= self.way.len());
        let Some(first_new) = self.tree.first_new(&last.steps).filter(|_| comes_back && self.runs < MOST) else {
            return Verdict::Ends;
        };
        for (position, step) in last.steps.iter().enumerate().skip(first_new) {
            let node = self.tree.push(position, step);
            if position >= self.way.len() {
                node.backtrack.clone_from(&node.enabled);
            }
        }
        while let Some(position) = self.tree.depth().checked_sub(1).filter(|&p| p >= self.way.len()) {
            if self.tree.next_alternative(position) {
                return Verdict::Open(self.tree.plan());
            }
            self.tree.finish_branch(position);
            if let Some(thread) = self.tree.candidate(position) {
                self.tree.take(position, thread);
                return Verdict::Open(self.tree.plan());
            }
            self.tree.pop();
        }
        Verdict::Endless
    }
}
