//! The micro-benchmarks: what `benches/` measure and how to read the results that criterion leaves.

use crate::cases::Source;
use crate::results;
use std::path::Path;
use std::time::Duration;

/// A program to be repeated in one worker.
#[derive(Clone, Copy, Debug)]
pub struct Micro {
    pub name: &'static str,
    pub source: Source,
    pub what: What,
    /// How many times the thing to be measured happens in one repetition.
    pub times: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// One execution, looked at by nobody.
    Execution,
    /// A whole search.
    Search,
}

const fn execution(name: &'static str, file: &'static str, macros: &'static [&'static str], times: u32) -> Micro {
    Micro { name, source: Source { file, macros }, what: What::Execution, times }
}

/// Lengths of the traces that the analysis is measured with.
pub const LENGTHS: [usize; 3] = [20, 200, 2000];

/// Criterion's own times are for things less steady than these.
pub const WARM_UP: Duration = Duration::from_millis(500);
pub const MEASUREMENT: Duration = Duration::from_secs(2);

/// Criterion's name for what runs in a worker.
pub const WORKER: &str = "worker";
/// Criterion's name for the analysis of traces.
pub const ANALYSIS: &str = "analysis";

pub const ALL: &[Micro] = &[
    execution("round trip", "bench/pages.c", &["PAGES=0"], 1),
    Micro {
        name: "2 threads, 2 operations each",
        source: Source { file: "mutex/counter.h", macros: &["THREADS=2"] },
        what: What::Search,
        times: 2,
    },
    execution("context switch", "bench/switches.c", &["SWITCHES=10000"], 10_000),
    execution("hook of a plain load", "bench/hooks.c", &["ACCESS=LOAD", "TIMES=100000"], 100_000),
    execution("hook of a plain store", "bench/hooks.c", &["ACCESS=STORE", "TIMES=100000"], 100_000),
    execution("hook of an atomic", "bench/hooks.c", &["ACCESS=ADD", "TIMES=10000"], 10_000),
    execution("restore 1 page", "bench/pages.c", &["PAGES=1"], 1),
    execution("restore 10 pages", "bench/pages.c", &["PAGES=10"], 1),
    execution("restore 100 pages", "bench/pages.c", &["PAGES=100"], 1),
    execution("restore 1000 pages", "bench/pages.c", &["PAGES=1000"], 1),
];

/// What criterion has found, per single operation. `home`: its directory.
pub fn read(home: &Path) -> crate::tools::Result<Vec<results::Micro>> {
    let workers = ALL.iter().map(|m| (WORKER, m.name.to_owned(), f64::from(m.times)));
    let analyses = LENGTHS.iter().map(|n| (ANALYSIS, n.to_string(), 1.0));
    let one = |(group, name, times): (&str, String, f64)| {
        let ns = estimate(&home.join(group).join(&name).join("new/estimates.json"))? / times;
        let name = if group == ANALYSIS { format!("analysis of {name} transitions") } else { name };
        Ok(results::Micro { name, ns })
    };
    workers.chain(analyses).map(one).collect()
}

/// The median in nanoseconds.
fn estimate(path: &Path) -> crate::tools::Result<f64> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let json: serde_json::Value = serde_json::from_str(&text)?;
    json["median"]["point_estimate"].as_f64().ok_or_else(|| format!("{}: no median", path.display()).into())
}
