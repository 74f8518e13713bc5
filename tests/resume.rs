//! A search that is killed, stopped or limited, and resumed until it is done, has the counts and errors of one that was not.

mod common;

use common::build::{self, With};
use common::{process, tool};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(300);
/// Over all cases.
const KILLS: usize = 50;

struct Case {
    file: &'static str,
    macros: &'static [&'static str],
    options: &'static [&'static str],
}

/// Each takes about a second.
const CASES: [Case; 11] = [
    Case { file: "litmus/readers.h", macros: &["-DREADERS=14"], options: &["--symmetry", "off"] },
    Case { file: "classic/last_zero.c", macros: &["-DN=10"], options: &["--symmetry", "on"] },
    Case { file: "classic/last_zero.c", macros: &["-DN=7"], options: &["--reduction", "dpor", "--symmetry", "off"] },
    Case { file: "classic/treiber_stack.c", macros: &["-DTHREADS=3"], options: &["--symmetry", "on"] },
    Case { file: "mutex/counter.h", macros: &["-DTHREADS=4"], options: &["--reduction", "none"] },
    Case { file: "cond/bounded_buffer.c", macros: &["-DCONSUMERS=4"], options: &["--symmetry", "on"] },
    Case { file: "classic/last_zero.c", macros: &["-DN=7"], options: &["--reduction", "dpor"] },
    // Pipes, files, and time limits, with symmetry as it is by default.
    Case { file: "outside/pipe_pool.c", macros: &[], options: &["--reduction", "dpor"] },
    Case { file: "outside/append_many.h", macros: &[], options: &[] },
    Case { file: "limits/cond_many.h", macros: &["-DTHREADS=3"], options: &["--symmetry", "on"] },
    Case {
        file: "classic/rare_assertion.c",
        macros: &[],
        options: &["--reduction", "dpor", "--symmetry", "off", "--keep-going"],
    },
];

impl Case {
    fn program(&self, directory: &Path) -> PathBuf {
        let source = tool::root().join("fixtures").join(self.file);
        let program = directory.join("prog");
        let flags = [&["-O1", "-xc", "-pthread", "-I"], &[source.parent().and_then(Path::to_str).expect("a path")][..]];
        let text = std::fs::read_to_string(&source).expect("a fixture");
        let flags: Vec<&str> = flags.concat().into_iter().chain(self.macros.iter().copied()).collect();
        build::text(&text, false, &flags, &program, With::Pass).unwrap_or_else(|e| panic!("{e}"));
        program
    }
}

/// What must be the same. Times are not.
fn result(json: &Path) -> Value {
    let mut value = summary(json);
    let mut kept = serde_json::Map::new();
    for key in ["verdict", "complete", "executions", "blocked", "transitions", "threads", "symmetry", "errors"] {
        kept.insert(key.to_owned(), value[key].take());
    }
    kept["symmetry"]["time_s"] = Value::Null;
    for error in kept["errors"].as_array_mut().expect("a list") {
        error["trace"] = Value::Null;
    }
    Value::Object(kept)
}

fn summary(json: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(json).expect("a summary")).expect("JSON")
}

