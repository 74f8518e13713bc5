//! The worker's life: snapshot, then execution after execution, each from the snapshot.
//!
//! Runs on a stack of its own, with main's thread control block, since it calls into libc when the pool grows.

use crate::ahead;
use crate::cell::Global;
use crate::channel;
use crate::end;
use crate::exec;
use crate::names;
use crate::pool;
use crate::sched;
use crate::snapshot::{self, Failure};
use crate::sys::context;
use crate::sys::pages;
use crate::syscalls;
use symdpor_abi::channel::{Outcome, command};

const STACK_BYTES: usize = 512 << 10;

struct Cycle {
    sp: usize,
    outcome: Outcome,
}

static CYCLE: Global<Cycle> = Global::new(Cycle { sp: 0, outcome: Outcome::Running });

/// Called by main when the first choice comes up: everything up to the return from here happens once, everything after
/// it once per execution.
pub fn enter() {
    if snapshot::is_taken() {
        return;
    }
    crate::interpose::children::check_none_left();
    let stack = pages::map(STACK_BYTES);
    if stack.is_null() {
        end::unsupported(format_args!("out of memory for the scheduler's stack"));
    }
    let main = &mut exec::get().threads[0];
    main.top = exec::get().top;
    main.fs = context::fs_base();
    // SAFETY: fresh memory; main's context is resumed by `run` only, with its own FS base.
    unsafe {
        let sp = context::prepare(stack as usize + STACK_BYTES, run as *const () as usize, 0, never);
        context::switch(&mut main.sp, sp, main.fs);
    }
}

extern "C" fn never(_: usize) -> ! {
    end::quit(73)
}

extern "C" fn run(_: usize) -> ! {
    loop {
        set_up();
        while repeat() {}
        snapshot::forget();
    }
}

fn set_up() {
    if !pool::grow() {
        end::unsupported(format_args!("the system refuses to create more threads"));
    }
    names::find_loaded();
    crate::unwind::load_library();
    syscalls::snapshot_taken();
    if let Err(failure) = snapshot::take() {
        end::unsupported(format_args!("{}", reason(failure)));
    }
}

fn reason(failure: Failure) -> &'static str {
    match failure {
        Failure::NoMappings => "the program's memory cannot be saved: /proc/self/maps cannot be read",
        Failure::TooManyMappings => "the program's memory cannot be saved: it is in too many pieces",
        Failure::NoMemory => "the program's memory cannot be saved: out of memory",
        Failure::SharedMapping => "the program maps memory that it shares with a file or another process, for writing",
    }
}

/// One execution. False if it has to be tried again with a larger pool.
fn repeat() -> bool {
    if !ahead::begins() {
        if channel::wait_for_command() != command::RUN {
            end::quit(0);
        }
        channel::accept();
        channel::open_answer();
    }
    sched::reset();
    let main = &exec::get().threads[0];
    // SAFETY: main was suspended by `enter`, and its memory is as it was then.
    unsafe { context::switch(&mut CYCLE.get().sp, main.sp, main.fs) };
    let outcome = CYCLE.get().outcome;
    if ahead::has_failed() {
        put_back();
        return true;
    }
    ahead::ended(outcome);
    // The controller can look at the trace while the memory is put back.
    channel::answer(outcome);
    put_back();
    outcome != Outcome::Again
}

fn put_back() {
    syscalls::undo();
    snapshot::restore();
}

/// Leaves the program's context for good.
pub fn leave(outcome: Outcome) -> ! {
    if !snapshot::is_taken() {
        channel::answer(outcome);
        end::quit(if outcome == Outcome::Exited { channel::header().exit_status as usize } else { 0 });
    }
    let cycle = CYCLE.get();
    cycle.outcome = outcome;
    let mut abandoned = 0;
    // SAFETY: the cycle is suspended in `repeat`; its FS base is main's.
    unsafe { context::switch(&mut abandoned, cycle.sp, exec::get().threads[0].fs) };
    end::quit(71)
}
