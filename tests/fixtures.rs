//! Every fixture, at every level of optimisation and in every mode: verdict, kind, place and number of executions.
//!
//! One trial per fixture, level and mode (`mutex/counter_3.c -O2 source`); further trials replay the error that was found,
//! compare the instrumented program alone with one that was never instrumented, and compare variants of a fixture.
//! For the sake of time -O2 runs with `source` and the default mode only, -O1 and -O3 with the default mode and every second
//! fixture each, C++ every fourth; compiling C++ takes longer than all searches. With `SYMDPOR_LEVELS=all` every one.
//!
//! `SYMDPOR_BLESS=1` measures the counts and writes them into the headers instead.

mod common;

use common::build::{self, With};
use common::fixture::{self, Fixture};
use common::process;
use common::tool::{self, Request, Summary, Verification};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// The last two with symmetry: on `dpor`, and on `source`, which is the default.
const MODES: [&str; 5] = ["none", "dpor", "source", "twins", "symmetry"];
const DEFAULT: &str = "symmetry";
/// One execution per class of equivalent ones.
const OPTIMAL: &str = "source";
/// The levels that all modes and the other trials run at, and those of the default mode alone.
const MAIN_LEVELS: [&str; 2] = ["-O0", "-O2"];
const OTHER_LEVELS: [&str; 2] = ["-O1", "-O3"];
/// How often a program is run alone until it does the same with the pass as without.
const TRIES: usize = 20;
/// How many executions without reduction are still feasible.
const FEASIBLE: u64 = 20_000;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Most of the time goes into other processes, which wait for each other.
    arguments.test_threads.get_or_insert(std::thread::available_parallelism().map_or(1, |cores| cores.get()) + 1);
    let blessing = std::env::var_os("SYMDPOR_BLESS").is_some();
    let all = std::env::var_os("SYMDPOR_LEVELS").is_some_and(|levels| levels == "all");
    let others = |i: usize, f: &Fixture| match i % 4 {
        _ if all => &OTHER_LEVELS[..],
        2 | 3 if f.is_cxx() => &[],
        _ => &OTHER_LEVELS[i % 2..i % 2 + 1],
    };
    let of_one = |(i, f): (usize, Fixture)| match blessing {
        true => vec![blessing_trial(f)],
        false => {
            let others = others(i, &f);
            let alone = if all { &MAIN_LEVELS[..] } else { &MAIN_LEVELS[i % 2..i % 2 + 1] };
            trials(f, others, alone)
        }
    };
    let trials = fixture::all().into_iter().enumerate().flat_map(of_one).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// `others`: the levels at which only the default is tried. `alone`: those at which it is compared with itself without the pass, which is to
/// be built for that.
fn trials(fixture: Fixture, others: &[&'static str], alone: &[&'static str]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for level in MAIN_LEVELS {
        // What the search does otherwise than by default is looked at once: it does not depend on the optimiser.
        let modes = MODES.iter().filter(|m| [OPTIMAL, DEFAULT].contains(*m) || level == "-O0");
        let modes = modes.filter(|m| **m != "none" || fixture.header.executions.contains_key("none"));
        trials.extend(modes.map(|mode| mode_trial(&fixture, level, mode)));
    }
    trials.extend(others.iter().map(|level| mode_trial(&fixture, level, DEFAULT)));
    let levels = if fixture.is_ok() { alone } else { &MAIN_LEVELS[..] };
    trials.extend(levels.iter().map(|level| alone_or_replayed(&fixture, level)));
    if let Some(twin) = fixture.header.same_counts_as.clone() {
        let name = format!("{} counts of {twin}", fixture.name);
        trials.push(Trial::test(name, move || same_counts(&fixture, &fixture::named(&twin))));
    }
    trials
}

