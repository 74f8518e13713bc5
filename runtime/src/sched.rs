//! The scheduler: brings threads to their visible operations, and runs them one at a time in the order of the plan.
//!
//! A thread announces its next operation with [`visible`], which returns once the thread has been chosen to do it. It
//! then does the operation and everything up to its next one. The runtime knows nothing of the search: it follows the
//! plan's choices, then the default rule (`symdpor_trace::plan`), and keeps the sleep set it was given.

use crate::cell::Global;
use crate::channel;
use crate::cond;
use crate::end;
use crate::exec;
use crate::spin;
use crate::stack;
use crate::sys::context;
use crate::thread::{Life, Thread};
use symdpor_abi::MAX_THREADS;
use symdpor_abi::channel::{Outcome, Step, TRACE_BYTES, TRACE_OFFSET, options};
use symdpor_abi::op::{self, Op, OpKind};

const WORDS: usize = MAX_THREADS / 64;

/// Reset with every execution.
struct Run {
    step: usize,
    trace_used: usize,
    /// Address of the record of the last step, or 0.
    last: usize,
    enabled: [u64; WORDS],
}

static RUN: Global<Run> = Global::new(Run { step: 0, trace_used: 0, last: 0, enabled: [0; WORDS] });

/// After so many operations in a row that changed nothing, a thread lets others go first: it may be spinning.
const IDLE_LIMIT: u8 = 4;

/// Before each execution.
pub fn reset() {
    let run = RUN.get();
    (run.step, run.trace_used, run.last) = (0, 0, 0);
    let header = channel::header();
    header.error_kind = 0;
    header.error_len = 0;
    header.signal = 0;
    header.exit_status = 0;
    header.step_count = 0;
    header.trace_len = 0;
    header.stacks_len = 0;
    crate::output::reset();
    crate::races::begin_execution();
    crate::watch::reset();
    crate::footprint::reset();
}

pub fn current() -> u16 {
    exec::get().current
}

pub fn step_number() -> u32 {
    RUN.get().step as u32
}

/// Announces an operation of the running thread and waits until it is chosen. Returns which alternative it shall take.
/// `address`: of the object, for operations whose being enabled depends on it. `site`: 0 if the caller is an interposed
/// function.
pub fn visible(op: Op, address: usize, site: usize) -> u16 {
    let thread = exec::me();
    thread.pending = op;
    thread.pending_address = address;
    thread.pending_site = stack::innermost(site);
    thread.has_pending = true;
    if site == 0 {
        // The call that brought the thread here was not one of unknown code.
        exec::get().outside &= !1;
    }
    suspend();
    exec::me().has_pending = false;
    spin::wipe();
    last_step().map_or(0, |step| step.alternative)
}

/// Blocks the running thread until another makes it ready by giving it an operation; returns when that is chosen.
pub fn block() {
    let thread = exec::me();
    thread.pending = Op::new(OpKind::Waiting, symdpor_abi::object::ObjectId::NONE);
    thread.has_pending = true;
    suspend();
    exec::me().has_pending = false;
}

/// A transition that depends on nothing and lets others go first.
pub fn yield_now(site: usize) {
    if crate::snapshot::is_taken() {
        visible(Op::new(OpKind::Yield, symdpor_abi::object::ObjectId::NONE), 0, site);
    }
}

/// In a frame of its own, below the one that is not wiped: what it leaves depends on the plan.
#[inline(never)]
fn suspend() {
    let exec = exec::get();
    exec.quiet_hooks = 0;
    let thread = exec::me();
    if thread.in_prologue {
        thread.in_prologue = false;
        let creator = thread.creator;
        switch_to(creator);
    } else {
        let next = choose();
        switch_to(next);
    }
}

/// The running thread has ended: runs another.
pub fn leave_ended() -> ! {
    let thread = exec::me();
    let next = if thread.in_prologue { thread.creator } else { choose() };
    switch_to(next);
    end::quit(72)
}

