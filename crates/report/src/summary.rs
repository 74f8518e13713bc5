//! What a run found, in numbers.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use symdpor_trace::{FailureKind, Location};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every behaviour was explored, and none is an error.
    Ok,
    Error,
    /// A limit was reached.
    Incomplete,
    /// The program does something that cannot be controlled.
    Unsupported,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Error => "error",
            Verdict::Incomplete => "incomplete",
            Verdict::Unsupported => "unsupported",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Run to an end.
    pub executions: u64,
    /// Cut off as redundant.
    pub blocked: u64,
    /// Dropped because an assumption of the program did not hold.
    pub dropped: u64,
    /// Steps of all of them.
    pub transitions: u64,
    /// The most threads that one execution had, main included.
    pub threads: u64,
}

/// What symmetry has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SymmetryCounts {
    /// Branches left out because a twin's was explored.
    pub hits: u64,
    /// Twins whose branches were not left out: others can tell them apart, or what came before relates differently to them.
    pub told_apart: u64,
    pub past_differs: u64,
    /// Questions for the memory that threads have to themselves.
    pub questions: u64,
    /// Time that the analysis took.
    pub time: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ErrorEntry {
    pub kind: FailureKind,
    pub message: String,
    pub location: Option<Location>,
    /// None if it could not be written.
    pub trace: Option<PathBuf>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    pub verdict: Verdict,
    /// Whether every behaviour was explored.
    pub complete: bool,
    /// Which limit was reached, or what is not supported.
    pub reason: Option<String>,
    pub errors: Vec<ErrorEntry>,
    /// What limits the verdict: parts of the program that are not seen, a slow way to run it.
    pub notes: Vec<String>,
    pub counts: Counts,
    pub time: Duration,
    /// The options of the run, as they took effect.
    pub options: serde_json::Value,
    pub symmetry: SymmetryCounts,
    /// Of a search that was not finished.
    pub estimate: Option<Estimate>,
}

/// How many executions, cut off ones included, the whole search would have.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    pub likely: f64,
    pub low: f64,
    pub high: f64,
}

impl Summary {
    pub fn executions_per_second(&self) -> f64 {
        let seconds = self.time.as_secs_f64();
        if seconds > 0.0 { (self.counts.executions + self.counts.blocked) as f64 / seconds } else { 0.0 }
    }
}
