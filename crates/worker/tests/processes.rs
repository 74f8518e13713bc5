//! Workers that behave and workers that do not: this test's own executable, started again in the role of the program.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use symdpor_abi::channel::{self as layout, Header, Outcome, command};
use symdpor_trace::{Choice, Plan, ThreadId};
use symdpor_worker::{Answer, Death, Launch, Request, Settings, Worker, WorkerError};

const ROLE: &str = "SYMDPOR_TEST_ROLE";
const MARK: &str = "SYMDPOR_TEST_MARK";

fn worker(role: &str, mark: &Path) -> Worker {
    let launch = Launch {
        program: std::env::current_exe().unwrap(),
        arguments: ["worker", "--exact", "the_program", "--nocapture"].map(Into::into).to_vec(),
        directory: None,
        environment: vec![
            (ROLE.into(), Some(role.into())),
            (MARK.into(), Some(mark.into())),
            ("LD_PRELOAD".into(), None),
        ],
        runtime: "".into(),
    };
    Worker::new(Settings { launch, max_steps: 1000, seed: 7, nondet: (0, 0), step_timeout: Duration::from_millis(100) })
}

fn plan(choices: usize) -> Plan {
    let choices = (0..choices).map(|i| Choice { thread: ThreadId(i as u16), alternative: 0 }).collect();
    Plan { choices, ..Plan::default() }
}

fn run(worker: &mut Worker, choices: usize) -> Result<Answer, WorkerError> {
    worker.run(Request { plan: &plan(choices), options: 0, watch: 0 }, &mut || false)
}

fn run_role(role: &str) -> Result<Answer, WorkerError> {
    let directory = tempfile::tempdir().unwrap();
    run(&mut worker(role, &directory.path().join("mark")), 1)
}

#[test]
fn plans_are_answered_one_after_the_other() {
    let mut worker = worker("answers", Path::new(""));
    for choices in [0, 3, 1, 2000] {
        let Ok(Answer::Done(Outcome::Exited, header)) = run(&mut worker, choices) else { panic!() };
        assert_eq!((header.exit_status, header.seed, header.max_steps), (choices as u32, 7, 1000));
    }
    assert_eq!(worker.starts(), 1);
    let start = Instant::now();
    worker.quit();
    assert!(start.elapsed() < Duration::from_millis(450), "it does not end by itself");
}

#[test]
fn an_execution_is_repeated_when_the_worker_asks_for_it() {
    assert!(matches!(run_role("again"), Ok(Answer::Done(Outcome::Exited, h)) if h.exit_status == 1));
}

#[test]
fn a_worker_that_died_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let mut worker = worker("dies once", &directory.path().join("mark"));
    assert!(matches!(run(&mut worker, 1), Ok(Answer::Done(Outcome::Exited, _))));
    assert_eq!(worker.starts(), 2);
}

#[test]
fn a_plan_that_kills_every_worker_is_given_up() {
    assert!(matches!(run_role("exits"), Ok(Answer::Died(Death::Exited(9)))));
    assert!(matches!(run_role("aborts"), Ok(Answer::Died(Death::Signaled(libc::SIGABRT)))));
}

#[test]
fn a_program_that_does_not_start_is_no_verdict() {
    assert!(matches!(run_role("never attaches"), Err(WorkerError::NeverAttached(_))));
}

#[test]
fn an_answer_without_sense_is_a_death() {
    assert!(matches!(run_role("garbage"), Ok(Answer::Died(Death::Damaged))));
    assert!(matches!(run_role("overwrites"), Ok(Answer::Died(Death::Damaged))));
}

#[test]
fn a_step_without_end_is_asked_and_then_killed() {
    assert!(matches!(run_role("hears"), Ok(Answer::Done(Outcome::StepLimit, _))));
    assert!(matches!(run_role("stuck"), Ok(Answer::Stuck)));
}