/// Runs a thread up to its first visible operation, within the running thread's transition.
pub fn run_prologue(child: u16) {
    switch_to(child);
}

fn switch_to(next: u16) {
    let exec = exec::get();
    let me = exec.current;
    if next == me {
        return;
    }
    exec.threads[me as usize].top = exec.top;
    exec.current = next;
    let other = &exec.threads[next as usize];
    exec.top = other.top;
    let (sp, fs) = (other.sp, other.fs);
    let save = &raw mut exec.threads[me as usize].sp;
    // SAFETY: `next` is suspended, on its own stack with its own thread control block.
    unsafe { context::switch(save, sp, fs) };
}

/// Chooses who makes the next transition, and writes its record.
fn choose() -> u16 {
    crate::footprint::end_step();
    settle_last();
    let run = RUN.get();
    if channel::says(options::ASK) && run.step + 1 == channel::header().plan_len as usize {
        crate::memory::tell();
        end::finish(Outcome::Asked);
    }
    if run.step >= channel::header().max_steps as usize {
        end::finish(Outcome::StepLimit);
    }
    let words = find_enabled();
    if run.enabled[..words].iter().all(|&w| w == 0) {
        end::stuck();
    }
    let (thread, alternative) = match channel::planned(run.step) {
        Some((thread, alternative)) => (planned_thread(thread), alternative),
        None => (default_thread(words), 0),
    };
    record(thread, alternative, words);
    // Giving way is no progress: threads that do nothing else shall be noticed by the controller's watchdog.
    if exec::get().threads[thread as usize].pending.kind != OpKind::Yield {
        channel::beat();
    }
    thread
}

/// What follows from the last step: who wakes, who shall let others go first; and the plan's sleep set, at its time.
fn settle_last() {
    let exec = exec::get();
    let run = RUN.get();
    let sleeps_from = (channel::header().plan_len as usize).saturating_sub(1);
    if let Some(step) = last_step() {
        note_idleness(&mut exec.threads[step.thread as usize], step);
        if run.step > sleeps_from {
            wake_dependent(&step.op);
        }
    }
    if run.step == sleeps_from {
        for &sleeper in channel::sleepers() {
            exec.threads[sleeper as usize % MAX_THREADS].asleep = true;
        }
    }
}

fn note_idleness(thread: &mut Thread, step: &Step) {
    const VALUES: u32 = 1;
    let idle = match step.op.kind {
        OpKind::AtomicLoad | OpKind::TryLockFailed | OpKind::PlainLoad => true,
        OpKind::AtomicRmw => step.flags & VALUES != 0 && step.old_value == step.new_value,
        _ => false,
    };
    thread.idle_ops = if idle { thread.idle_ops + 1 } else { 0 };
    if step.op.kind == OpKind::Yield || thread.idle_ops >= IDLE_LIMIT {
        thread.yields = true;
        thread.idle_ops = 0;
    }
}

fn wake_dependent(executed: &Op) {
    let exec = exec::get();
    for thread in &mut exec.threads[..exec.thread_count as usize] {
        if thread.asleep && op::dependent(executed, &thread.pending) {
            thread.asleep = false;
        }
    }
}

/// Fills the set of enabled threads; returns how many words it has.
fn find_enabled() -> usize {
    let count = exec::get().thread_count;
    let words = (count as usize).div_ceil(64);
    let enabled = &mut RUN.get().enabled;
    enabled[..words].fill(0);
    for number in 0..count {
        enabled[number as usize / 64] |= (is_enabled(number) as u64) << (number % 64);
    }
    words
}

pub fn is_enabled(number: u16) -> bool {
    let exec = exec::get();
    let thread = &exec.threads[number as usize];
    if thread.life != Life::Alive || !thread.has_pending {
        return false;
    }
    match thread.pending.kind {
        OpKind::Waiting => false,
        OpKind::MutexLock => crate::mutex::is_free(thread.pending_address),
        OpKind::Once => crate::once::is_enabled(thread.pending_address),
        OpKind::ThreadJoin => exec.threads[thread.pending.arg as usize % MAX_THREADS].life == Life::Ended,
        _ => !spin::waits(thread),
    }
}

