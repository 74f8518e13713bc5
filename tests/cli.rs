//! The command line: usage, exit codes, and what is said about programs that cannot be run.
//!
//! Needs no instrumented program: see the fixtures for those.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use symdpor_trace::failure::{Failure, FailureKind};
use symdpor_trace::file::{ExecutionOptions, Program, TraceFile};
use symdpor_trace::{Location, ThreadId};

fn symdpor(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_symdpor")).args(arguments).env_remove("NO_COLOR").output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Expects an exit code and a part of what is said on standard error.
fn expect(arguments: &[&str], code: i32, said: &str) {
    let output = symdpor(arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
    assert!(error.contains(said), "{arguments:?}: {error}");
}

fn write(directory: &Path, name: &str, content: &[u8], mode: u32) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, content).expect("temporary files can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("modes can be set");
    path
}

#[test]
fn wrong_usage_is_exit_code_2() {
    expect(&[], 2, "Usage");
    expect(&["fly"], 2, "fly");
    expect(&["run"], 2, "required");
    expect(&["run", "--no-such-flag", "/bin/true"], 2, "--no-such-flag");
    expect(&["run", "--time-limit", "30", "/bin/true"], 2, "30s");
    expect(&["run", "--max-steps", "0", "/bin/true"], 2, "max-steps");
    expect(&["run", "--reduction", "best", "/bin/true"], 2, "source");
    expect(&["replay"], 2, "TRACE");
}

#[test]
fn what_is_not_available_is_refused_by_name() {
    expect(&["run", "--jobs", "4", "/bin/true"], 2, "--jobs 4 is not available");
    expect(&["replay", "--at", "3", "x.symtrace"], 2, "--gdb");
}

#[test]
fn help_and_version_are_no_errors() {
    for arguments in [&["--help"][..], &["--version"], &["run", "--help"]] {
        let output = symdpor(arguments);
        assert_eq!(output.status.code(), Some(0));
        assert!(output.stderr.is_empty());
        assert!(text(&output.stdout).contains("symdpor"));
    }
}

#[test]
fn programs_that_cannot_be_run_are_explained() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str, content: &[u8], mode| write(directory.path(), name, content, mode).display().to_string();
    expect(&["run", "./no/such/program"], 2, "no such program");
    expect(&["run", "no-such-program-in-path"], 2, "no such program in PATH");
    expect(&["run", "/tmp"], 2, "directory");
    expect(&["run", &at("script", b"#!/bin/sh\nexit 0\n", 0o755)], 2, "script");
    expect(&["run", &at("text", b"hello", 0o755)], 2, "not an ELF executable");
    expect(&["run", &at("noexec", b"hello", 0o644)], 2, "not executable");
    expect(&["run", &at("empty", b"", 0o755)], 2, "not an ELF executable");
    let truth = fs::read("/bin/true").expect("there is /bin/true");
    expect(&["run", &at("cut", &truth[..100], 0o755)], 2, "not an ELF executable");
    expect(&["run", &at("setuid", &truth, 0o4755)], 2, "set-user-id");
}

#[test]
fn a_program_in_the_current_directory_needs_its_slash() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(directory.path(), "prog", b"hello", 0o755);
    let run = ["run", "prog"];
    let output =
        Command::new(env!("CARGO_BIN_EXE_symdpor")).args(run).current_dir(&directory).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean ./prog?"), "{}", text(&output.stderr));
}

#[test]
fn an_unwritable_summary_is_noticed_before_the_search() {
    expect(&["run", "--json", "/no/such/directory/out.json", "/bin/true"], 2, "cannot be written");
}

fn sample() -> TraceFile {
    let location = Location { file: "/x/bank.c".into(), line: 12, column: 1, function: "deposit".into() };
    TraceFile {
        program: Program {
            path: "/no/such/bank".into(),
            arguments: vec!["./bank".into()],
            directory: "/".into(),
            environment: vec![],
            length: 0,
            checksum: 0,
        },
        options: ExecutionOptions { visible_all: false, ignore_races: false, max_steps: 10, seed: 0, nondet: None },
        choices: vec![],
        original: None,
        threads: vec![],
        locations: vec![],
        events: vec![],
        accesses: vec![],
        source: vec![],
        failure: Failure {
            kind: FailureKind::Assertion,
            message: "balance >= 0".into(),
            thread: Some(ThreadId(0)),
            location: Some(location),
            race: None,
            waits: vec![],
            stacks: vec![],
        },
        output: vec![],
        output_cut: false,
    }
}

#[test]
fn a_trace_is_shown_without_its_program() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = write(directory.path(), "a.symtrace", &sample().encode(), 0o644).display().to_string();
    let output = symdpor(&["show", &path]);
    assert_eq!(output.status.code(), Some(0));
    let report = text(&output.stdout);
    assert!(report.starts_with("error: assertion: balance >= 0\n  at /x/bank.c:12 in deposit\n"), "{report}");
    expect(&["replay", &path], 2, "/no/such/bank: no such program");
}

#[test]
fn traces_that_cannot_be_read_are_told_apart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let good = sample().encode();
    let at = |name: &str, content: &[u8]| write(directory.path(), name, content, 0o644).display().to_string();
    let mut newer = good.clone();
    newer[8] = 200;
    let mut damaged = good.clone();
    *damaged.last_mut().expect("not empty") ^= 1;
    let cases = [
        ("/no/such/file".to_owned(), "No such file"),
        (at("empty", b""), "not a trace file"),
        (at("other", b"hello"), "not a trace file"),
        (at("newer", &newer), "format version 200"),
        (at("cut", &good[..good.len() - 1]), "truncated"),
        (at("damaged", &damaged), "damaged"),
    ];
    for (path, said) in cases {
        expect(&["show", &path], 2, said);
        expect(&["replay", &path], 2, said);
    }
}

#[test]
fn the_compiler_that_was_chosen_is_called_with_everything() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let compiler = write(directory.path(), "cc", b"#!/bin/sh\necho \"$@\"\nexit 7\n", 0o755);
    write(directory.path(), "libsymdpor.so", b"", 0o644);
    for (language, variable) in [("cc", "SYMDPOR_CLANG"), ("c++", "SYMDPOR_CLANGXX")] {
        let output = Command::new(env!("CARGO_BIN_EXE_symdpor"))
            .args([language, "--help", "-c", "a b.c"])
            .env(variable, &compiler)
            .env("SYMDPOR_LIB_DIR", directory.path())
            .output()
            .expect("it starts");
        assert_eq!(output.status.code(), Some(7));
        let said = text(&output.stdout);
        assert!(
            said.contains("-fpass-plugin=") && said.contains("-g ") && said.ends_with("--help -c a b.c\n"),
            "{said}"
        );
    }
}

#[test]
fn a_missing_installation_is_named() {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_symdpor"));
        command.args(arguments).env("SYMDPOR_LIB_DIR", "/no/such/directory").output().expect("it starts")
    };
    for (arguments, library) in [(&["cc", "a.c"][..], "libsymdpor.so"), (&["run", "/bin/true"], "libsymdpor_rt.so")] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(library), "{}", text(&output.stderr));
    }
}