#[test]
fn the_caller_can_stop_it() {
    let mut worker = worker("stuck", Path::new(""));
    let mut stop = || true;
    let answer = worker.run(Request { plan: &plan(1), options: 0, watch: 0 }, &mut stop);
    assert!(matches!(answer, Ok(Answer::Stopped)));
    assert!(worker.channel().is_none());
}

/// The other process. Does nothing unless it was started as one.
#[test]
fn the_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let header = attach();
    let mark = std::env::var_os(MARK).unwrap_or_default();
    match role.as_str() {
        "answers" => loop {
            answer_one(header, Outcome::Exited);
        },
        "again" => {
            answer_one(header, Outcome::Again);
            answer_one(header, Outcome::Exited);
        }
        "dies once" if !Path::new(&mark).exists() => {
            std::fs::write(&mark, "").unwrap();
            std::process::exit(1);
        }
        "dies once" => answer_one(header, Outcome::Exited),
        "exits" => std::process::exit(9),
        "aborts" => std::process::abort(),
        "never attaches" => {
            word(header, std::mem::offset_of!(Header, attached)).store(0, Ordering::SeqCst);
            std::process::exit(3);
        }
        "garbage" => answer_with(header, 77),
        "overwrites" => {
            // SAFETY: the channel is mapped; that this makes no sense is the point.
            unsafe { std::ptr::write_bytes(header, 0xa5, 1) };
            burn();
        }
        "hears" => {
            // SAFETY: the handler only stores to the channel.
            unsafe { libc::signal(libc::SIGPROF, on_watchdog as *const () as usize) };
            burn();
        }
        "stuck" => {
            // SAFETY: ignoring a signal.
            unsafe { libc::signal(libc::SIGPROF, libc::SIG_IGN) };
            burn();
        }
        other => panic!("no such role: {other}"),
    }
    std::process::exit(0);
}

fn burn() -> ! {
    loop {
        std::hint::black_box(0);
    }
}

extern "C" fn on_watchdog(_: i32) {
    answer_with(attach(), Outcome::StepLimit as u32);
}

/// Maps the channel as the runtime does.
fn attach() -> *mut Header {
    let fd: i32 = std::env::var(layout::ENV_CHANNEL).unwrap().parse().unwrap();
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_NORESERVE);
    // SAFETY: a new mapping of the channel's file.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), layout::SIZE, protection, flags, fd, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    let header = base.cast::<Header>();
    word(header, std::mem::offset_of!(Header, attached)).store(1, Ordering::SeqCst);
    // The start of a program is given more time than a step: this one has started.
    word(header, std::mem::offset_of!(Header, heartbeat)).store(1, Ordering::SeqCst);
    header
}

fn word(header: *mut Header, offset: usize) -> &'static AtomicU32 {
    // SAFETY: an aligned word of the mapping, which is never unmapped.
    unsafe { AtomicU32::from_ptr(header.byte_add(offset).cast()) }
}

/// Waits for a plan and says how long it was. Ends the process when told to.
fn answer_one(header: *mut Header, outcome: Outcome) {
    let (command_word, answer) =
        (word(header, std::mem::offset_of!(Header, command)), word(header, std::mem::offset_of!(Header, answer)));
    while command_word.load(Ordering::SeqCst) >> 8 == answer.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    if command_word.load(Ordering::SeqCst) & 0xff == command::QUIT {
        std::process::exit(0);
    }
    // SAFETY: the controller waits, so nobody else uses the header's other words.
    unsafe { (*header).exit_status = (*header).plan_len };
    answer_with(header, outcome as u32);
}

fn answer_with(header: *mut Header, outcome: u32) {
    // SAFETY: as above.
    unsafe { (*header).outcome = outcome };
    let sequence = word(header, std::mem::offset_of!(Header, command)).load(Ordering::SeqCst) >> 8;
    let answer = word(header, std::mem::offset_of!(Header, answer));
    answer.store(sequence, Ordering::SeqCst);
    // SAFETY: a futex call on a word of the channel.
    unsafe { libc::syscall(libc::SYS_futex, answer.as_ptr(), libc::FUTEX_WAKE, 1) };
}
