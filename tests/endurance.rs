//! Many executions in one process: mappings, descriptors, memory and the cost of an execution stay flat.
//!
//! `SYMDPOR_ENDURANCE=1000000` makes it a million; the ordinary run is shorter.

mod common;

use common::build::{self, With};
use common::tool::{self, Request};
use common::{leftovers, process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The tests are timed: one after the other.
static ALONE: Mutex<()> = Mutex::new(());
const MARK: &str = "SYMDPOR_TEST_ENDURANCE";
const EXECUTIONS: u64 = 30_000;
const LIMIT: Duration = Duration::from_secs(3600);
/// Resident memory may grow by this between the first quarter and the end: pages that become resident late.
const GROWTH_KIB: u64 = 2048;

#[derive(Clone, Copy, Debug)]
struct Sample {
    mappings: usize,
    descriptors: usize,
    resident_kib: u64,
}

fn sample(id: u32) -> Option<Sample> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let resident = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    Some(Sample {
        mappings: fs::read_to_string(format!("/proc/{id}/maps")).ok()?.lines().count(),
        descriptors: fs::read_dir(format!("/proc/{id}/fd")).ok()?.count(),
        resident_kib: resident.trim().trim_end_matches(" kB").parse().ok()?,
    })
}

fn program() -> PathBuf {
    let source = fs::read_to_string(tool::root().join("fixtures/endurance/allocate_print.cpp")).expect("it is there");
    let program = tool::scratch("endurance").join("allocate_print");
    build::text(&source, true, &["-O1"], &program, With::Pass).unwrap_or_else(|e| panic!("{e}"));
    program
}

fn executions() -> u64 {
    std::env::var("SYMDPOR_ENDURANCE").map_or(EXECUTIONS, |n| n.parse().expect("a number of executions"))
}

/// The worker among the marked processes: the one that is not the controller.
fn worker(controller: &Child, mark: &str) -> Option<u32> {
    leftovers::processes(MARK, mark).into_iter().find(|id| *id != controller.id())
}

/// Runs that many executions and samples the worker meanwhile.
fn watched(program: &Path, executions: u64) -> (tool::Summary, Vec<Sample>) {
    let directory = tool::fresh_directory();
    let (json, mark) = (directory.path().join("summary.json"), format!("{}", std::process::id()));
    let mut command = tool::symdpor();
    command.args(["run", "--quiet", "--max-executions", &executions.to_string(), "--json"]).arg(&json);
    command.arg(program).env(MARK, &mark).current_dir(directory.path());
    let mut child = process::start(&mut command);
    let mut samples = Vec::new();
    let (deadline, mut id) = (Instant::now() + LIMIT, None);
    while process::wait(&mut child, Instant::now() + Duration::from_millis(20)).is_none() {
        assert!(Instant::now() < deadline, "it takes too long");
        id = id.or_else(|| worker(&child, &mark));
        samples.extend(id.and_then(sample));
    }
    let text = fs::read_to_string(&json).expect("there is a summary");
    (serde_json::from_str(&text).expect("it is JSON"), samples)
}

#[test]
fn resources_are_flat() {
    let _alone = ALONE.lock();
    let (wanted, program) = (executions(), program());
    let (summary, samples) = watched(&program, wanted);
    assert_eq!((summary.verdict.as_str(), summary.executions), ("incomplete", wanted), "{summary:?}");
    assert!(samples.len() >= 8, "too short to see anything: {samples:?}");
    // The first quarter is warming up: pools are filled, pages become resident.
    let (early, last) = (samples[samples.len() / 4], samples[samples.len() - 1]);
    println!("{} executions, {:.0}/s: {early:?}, then {last:?}", summary.executions, summary.executions_per_s);
    assert_eq!((early.mappings, early.descriptors), (last.mappings, last.descriptors), "{early:?}, then {last:?}");
    assert!(last.resident_kib <= early.resident_kib + GROWTH_KIB, "{early:?}, then {last:?}");
}

/// The later executions may not cost more than the first ones.
#[test]
fn the_rate_is_flat() {
    let (wanted, program) = (executions(), program());
    let _alone = ALONE.lock();
    let time = |count: u64| {
        let options = vec!["--max-executions".to_owned(), count.to_string()];
        let request = Request { options, ..Request::default() };
        let summary = tool::verify(&program, &request).unwrap_or_else(|e| panic!("{e}")).summary;
        // Those that are cut off are run as well, and become more.
        (summary.time_s, (summary.executions + summary.blocked) as f64)
    };
    let (short, long) = (time(wanted / 5), time(wanted));
    let (before, after) = (short.0 / short.1, (long.0 - short.0) / (long.1 - short.1));
    println!("{:.1} us per execution at first, {:.1} us later", before * 1e6, after * 1e6);
    assert!(after <= before * 1.5, "{:.1} us per execution at first, {:.1} us later", before * 1e6, after * 1e6);
}
