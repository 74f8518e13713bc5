//! How many executions the search will have had in the end.
//!
//! Knuth, "Estimating the efficiency of backtrack programs" (1975): a path through the tree tells of the whole if what was not taken is
//! like what was. Here the path is the current execution, and of each of its nodes it is known how many executions the branches took
//! that are done. A branch that is still to be taken is expected to be like the mean of those and of the current one, which
//! is estimated in the same way from the node below.
//!
//! Not covered: backtrack sets grow while the search is below them, so early estimates are too low; and where one branch is large and
//! its siblings are small the estimate is too high until the large one is done. Tried, and no better: expecting as many branches
//! as nodes at the same depth have had, and scaling by what later branches took so far against what was expected of them.

use symdpor_trace::saved;

/// What is kept of a node.
#[derive(Clone, Copy, Default)]
pub struct Effort {
    /// How many executions there had been when it was made, and when its current branch was taken.
    opened: u64,
    taken: u64,
    /// Branches that are done.
    done: u32,
}

#[derive(Default)]
pub struct Estimate {
    executions: u64,
}

impl Estimate {
    pub fn count(&mut self) {
        self.executions += 1;
    }

    /// Of a new node.
    pub fn open(&self) -> Effort {
        Effort { opened: self.executions, taken: self.executions, done: 0 }
    }

    /// The current branch of a node is done; another may be taken.
    pub fn finish_branch(&self, effort: &mut Effort) {
        // One that took no execution was not there.
        if self.executions > effort.taken {
            effort.done += 1;
            effort.taken = self.executions;
        }
    }

    /// Of all executions. `path`: the nodes, the deepest last, each with the number of branches that are known to be left.
    pub fn total<'a>(path: impl DoubleEndedIterator<Item = (&'a Effort, usize)>) -> f64 {
        let mut below = 1.0;
        for (effort, left) in path.rev() {
            let sofar = (effort.taken - effort.opened) as f64 + below;
            let taken = f64::from(effort.done) + 1.0;
            below = sofar + left as f64 * sofar / taken;
        }
        below
    }
}

saved!(Effort { opened, taken, done });
saved!(Estimate { executions });