/// `symdpor run` in a directory, with checkpoints as often as it can.
fn run_command(directory: &Path) -> Command {
    let mut command = tool::symdpor();
    command.arg("run").arg("--quiet").args(["--json", "summary.json"]).current_dir(directory);
    command.env("SYMDPOR_CHECKPOINT_MS", "10").stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn resume_command(directory: &Path) -> Command {
    let mut command = run_command(directory);
    command.args(["--resume", "kept", "--checkpoint", "kept"]);
    command
}

fn start_or_resume(case: &Case, directory: &Path, program: &Path) -> Command {
    if directory.join("kept").exists() {
        return resume_command(directory);
    }
    let mut command = run_command(directory);
    command.args(case.options).args(["--checkpoint", "kept"]).arg(program);
    command
}

fn send(child: &Child, signal: i32) {
    let id = i32::try_from(child.id()).expect("process ids are small");
    // SAFETY: kill has no memory effects; the child has not been waited for, so the id is still its own.
    unsafe { libc::kill(id, signal) };
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Kills it again and again, and lets it run once `most` kills have been made. How many there were. `whole`: how long it takes if nobody does, so
/// that on any machine most kills come before its end.
fn killed_until_done(
    (case, directory, program): (&Case, &Path, &Path),
    whole: Duration,
    most: usize,
    random: &mut Random,
) -> usize {
    let mut kills = 0;
    let latest = (whole.as_millis() as u64 / 2).clamp(20, 200);
    loop {
        let mut child = start_or_resume(case, directory, program).spawn().expect("it starts");
        if kills < most {
            std::thread::sleep(Duration::from_millis(5 + random.below(latest)));
            let signal = [libc::SIGKILL, libc::SIGKILL, libc::SIGTERM, libc::SIGINT][random.below(4) as usize];
            send(&child, signal);
        }
        let status = process::wait(&mut child, Instant::now() + LIMIT).expect("it ends");
        match status.code() {
            // One that has found an error says so even if it was stopped before its end; then there is a checkpoint.
            Some(0 | 1) if !directory.join("kept").exists() => return kills,
            // Stopped, or killed by the signal, or by one that came before it was listened to.
            Some(1 | 3) | None => kills += 1,
            code => {
                let output = child.wait_with_output().expect("it has ended");
                panic!("exit code {code:?}: {}", String::from_utf8_lossy(&output.stderr));
            }
        }
    }
}

#[test]
fn killed_at_random_moments_and_resumed_it_counts_the_same() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut kills = 0;
    for (i, case) in CASES.iter().cycle().take(4 * CASES.len()).enumerate() {
        let directory = tool::fresh_directory();
        let directory = directory.path();
        let program = case.program(directory);
        let started = Instant::now();
        let status = run_command(directory).args(case.options).arg(&program).status().expect("it runs");
        let whole = started.elapsed();
        assert!(matches!(status.code(), Some(0 | 1)), "{}: {status}", case.file);
        let expected = result(&directory.join("summary.json"));
        let most = KILLS.div_ceil(CASES.len());
        kills += killed_until_done((case, directory, &program), whole, most, &mut random);
        assert_eq!(result(&directory.join("summary.json")), expected, "{} {:?}", case.file, case.options);
        assert!(!directory.join("kept").exists(), "nothing is left to go on with");
        if kills >= KILLS && i + 1 >= CASES.len() {
            println!("{kills} kills");
            return;
        }
    }
    panic!("only {kills} kills: the programs are too small for this machine");
}

/// A program with some thousand executions, stopped after a few.
fn stopped() -> (tempfile::TempDir, PathBuf) {
    let directory = tool::fresh_directory();
    let program = CASES[1].program(directory.path());
    let mut command = run_command(directory.path());
    command.args(["--max-executions", "100", "--checkpoint", "kept"]).arg(&program);
    let ran = process::run(&mut command, LIMIT);
    assert_eq!(ran.code(), Some(3), "{}", ran.describe());
    assert_eq!(summary(&directory.path().join("summary.json"))["executions"], 100);
    (directory, program)
}

#[test]
fn limits_are_those_of_each_run() {
    let (directory, program) = stopped();
    for limit in 2..6u64 {
        let limit = (100 * limit).to_string();
        let ran = process::run(resume_command(directory.path()).args(["--max-executions", &limit]), LIMIT);
        assert_eq!(ran.code(), Some(3), "{}", ran.describe());
        let executions = summary(&directory.path().join("summary.json"))["executions"].to_string();
        assert_eq!(executions, limit, "{}", ran.describe());
    }
    let ran = process::run(&mut resume_command(directory.path()), LIMIT);
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
    let resumed = result(&directory.path().join("summary.json"));
    let ran = process::run(run_command(directory.path()).arg(program), LIMIT);
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
    assert_eq!(resumed, result(&directory.path().join("summary.json")));
}

fn refused(command: &mut Command, said: &str) {
    let ran = process::run(command, LIMIT);
    assert_eq!(ran.code(), Some(2), "{}", ran.describe());
    assert!(ran.errors().contains(said), "{}", ran.describe());
}

#[test]
fn a_checkpoint_that_cannot_be_used_is_refused() {
    let (directory, program) = stopped();
    let directory = directory.path();
    let kept = directory.join("kept");
    let good = std::fs::read(&kept).expect("a checkpoint");
    let with = |bytes: &[u8], said: &str| {
        std::fs::write(&kept, bytes).expect("it can be written");
        refused(&mut resume_command(directory), said);
        assert_eq!(std::fs::read(&kept).expect("it is there"), bytes, "it is left alone");
    };
    with(&good[..good.len() / 2], "truncated");
    with(&[], "not a checkpoint");
    with(b"#!/bin/sh\n", "not a checkpoint");
    let mut changed = good.clone();
    changed[good.len() / 2] ^= 1;
    with(&changed, "damaged");
    let mut newer = good.clone();
    newer[8] += 1;
    with(&newer, "format version");
    std::fs::write(&kept, &good).expect("it can be written");

    refused(run_command(directory).args(["--resume", "nowhere"]), "nowhere");
    refused(run_command(directory).args(["--resume", "kept", "--symmetry", "off"]), "--symmetry");
    refused(run_command(directory).args(["--resume", "kept"]).arg(&program), "PROGRAM");
    // An old one is not overwritten.
    refused(run_command(directory).args(["--checkpoint", "kept"]).arg(&program), "exists");
    refused(run_command(directory).args(["--checkpoint", "no/such/place"]).arg(&program), "no/such/place");
    refused(
        run_command(directory).args(["--checkpoint", "x", "--symmetry", "check"]).arg(&program),
        "--symmetry check",
    );
    // Another program of the same name.
    let bytes = std::fs::read(&program).expect("a program");
    std::fs::write(&program, [&bytes[..], b"\n"].concat()).expect("it can be written");
    refused(&mut resume_command(directory), "has been changed");
    std::fs::write(&program, bytes).expect("it can be written");
    let ran = process::run(&mut resume_command(directory), LIMIT);
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
}

/// What decides what the program does but is not in its file.
#[test]
fn a_program_that_does_something_else_now_is_refused() {
    const SOURCE: &str = r#"
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int rounds;
static void *work(void *unused)
{
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}
int main(void)
{
    FILE *file = fopen("rounds", "r");
    if (!file || fscanf(file, "%d", &rounds) != 1)
        return 1;
    fclose(file);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
"#;
    let directory = tool::fresh_directory();
    let directory = directory.path();
    let program = directory.join("prog");
    build::text(SOURCE, false, &["-O1", "-pthread"], &program, With::Pass).unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(directory.join("rounds"), "2\n").expect("it can be written");
    let options = ["--symmetry", "off", "--max-executions", "50", "--checkpoint", "kept"];
    let ran = process::run(run_command(directory).args(options).arg(&program), LIMIT);
    assert_eq!(ran.code(), Some(3), "{}", ran.describe());
    std::fs::write(directory.join("rounds"), "1\n").expect("it can be written");
    refused(&mut resume_command(directory), "does not do what it did");
}

/// What has been read of a pipe is in the checkpoint.
#[test]
fn standard_input_goes_on_too() {
    const SOURCE: &str = r#"
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *unused)
{
    char c = 0;
    pthread_mutex_lock(&mutex);
    if (read(0, &c, 1) == 1 && c == '!')
        _exit(7);
    pthread_mutex_unlock(&mutex);
    return unused;
}
int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
"#;
    let directory = tool::fresh_directory();
    let directory = directory.path();
    let program = directory.join("prog");
    build::text(SOURCE, false, &["-O1", "-pthread"], &program, With::Pass).unwrap_or_else(|e| panic!("{e}"));
    let piped = |text: &str, command: &mut Command| {
        let mut echo = Command::new("printf").arg("%s").arg(text).stdout(Stdio::piped()).spawn().expect("it starts");
        let ran = process::run(command.stdin(echo.stdout.take().expect("a pipe")), LIMIT);
        echo.wait().expect("it ends");
        ran
    };
    let mut first = run_command(directory);
    first.args(["--symmetry", "off", "--max-executions", "5", "--checkpoint", "kept"]).arg(&program);
    let ran = piped("abcd", &mut first);
    assert_eq!(ran.code(), Some(3), "{}", ran.describe());
    let ran = piped("!!!!", &mut resume_command(directory));
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
    let resumed = result(&directory.join("summary.json"));
    let ran = piped("abcd", run_command(directory).args(["--symmetry", "off"]).arg(&program));
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
    assert_eq!(resumed, result(&directory.join("summary.json")));
}

/// A directory with room for so much; none where there is no right to make one.
struct Tiny(tempfile::TempDir);

impl Tiny {
    fn new(size: &str) -> Option<Tiny> {
        let directory = tool::fresh_directory();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(directory.path());
        (process::run(&mut mount, LIMIT).code() == Some(0)).then_some(Tiny(directory))
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        process::run(Command::new("umount").arg(self.0.path()), LIMIT);
    }
}

#[test]
fn a_full_disk_does_not_end_the_search() {
    let Some(tiny) = Tiny::new("1m") else {
        eprintln!("skipped: no file system can be mounted");
        return;
    };
    let (directory, kept) = (tool::fresh_directory(), tiny.0.path().join("kept"));
    let program = CASES[0].program(directory.path());
    let run = |resume: bool, most: &str| {
        let mut command = run_command(directory.path());
        command.args(["--max-executions", most, "--checkpoint"]).arg(&kept);
        if resume {
            command.arg("--resume").arg(&kept);
        } else {
            command.args(CASES[0].options).arg(&program);
        }
        let ran = process::run(&mut command, LIMIT);
        assert_eq!(ran.code(), Some(3), "{}", ran.describe());
        ran.errors()
    };
    assert_eq!(run(false, "3000"), "");
    std::fs::write(tiny.0.path().join("fill"), vec![1; 2 << 20]).expect_err("there is not so much room");
    let said = run(true, "6000");
    assert_eq!(said.matches("the checkpoint could not be written").count(), 1, "{said}");
    assert!(said.contains("an older checkpoint is there"), "{said}");
    assert_eq!(summary(&directory.path().join("summary.json"))["executions"], 6000);
    std::fs::remove_file(tiny.0.path().join("fill")).expect("it is ours");
    assert_eq!(run(true, "9000"), "");
    assert_eq!(summary(&directory.path().join("summary.json"))["executions"], 9000);
}

#[test]
fn a_directory_that_cannot_be_written_to_is_refused_at_once() {
    let (directory, _) = stopped();
    refused(
        run_command(directory.path()).args(["--checkpoint", "/proc/kept", "./prog"]),
        "a checkpoint cannot be written",
    );
}
