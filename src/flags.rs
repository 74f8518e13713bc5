//! The command line as typed. What it means is decided in [`crate::options`].

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Parser, Debug)]
#[command(name = "symdpor", version)]
#[command(
    about = "Finds concurrency bugs by running every interleaving that matters",
    after_help = "Build with `symdpor cc prog.c -o prog`, then `symdpor run ./prog`.
Exit codes: 0 no error, 1 error found, 2 wrong usage or environment,
3 limit reached, 4 not controllable, 5 a replayed error did not come back."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a program in every interleaving that matters
    #[command(
        override_usage = "symdpor run [OPTIONS] [--] PROGRAM [ARGS]...\n       symdpor run --resume FILE [--checkpoint FILE] [OPTIONS]"
    )]
    Run(RunFlags),
    /// Run several programs, and say which are as expected
    Test(TestFlags),
    /// Run one failing execution again
    Replay(ReplayFlags),
    /// Show which threads are alike, and what tells them apart
    #[command(override_usage = "symdpor explain-symmetry [OPTIONS] [--] PROGRAM [ARGS]...")]
    ExplainSymmetry(ExplainFlags),
    /// Show the report of a failing execution, from its trace file
    Show(ShowFlags),
    /// Compile C with clang and the pass
    #[command(disable_help_flag = true)]
    Cc(CompileFlags),
    /// Compile C++ with clang++ and the pass
    #[command(name = "c++", disable_help_flag = true)]
    Cxx(CompileFlags),
    /// Print shell completions: bash, zsh, fish, ...
    Completions(CompletionsFlags),
    /// Write man pages to a directory
    Man(ManFlags),
}

