//! What the worker is asked to run.

use crate::thread::{ThreadId, ThreadSet};
use serde::{Deserialize, Serialize};

/// The thread that makes the next transition, and which way it goes where there are several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Choice {
    pub thread: ThreadId,
    pub alternative: u16,
}

/// The first choices of an execution. After them the *default rule* chooses among the enabled threads that do not sleep:
/// the thread of the last step if it is among them and has not yielded in it; otherwise the lowest-numbered
/// one above the thread of the last step after a yield, and the lowest-numbered one in all other cases. Alternative 0.
/// Threads that are told to be like one that sleeps come last: to run them is redundant, most likely.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    pub choices: Vec<Choice>,
    /// Threads asleep in the state *before the last choice* (in the initial state for an empty plan). A sleeping thread
    /// wakes as soon as a step, beginning with that last choice, depends on its pending operation (see `failed`). The default rule
    /// never chooses a sleeping thread; if no other is enabled the execution is cut off as redundant.
    pub sleep: ThreadSet,
    /// Of the sleeping threads, those whose operation failed where it was explored (an exchange that found another value, say). It
    /// fails for as long as they sleep: what they depend on until then is what the failed operation depends on.
    pub failed: ThreadSet,
    /// Whether to stop before the last choice, and to tell what memory the threads have to themselves there.
    pub ask: bool,
    /// Whether to stop after a step, from the last choice on, with which a thread comes round to where it was, having changed
    /// nothing and found what it found before.
    pub stops_in_vain: bool,
    /// Of the sleeping threads, those whose last step was such a one. They wake also if what they looked at is accessed by plain
    /// accesses, and go next then.
    pub in_vain: ThreadSet,
    /// If there will be another plan after this one: with so many of its choices that begins, as far as is known now. Only a
    /// hint: the worker can make them while the execution is being looked at.
    pub kept: Option<usize>,
}

impl Plan {
    /// Whether it leads to the same execution as another: hints make no difference.
    pub fn asks_the_same(&self, other: &Plan) -> bool {
        let Plan { choices, sleep, failed, ask, stops_in_vain, in_vain, kept: _ } = self;
        let stops = (*ask, *stops_in_vain) == (other.ask, other.stops_in_vain);
        let asleep = *sleep == other.sleep && *failed == other.failed && *in_vain == other.in_vain;
        stops && asleep && *choices == other.choices
    }
}
