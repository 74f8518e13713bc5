//! From runs to figures.

use crate::cases::{self, Case};
use crate::native::{self, Native};
use crate::results::Measurement;
use crate::search::{Search, search};
use crate::tools::{Result, Tools};
use std::time::Duration;

/// So much of a search is taken for its beginning, with the program's start and the first writes to each page.
const BEGINNING: u64 = 10;

/// Measures a case: the best of so many runs, since whatever else the machine does can only add to them.
pub fn case(tools: &Tools, case: &Case, repeat: u32) -> Result<Measurement> {
    let program = tools.instrumented(&case.source)?;
    let native = native::run(&tools.native(&case.source)?)?;
    let run = |limit| best(repeat, || search(tools, &program, limit));
    let whole = run(case.limit)?;
    let beginning = run(Some((whole.summary.executions / BEGINNING).max(1)))?;
    Ok(measurement(case, &Searches { first: run(Some(1))?, beginning, whole }, native))
}

/// The same search, cut off after one execution, after some, and not at all.
struct Searches {
    first: Search,
    beginning: Search,
    whole: Search,
}

fn best(repeat: u32, run: impl Fn() -> Result<Search>) -> Result<Search> {
    let mut best = run()?;
    for _ in 1..repeat {
        let next = run()?;
        if next.summary.time_s < best.summary.time_s {
            best = next;
        }
    }
    Ok(best)
}

/// What the beginning takes is subtracted from the whole.
fn measurement(case: &Case, searches: &Searches, native: Native) -> Measurement {
    let Searches { first, beginning, whole } = searches;
    let runs = |s: &Search| s.summary.executions + s.summary.blocked;
    let more = runs(whole).saturating_sub(runs(beginning)).max(1) as f64;
    let seconds = (whole.summary.time_s - beginning.summary.time_s).max(1e-9);
    let transitions = whole.summary.transitions.saturating_sub(beginning.summary.transitions) as f64;
    Measurement {
        program: case.program.to_owned(),
        size: case.size.to_owned(),
        executions: whole.summary.executions,
        blocked: whole.summary.blocked,
        transitions: whole.summary.transitions,
        wall_us: seconds * 1e6 / more,
        cpu_us: whole.cpu.saturating_sub(beginning.cpu).as_secs_f64() * 1e6 / more,
        transitions_per_s: transitions / seconds,
        start_ms: first.summary.time_s * 1e3,
        controller_kib: whole.peak.controller,
        worker_kib: whole.peak.worker,
        fork_us: native.fork_us,
        fork_writing_us: native.fork_writing_us,
        own_us: native.own_us,
    }
}

/// `symdpor run` on a program with one execution, from start to end, in milliseconds.
pub fn start_to_verdict(tools: &Tools, repeat: u32) -> Result<f64> {
    let program = tools.instrumented(&cases::ONE_EXECUTION)?;
    let mut best = Duration::MAX;
    for _ in 0..5 * repeat {
        best = best.min(search(tools, &program, None)?.wall);
    }
    Ok(best.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Peak, Summary};

    fn run(executions: u64, blocked: u64, time_s: f64, cpu_ms: u64) -> Search {
        let verdict = "ok".to_owned();
        let transitions = (executions + blocked) * 10;
        let symmetry = Default::default();
        let summary = Summary { verdict, complete: true, executions, blocked, transitions, time_s, symmetry };
        let peak = Peak { controller: 1, worker: 2 };
        Search { summary, cpu: Duration::from_millis(cpu_ms), wall: Duration::ZERO, peak }
    }

    #[test]
    fn the_beginning_is_not_part_of_an_execution() {
        let native = Native { own_us: Some(0.5), fork_us: 100.0, fork_writing_us: 200.0 };
        let (first, beginning, whole) = (run(1, 0, 0.2, 300), run(81, 20, 0.3, 310), run(881, 220, 0.31, 330));
        let m = measurement(&cases::ALL[0], &Searches { first, beginning, whole }, native);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6 * b;
        assert!(close(m.wall_us, 10.0) && close(m.cpu_us, 20.0) && close(m.start_ms, 200.0), "{m:?}");
        assert!(close(m.transitions_per_s, 1e6) && close(m.per_fork(), 20.0), "{m:?}");
        assert_eq!(m.slowdown().map(f64::round), Some(20.0));
    }
}
