//! A program that was verified, as continuous integration sees it: a test that passed or not.

use crate::summary::{Summary, Verdict};
use symdpor_trace::TraceFile;

pub struct Job {
    pub name: String,
    /// What was found, or why the program could not be run.
    pub result: Result<Summary, String>,
    /// The failing execution of each error of the summary, if it could be kept.
    pub traces: Vec<Option<TraceFile>>,
    /// What was to be found: a verdict, or a kind of error.
    pub expected: String,
}

/// How a job counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Passed,
    /// Another verdict than expected.
    Failed,
    /// Not decided: a limit was reached, or the program cannot be controlled.
    Undecided(Verdict),
    /// Not run at all.
    Broken,
}

impl Job {
    pub fn outcome(&self) -> Outcome {
        let Ok(summary) = &self.result else { return Outcome::Broken };
        let found = summary.errors.iter().any(|e| e.kind.name() == self.expected);
        if summary.verdict.name() == self.expected || found {
            return Outcome::Passed;
        }
        match summary.verdict {
            verdict @ (Verdict::Incomplete | Verdict::Unsupported) => Outcome::Undecided(verdict),
            Verdict::Ok | Verdict::Error => Outcome::Failed,
        }
    }

    /// What was found instead of what was expected, in a line.
    pub fn said(&self) -> String {
        let summary = match &self.result {
            Ok(summary) => summary,
            Err(problem) => return problem.clone(),
        };
        match (summary.errors.first(), &summary.reason) {
            (Some(error), _) => error.message.clone(),
            (None, Some(reason)) => reason.clone(),
            (None, None) if self.outcome() == Outcome::Passed => "no errors".to_owned(),
            (None, None) => format!("no errors, but {} was expected", self.expected),
        }
    }
}
