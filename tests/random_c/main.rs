//! Random programs through the whole line: generated as C, compiled with the pass, run in every mode, and compared with
//! a brute-force interpreter of the same program.
//!
//! Every end of a program is observable: its final state is its exit status, never 0, so that with `--keep-going` each
//! distinct final state is a distinct error. A program with a data race has no defined outcomes; there every mode must
//! find a race, and nothing else is compared.
//!
//! `SYMDPOR_SEED` and `SYMDPOR_PROGRAMS` choose other programs and how many.

#[path = "../common/mod.rs"]
mod common;
mod emit;
mod generate;
mod oracle;
mod program;

use common::build::{self, With};
use common::tool::{self, Request, Summary};
use emit::Batch;
use program::{Outcome, Program};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const PROGRAMS: usize = 120;
/// Of those whose threads may be alike.
const TWINS: usize = 320;
/// Of those with semaphores, read-write locks, barriers, time limits and spin loops.
const SHARED: usize = 160;
/// Of those with loops that wait.
const SPINS: usize = 160;
const SEED: u64 = 2005;
const BATCH: usize = 40;
const LEVELS: [&str; 4] = ["-O0", "-O2", "-O1", "-O3"];
/// Beyond this many executions only `source` is waited for.
const FEASIBLE: u64 = 20_000;
/// Programs with more states are replaced by the next ones.
const MOST_STATES: usize = 60_000;

struct Subject {
    seed: u64,
    program: Program,
    outcomes: BTreeSet<Outcome>,
}

fn number(variable: &str, default: u64) -> u64 {
    let parse = |v: String| v.parse().unwrap_or_else(|_| panic!("{variable}={v} is no number"));
    std::env::var(variable).map_or(default, parse)
}

/// Programs whose outcomes the interpreter can tell; of those with only one, a few are enough.
fn subjects(seed: u64, count: usize, generate: fn(u64) -> Program) -> Vec<Subject> {
    let seeds = (0..).map(|i| seed.wrapping_mul(0x1_0000_0001).wrapping_add(i));
    let known = seeds.filter_map(|seed| {
        let program = generate(seed);
        let outcomes = oracle::outcomes(&program, MOST_STATES)?;
        let outcomes: BTreeSet<Outcome> = outcomes.into_iter().map(|o| program.anonymous(o)).collect();
        (outcomes.len() > 1 || seed % 8 == 0).then_some(Subject { seed, program, outcomes })
    });
    known.take(count).collect()
}

#[test]
fn every_mode_finds_what_brute_force_finds() {
    run_all("mixed", PROGRAMS, generate::program);
}

#[test]
fn threads_may_be_alike() {
    run_all("twins", TWINS, generate::twins);
}

#[test]
fn threads_that_spin() {
    run_all("spins", SPINS, generate::spins);
}

#[test]
fn locks_of_all_kinds_and_time_limits() {
    run_all("shared", SHARED, generate::shared);
}

fn run_all(name: &str, usual: usize, generate: fn(u64) -> Program) {
    let count = number("SYMDPOR_PROGRAMS", usual as u64) as usize;
    let subjects = &subjects(number("SYMDPOR_SEED", SEED), count, generate);
    let count = subjects.len();
    let batches: Vec<&[Subject]> = subjects.chunks(BATCH).collect();
    let failures = Mutex::new(Vec::new());
    let compared = AtomicUsize::new(0);
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((index, batch)) = take(&next, &batches) {
                    let failed = run_batch(&format!("{name}-{index}"), LEVELS[index % LEVELS.len()], batch, &compared);
                    failures.lock().expect("no worker panics").extend(failed);
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no worker panics");
    assert!(failures.is_empty(), "{} of {count} programs:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(compared.into_inner(), count);
    report(subjects);
}

fn take<'a>(next: &AtomicUsize, batches: &[&'a [Subject]]) -> Option<(usize, &'a [Subject])> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    batches.get(index).map(|b| (index, *b))
}

/// A sample in which nothing ever deadlocks would test nothing about deadlocks.
fn report(subjects: &[Subject]) {
    let having = |test: fn(&Outcome) -> bool| subjects.iter().filter(|s| s.outcomes.iter().any(test)).count();
    let several = subjects.iter().filter(|s| s.outcomes.len() > 1).count();
    let kinds = [
        having(|o| matches!(o, Outcome::Deadlock)),
        having(|o| matches!(o, Outcome::Assertion(..))),
        having(|o| matches!(o, Outcome::Race)),
        having(|o| matches!(o, Outcome::Status(_))),
    ];
    println!(
        "{} programs, {several} with several outcomes; deadlock, assertion, race, status: {kinds:?}",
        subjects.len()
    );
    let enough = subjects.len() / 40;
    assert!(several >= subjects.len() / 3 && kinds.iter().all(|k| *k >= enough), "too few of some kind: {kinds:?}");
}

