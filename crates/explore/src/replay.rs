//! One given execution, once.

use crate::determinism::{Determinism, Divergence, follows};
use crate::explorer::{Explorer, Statistics};
use symdpor_trace::{Choice, Execution, Plan, Step};

/// Runs a fixed list of choices and says whether the program went along.
#[derive(Default)]
pub struct Replay {
    plan: Plan,
    expected: Option<Determinism>,
    statistics: Statistics,
    divergence: Option<Divergence>,
}

impl Replay {
    pub fn new(choices: Vec<Choice>) -> Replay {
        Replay { plan: Plan { choices, ..Plan::default() }, ..Replay::default() }
    }

    /// Runs the choices of recorded steps, and compares what is done with them.
    pub fn of(steps: Vec<Step>) -> Replay {
        let choices = steps.iter().map(|s| Choice { thread: s.thread, alternative: s.alternative }).collect();
        Replay { expected: Some(Determinism::expecting(steps)), ..Replay::new(choices) }
    }

    /// The first step that was not as recorded, once the execution has been shown.
    pub fn divergence(&self) -> Option<&Divergence> {
        self.divergence.as_ref()
    }
}

impl Explorer for Replay {
    fn first(&mut self) -> Plan {
        self.plan.clone()
    }

    fn next(&mut self, last: &Execution) -> Option<Plan> {
        self.statistics.count(last);
        self.divergence = match &mut self.expected {
            Some(recorded) => recorded.check(&self.plan, last),
            None => follows(&self.plan, last, 0),
        };
        None
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn depth(&self) -> usize {
        self.plan.choices.len()
    }
}
