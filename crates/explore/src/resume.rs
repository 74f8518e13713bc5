//! Putting a search aside and taking it up again, exactly where it was.
//!
//! Between two executions a search is its tree, what symmetry knows, and its counts; the history follows from the events of the
//! current execution and is built anew. Nothing else of it is left out, so the resumed search gives the same plans as the one
//! that was not interrupted: the tests compare them after every execution.

use crate::determinism::{Checked, Determinism};
use crate::explorer::{Explorer, Statistics};
use crate::history::History;
use crate::none::AllInterleavings;
use crate::reduction::{Reduction, Strategy, Waiting};
use crate::tree::Tree;
use symdpor_trace::saved::{Reader, Saved};
use symdpor_trace::{Op, Plan, Step, ThreadId, saved};

/// A search that can be interrupted after [`Explorer::first`] or [`Explorer::next`] have answered.
pub trait Resume: Explorer {
    fn save(&self, into: &mut Vec<u8>);

    /// Becomes what was saved by a search of the same kind. None, and `self` as before, if the bytes are not such a one's.
    #[must_use]
    fn load(&mut self, from: &mut Reader<'_>) -> Option<()>;
}

impl<E: Resume + ?Sized> Resume for Box<E> {
    fn save(&self, into: &mut Vec<u8>) {
        (**self).save(into);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Option<()> {
        (**self).load(from)
    }
}

saved!(Statistics { executions, blocked, dropped, transitions, longest });

impl Resume for AllInterleavings {
    fn save(&self, into: &mut Vec<u8>) {
        let AllInterleavings { tree, statistics, endless } = self;
        tree.save(into);
        statistics.save(into);
        endless.save(into);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Option<()> {
        let (tree, statistics, endless) = (Tree::load(from)?, Statistics::load(from)?, bool::load(from)?);
        *self = AllInterleavings { tree, statistics, endless };
        Some(())
    }
}

impl Saved for Waiting {
    fn save(&self, into: &mut Vec<u8>) {
        match self {
            Waiting::Way => 0u8.save(into),
            Waiting::Branch => 1u8.save(into),
            Waiting::Opened(execution) => {
                2u8.save(into);
                execution.save(into);
            }
            Waiting::InVain => 3u8.save(into),
            Waiting::InVainAtEnd => 4u8.save(into),
        }
    }

    fn load(from: &mut Reader<'_>) -> Option<Waiting> {
        match u8::load(from)? {
            0 => Some(Waiting::Way),
            1 => Some(Waiting::Branch),
            2 => Saved::load(from).map(Waiting::Opened),
            3 => Some(Waiting::InVain),
            4 => Some(Waiting::InVainAtEnd),
            _ => None,
        }
    }
}

impl<S: Strategy> Resume for Reduction<S> {
    fn save(&self, into: &mut Vec<u8>) {
        // What is found is dealt with before the next plan is given.
        let Reduction { strategy: _, tree, history, symmetry, races: _, mirrored: _, sleepers: _, .. } = self;
        let Reduction { statistics, waiting, inquiry, suspects, endless, .. } = self;
        S::SLEEP_SETS.save(into);
        symmetry.is_some().save(into);
        tree.save(into);
        let events = (0..history.len()).filter_map(|p| history.event(p)).map(|(thread, op)| (thread, *op));
        events.collect::<Vec<_>>().save(into);
        if let Some(symmetry) = symmetry {
            symmetry.save(tree.depth(), into);
        }
        statistics.save(into);
        waiting.save(into);
        inquiry.save(into);
        suspects.save(into);
        endless.save(into);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Option<()> {
        let same_kind = (bool::load(from)?, bool::load(from)?) == (S::SLEEP_SETS, self.symmetry.is_some());
        if !same_kind {
            return None;
        }
        let tree = Tree::load(from)?;
        let events: Vec<(ThreadId, Op)> = Vec::load(from)?;
        let symmetry = match &self.symmetry {
            Some(symmetry) => Some(symmetry.load(from)?),
            None => None,
        };
        let (statistics, waiting) = Saved::load(from)?;
        let (inquiry, suspects) = Saved::load(from)?;
        let endless = bool::load(from)?;
        let history = History::again(&events);
        let rest = Reduction::default();
        *self = Reduction { tree, history, symmetry, statistics, waiting, inquiry, suspects, endless, ..rest };
        Some(())
    }
}

impl<E: Resume> Resume for Checked<E> {
    fn save(&self, into: &mut Vec<u8>) {
        let Checked { inner, plan, determinism, divergence: _ } = self;
        let Determinism { steps, pending } = determinism;
        inner.save(into);
        plan.save(into);
        steps.save(into);
        pending.save(into);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Option<()> {
        self.inner.load(from)?;
        self.plan = Plan::load(from)?;
        self.determinism = Determinism { steps: Vec::load(from)?, pending: Vec::load(from)? };
        Some(())
    }
}

impl<E: Resume> Checked<E> {
    /// The plan that was given last.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The steps of the last execution.
    pub fn last_steps(&self) -> &[Step] {
        &self.determinism.steps
    }
}
