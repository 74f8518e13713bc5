//! System calls: what is undone, what is emulated, and what is refused by name.
//!
//! Most programs here check for themselves that every execution finds what the first one found, and abort if not; so the
//! verdict `ok` over several executions says that everything was put back.

#[path = "../common/mod.rs"]
mod common;
mod peers;

use common::process::{self, Ran};
use common::tool;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn build(name: &str) -> PathBuf {
    let source = tool::root().join("tests/system_calls").join(name);
    let output = tool::scratch("system_calls").join(format!("{name}-{}", tool::unique()));
    let mut command = tool::symdpor();
    command.args(["cc", "-g", "-O1", "-pthread", "-o"]).arg(&output).arg(source);
    let ran = process::run(&mut command, tool::LIMIT);
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
    output
}

/// Runs the tool on a program in a directory of its own, after `prepare` has had a look.
fn run(name: &str, arguments: &[&str], options: &[&str], prepare: impl FnOnce(&mut Command, &Path)) -> Ran {
    let program = build(name);
    let directory = tool::fresh_directory();
    let mut command = tool::symdpor();
    command.arg("run").args(options).arg("--").arg(&program).args(arguments).current_dir(directory.path());
    prepare(&mut command, directory.path());
    let ran = process::run(&mut command, tool::LIMIT);
    std::fs::remove_file(&program).expect("it was built just now");
    ran
}

fn both(ran: &Ran) -> String {
    ran.output() + &ran.errors()
}

#[track_caller]
fn expect(ran: &Ran, code: i32, text: &str) {
    assert!(ran.code() == Some(code) && both(ran).contains(text), "expected {code}, {text:?}: {}", ran.describe());
}

/// Standard input from a pipe that ends.
fn piped(command: &mut Command, text: &str) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe can be made");
    writer.write_all(text.as_bytes()).expect("it fits into the pipe");
    command.stdin(reader);
}

#[test]
fn descriptors_and_offsets_are_put_back() {
    let ran = run("files.c", &["digits.txt"], &["--reduction", "none"], |_, directory| {
        std::fs::write(directory.join("digits.txt"), "0123456789\n").expect("the directory is writable");
    });
    expect(&ran, 0, "ok: no errors");
}

#[test]
fn input_from_a_pipe_repeats() {
    expect(&run("input.c", &[], &["--reduction", "none"], |command, _| piped(command, "abcdefgh")), 0, "ok: no errors");
}

#[test]
fn input_from_a_file_repeats() {
    let ran = run("input.c", &[], &["--reduction", "none"], |command, directory| {
        let path = directory.join("input.txt");
        std::fs::write(&path, "abcdefgh").expect("the directory is writable");
        command.stdin(std::fs::File::open(path).expect("it was just written"));
    });
    expect(&ran, 0, "ok: no errors");
}

#[test]
fn who_reads_first_is_a_choice() {
    expect(&run("input_order.c", &[], &[], |command, _| piped(command, "ab")), 1, "got[1] == 'a'");
}

#[test]
fn input_outlives_a_worker() {
    let ran = run("input_crash.c", &[], &["--keep-going", "--reduction", "none"], |command, _| piped(command, "ab"));
    expect(&ran, 1, "SIGSEGV");
    assert!(both(&ran).contains("found one (crash)"), "{}", ran.describe());
}

#[test]
fn mappings_vanish() {
    expect(&run("memory.c", &[], &["--reduction", "none"], |_, _| {}), 0, "ok: no errors");
}

#[test]
fn memory_that_was_unmapped_is_gone() {
    expect(&run("memory.c", &["touch"], &[], |_, _| {}), 1, "SIGSEGV");
}

#[test]
fn time_and_random_numbers_are_ours() {
    let first = run("time_and_chance.c", &[], &["--seed", "1"], |_, _| {});
    expect(&first, 0, "ok: no errors");
    let number = |ran: &Ran| ran.output().lines().next().map(str::to_owned);
    assert_eq!(number(&first), number(&run("time_and_chance.c", &[], &["--seed", "1"], |_, _| {})));
    assert_ne!(number(&first), number(&run("time_and_chance.c", &[], &["--seed", "2"], |_, _| {})));
}

#[test]
fn signals_reach_the_programs_handlers() {
    expect(&run("signals.c", &[], &["--reduction", "none"], |_, _| {}), 0, "ok: no errors");
}

#[test]
fn a_fatal_signal_is_a_crash() {
    expect(&run("signals.c", &["die"], &[], |_, _| {}), 1, "SIGTERM");
}

#[test]
fn closing_everything_does_no_harm() {
    expect(&run("closes_all.c", &[], &[], |_, _| {}), 0, "ok: no errors");
}