fn planned_thread(thread: u16) -> u16 {
    if thread as usize >= MAX_THREADS || !is_enabled(thread) {
        end::finish(Outcome::Diverged);
    }
    thread
}

/// The default rule among enabled threads that do not sleep.
fn default_thread(words: usize) -> u16 {
    let exec = exec::get();
    let run = RUN.get();
    let may_run = |number: u16| {
        run.enabled[number as usize / 64] >> (number % 64) & 1 != 0 && !exec.threads[number as usize].asleep
    };
    let all = 0..exec.thread_count.min(words as u16 * 64);
    let me = exec.current;
    if may_run(me) && !exec.threads[me as usize].yields {
        return me;
    }
    // First those that did not just give way, beginning after the running one if that yields; then anyone.
    let after = if exec.threads[me as usize].yields { me + 1 } else { 0 };
    let ready = |n: &u16| may_run(*n) && !exec.threads[*n as usize].yields;
    let next = (after..all.end).find(ready).or_else(|| all.clone().find(ready));
    let next = next.or_else(|| (after..all.end).find(|&n| may_run(n))).or_else(|| all.clone().find(|&n| may_run(n)));
    match next {
        Some(next) => next,
        None => end::finish(Outcome::SleepBlocked),
    }
}

fn record(thread: u16, alternative: u16, words: usize) {
    let exec = exec::get();
    let run = RUN.get();
    let chosen = &mut exec.threads[thread as usize];
    chosen.yields = false;
    let alternatives = match chosen.pending.kind {
        OpKind::CondSignal => cond::waiters(chosen.pending_address).max(1),
        _ => 1,
    };
    let len = size_of::<Step>() + 8 * words;
    if alternative >= alternatives {
        end::finish(Outcome::Diverged);
    }
    if run.trace_used + len > TRACE_BYTES {
        end::finish(Outcome::StepLimit);
    }
    let address = channel::region(TRACE_OFFSET) + run.trace_used;
    let step = Step {
        thread,
        enabled_words: words as u16,
        alternatives,
        alternative,
        site: stack::site_id(chosen.pending_site),
        flags: 0,
        op: chosen.pending,
        old_value: 0,
        new_value: 0,
    };
    // SAFETY: within the trace region, as checked.
    unsafe {
        (address as *mut Step).write(step);
        core::ptr::copy_nonoverlapping(run.enabled.as_ptr(), (address + size_of::<Step>()) as *mut u64, words);
    }
    if channel::says(options::STACKS) {
        stack::write_step(thread);
    }
    crate::footprint::begin_step(thread);
    run.last = address;
    run.trace_used += len;
    run.step += 1;
    channel::header().step_count = run.step as u32;
    channel::header().trace_len = run.trace_used as u32;
}

/// The record of the step under way.
pub fn last_step() -> Option<&'static mut Step> {
    let last = RUN.get().last;
    // SAFETY: an aligned record in the trace region, written by `record`.
    (last != 0).then(|| unsafe { &mut *(last as *mut Step) })
}

/// Says how the operation under way turned out.
pub fn executed(kind: OpKind) {
    if let Some(step) = last_step() {
        step.op.kind = kind;
    }
}

/// Marks the operation under way as an attempt: a try-lock that succeeded, a compare-and-exchange that failed.
pub fn tried() {
    if let Some(step) = last_step() {
        step.op.arg = op::TRIED;
    }
}

/// Notes the values before and after, for reports.
pub fn values(old: u64, new: u64) {
    if let Some(step) = last_step() {
        (step.old_value, step.new_value) = (old, new);
        step.flags |= 1;
    }
}