fn mode_trial(fixture: &Fixture, level: &'static str, mode: &'static str) -> Trial {
    let fixture = fixture.clone();
    Trial::test(format!("{} {level} {mode}", fixture.name), move || {
        let verification = verify(&fixture, level, mode)?;
        check_verdict(&fixture, &verification)?;
        check_counts(&fixture, level, mode, &verification.summary)
    })
}

fn alone_or_replayed(fixture: &Fixture, level: &'static str) -> Trial {
    let fixture = fixture.clone();
    if fixture.is_ok() {
        Trial::test(format!("{} {level} alone", fixture.name), move || alone(&fixture, level))
    } else {
        Trial::test(format!("{} {level} replay", fixture.name), move || replay(&fixture, level))
    }
}

fn verify(fixture: &Fixture, level: &str, mode: &str) -> Result<Verification, Failed> {
    let program = build::program(fixture, level, With::Pass)?;
    let (reduction, symmetry) = match mode {
        "twins" => ("dpor", "on"),
        "symmetry" => ("source", "on"),
        reduction => (reduction, "off"),
    };
    let mut options: Vec<String> = ["--reduction", reduction, "--symmetry", symmetry].map(str::to_owned).into();
    options.extend(fixture.header.options.iter().cloned());
    let request = Request { options, arguments: fixture.header.arguments.clone(), ..Request::default() };
    Ok(tool::verify(&program, &request)?)
}

fn fail<T>(expected: &str, verification: &Verification) -> Result<T, Failed> {
    Err(format!("expected {expected}, found {:#?}\n{}", verification.summary, verification.ran.describe()).into())
}

fn check_verdict(fixture: &Fixture, verification: &Verification) -> Result<(), Failed> {
    let summary = &verification.summary;
    if fixture.is_ok() {
        let ok = summary.verdict == "ok" && summary.complete && summary.errors.is_empty();
        return if ok && verification.ran.code() == Some(0) { Ok(()) } else { fail("ok", verification) };
    }
    let wanted = &fixture.header.verdict;
    if verification.ran.code() != Some(1) || summary.verdict != "error" || summary.errors.is_empty() {
        return fail(wanted, verification);
    }
    if summary.errors.iter().any(|e| e.kind != *wanted) {
        return fail(wanted, verification);
    }
    check_place(fixture, verification)
}

fn check_place(fixture: &Fixture, verification: &Verification) -> Result<(), Failed> {
    let error = &verification.summary.errors[0];
    if let Some(part) = fixture.header.message.as_ref().filter(|m| !error.message.contains(m.as_str())) {
        return fail(&format!("a message with {part}"), verification);
    }
    if fixture.header.line.is_any() {
        return Ok(());
    }
    let right = |l: &tool::Location| l.file.ends_with(fixture.error_file()) && fixture.header.line.allow(l.line);
    match error.location.as_ref().is_some_and(right) {
        true => Ok(()),
        false => fail(&format!("{} at {:?}", fixture.error_file(), fixture.header.line), verification),
    }
}

fn check_counts(fixture: &Fixture, level: &str, mode: &str, summary: &Summary) -> Result<(), Failed> {
    let header = &fixture.header;
    if let Some(classes) = header.classes.filter(|c| mode == OPTIMAL && *c != summary.executions) {
        return Err(format!("theory says {classes} executions, there were {}", summary.executions).into());
    }
    // What is live, and with it which threads are alike, depends a little on what the optimiser makes of the code.
    let symmetric = matches!(mode, "twins" | "symmetry");
    let most = header.executions.get(if mode == "twins" { "dpor" } else { "source" });
    if symmetric && level != "-O0" {
        return match most {
            Some(most) if fixture.is_ok() && header.counts_differ.is_none() && summary.executions > *most => {
                Err(format!("{most} executions without symmetry, {} with it", summary.executions).into())
            }
            _ => Ok(()),
        };
    }
    let pinned = header.counts_differ.is_none() || level == "-O0";
    match header.executions.get(mode) {
        Some(count) if pinned && *count != summary.executions => {
            Err(format!("{count} executions expected, there were {}", summary.executions).into())
        }
        None if mode != "none" => Err("the header does not say how many executions there are: scripts/bless".into()),
        _ => Ok(()),
    }
}

