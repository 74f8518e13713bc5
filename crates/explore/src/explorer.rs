//! What every search algorithm is: an oracle that turns the last execution into the next plan.

use crate::endless::may_exit;
use crate::symmetry::Counters;
use symdpor_trace::{End, Execution, Plan};

/// Who is told a guess.
pub type Guess<'a> = &'a mut dyn FnMut(&Plan);

/// A search over the executions of one program. The caller runs [`Explorer::first`], then whatever
/// [`Explorer::next`] answers to each execution, until it answers `None`: then every behaviour has been covered.
pub trait Explorer {
    /// The plan of the first execution.
    fn first(&mut self) -> Plan;

    /// The plan of the next execution, after `last` came from the plan before.
    fn next(&mut self, last: &Execution) -> Option<Plan>;

    /// The same. Where it takes long, `guess` is told what the plan will probably be, as soon as that can be said.
    fn next_guessed(&mut self, last: &Execution, guess: Guess<'_>) -> Option<Plan> {
        _ = guess;
        self.next(last)
    }

    /// What has been explored so far.
    fn statistics(&self) -> Statistics;

    /// What symmetry has done so far.
    fn symmetry(&self) -> Counters {
        Counters::default()
    }

    /// How many executions there will have been in the end, those that are cut off included, if that can be said.
    fn estimate(&self) -> Option<f64> {
        None
    }

    /// The position where the last plan branches off, for a line of progress.
    fn depth(&self) -> usize;

    /// Whether a state has been found from which all executions come back to it; the last execution was one of them.
    fn is_endless(&self) -> bool {
        false
    }
}

/// Counts over all executions that an explorer was shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Run to an end, be it an error.
    pub executions: u64,
    /// Cut off as redundant because only sleeping threads were left.
    pub blocked: u64,
    /// Those of all the others in which an assumption does not hold.
    pub dropped: u64,
    /// Transitions executed, those of replayed prefixes included.
    pub transitions: u64,
    /// Length of the longest execution.
    pub longest: usize,
}

impl Statistics {
    pub(crate) fn count(&mut self, execution: &Execution) {
        match execution.end {
            End::Complete | End::Cut if execution.dropped => self.dropped += 1,
            // The others take turns for ever: the process could as well end here.
            End::Repeated(_) if may_exit(execution) => self.executions += 1,
            End::SleepBlocked | End::Repeated(_) | End::InVain => self.blocked += 1,
            End::Complete | End::Cut => self.executions += 1,
            End::Asked => return,
        }
        self.count_steps(execution);
    }

    /// An execution that was found to be redundant afterwards.
    pub(crate) fn count_cut(&mut self, execution: &Execution) {
        self.blocked += 1;
        self.count_steps(execution);
    }

    fn count_steps(&mut self, execution: &Execution) {
        self.transitions += execution.steps.len() as u64;
        self.longest = self.longest.max(execution.steps.len());
    }
}

impl<E: Explorer + ?Sized> Explorer for &mut E {
    fn first(&mut self) -> Plan {
        (**self).first()
    }

    fn next(&mut self, last: &Execution) -> Option<Plan> {
        (**self).next(last)
    }

    fn next_guessed(&mut self, last: &Execution, guess: Guess<'_>) -> Option<Plan> {
        (**self).next_guessed(last, guess)
    }

    fn statistics(&self) -> Statistics {
        (**self).statistics()
    }

    fn symmetry(&self) -> Counters {
        (**self).symmetry()
    }

    fn estimate(&self) -> Option<f64> {
        (**self).estimate()
    }

    fn depth(&self) -> usize {
        (**self).depth()
    }

    fn is_endless(&self) -> bool {
        (**self).is_endless()
    }
}

impl<E: Explorer + ?Sized> Explorer for Box<E> {
    fn first(&mut self) -> Plan {
        (**self).first()
    }

    fn next(&mut self, last: &Execution) -> Option<Plan> {
        (**self).next(last)
    }

    fn next_guessed(&mut self, last: &Execution, guess: Guess<'_>) -> Option<Plan> {
        (**self).next_guessed(last, guess)
    }

    fn statistics(&self) -> Statistics {
        (**self).statistics()
    }

    fn symmetry(&self) -> Counters {
        (**self).symmetry()
    }

    fn estimate(&self) -> Option<f64> {
        (**self).estimate()
    }

    fn depth(&self) -> usize {
        (**self).depth()
    }

    fn is_endless(&self) -> bool {
        (**self).is_endless()
    }
}
