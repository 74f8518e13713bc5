//! The figures, as they are kept in a file.

use serde::{Deserialize, Serialize};
use std::path::Path;

pub const VERSION: u32 = 1;

#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Results {
    pub version: u32,
    pub machine: Machine,
    /// `symdpor run` on a program with one execution, from the start of the process to its end, in milliseconds.
    pub start_to_verdict_ms: f64,
    pub measurements: Vec<Measurement>,
    pub micro: Vec<Micro>,
}

/// What the figures depend on.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Machine {
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Processes that wanted to run, averaged over a minute, before and after.
    pub load: [f64; 2],
    pub quick: bool,
}

/// A program in one size. Times are per execution run, including those that were cut off as redundant, and without
/// the beginning of the search, in which the program starts.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Measurement {
    pub program: String,
    pub size: String,
    pub executions: u64,
    pub blocked: u64,
    pub transitions: u64,
    pub wall_us: f64,
    /// Of controller and worker together.
    pub cpu_us: f64,
    pub transitions_per_s: f64,
    /// The search with one execution, including the start of the program.
    pub start_ms: f64,
    pub controller_kib: u64,
    pub worker_kib: u64,
    /// fork, exit and wait of a process of the same size.
    pub fork_us: f64,
    /// The same with 20 pages written by the child.
    pub fork_writing_us: f64,
    /// The program's own instructions, uninstrumented, threads called one after the other.
    pub own_us: Option<f64>,
}

impl Measurement {
    /// How many executions can be had for a fork.
    pub fn per_fork(&self) -> f64 {
        self.fork_writing_us / self.wall_us
    }

    /// How many times its own instructions an execution takes.
    pub fn slowdown(&self) -> Option<f64> {
        self.own_us.map(|own| self.wall_us / own)
    }

    pub fn is_same_case(&self, other: &Measurement) -> bool {
        self.program == other.program && self.size == other.size
    }
}

/// A micro-benchmark's result, per single operation.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Micro {
    pub name: String,
    pub ns: f64,
}

pub fn read(path: &Path) -> crate::tools::Result<Results> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let results: Results = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    if results.version != VERSION {
        return Err(format!("{}: version {} instead of {VERSION}", path.display(), results.version).into());
    }
    Ok(results)
}

pub fn write(path: &Path, results: &Results) -> crate::tools::Result<()> {
    let text = serde_json::to_string_pretty(results)? + "\n";
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()).into())
}
