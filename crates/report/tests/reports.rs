//! Reports as they are printed, from made-up executions.

use std::time::Duration;
use symdpor_report::text::{self, TextOptions};
use symdpor_report::{Counts, ErrorEntry, Paint, Summary, Verdict};
use symdpor_trace::failure::{Event, Failure, OutputChunk, Race, RaceAccess, Stack, StackRole, Wait};
use symdpor_trace::file::{ExecutionOptions, Program, ThreadInfo, TraceFile};
use symdpor_trace::{Choice, FailureKind, Location, OpKind, ThreadId};

const MAIN: ThreadId = ThreadId(0);

fn place(line: u32, function: &str) -> Location {
    Location { file: "/home/me/project/src/bank.c".into(), line, column: 5, function: function.into() }
}

fn event(thread: u16, op: OpKind, object: &str, location: u32) -> Event {
    Event {
        thread: ThreadId(thread),
        op,
        order: 5,
        arg: 0,
        size: 4,
        object: object.into(),
        object2: String::new(),
        values: None,
        alternatives: 1,
        location,
        id: object.bytes().map(u64::from).sum(),
        id2: 0,
        mask: 0xff,
        ty: symdpor_trace::ValueType::Unknown,
    }
}

fn create(thread: u32, location: u32) -> Event {
    Event { arg: thread, ..event(0, OpKind::ThreadCreate, "", location) }
}

fn thread_info(thread: u16, line: u32) -> ThreadInfo {
    let (name, function) = (String::new(), "worker".to_owned());
    ThreadInfo {
        thread: ThreadId(thread),
        created_by: Some(MAIN),
        created_at: Some(place(line, "main")),
        name,
        function,
    }
}

fn file(failure: Failure, events: Vec<Event>) -> TraceFile {
    TraceFile {
        program: Program {
            path: "/home/me/project/bank".into(),
            arguments: vec!["./bank".into()],
            directory: "/home/me/project".into(),
            environment: vec![],
            length: 0,
            checksum: 0,
        },
        options: ExecutionOptions {
            visible_all: false,
            ignore_races: false,
            max_steps: 100_000,
            seed: 0,
            nondet: None,
        },
        choices: events.iter().map(|e| Choice { thread: e.thread, alternative: 0 }).collect(),
        original: None,
        threads: vec![thread_info(1, 40), thread_info(2, 41)],
        locations: vec![
            place(40, "main"),
            place(41, "main"),
            place(12, "deposit"),
            place(22, "withdraw_everything_at_once"),
        ],
        events,
        accesses: vec![],
        source: vec![],
        failure,
        output: vec![OutputChunk { descriptor: 1, bytes: b"balance: 3\n\x1b[31mred\n".to_vec() }],
        output_cut: false,
    }
}

fn failure(kind: FailureKind, message: &str) -> Failure {
    Failure {
        kind,
        message: message.into(),
        thread: Some(ThreadId(2)),
        location: Some(place(12, "deposit")),
        race: None,
        waits: vec![],
        stacks: vec![],
    }
}

fn stack(thread: u16, role: StackRole, lines: &[(u32, &str)]) -> Stack {
    Stack { thread: ThreadId(thread), role, frames: lines.iter().map(|(l, f)| place(*l, f)).collect() }
}

fn options() -> TextOptions {
    TextOptions { directory: "/home/me/project".into(), output: true, ..TextOptions::default() }
}

fn race() -> TraceFile {
    let access = |thread, write| RaceAccess { thread: ThreadId(thread), write, atomic: false };
    let failure = Failure {
        race: Some(Race { object: "balance".into(), this: access(2, true), earlier: access(1, false) }),
        stacks: vec![
            stack(2, StackRole::Error, &[(12, "deposit"), (30, "worker")]),
            stack(1, StackRole::Earlier, &[(22, "withdraw_everything_at_once"), (30, "worker")]),
        ],
        ..failure(FailureKind::DataRace, "")
    };
    let load = Event { values: Some((0, 1)), order: 0, ..event(1, OpKind::AtomicLoad, "flag", 4) };
    let store = Event { values: Some((0, 1)), ..event(2, OpKind::AtomicStore, "accounts[i]->balance", 3) };
    file(failure, vec![create(1, 1), create(2, 2), load, store])
}

#[test]
fn data_race() {
    insta::assert_snapshot!(text::failure(&race(), &options()));
}

#[test]
fn deadlock() {
    let wait = |thread, object: &str, line, holder, since| Wait {
        thread: ThreadId(thread),
        enabled: false,
        op: OpKind::MutexLock,
        object: object.into(),
        joined: None,
        location: Some(place(line, "transfer")),
        holder: Some(ThreadId(holder)),
        held_since: Some(place(since, "transfer")),
    };
    let join = Wait {
        op: OpKind::ThreadJoin,
        joined: Some(ThreadId(1)),
        holder: None,
        held_since: None,
        ..wait(0, "", 44, 0, 0)
    };
    let waits = vec![join, wait(1, "b", 21, 2, 20), wait(2, "a", 21, 1, 20)];
    let failure =
        Failure { waits, thread: None, location: None, ..failure(FailureKind::Deadlock, "no thread can go on") };
    let events =
        vec![create(1, 1), create(2, 2), event(1, OpKind::MutexLock, "a", 3), event(2, OpKind::MutexLock, "b", 3)];
    insta::assert_snapshot!(text::failure(&file(failure, events), &options()));
}

