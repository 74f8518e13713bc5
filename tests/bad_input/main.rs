//! Bad input: what is said, with which exit code, and that nothing hangs and nothing is left behind.
//!
//! Programs that cannot be started are in `start.rs`, programs that misbehave in `misbehave.rs`, libraries that do in
//! `libraries.rs`, a tool that is killed or cannot write in `interrupted.rs`.

#[path = "../common/mod.rs"]
mod common;
mod interrupted;
mod libraries;
mod misbehave;
mod start;

use common::build::{self, With};
use common::process::{self, Ran};
use common::{leftovers, tool};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Inherited by everything that a run starts, so that leftovers can be found.
const MARK: &str = "SYMDPOR_TEST_RUN";
/// Nothing here may take longer, steps that never end included.
const LIMIT: Duration = Duration::from_secs(60);
const STEP_TIMEOUT_MS: &str = "2000";

/// A directory with a program in it that was built from `source`.
struct Place {
    directory: tempfile::TempDir,
    mark: String,
}

impl Place {
    fn new() -> Place {
        let mark = format!("{}-{}", std::process::id(), tool::unique());
        Place { directory: tool::fresh_directory(), mark }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn build(&self, source: &str, with: With, flags: &[&str]) -> PathBuf {
        let program = self.path("prog");
        build::text(source, false, flags, &program, with).unwrap_or_else(|e| panic!("{e}"));
        program
    }

    /// `symdpor run` in this directory, ready for more arguments.
    fn run_command(&self) -> Command {
        let mut command = tool::symdpor();
        command.arg("run").current_dir(self.directory.path()).env(MARK, &self.mark);
        command.env("SYMDPOR_STEP_TIMEOUT_MS", STEP_TIMEOUT_MS);
        command
    }

    fn run(&self, program: &Path) -> Ran {
        self.finish(self.run_command().arg("--quiet").arg("--trace-dir").arg("traces").arg(program))
    }

    /// Runs the command and checks that it ended in time and left nothing.
    fn finish(&self, command: &mut Command) -> Ran {
        let before = leftovers::files(self.directory.path());
        let ran = process::run(command, LIMIT);
        assert!(ran.status.is_some(), "{command:?}: {}", ran.describe());
        self.nothing_left();
        let mut new: Vec<_> = leftovers::files(self.directory.path()).difference(&before).cloned().collect();
        new.retain(|name| name != "traces" && name != "symdpor-out");
        assert!(new.is_empty(), "{command:?} left {new:?}");
        ran
    }

    /// No process, and nothing of ours in the shared memory file system.
    fn nothing_left(&self) {
        leftovers::wait_for_none(MARK, &self.mark).unwrap_or_else(|e| panic!("{e}"));
        let shared = leftovers::files(Path::new("/dev/shm"));
        let ours: Vec<_> = shared.iter().filter(|n| n.contains("symdpor")).collect();
        assert!(ours.is_empty(), "left in /dev/shm: {ours:?}");
    }
}

/// Expects an exit code, and every part of what must be said.
fn expect(ran: &Ran, code: i32, said: &[&str]) {
    assert_eq!(ran.code(), Some(code), "{}", ran.describe());
    let all = ran.output() + &ran.errors();
    for part in said {
        assert!(all.contains(part), "nothing about {part:?}: {}", ran.describe());
    }
}

/// Builds the source with the pass and runs it.
fn misbehaves(source: &str, code: i32, said: &[&str]) {
    let place = Place::new();
    let program = place.build(source, With::Pass, &["-O1"]);
    expect(&place.run(&program), code, said);
}

/// The same with something on standard input.
fn with_input(source: &str, input: Stdio, code: i32, said: &[&str]) {
    let place = Place::new();
    let program = place.build(source, With::Pass, &["-O1"]);
    let ran = place.finish(place.run_command().arg("--quiet").arg(program).stdin(input));
    expect(&ran, code, said);
}