#[test]
fn output_is_shown_once() {
    let ran = run("prints_much.c", &[], &[], |_, _| {});
    expect(&ran, 0, "ok: no errors in 2 executions");
    assert_eq!(ran.output().lines().filter(|l| l.starts_with("line ")).count(), 200_000);
}

#[test]
fn streams_may_be_used_without_a_lock() {
    expect(&run("prints_unlocked.c", &[], &[], |_, _| {}), 0, "ok: no errors");
    expect(&run("prints_unlocked.c", &[], &["--visible", "all"], |_, _| {}), 0, "ok: no errors");
}

/// Nothing of what the program writes may be on disk afterwards, nor be seen by its next execution.
#[test]
fn files_are_written_in_memory_only() {
    let ran = run("writing.c", &[], &["--reduction", "none"], |_, directory| {
        std::fs::write(directory.join("old.txt"), "old contents").expect("the directory is writable");
        std::fs::write(directory.join("other.txt"), "other").expect("the directory is writable");
    });
    expect(&ran, 0, "ok: no errors");
}

#[test]
fn the_disk_stays_as_it_was() {
    let directory = tool::fresh_directory();
    let program = build("writing.c");
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("old.txt"), "old contents").expect("the directory is writable");
    std::fs::write(path("other.txt"), "other").expect("the directory is writable");
    let mut command = tool::symdpor();
    command.arg("run").arg("--").arg(&program).current_dir(directory.path());
    expect(&process::run(&mut command, tool::LIMIT), 0, "ok: no errors");
    let mut names: Vec<_> = std::fs::read_dir(directory.path())
        .expect("it can be read")
        .map(|e| e.expect("it can be read").file_name().into_string().expect("a plain name"))
        .collect();
    names.sort();
    assert_eq!(names, ["early.txt", "old.txt", "other.txt"]);
    assert_eq!(std::fs::read_to_string(path("old.txt")).expect("it is there"), "old contents");
    assert_eq!(std::fs::read_to_string(path("early.txt")).expect("it is there"), "start\n");
}

#[test]
fn pipes_and_sockets_do_as_the_kernels() {
    expect(&run("channels.c", &[], &["--reduction", "none"], |_, _| {}), 0, "ok: no errors");
}

/// The programs that check what the runtime keeps also run alone, where it is the kernel that answers.
#[test]
fn the_kernel_does_the_same() {
    for name in ["channels.c", "writing.c"] {
        let program = build(name);
        let directory = tool::fresh_directory();
        std::fs::write(directory.path().join("old.txt"), "old contents").expect("the directory is writable");
        std::fs::write(directory.path().join("other.txt"), "other").expect("the directory is writable");
        let ran = process::run(Command::new(&program).current_dir(directory.path()), tool::LIMIT);
        assert_eq!(ran.code(), Some(0), "{name}: {}", ran.describe());
    }
}

/// What is refused, and a part of the message that names it.
const REFUSED: [(&str, &str); 22] = [
    ("fork", "calls fork()"),
    ("raw-fork", "calls fork()"),
    ("raw-clone", "makes a thread with clone()"),
    ("vfork", "calls vfork()"),
    ("system", "calls system()"),
    ("popen", "calls popen()"),
    ("execvp", "calls execvp()"),
    ("posix_spawn", "calls posix_spawn()"),
    ("connect-outside", "connects to 192.0.2.1:80, which is outside of this process"),
    ("send-outside", "sends to 192.0.2.1:80, which is outside of this process"),
    ("send-descriptor", "calls sendmsg() with ancillary data"),
    ("write-system", "opens '/etc/new.txt' for writing"),
    ("symlink", "calls symlink() on 'link.txt'"),
    ("rename-directory", "calls rename() on"),
    ("flock", "calls flock() on"),
    ("alarm", "calls alarm()"),
    ("kill-other", "send a signal to 1"),
    ("dispatch", "calls prctl() with option 59"),
    ("set-fs", "calls arch_prctl()"),
    ("ioctl", "request 0x5402"),
    ("raw-exit", "system call exit"),
    ("unknown", "system call number 7777"),
];

#[test]
fn what_cannot_be_controlled_is_named() {
    let program = build("refused.c");
    for (action, text) in REFUSED {
        let directory = tool::fresh_directory();
        let mut command = tool::symdpor();
        command.arg("run").arg("--").arg(&program).arg(action).current_dir(directory.path());
        let ran = process::run(&mut command, tool::LIMIT);
        assert!(ran.code() == Some(4) && both(&ran).contains(text), "{action}: expected {text:?}: {}", ran.describe());
        assert!(!directory.path().join("link.txt").exists(), "{action} made a file");
        assert!(directory.path().join("early.txt").exists(), "{action} removed a file");
    }
}