fn run_batch(name: &str, level: &str, batch: &[Subject], compared: &AtomicUsize) -> Vec<String> {
    let programs: Vec<Program> = batch.iter().map(|s| s.program.clone()).collect();
    let emitted = emit::batch(&programs);
    let path = tool::scratch("random-c").join(name);
    if let Err(error) = build::text(&emitted.text, false, &[level], &path, With::Pass) {
        return vec![error];
    }
    let mut failures = Vec::new();
    for (number, subject) in batch.iter().enumerate() {
        compared.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = compare(&path, number, subject, &emitted) {
            let listing = emit::listing(&subject.program, number);
            failures.push(format!("seed {}, {} {number} ({level}): {error}\n{listing}", subject.seed, path.display()));
        }
    }
    failures
}

fn compare(path: &Path, number: usize, subject: &Subject, batch: &Batch) -> Result<(), String> {
    let mut executions = Vec::new();
    let modes: &[&str] = match subject.program.twins {
        None => &["none", "dpor", "source", "symmetry"],
        Some(_) => &["dpor", "twins", "all", "symmetry"],
    };
    for mode in modes.iter().copied() {
        let summary = run(path, number, mode)?;
        if !is_default(mode) && summary.executions >= FEASIBLE {
            continue;
        }
        let found = outcomes(&summary, batch)?;
        let found: BTreeSet<Outcome> = found.into_iter().map(|o| subject.program.anonymous(o)).collect();
        if found.contains(&Outcome::Race) && subject.outcomes.contains(&Outcome::Race) {
            continue;
        }
        if found != subject.outcomes {
            return Err(format!("{mode} found {found:?}, there are {:?}", subject.outcomes));
        }
        if !summary.complete {
            return Err(format!("{mode} ended before all was explored: {summary:?}"));
        }
        executions.push(summary.executions);
    }
    // Each mode's executions are a subset of those of the mode before it, or fewer; but what symmetry leaves out can make
    // an execution necessary that was not.
    let [first, last] = [executions.first(), executions.last()].map(|n| n.copied().unwrap_or(0));
    if last <= first + first / 4 { Ok(()) } else { Err(format!("executions per mode: {executions:?}")) }
}

fn is_default(mode: &str) -> bool {
    matches!(mode, "source" | "symmetry")
}

fn run(path: &Path, number: usize, mode: &str) -> Result<Summary, String> {
    let (reduction, symmetry) = match mode {
        "twins" => ("dpor", "on"),
        "symmetry" | "all" => ("source", "on"),
        reduction => (reduction, "off"),
    };
    let options = ["--keep-going", "--reduction", reduction, "--symmetry", symmetry];
    let mut options: Vec<String> = options.map(str::to_owned).into();
    if mode == "all" {
        options.extend(["--visible".to_owned(), "all".to_owned()]);
    }
    if !is_default(mode) {
        options.extend(["--max-executions".to_owned(), FEASIBLE.to_string()]);
    }
    let request = Request { options, arguments: vec![number.to_string()], ..Request::default() };
    let verification = tool::verify(path, &request)?;
    match verification.summary.verdict.as_str() {
        "error" | "incomplete" => Ok(verification.summary),
        _ => Err(format!("{mode}: {}", verification.ran.describe())),
    }
}

fn outcomes(summary: &Summary, batch: &Batch) -> Result<BTreeSet<Outcome>, String> {
    summary.errors.iter().map(|e| outcome(e, batch).ok_or_else(|| format!("not understood: {e:?}"))).collect()
}

fn outcome(error: &tool::Error, batch: &Batch) -> Option<Outcome> {
    Some(match error.kind.as_str() {
        "deadlock" | "livelock" => Outcome::Deadlock,
        "data-race" => Outcome::Race,
        "exit-status" => Outcome::Status(error.message.rsplit(' ').next()?.parse().ok()?),
        "assertion" => {
            let (thread, at) = batch.assertions.get(&error.location.as_ref()?.line)?;
            Outcome::Assertion(*thread, *at)
        }
        _ => return None,
    })
}
