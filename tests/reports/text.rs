//! The reports of each kind of error, word for word.

use crate::Failed;
use crate::common::build::{self, With};
use crate::common::{process, tool};

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

/// Two unlocks at the end of a function would become one, which is on the line of neither.
#[test]
fn optimised_code_has_its_lines() {
    let text = "#include <pthread.h>\n\
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n\
        static int busy, done;\n\
        static int begin(void)\n{\n    pthread_mutex_lock(&lock);\n    int was = busy;\n    busy = 1;\n    \
        pthread_mutex_unlock(&lock);\n    return was;\n}\n\
        static void *work(void *unused)\n{\n    if (begin())\n        goto out;\n    done++;\n    \
        pthread_mutex_lock(&lock);\n    busy = 0;\n    pthread_mutex_unlock(&lock);\n    return unused;\n\
        out:\n    pthread_mutex_unlock(&lock); /* not locked */\n    return unused;\n}\n\
        int main(void)\n{\n    pthread_t a, b;\n    pthread_create(&a, 0, work, 0);\n    pthread_create(&b, 0, work, 0);\n    \
        pthread_join(a, 0);\n    pthread_join(b, 0);\n    return 0;\n}\n";
    let wrong = text.lines().position(|l| l.contains("not locked")).expect("it is there") + 1;
    let directory = tool::fresh_directory();
    let program = directory.path().join("prog");
    build::text(text, false, &["-O2", "-pthread"], &program, With::Pass).unwrap_or_else(|e| panic!("{e}"));
    let mut command = tool::symdpor();
    command.current_dir(directory.path()).arg("run").arg(&program);
    let ran = process::run(&mut command, tool::LIMIT);
    assert!(ran.output().contains("error: lock-misuse"), "{}", ran.describe());
    assert!(ran.output().contains(&format!(":{wrong} in work")), "{}", ran.describe());
}
