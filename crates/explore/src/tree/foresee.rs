//! What the next plan will probably be, before it is known which branches may be left out.
//!
//! Whoever seems to be like a thread that has been explored from a node, or sleeps there, is taken to be left out. That is mostly so. Nothing
//! depends on it: the worker begins with this plan, and if the search wants another one, it begins anew.

use super::{Node, Sleeper, Tree};
use symdpor_trace::{Choice, Plan, ThreadId, ThreadSet};

/// Whether two threads seem to be alike before the event at a position.
pub type Alike<'a> = &'a dyn Fn(usize, ThreadId, ThreadId) -> bool;

/// A node as it will probably be when its current branch is done.
struct Foreseen {
    done: ThreadSet,
    sleep: ThreadSet,
    failed: ThreadSet,
    in_vain: ThreadSet,
}

impl Foreseen {
    fn new<'a>(node: &Node, sleepers: impl Iterator<Item = &'a Sleeper>) -> Foreseen {
        let (mut failed, mut in_vain) = (ThreadSet::new(), ThreadSet::new());
        for sleeper in sleepers {
            _ = sleeper.op.has_failed() && failed.insert(sleeper.thread);
            _ = sleeper.in_vain && node.sleep.contains(sleeper.thread) && in_vain.insert(sleeper.thread);
        }
        Foreseen { done: node.done.clone(), sleep: node.sleep.clone(), failed, in_vain }
    }

    /// The current branch is explored.
    fn finish(&mut self, node: &Node, thread: ThreadId) {
        self.sleep.insert(thread);
        _ = node.op.is_some_and(|op| op.has_failed()) && self.failed.insert(thread);
        _ = node.in_vain && self.in_vain.insert(thread);
    }

    /// The thread that an explored or sleeping one seems to be like.
    fn twin(&self, seems: impl Fn(ThreadId) -> bool) -> Option<ThreadId> {
        self.done.iter().chain(self.sleep.iter()).find(|other| seems(*other))
    }

    fn leave_out(&mut self, thread: ThreadId, twin: ThreadId) {
        self.done.insert(thread);
        self.sleep.insert(thread);
        _ = self.failed.contains(twin) && self.failed.insert(thread);
        _ = self.in_vain.contains(twin) && self.in_vain.insert(thread);
    }

    /// The next thread to be explored, once those that seem to be like others are left out.
    fn next(&mut self, node: &Node, alike: &dyn Fn(ThreadId, ThreadId) -> bool) -> Option<ThreadId> {
        while let Some(thread) = node.backtrack.first_outside(&self.done, &self.sleep) {
            let Some(twin) = self.twin(|other| alike(thread, other)) else { return Some(thread) };
            self.leave_out(thread, twin);
        }
        None
    }
}

impl Tree {
    /// What the next plan will probably be, if the current execution has been looked at to its end.
    pub fn foreseen(&self, alike: Alike<'_>) -> Option<Plan> {
        let mut branches = (0..self.choices.len()).rev().filter_map(|position| {
            let (choice, node) = self.branch_of(position, alike)?;
            Some((position, choice, node))
        });
        let (position, choice, node) = branches.next()?;
        // How much of it stays the same after that is known no better.
        let kept = branches.next().map_or(0, |(position, ..)| position);
        let choices = self.choices[..position].iter().copied().chain([choice]).collect();
        if !self.use_sleep {
            return Some(Plan { choices, kept: Some(kept), ..Plan::default() });
        }
        let Foreseen { sleep, failed, in_vain, .. } = node;
        Some(Plan { choices, sleep, failed, ask: false, stops_in_vain: true, in_vain, kept: Some(kept) })
    }

    /// What there will be to explore from a node next, and what will sleep there.
    fn branch_of(&self, position: usize, alike: Alike<'_>) -> Option<(Choice, Foreseen)> {
        let (node, current) = (&self.nodes[position], self.choices[position]);
        let has_more = self.has_more_ways(position);
        if !has_more && self.candidate(position).is_none() {
            return None;
        }
        let mut foreseen = Foreseen::new(node, self.sleepers_of(position));
        if has_more {
            return Some((Choice { alternative: current.alternative + 1, ..current }, foreseen));
        }
        if !node.cut && self.use_sleep {
            foreseen.finish(node, current.thread);
        }
        let thread = foreseen.next(node, &|one, other| alike(position, one, other))?;
        foreseen.sleep.remove(thread);
        Some((Choice { thread, alternative: 0 }, foreseen))
    }
}