/// The error comes back with the same message, again and again, and the file alone shows it too.
fn replay(fixture: &Fixture, level: &str) -> Result<(), Failed> {
    let verification = verify(fixture, level, DEFAULT)?;
    check_verdict(fixture, &verification)?;
    let error = &verification.summary.errors[0];
    let Some(trace) = &error.trace else { return fail("a trace", &verification) };
    let trace = verification.directory.path().join(trace);
    let shown = process::run(tool::symdpor().arg("show").arg(&trace), tool::LIMIT);
    if shown.code() != Some(0) || !says(&shown, &error.message) {
        return Err(format!("symdpor show: {}", shown.describe()).into());
    }
    for _ in 0..2 {
        let replayed = process::run(tool::symdpor().arg("replay").arg(&trace), tool::LIMIT);
        if replayed.code() != Some(1) || !says(&replayed, &error.message) {
            return Err(format!("symdpor replay: {}", replayed.describe()).into());
        }
    }
    Ok(())
}

/// Whether the report has the message, whatever its lines.
fn says(ran: &process::Ran, message: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    words(&ran.output()).contains(&words(message))
}

/// The instrumented program alone does what it would have done without the pass.
fn alone(fixture: &Fixture, level: &str) -> Result<(), Failed> {
    // Without the pass these do not link: what they call is declared and never defined.
    if fixture.name.starts_with("svcomp/") {
        return Ok(());
    }
    let run = |with| -> Result<_, Failed> {
        let program = build::program(fixture, level, with)?;
        let ran = process::run(Command::new(program).args(&fixture.header.arguments), Duration::from_secs(20));
        Ok((ran.code(), ran.output(), ran.errors()))
    };
    // Real threads may print in any order: both must be able to do the same.
    let (mut plain, mut instrumented) = (Vec::new(), Vec::new());
    for _ in 0..TRIES {
        plain.push(run(With::Plain)?);
        instrumented.push(run(With::Pass)?);
        if plain.iter().any(|ran| ran.0 == Some(0) && instrumented.contains(ran)) {
            return Ok(());
        }
    }
    Err(format!("without the pass: {:?}, with it: {:?}", plain[0], instrumented[0]).into())
}

/// Without reduction the order of creation matters: only a thread that exists can go first.
fn same_counts(fixture: &Fixture, twin: &Fixture) -> Result<(), Failed> {
    let reduced = |f: &Fixture| {
        let counts = f.header.executions.clone().into_iter();
        counts.filter(|(mode, _)| mode != "none").collect::<BTreeMap<_, _>>()
    };
    let (mine, theirs) = (reduced(fixture), reduced(twin));
    if mine == theirs && fixture.header.verdict == twin.header.verdict {
        return Ok(());
    }
    Err(format!("{mine:?} here, {theirs:?} in {}", twin.name).into())
}

/// Measures at -O0; the ordinary trials then tell whether the other levels agree.
fn blessing_trial(fixture: Fixture) -> Trial {
    Trial::test(format!("bless {}", fixture.name), move || {
        let mut counts = BTreeMap::new();
        for mode in MODES {
            let limited = Fixture { header: limited(&fixture, mode), ..fixture.clone() };
            let verification = verify(&limited, "-O0", mode)?;
            if mode == "none" && verification.summary.verdict == "incomplete" {
                continue;
            }
            check_verdict(&fixture, &verification)?;
            counts.insert(mode.to_owned(), verification.summary.executions);
        }
        fixture::bless(&fixture, &counts);
        Ok(())
    })
}

fn limited(fixture: &Fixture, mode: &str) -> fixture::Header {
    let mut header = fixture.header.clone();
    if mode == "none" {
        header.options.extend(["--max-executions".to_owned(), FEASIBLE.to_string()]);
    }
    header
}
