//! `symdpor replay --gdb`, with commands from a file.

use crate::common::tool;
use crate::{Failed, installed};
use std::io::Write;
use std::process::Stdio;

/// What gdb says to these commands, and the exit code.
fn debug(failed: &Failed, flags: &[&str], commands: &str) -> Option<(String, Option<i32>)> {
    if installed(&["gdb"]).is_none() {
        eprintln!("skipped: gdb is not installed");
        return None;
    }
    let mut command = tool::symdpor();
    command.current_dir(tool::root()).args(["replay", "--gdb"]).args(flags).arg(&failed.trace);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(commands.as_bytes()).expect("gdb reads");
    let output = child.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    Some((String::from_utf8_lossy(&said).into_owned(), output.status.code()))
}

#[test]
fn stops_at_steps_and_at_the_error() {
    let failed = Failed::new("mutex/ab_ba.c");
    let commands = "info symdpor-threads\nsymdpor-backtrace 1\ncontinue\ninfo symdpor-threads\nbacktrace\ncontinue\n";
    let Some((said, code)) = debug(&failed, &["--at", "4"], commands) else { return };
    for part in [
        "symdpor: before step 4, b_then_a 2: lock b at ab_ba.c:21",
        "1    a_then_b 1           in a_then_b at ",
        "in a_then_b (unused=0x0)",
        "symdpor: deadlock: no thread can go on, after step 4",
        "in b_then_a (unused=0x0)",
        "exited normally",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(!said.contains("Python Exception"), "{said}");
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn a_crash_is_seen_where_it_happens() {
    let failed = Failed::new("crash/null.c");
    let Some((said, code)) = debug(&failed, &[], "backtrace\n") else { return };
    assert!(said.contains("null.c:"), "{said}");
    assert!(said.contains("symdpor: crash: segmentation fault"), "{said}");
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn atomics_have_stacks_too() {
    let failed = Failed::new("crash/assertion_in_thread.c");
    let Some((said, _)) = debug(&failed, &["--at", "3"], "backtrace\n") else { return };
    assert!(said.contains("before step 3, work 1: update inside: 0 -> 1"), "{said}");
    assert!(said.contains("in work (unused=0x0)"), "{said}");
}
