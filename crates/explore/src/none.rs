//! All interleavings: every enabled thread, every way an operation can go, in every state.
//!
//! The reference that the reductions are held against. Looks at no operation at all.

use crate::endless::may_exit;
use crate::explorer::{Explorer, Statistics};
use crate::tree::Tree;
use symdpor_trace::{End, Execution, Plan};

/// See the module.
pub struct AllInterleavings {
    pub(crate) tree: Tree,
    pub(crate) statistics: Statistics,
    pub(crate) endless: bool,
}

impl AllInterleavings {
    pub fn new() -> AllInterleavings {
        AllInterleavings { tree: Tree::new(false), statistics: Statistics::default(), endless: false }
    }
}

impl Default for AllInterleavings {
    fn default() -> Self {
        AllInterleavings::new()
    }
}

impl Explorer for AllInterleavings {
    fn first(&mut self) -> Plan {
        Plan::default()
    }

    fn next(&mut self, last: &Execution) -> Option<Plan> {
        self.statistics.count(last);
        if let Some(first_new) = self.tree.first_new(&last.steps) {
            for (position, step) in last.steps.iter().enumerate().skip(first_new) {
                let node = self.tree.push(position, step);
                node.backtrack.clone_from(&node.enabled);
            }
        }
        self.tree.ended(if may_exit(last) { End::Complete } else { last.end });
        self.tree.count();
        while let Some(position) = self.tree.depth().checked_sub(1) {
            if self.tree.next_alternative(position) {
                return Some(self.tree.plan());
            }
            self.tree.finish_branch(position);
            if let Some(thread) = self.tree.candidate(position) {
                self.tree.take(position, thread);
                return Some(self.tree.plan());
            }
            self.tree.pop();
            self.endless |= !self.tree.take_endless().is_empty();
        }
        None
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn is_endless(&self) -> bool {
        self.endless
    }

    fn estimate(&self) -> Option<f64> {
        Some(self.tree.estimate())
    }

    fn depth(&self) -> usize {
        self.tree.depth()
    }
}