#[derive(Args, Debug)]
pub struct RunFlags {
    /// How to leave out equivalent interleavings
    #[arg(long, value_enum, default_value_t = Reduction::Source)]
    pub reduction: Reduction,
    /// Whether to leave out interleavings that differ in the names of equal threads
    #[arg(long, value_enum, default_value_t = Symmetry::On)]
    pub symmetry: Symmetry,
    /// Where threads are switched: at synchronisation, or at every access to shared memory
    #[arg(long, value_enum, default_value_t = Visible::Sync)]
    pub visible: Visible,
    /// Whether a data race is an error; `ignore` implies `--visible all`
    #[arg(long, value_enum, default_value_t = Races::Error)]
    pub races: Races,
    /// Stop after so many executions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_executions: Option<u64>,
    /// Stop after this time: 30s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub time_limit: Option<Duration>,
    /// Steps that one execution may have; more are an error
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: u32,
    /// Go on after an error and report each distinct one once
    #[arg(long)]
    pub keep_going: bool,
    /// Write there how far the search is, every 30 s and when it is interrupted or reaches a limit
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Go on with the search of a checkpoint; program and options are in it, limits are not
    #[arg(long, value_name = "FILE", conflicts_with_all = ["reduction", "symmetry", "visible", "races", "max_steps", "keep_going", "seed", "command"])]
    pub resume: Option<PathBuf>,
    /// Worker processes
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub jobs: u32,
    /// Write a summary in JSON to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,
    /// Write a report in JUnit's XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the errors in SARIF 2.1.0, for code scanning
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Where traces of errors are written [default: symdpor-out]
    #[arg(long, value_name = "DIR")]
    pub trace_dir: Option<PathBuf>,
    /// Neither progress nor the program's output
    #[arg(long, short)]
    pub quiet: bool,
    /// Seed of what looks random to the program
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// What `__VERIFIER_nondet_int` and its like may return: every number of the range is tried
    #[arg(long, value_name = "LO..HI", value_parser = parse_range, allow_hyphen_values = true)]
    pub nondet: Option<(i64, i64)>,
    /// The program to run and its arguments
    // One list: only then does clap leave alone everything after the program's name, flags included.
    #[arg(value_name = "PROGRAM [ARGS]", trailing_var_arg = true, required_unless_present = "resume")]
    pub command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub struct TestFlags {
    /// The file that names the programs [default: symdpor.toml]
    #[arg(long, value_name = "FILE", conflicts_with = "programs")]
    pub config: Option<PathBuf>,
    /// Stop after this time: 30s, 10m, 2h; it is shared among the programs
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub time_limit: Option<Duration>,
    /// Write a report in JUnit's XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the errors in SARIF 2.1.0, for code scanning
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write all summaries in JSON to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,
    /// Where traces of errors are written [default: symdpor-out]
    #[arg(long, value_name = "DIR")]
    pub trace_dir: Option<PathBuf>,
    /// Programs without arguments; for arguments and options write a file
    #[arg(value_name = "PROGRAM")]
    pub programs: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub struct CompletionsFlags {
    pub shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub struct ManFlags {
    /// Where the pages are written
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

#[derive(Args, Debug)]
pub struct ExplainFlags {
    /// Look at the state before this step of the first execution; without it, before the first step at which most threads can run
    #[arg(long, value_name = "N")]
    pub step: Option<usize>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub struct ReplayFlags {
    /// A trace file
    pub trace: PathBuf,
    /// Run it under gdb: stops at the error; `info symdpor-threads` and `symdpor-backtrace N` show the threads
    #[arg(long)]
    pub gdb: bool,
    /// With --gdb: stop before this step as well (may be given several times)
    #[arg(long, value_name = "N", requires = "gdb")]
    pub at: Vec<usize>,
    /// The schedule as it was found, before it was made simple
    #[arg(long)]
    pub original: bool,
}

#[derive(Args, Debug)]
pub struct ShowFlags {
    /// A trace file; without it the newest one in symdpor-out
    pub trace: Option<PathBuf>,
    /// Show every step, however many there are
    #[arg(long)]
    pub all: bool,
    /// Write a page for a browser to FILE instead
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct CompileFlags {
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reduction {
    /// all interleavings
    None,
    /// dynamic partial order reduction with persistent sets
    Dpor,
    /// source sets and sleep sets
    Source,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Symmetry {
    Off,
    On,
    Check,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visible {
    Sync,
    All,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Races {
    Error,
    Ignore,
}

/// `0..3`: from 0 to 3, both included.
fn parse_range(text: &str) -> Result<(i64, i64), String> {
    const MOST: i128 = 65_535;
    let (low, high) = text.split_once("..").ok_or("a range such as -1..3 is expected")?;
    let number = |text: &str| text.trim().parse::<i64>().map_err(|_| format!("`{text}` is no number"));
    let (low, high) = (number(low)?, number(high)?);
    match i128::from(high) - i128::from(low) + 1 {
        ..1 => Err("the range is empty".to_owned()),
        count if count > MOST => Err(format!("the range has more than {MOST} numbers")),
        _ => Ok((low, high)),
    }
}

/// `30s`, `10m`, `2h`, `500ms`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: f64 = digits.parse().map_err(|_| "a time such as 30s, 10m or 2h is expected".to_owned())?;
    let unit = match &text[digits.len()..] {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("give a number with a unit: 30s, 10m or 2h".to_owned()),
    };
    Duration::try_from_secs_f64(number * unit).map_err(|_| "this is no length of time".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn run(arguments: &[&str]) -> Result<RunFlags, clap::Error> {
        let all = ["symdpor", "run"].iter().chain(arguments);
        match Cli::try_parse_from(all)?.command {
            Command::Run(flags) => Ok(flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_have_units() {
        assert_eq!(parse_duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(parse_duration("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "s", "30", "30d", "-1s", "1e300h", "NaNs"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!(parse_range("0..3"), Ok((0, 3)));
        assert_eq!(parse_range("-2..-1"), Ok((-2, -1)));
        for wrong in ["", "3", "3..0", "a..b", "0..70000", "..3"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
        assert_eq!(run(&["--nondet", "-1..1", "./prog"]).unwrap().nondet, Some((-1, 1)));
    }

    #[test]
    fn flags_after_the_program_are_the_programs() {
        let flags = run(&["--quiet", "./prog", "--max-steps", "-x"]).unwrap();
        assert!(flags.quiet);
        assert_eq!(flags.command, ["./prog", "--max-steps", "-x"]);
        assert_eq!(flags.max_steps, 100_000);
        let flags = run(&["--", "./prog", "--quiet", "--", "-y"]).unwrap();
        assert!(!flags.quiet);
        assert_eq!(flags.command, ["./prog", "--quiet", "--", "-y"]);
    }

    #[test]
    fn unknown_flags_before_the_program_are_errors() {
        assert!(run(&["--no-such-flag", "./prog"]).is_err());
        assert!(run(&[]).is_err());
        assert!(run(&["--max-executions", "0", "./prog"]).is_err());
        assert!(run(&["--reduction", "magic", "./prog"]).is_err());
    }

    #[test]
    fn the_help_fits_a_screen() {
        let help = Cli::command().render_help().to_string();
        assert!(help.lines().count() <= 24, "{help}");
        assert!(help.lines().all(|l| l.chars().count() <= 80), "{help}");
    }
}