#[test]
fn memory_error() {
    let failure = Failure {
        stacks: vec![
            stack(2, StackRole::Error, &[(12, "deposit")]),
            stack(1, StackRole::Freed, &[(22, "cleanup")]),
            stack(0, StackRole::Allocated, &[(38, "main")]),
        ],
        ..failure(FailureKind::Memory, "use after free: write of 4 bytes at offset 8 of a block of 16 bytes")
    };
    insta::assert_snapshot!(text::failure(&file(failure, vec![create(1, 1), create(2, 2)]), &options()));
}

fn long(step: impl Fn(u16) -> Event) -> TraceFile {
    file(failure(FailureKind::StepLimit, "too long"), (0..5000).map(step).collect())
}

#[test]
fn long_interleavings_are_shortened() {
    let store = |i| Event { values: Some((0, u64::from(i))), ..event(i % 3, OpKind::AtomicStore, "x", 3) };
    let report = text::failure(&long(store), &options());
    assert!(report.lines().count() < 400);
    assert!(report.contains("... 4880 lines left out (--all shows them) ..."), "{report}");
    assert!(report.contains("\n5000  "), "{report}");
    let report = text::failure(&long(store), &TextOptions { all: true, ..options() });
    assert!(report.lines().count() > 5000);
}

#[test]
fn spinning_is_folded() {
    let report = text::failure(&long(|i| event(i % 2, OpKind::Yield, "", 3)), &options());
    assert!(report.lines().count() < 30, "{report}");
    assert!(report.contains("... these 2 lines 2499 times more ..."), "{report}");
}

#[test]
fn lines_fit_the_width() {
    for width in [0, 50, 72, 100, 160] {
        let most = if width == 0 { 80 } else { width };
        for line in text::failure(&race(), &TextOptions { width, ..options() }).lines() {
            assert!(line.chars().count() <= most, "{width}: {line}");
        }
    }
}

#[test]
fn steps_that_concern_one_thread_only_are_folded() {
    let own = |i: u16| event(1, if i.is_multiple_of(2) { OpKind::MutexLock } else { OpKind::MutexUnlock }, "own", 3);
    let both = [event(1, OpKind::AtomicStore, "x", 3), event(2, OpKind::AtomicStore, "x", 3)];
    let events = (0..7).map(own).chain(both).collect();
    let report = text::failure(&file(failure(FailureKind::Assertion, "x"), events), &options());
    assert!(report.contains("... 7 steps of worker 1 that concern no other thread ..."), "{report}");
}

#[test]
fn notes_are_limited() {
    let notes: Vec<String> = (0..20).map(|i| format!("thing {i}")).collect();
    let text = text::notes(&notes, Paint::default());
    assert!(text.starts_with("note: thing 0\nnote: thing 1\n"));
    assert!(text.ends_with("note: and 12 more of this kind\n"), "{text}");
    assert_eq!(text::notes(&[], Paint::default()), "");
}

#[test]
fn colour_is_used_only_when_asked_for() {
    let plain = text::failure(&race(), &options());
    let coloured = text::failure(&race(), &TextOptions { paint: Paint { colour: true }, ..options() });
    assert!(!plain.contains('\x1b'));
    assert!(coloured.contains("\x1b[1;31merror:"));
}

fn summary(verdict: Verdict, reason: Option<&str>, errors: usize) -> Summary {
    let entry = ErrorEntry { kind: FailureKind::Deadlock, message: String::new(), location: None, trace: None };
    Summary {
        verdict,
        complete: verdict == Verdict::Ok,
        reason: reason.map(Into::into),
        errors: vec![entry; errors],
        notes: vec![],
        counts: Counts { executions: 362_880, blocked: 0, dropped: 0, transitions: 0, threads: 10 },
        time: Duration::from_millis(3200),
        options: serde_json::Value::Null,
        symmetry: Default::default(),
        estimate: None,
    }
}

#[test]
fn verdicts() {
    let line = |s: &Summary| text::verdict(s, Paint::default());
    assert_eq!(line(&summary(Verdict::Ok, None, 0)), "ok: no errors in 362880 executions (3.2 s, 113k/s)\n");
    assert_eq!(
        line(&summary(Verdict::Error, None, 2)),
        "error: found 2 (deadlock) in 362880 executions (3.2 s, 113k/s)\n"
    );
    let limit = Some("the time limit of 3 s was reached");
    assert_eq!(
        line(&summary(Verdict::Incomplete, limit, 0)),
        "incomplete: the time limit of 3 s was reached; no errors so far, in 362880 executions (3.2 s, 113k/s)\n"
    );
    assert_eq!(
        line(&summary(Verdict::Error, limit, 1)),
        "error: found one (deadlock) in 362880 executions (3.2 s, 113k/s); stopped: the time limit of 3 s was reached\n"
    );
    assert_eq!(line(&summary(Verdict::Unsupported, Some("calls fork"), 0)), "unsupported: calls fork\n");
    let mut one = summary(Verdict::Ok, None, 0);
    one.counts = Counts { executions: 1, blocked: 3, ..one.counts };
    one.time = Duration::from_millis(2);
    assert_eq!(line(&one), "ok: no errors in 1 execution, 3 more cut off (0.0 s)\n");
}
