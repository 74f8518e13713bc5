//! The estimate of the whole search after a tenth of it, against the truth.
//!
//! A tenth of the executions that run to an end: where many are cut off, and later ones more than earlier ones, that is less than a
//! tenth of the search. `scripts/bench estimate` prints the table of docs/performance.md.

mod common;

use common::build::{self, With};
use common::{process, tool};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

struct Case {
    file: &'static str,
    flag: &'static str,
    symmetry: &'static str,
    /// Part of every test run.
    quick: bool,
}

const fn case(file: &'static str, flag: &'static str, symmetry: &'static str) -> Case {
    Case { file, flag, symmetry, quick: false }
}

const fn quick(file: &'static str, flag: &'static str, symmetry: &'static str) -> Case {
    Case { quick: true, ..case(file, flag, symmetry) }
}

/// Different programs, all with more than 10,000 executions, cut off ones included.
const CASES: [Case; 10] = [
    quick("mutex/counter.h", "-DTHREADS=8", "off"),
    case("atomics/relaxed_counter.c", "-DTHREADS=8", "off"),
    case("litmus/readers.h", "-DREADERS=14", "off"),
    case("classic/last_zero.c", "-DN=10", "on"),
    case("cond/bounded_buffer.c", "-DCONSUMERS=4", "off"),
    quick("classic/treiber_stack.c", "-DTHREADS=3", "on"),
    quick("classic/philosophers_ordered.c", "-DN=14", "on"),
    case("classic/indexer.h", "-DTHREADS=16", "on"),
    case("classic/michael_scott_queue.c", "-DITEMS=6", "on"),
    case("classic/work_queue.c", "-DWORKERS=4 -DJOBS=5", "off"),
];

fn run(program: &Path, symmetry: &str, most: Option<u64>) -> Value {
    let mut command = tool::symdpor();
    command.args(["run", "--quiet", "--json", "-", "--symmetry", symmetry]);
    command.args(most.map(|n| format!("--max-executions={n}"))).arg(program);
    let ran = process::run(&mut command, Duration::from_secs(300));
    serde_json::from_slice(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.describe()))
}

fn executions(summary: &Value) -> f64 {
    summary["executions"].as_f64().expect("a number") + summary["blocked"].as_f64().expect("a number")
}

/// How many times the truth the estimate is, and whether the truth lies in its range.
fn judge(case: &Case) -> (f64, bool) {
    let directory = tool::fresh_directory();
    let program = directory.path().join("prog");
    let source = tool::root().join("fixtures").join(case.file);
    let include = format!("-I{}", source.parent().expect("a directory").display());
    let text = std::fs::read_to_string(&source).expect("a fixture");
    let flags: Vec<&str> = ["-O1", "-xc", &include].into_iter().chain(case.flag.split(' ')).collect();
    build::text(&text, false, &flags, &program, With::Pass).unwrap_or_else(|e| panic!("{e}"));
    let whole = run(&program, case.symmetry, None);
    assert_eq!(whole["complete"], true, "{}", case.file);
    assert!(whole["estimate"].is_null(), "nothing is left to estimate");
    let tenth = whole["executions"].as_u64().expect("a number") / 10;
    let part = run(&program, case.symmetry, Some(tenth));
    let estimate = |key: &str| part["estimate"][key].as_f64().expect("a number");
    let (total, likely) = (executions(&whole), estimate("executions"));
    let (low, high) = (estimate("low"), estimate("high"));
    assert!(low <= likely && likely <= high && low >= executions(&part).floor(), "{part}");
    let inside = low <= total && total <= high;
    println!(
        "| {} {} | {} | {total} | {likely} | {low} to {high} | {:.2} |",
        case.file,
        &case.flag[2..],
        case.symmetry,
        likely / total
    );
    (likely / total, inside)
}

fn is_near(ratio: f64) -> bool {
    (1.0 / 3.0..=3.0).contains(&ratio)
}

#[test]
fn after_a_tenth_it_is_known_how_long_it_takes() {
    for case in CASES.iter().filter(|c| c.quick) {
        let (ratio, _) = judge(case);
        assert!(is_near(ratio), "{}: {ratio} times the truth", case.file);
    }
}

#[test]
#[ignore = "takes minutes: scripts/bench estimate"]
fn table() {
    println!("| program | symmetry | executions | estimate | range | ratio |\n|---|---|---|---|---|---|");
    let judged: Vec<(f64, bool)> = CASES.iter().map(judge).collect();
    let near = judged.iter().filter(|j| is_near(j.0)).count();
    let inside = judged.iter().filter(|j| j.1).count();
    println!("within a factor of 3: {near} of {}; in the range: {inside}", CASES.len());
    assert!(10 * near >= 8 * CASES.len());
}
