//! One execution, as the explorers see it.

use crate::footprint::{Footprints, ThreadMemory};
use crate::thread::{ThreadId, ThreadSet};
use symdpor_abi::op::Op;

/// One executed transition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    pub thread: ThreadId,
    pub op: Op,
    /// How many ways the operation could have gone in this state (whom a signal wakes), at least 1.
    pub alternatives: u16,
    /// Which one it went.
    pub alternative: u16,
    /// The threads enabled in the state before it.
    pub enabled: ThreadSet,
}

/// What an unfinished thread was about to do when the execution ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PendingOp {
    pub thread: ThreadId,
    pub op: Op,
    pub enabled: bool,
}

/// Why there are no more steps, as far as the search cares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Nothing was left to do: all threads ended, the process exited, or there is a deadlock.
    Complete,
    /// Stopped at an error or a limit: what the pending threads would have done next was not seen.
    Cut,
    /// Only sleeping threads were enabled.
    SleepBlocked,
    /// The plan asked for the threads' memory.
    Asked,
    /// The state is the one before this step again.
    Repeated(usize),
    /// With its last step a thread came round in vain, and the plan said to stop there: the state is the one before that step.
    InVain,
}

/// A whole execution: the plan it was given, then what the default rule chose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Execution {
    pub steps: Vec<Step>,
    /// One per thread that has not ended, by thread number.
    pub pending: Vec<PendingOp>,
    pub end: End,
    /// Whether an assumption of the program's does not hold in it: it shows nothing.
    pub dropped: bool,
    /// Of the steps that were not seen before. Empty unless symmetry is looked for.
    pub footprints: Footprints,
    /// The threads' memory, if the plan asked for it.
    pub memory: Vec<ThreadMemory>,
}
