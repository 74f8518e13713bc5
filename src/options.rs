//! The command line as it takes effect.

use crate::checkpoint::{Checkpoint, SearchOptions};
use crate::flags::{Races, Reduction, RunFlags, Symmetry, Visible};
use crate::outputs::Outputs;
use serde_json::json;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use symdpor_abi::channel::options as bits;
use symdpor_trace::file::ExecutionOptions;

/// Overrides how long one step may take, in milliseconds of CPU time.
const ENV_STEP_TIMEOUT: &str = "SYMDPOR_STEP_TIMEOUT_MS";
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JsonTarget {
    Stdout,
    File(PathBuf),
}

#[derive(Clone, Debug)]
pub struct RunOptions {
    pub reduction: Reduction,
    pub symmetry: Symmetry,
    pub execution: ExecutionOptions,
    pub max_executions: Option<u64>,
    pub time_limit: Option<Duration>,
    pub step_timeout: Duration,
    pub keep_going: bool,
    pub json: Option<JsonTarget>,
    pub trace_dir: PathBuf,
    pub quiet: bool,
    pub checkpoint: Option<PathBuf>,
    pub outputs: Outputs,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// Where traces go if nothing else is said.
const TRACE_DIR: &str = "symdpor-out";

/// Flags that are understood but cannot be had.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UsageError {
    #[error("--jobs {0} is not available yet: this version runs one worker (--jobs 1)")]
    Jobs(u32),
    #[error("--checkpoint does not go with --symmetry check, which searches twice")]
    CheckTwice,
}

impl RunOptions {
    pub fn resolve(flags: RunFlags) -> Result<RunOptions, UsageError> {
        if flags.jobs != 1 {
            return Err(UsageError::Jobs(flags.jobs));
        }
        if flags.checkpoint.is_some() && flags.symmetry == Symmetry::Check {
            return Err(UsageError::CheckTwice);
        }
        let ignore_races = flags.races == Races::Ignore;
        // Without races as errors, switching at synchronisation only would miss behaviours.
        let visible_all = ignore_races || flags.visible == Visible::All;
        let execution = ExecutionOptions {
            visible_all,
            ignore_races,
            max_steps: flags.max_steps,
            seed: flags.seed,
            nondet: flags.nondet,
        };
        Ok(RunOptions {
            reduction: flags.reduction,
            // All interleavings are all of them.
            symmetry: if flags.reduction == Reduction::None { Symmetry::Off } else { flags.symmetry },
            execution,
            max_executions: flags.max_executions,
            time_limit: flags.time_limit,
            step_timeout: step_timeout(),
            keep_going: flags.keep_going,
            json: flags.json.map(json_target),
            trace_dir: flags.trace_dir.unwrap_or_else(|| TRACE_DIR.into()),
            quiet: flags.quiet,
            checkpoint: flags.checkpoint,
            outputs: Outputs { junit: flags.junit, sarif: flags.sarif },
            command: flags.command,
        })
    }

    /// What is searched comes from the checkpoint, limits and what is written where from the command line.
    pub fn resume(flags: RunFlags, checkpoint: &Checkpoint) -> Result<RunOptions, UsageError> {
        let SearchOptions { reduction, symmetry, execution, keep_going, trace_dir } = checkpoint.options.clone();
        let trace_dir = flags.trace_dir.clone().unwrap_or(trace_dir);
        let command = checkpoint.command();
        let given = RunOptions::resolve(flags)?;
        Ok(RunOptions { reduction, symmetry, execution, keep_going, trace_dir, command, ..given })
    }

    /// What a checkpoint keeps of them.
    pub fn search(&self) -> SearchOptions {
        let directory = std::env::current_dir().unwrap_or_default();
        SearchOptions {
            reduction: self.reduction,
            symmetry: self.symmetry,
            execution: self.execution,
            keep_going: self.keep_going,
            trace_dir: directory.join(&self.trace_dir),
        }
    }

    /// For the summary: each option by the name of its flag.
    pub fn echo(&self) -> serde_json::Value {
        let text = |s: &OsString| s.to_string_lossy().into_owned();
        json!({
            "reduction": self.reduction,
            "symmetry": self.symmetry,
            "visible": if self.execution.visible_all { Visible::All } else { Visible::Sync },
            "races": if self.execution.ignore_races { Races::Ignore } else { Races::Error },
            "max-executions": self.max_executions,
            "time-limit": self.time_limit.map(|t| t.as_secs_f64()),
            "max-steps": self.execution.max_steps,
            "keep-going": self.keep_going,
            "jobs": 1,
            "trace-dir": self.trace_dir.to_string_lossy(),
            "seed": self.execution.seed,
            "nondet": self.execution.nondet.map(|(low, high)| format!("{low}..{high}")),
            "command": self.command.iter().map(text).collect::<Vec<_>>(),
        })
    }

    /// Whether the first execution's output goes to the terminal.
    pub fn shows_output(&self) -> bool {
        !self.quiet && self.json != Some(JsonTarget::Stdout)
    }
}

/// The bits of the channel that stand for the options.
pub fn channel_bits(options: &ExecutionOptions) -> u32 {
    let visible = if options.visible_all { bits::VISIBLE_ALL } else { 0 };
    let races = if options.ignore_races { bits::IGNORE_RACES } else { 0 };
    let nondet = if options.nondet.is_some() { bits::NONDET } else { 0 };
    visible | races | nondet
}

fn json_target(path: PathBuf) -> JsonTarget {
    if path.as_os_str() == "-" { JsonTarget::Stdout } else { JsonTarget::File(path) }
}

pub fn step_timeout() -> Duration {
    let set = std::env::var(ENV_STEP_TIMEOUT).ok().and_then(|v| v.parse().ok());
    set.map_or(STEP_TIMEOUT, Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Cli, Command};
    use clap::Parser;

    fn resolve(flags: &str) -> Result<RunOptions, UsageError> {
        let line = format!("symdpor run {flags} ./prog");
        match Cli::parse_from(line.split_whitespace()).command {
            Command::Run(flags) => RunOptions::resolve(flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ignoring_races_makes_every_access_visible() {
        let options = resolve("--races ignore").unwrap();
        assert!(options.execution.visible_all && options.execution.ignore_races);
        assert_eq!(channel_bits(&options.execution), bits::VISIBLE_ALL | bits::IGNORE_RACES);
        assert_eq!(options.echo()["visible"], "all");
    }

    #[test]
    fn what_is_not_there_yet_is_refused() {
        assert_eq!(resolve("--jobs 2").unwrap_err(), UsageError::Jobs(2));
        assert!(resolve("--symmetry on").is_ok());
    }

    #[test]
    fn json_on_standard_output_keeps_the_program_quiet() {
        assert!(resolve("").unwrap().shows_output());
        assert!(!resolve("--json -").unwrap().shows_output());
        assert!(!resolve("--quiet").unwrap().shows_output());
        assert!(resolve("--json out.json").unwrap().shows_output());
    }
}
