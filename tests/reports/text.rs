//! The reports of each kind of error, word for word.

use crate::Failed;

/// No line is wider than the terminal; where nothing is known of it, than 80.
fn fits(report: &str, width: usize) {
    for line in report.lines() {
        assert!(line.chars().count() <= width, "wider than {width}: {line}");
    }
}

fn check(name: &str) {
    let failed = Failed::new(name);
    let report = failed.show(None);
    fits(&report, 80);
    for width in [60, 100, 140, 200] {
        fits(&failed.show(Some(width)), width as usize);
    }
    assert!(!report.contains('\x1b'), "{report}");
    insta::assert_snapshot!(name.replace(['/', '.'], "-"), without_addresses(&report));
}

/// Where the code is differs from machine to machine.
fn without_addresses(report: &str) -> String {
    let mut text = String::new();
    let mut rest = report;
    while let Some(at) = rest.find("0x5555") {
        text.push_str(&rest[..at]);
        text.push_str("0x5555…");
        let digits = rest[at + 2..].find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len() - at - 2);
        rest = &rest[at + 2 + digits..];
    }
    text + rest
}

#[test]
fn races() {
    [
        "races/write_write.c",
        "races/heap_block.c",
        "races/joined_one.c",
        "litmus/message_passing_relaxed.c",
        "cpp/vector_race.cpp",
    ]
    .into_iter()
    .for_each(check);
}

#[test]
fn deadlocks() {
    ["mutex/ab_ba.c", "mutex/self_deadlock.c", "mutex/held_at_end.c", "cond/lost_wakeup.c", "cpp/ab_ba.cpp"]
        .into_iter()
        .for_each(check);
}

#[test]
fn assertions_and_crashes() {
    ["crash/assertion_in_thread.c", "crash/null.c", "crash/abort.c", "exit/status.c"].into_iter().for_each(check);
}

#[test]
fn memory() {
    ["memory/use_after_free.c", "memory/double_free.c", "memory/overflow_by_schedule.c"].into_iter().for_each(check);
}

#[test]
fn no_progress() {
    ["spin/flag_never_set.c", "spin/step_limit.c"].into_iter().for_each(check);
}

#[test]
fn misuse() {
    ["mutex/unlock_others.c", "mutex/destroy_locked.c"].into_iter().for_each(check);
}

#[test]
fn with_every_access_visible() {
    let failed = Failed::with("races/write_write.c", &["--visible", "all"]);
    let report = failed.show(Some(160));
    assert!(report.contains("write value: 0 -> 1"), "{report}");
    assert!(!report.contains("1 -> 1"), "{report}");
}
