//! `symdpor test`: several programs, one summary, a shared budget of time.

use crate::console::{Console, complain};
use crate::exit::Exit;
use crate::flags::{Cli, Command, TestFlags};
use crate::interrupt::Interrupt;
use crate::manifest::{Entry, Manifest};
use crate::options::RunOptions;
use crate::outputs::{self, Outputs, check_writable, job};
use crate::run;
use clap::Parser;
use serde_json::{Value, json};
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use symdpor_report::{Job, Outcome, Verdict, json};

/// What is read when no program is named.
const MANIFEST: &str = "symdpor.toml";

pub fn test(flags: &TestFlags) -> Result<Exit, Box<dyn Error>> {
    let here = std::env::current_dir()?;
    let absolute =
        |path: &Option<PathBuf>| path.as_ref().map(|p| if p.as_os_str() == "-" { p.clone() } else { here.join(p) });
    let outputs = Outputs { junit: absolute(&flags.junit), sarif: absolute(&flags.sarif) };
    let json = absolute(&flags.json);
    outputs.check()?;
    if let Some(path) = json.as_ref().filter(|p| p.as_os_str() != "-") {
        check_writable(path)?;
    }
    let manifest = manifest(flags)?;
    let console = if json.as_ref().is_some_and(|p| p.as_os_str() == "-") { Console::Stderr } else { Console::Stdout };
    let budget = Budget::new(flags.time_limit.or(manifest.time_limit()?));
    let trace_dir = here.join(flags.trace_dir.as_deref().unwrap_or(Path::new("symdpor-out")));
    // Programs are named relative to the file that names them, and run there.
    if let Some(directory) = manifest.directory() {
        std::env::set_current_dir(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    }
    let interrupt = Interrupt::install()?;
    let mut jobs = Vec::new();
    let total = manifest.programs.len();
    for (number, entry) in manifest.programs.iter().enumerate() {
        if interrupt.is_set() {
            break;
        }
        let time = budget.share(total - number);
        let result = run_one(entry, time, &trace_dir, &interrupt).map_err(|e| e.to_string());
        let job = job(&entry.name(), entry.expected(), result);
        console.print(&line(&job, console));
        jobs.push(job);
    }
    console.print(&totals(&jobs, total, console));
    outputs.write(&jobs, &here)?;
    if let Some(path) = json {
        outputs::write(&path, &document(&jobs))?;
    }
    Ok(if jobs.len() < total && exit(&jobs) == Exit::Ok { Exit::Incomplete } else { exit(&jobs) })
}

fn manifest(flags: &TestFlags) -> Result<Manifest, Box<dyn Error>> {
    if flags.programs.is_empty() {
        return Ok(Manifest::read(flags.config.as_deref().unwrap_or(Path::new(MANIFEST)))?);
    }
    Ok(Manifest::of_programs(&flags.programs))
}

/// The options go through the same definition as those of `symdpor run`, and are refused with the same words.
fn run_one(
    entry: &Entry,
    time: Option<Duration>,
    trace_dir: &Path,
    interrupt: &Interrupt,
) -> Result<symdpor_report::Summary, Box<dyn Error>> {
    let mut line: Vec<OsString> = ["symdpor", "run", "--quiet", "--trace-dir"].map(Into::into).to_vec();
    line.push(trace_dir.into());
    line.extend(entry.run_arguments());
    let Command::Run(flags) =
        Cli::try_parse_from(line).map_err(|e| e.kind().to_string() + ": " + &first_line(&e))?.command
    else {
        return Err("this is no program".into());
    };
    let mut options = RunOptions::resolve(flags)?;
    options.time_limit = match (options.time_limit, time) {
        (Some(own), Some(shared)) => Some(own.min(shared)),
        (own, shared) => own.or(shared),
    };
    run::summary(&options, interrupt.clone())
}

fn first_line(error: &clap::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Time that is shared: each program may take an equal part of what is left.
struct Budget {
    end: Option<Instant>,
}

impl Budget {
    fn new(all: Option<Duration>) -> Budget {
        Budget { end: all.and_then(|t| Instant::now().checked_add(t)) }
    }

    /// For the next of so many programs. Never nothing: a moment shows at least whether the program can be run.
    fn share(&self, programs: usize) -> Option<Duration> {
        let left = self.end?.saturating_duration_since(Instant::now());
        let tenths = left.as_millis() as u64 / programs.max(1) as u64 / 100;
        Some(Duration::from_millis((100 * tenths).max(1)))
    }
}

fn line(job: &Job, console: Console) -> String {
    let paint = console.paint();
    let mark = match job.outcome() {
        Outcome::Passed => paint.good("ok         "),
        Outcome::Failed => paint.error("FAILED     "),
        Outcome::Undecided(Verdict::Incomplete) => paint.warning("incomplete "),
        Outcome::Undecided(_) => paint.warning("unsupported"),
        Outcome::Broken => paint.error("not run    "),
    };
    let Ok(summary) = &job.result else { return format!("{mark} {}: {}\n", job.name, job.said()) };
    let (n, seconds) = (summary.counts.executions, summary.time.as_secs_f64());
    let mut text = format!("{mark} {} ({n} execution{}, {seconds:.1} s)", job.name, if n == 1 { "" } else { "s" });
    if job.outcome() != Outcome::Passed || job.expected != "ok" {
        text.push_str(&format!(": {}", job.said()));
    }
    text.push('\n');
    if job.outcome() != Outcome::Passed {
        for trace in summary.errors.iter().filter_map(|e| e.trace.as_ref()) {
            text.push_str(&format!("            symdpor show {}\n", trace.display()));
        }
    }
    text
}

fn totals(jobs: &[Job], total: usize, console: Console) -> String {
    let count = |wanted: fn(Outcome) -> bool| jobs.iter().filter(|j| wanted(j.outcome())).count();
    let passed = count(|o| o == Outcome::Passed);
    let failed = count(|o| o == Outcome::Failed);
    let undecided = count(|o| matches!(o, Outcome::Undecided(_)));
    let not_run = total - passed - failed - undecided;
    let paint = console.paint();
    let verdict = if passed == total { paint.good("ok:") } else { paint.error("not ok:") };
    format!("\n{verdict} {passed} of {total} as expected; {failed} failed, {undecided} undecided, {not_run} not run\n")
}

/// A failure counts more than what could not be decided: it stands whatever else there is.
fn exit(jobs: &[Job]) -> Exit {
    let any = |wanted: Outcome| jobs.iter().any(|j| j.outcome() == wanted);
    if any(Outcome::Failed) {
        Exit::Error
    } else if any(Outcome::Broken) {
        Exit::Usage
    } else if any(Outcome::Undecided(Verdict::Unsupported)) {
        Exit::Unsupported
    } else if any(Outcome::Undecided(Verdict::Incomplete)) {
        Exit::Incomplete
    } else {
        Exit::Ok
    }
}

/// The summaries of all, as `run --json` writes each.
fn document(jobs: &[Job]) -> String {
    let one = |job: &Job| {
        let summary = job.result.as_ref().ok().map(json::render);
        let summary: Value = summary.and_then(|s| serde_json::from_str(&s).ok()).unwrap_or_default();
        let problem = job.result.as_ref().err();
        json!({ "name": job.name, "expected": job.expected, "passed": job.outcome() == Outcome::Passed,
                "problem": problem, "summary": summary })
    };
    let passed = jobs.iter().all(|j| j.outcome() == Outcome::Passed);
    let all =
        json!({ "version": json::VERSION, "passed": passed, "programs": jobs.iter().map(one).collect::<Vec<_>>() });
    serde_json::to_string_pretty(&all).unwrap_or_else(|e| {
        complain(&e);
        String::new()
    }) + "\n"
}
