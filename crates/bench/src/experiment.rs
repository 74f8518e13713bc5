//! The paper's experiment: programs with the structure of its benchmarks (fixtures/programs), searched with and without
//! symmetry. What table1 and table2 share.

use crate::search::{Search, Symmetry, search_with};
use crate::tools::{Result, Tools};
use serde::Serialize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

pub struct Program {
    pub name: &'static str,
    file: &'static str,
    macros: &'static [&'static str],
    /// What it stands for in the paper.
    pub paper: &'static str,
    /// It has an error, and the search goes on after it.
    pub buggy: bool,
    /// Its executions are long: shows what depends on that.
    long: bool,
}

const PFSCAN: &str = "programs/pfscan.h";
const AGET: &str = "programs/aget.h";

const fn program(
    name: &'static str,
    paper: &'static str,
    file: &'static str,
    macros: &'static [&'static str],
) -> Program {
    Program { name, file, macros, paper, buggy: false, long: false }
}

const fn buggy(program: Program) -> Program {
    Program { buggy: true, ..program }
}

const fn long(program: Program) -> Program {
    Program { long: true, ..program }
}

/// The sizes: large enough for the paper's proportions at three threads, small enough for `dpor` at four.
pub const PROGRAMS: &[Program] = &[
    program("pfscan", "pfscan", PFSCAN, &["FILES=2"]),
    long(program("pfscan_long", "pfscan", PFSCAN, &["FILES=2", "LONG_FILES"])),
    program("aget_own", "aget", AGET, &["SEGMENT=100", "PROGRESS=2"]),
    program("aget_list", "aget", AGET, &["SHARED_LIST", "SEGMENTS=4"]),
    // Packets as large as they come over an Ethernet.
    long(program("aget_own_long", "aget", AGET, &["SEGMENT=2800", "PACKET=1460", "PROGRESS=2"])),
    long(program("aget_list_long", "aget", AGET, &["SHARED_LIST", "SEGMENTS=4", "SEGMENT=1400", "PACKET=1460"])),
    buggy(program("pfscan_bug", "pfscan-buggy", PFSCAN, &["FILES=2", "CLOSE_WAKES_ONE"])),
    buggy(program("aget_bug", "aget-buggy", AGET, &["SEGMENT=100", "PROGRESS=2", "LOCKS_INVERTED"])),
];

impl Program {
    /// Compiles it for so many threads, of which one is main.
    pub fn build(&self, tools: &Tools, threads: u32) -> Result<PathBuf> {
        let workers = format!("WORKERS={}", threads - 1);
        let macros: Vec<&str> = self.macros.iter().copied().chain([workers.as_str()]).collect();
        tools.instrumented_with(self.file, &macros)
    }
}

/// Which programs, in which sizes, and for how long.
pub struct Selection {
    pub threads: RangeInclusive<u32>,
    pub limit_s: u64,
    pub only: Option<String>,
    pub buggy: bool,
    /// Those with long executions too.
    pub long: bool,
}

impl Selection {
    /// What is to be searched, in the order in which it is shown.
    pub fn cases(&self) -> Vec<(&'static Program, u32)> {
        let named = |p: &&Program| self.only.as_ref().is_none_or(|name| p.name.contains(name.as_str()));
        let wanted = PROGRAMS.iter().filter(|p| (self.buggy || !p.buggy) && (self.long || !p.long)).filter(named);
        wanted.flat_map(|p| self.threads.clone().map(move |n| (p, n))).collect()
    }
}

pub const REDUCTIONS: [&str; 2] = ["dpor", "source"];

/// How to search.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    pub reduction: &'static str,
    pub symmetry: bool,
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    Seconds(u64),
    Executions(u64),
}

/// What came of a search.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Nothing was left out for want of time.
    pub complete: bool,
    pub verdict: String,
    pub time_s: f64,
    /// Of controller and worker together, which spin while they wait for each other unless they have only one CPU.
    pub cpu_s: f64,
    pub executions: u64,
    pub blocked: u64,
    pub transitions: u64,
    pub symmetry: Symmetry,
}

impl Outcome {
    /// Executions, with those that were cut off as redundant: they cost time too.
    pub fn runs(&self) -> u64 {
        self.executions + self.blocked
    }
}

/// Searches a program. Only a program that is known to have an error may show one.
pub fn run(tools: &Tools, program: &Program, binary: &Path, mode: Mode, stop: Stop) -> Result<Outcome> {
    let Search { summary, cpu, .. } = search_with(tools, binary, &options(program, mode, stop))?;
    let wrong = match summary.verdict.as_str() {
        "ok" => program.buggy,
        "error" => !program.buggy,
        "incomplete" => false,
        _ => true,
    };
    if wrong {
        return Err(format!("{}: {summary:?}", binary.display()).into());
    }
    Ok(Outcome {
        complete: summary.complete,
        verdict: summary.verdict,
        time_s: summary.time_s,
        cpu_s: cpu.as_secs_f64(),
        executions: summary.executions,
        blocked: summary.blocked,
        transitions: summary.transitions,
        symmetry: summary.symmetry,
    })
}

fn options(program: &Program, mode: Mode, stop: Stop) -> Vec<String> {
    let symmetry = if mode.symmetry { "on" } else { "off" };
    let stop = match stop {
        Stop::Seconds(n) => format!("--time-limit={n}s"),
        Stop::Executions(n) => format!("--max-executions={n}"),
    };
    let mut options = vec![format!("--reduction={}", mode.reduction), format!("--symmetry={symmetry}"), stop];
    options.extend(program.buggy.then(|| "--keep-going".to_owned()));
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_selected_by_name_and_kind() {
        let select = |only: Option<&str>, buggy, long| {
            let selection = Selection { threads: 3..=4, limit_s: 1, only: only.map(str::to_owned), buggy, long };
            selection.cases().iter().map(|(p, n)| format!("{} {n}", p.name)).collect::<Vec<_>>()
        };
        assert_eq!(select(Some("pfscan"), false, false), ["pfscan 3", "pfscan 4"]);
        assert_eq!(select(Some("pfscan"), true, false), ["pfscan 3", "pfscan 4", "pfscan_bug 3", "pfscan_bug 4"]);
        assert_eq!(select(Some("pfscan_long"), false, true), ["pfscan_long 3", "pfscan_long 4"]);
        assert_eq!(select(None, true, true).len(), 2 * PROGRAMS.len());
    }

    #[test]
    fn all_programs_are_there_and_in_the_paper() {
        for program in PROGRAMS {
            assert!(crate::tools::fixtures().join(program.file).is_file(), "{}", program.file);
            assert!(crate::paper::compared(program.paper, 4).is_some(), "{}", program.paper);
        }
    }

    #[test]
    fn modes_become_options() {
        let mode = Mode { reduction: "dpor", symmetry: true };
        let buggy = PROGRAMS.iter().find(|p| p.buggy).expect("some have errors");
        let found = options(buggy, mode, Stop::Seconds(60));
        assert_eq!(found, ["--reduction=dpor", "--symmetry=on", "--time-limit=60s", "--keep-going"]);
        let found = options(&PROGRAMS[0], Mode { symmetry: false, ..mode }, Stop::Executions(7));
        assert_eq!(found, ["--reduction=dpor", "--symmetry=off", "--max-executions=7"]);
    }
}
