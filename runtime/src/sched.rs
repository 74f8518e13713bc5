//! The scheduler: brings threads to their visible operations, and runs them one at a time in the order of the plan.
//!
//! A thread announces its next operation with [`visible`], which returns once the thread has been chosen to do it. It
//! then does the operation and everything up to its next one. The runtime knows nothing of the search: it follows the
//! plan's choices, then the default rule (`symdpor_trace::plan`), and keeps the sleep set it was given.

use crate::ahead;
use crate::alike;
use crate::cell::Global;
use crate::channel;
use crate::cond;
use crate::end;
use crate::exec;
use crate::limits;
use crate::section;
use crate::set::{Members, ThreadBits};
use crate::spin;
use crate::stack;
use crate::sys::context;
use crate::syscalls::turn;
use crate::thread::Thread;
use crate::vain;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::channel::{Outcome, Step, TRACE_BYTES, TRACE_OFFSET, options};
use symdpor_abi::op::{self, Op, OpKind};

/// Reset with every execution.
struct Run {
    step: usize,
    trace_used: usize,
    /// The step under way, if `step` is not 0, and the set of threads that were enabled before it.
    last: Step,
    enabled: ThreadBits,
    /// It is not in the trace yet.
    unwritten: bool,
}

static RUN: Global<Run> =
    Global::new(Run { step: 0, trace_used: 0, last: NO_STEP, enabled: ThreadBits::EMPTY, unwritten: false });

const NO_STEP: Step = Step {
    thread: 0,
    enabled_words: 0,
    alternatives: 0,
    alternative: 0,
    site: 0,
    flags: 0,
    op: Op::new(OpKind::Waiting, symdpor_abi::object::ObjectId::NONE),
    old_value: 0,
    new_value: 0,
};

/// After so many operations in a row that changed nothing, a thread lets others go first: it may be spinning.
const IDLE_LIMIT: u8 = 4;

/// So many steps of others a thread waits before it ends the process all the same: they may never come to an end.
const MOST_BEFORE_EXIT: u32 = 1000;

/// So often a thread may give way within a transition.
const MOST_WAYS_GIVEN: u8 = 64;

/// Before each execution.
pub fn reset() {
    let run = RUN.get();
    (run.step, run.trace_used, run.unwritten) = (0, 0, false);
    crate::output::reset();
    crate::races::begin_execution();
    crate::watch::reset();
    crate::accesses::reset();
    crate::footprint::reset();
    limits::reset();
    crate::repeat::reset();
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
    if exec::get().section > 0 && op.kind != OpKind::Choose {
        return section::operation(op, address, site);
    }
    let thread = exec::me();
    thread.pending = op;
    thread.pending_address = address;
    thread.pending_site = stack::innermost(site);
    if exec::get().bottoms[exec::get().current as usize % MAX_THREADS] == 0 {
        stack::note_bottom();
    }
    announce();
    if site == 0 {
        // The call that brought the thread here was not one of unknown code.
        exec::get().outside &= !1;
    }
    suspend();
    exec::get().pending.remove(exec::get().current);
    spin::wipe();
    crate::debugger::step();
    under_way().map_or(0, |step| step.alternative)
}

/// Blocks the running thread until another makes it ready by giving it an operation; returns when that is chosen.
pub fn block() {
    block_at(symdpor_abi::object::ObjectId::NONE);
}

/// The same, with the object of the operation that it will be given.
pub fn block_at(object: symdpor_abi::object::ObjectId) {
    section::check_blocking();
    let thread = exec::me();
    thread.pending = Op::new(OpKind::Waiting, object);
    announce();
    suspend();
    exec::get().pending.remove(exec::get().current);
}

/// The running thread stands before its pending operation. What others may do to it later (wake it from a condition variable,
/// end its spinning) leaves a conditional operation a conditional one.
fn announce() {
    let (exec, thread) = (exec::get(), exec::me());
    exec.pending.insert(exec.current);
    if thread.pending.is_quiet_exit() && exec.section == 0 {
        waits_to_exit();
    }
    let conditional = matches!(
        thread.pending.kind,
        OpKind::Waiting
            | OpKind::MutexLock
            | OpKind::Once
            | OpKind::ThreadJoin
            | OpKind::CondTimeout
            | OpKind::CondCancel
            | OpKind::RwRead
            | OpKind::RwWrite
            | OpKind::SemWait
            | OpKind::BarrierPass
    );
    let outside = turn::is_outside(thread.pending.kind) && (thread.pending_address != 0 || thread.in_vain != 0);
    if conditional || outside || limits::is_held_back() || spin::waits(exec.current) {
        exec.conditional.insert(exec.current);
    } else {
        exec.conditional.remove(exec.current);
    }
}

#[cold]
fn waits_to_exit() {
    let exec = exec::get();
    exec.exits.insert(exec.current);
    if !core::mem::replace(&mut exec.any_exits, true) {
        exec.exits_since = step_number();
    }
}

/// The running thread lets others go first, and stands where it stood otherwise. After an operation that changed nothing that is a part of
/// that operation's transition: a thread that looks, yields and looks again makes turns of one step (`vain`). Anywhere else it is a
/// transition of its own, so that a loop that does nothing but yield is seen.
pub fn give_way() {
    if spin::is_idle() && may_give_way_within() {
        let exec = exec::get();
        exec.gave_way += 1;
        exec::me().yields = true;
        // The call that brought the thread here was not one of unknown code.
        exec.outside &= !1;
        spin::wipe();
    } else {
        yield_now(0);
    }
}

/// Whether the step under way is one of the running thread's that did something, and has not gone on for long.
fn may_give_way_within() -> bool {
    let exec = exec::get();
    let own = last_step().is_some_and(|step| step.thread == exec.current && step.op.kind != OpKind::Yield);
    own && exec.gave_way < MOST_WAYS_GIVEN
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
    if exec.outside > 1 {
        // What it did there was not seen.
        crate::repeat::forget();
    }
    exec.threads[me as usize].outside = exec.outside as u8 & 1 | ((exec.outside > 1) as u8) << 1;
    exec.outside = exec.threads[next as usize].outside as u64;
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
    if ahead::is_at_its_end(RUN.get().step) {
        ahead::meet();
    }
    if let Some(step) = under_way().filter(|_| channel::says(options::VISIBLE_ALL)) {
        crate::footprint::learn(step);
    }
    crate::footprint::end_step();
    settle_last();
    write_last();
    let run = RUN.get();
    if vain::stops(&run.last, run.step) {
        end::finish(Outcome::InVain);
    }
    if channel::says(options::ASK) && run.step + 1 == channel::request().plan_len {
        crate::memory::tell();
        end::finish(Outcome::Asked);
    }
    crate::repeat::look(run.step as u32);
    if run.step >= channel::header().max_steps as usize {
        end::finish(Outcome::StepLimit);
    }
    let words = find_enabled();
    if run.enabled.0[..words].iter().all(|&w| w == 0) {
        match limits::first_to_give_up() {
            Some(number) => run.enabled.insert(number),
            None => end::stuck(),
        }
    }
    let (thread, alternative) = match ahead::planned(run.step).or_else(|| channel::planned(run.step)) {
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
    let sleeps_from = channel::request().plan_len.saturating_sub(1);
    if let Some(step) = under_way() {
        let idle = note_idleness(&mut exec.threads[step.thread as usize], step);
        turn::settle(step.thread, idle);
        limits::note(step);
        if run.step > sleeps_from {
            wake_dependent(&step.op);
        }
    }
    if run.step == sleeps_from {
        channel::sleepers().iter().for_each(|&sleeper| vain::sleeps(sleeper));
    }
}

/// Returns whether the step changed nothing.
fn note_idleness(thread: &mut Thread, step: &Step) -> bool {
    const VALUES: u32 = 1;
    let idle = match step.op.kind {
        OpKind::AtomicLoad
        | OpKind::TryLockFailed
        | OpKind::TryJoinFailed
        | OpKind::PlainLoad
        | OpKind::RwReadFailed
        | OpKind::RwWriteFailed
        | OpKind::SemTryFailed
        | OpKind::SemValue => true,
        OpKind::AtomicRmw => step.flags & VALUES != 0 && step.old_value == step.new_value,
        _ => false,
    };
    crate::repeat::made(thread, step.op.kind, idle);
    thread.idle_ops = if idle { thread.idle_ops + 1 } else { 0 };
    if step.op.kind == OpKind::Yield || thread.idle_ops >= IDLE_LIMIT {
        thread.yields = true;
        thread.idle_ops = 0;
    }
    idle || step.op.kind == OpKind::Yield
}

fn wake_dependent(executed: &Op) {
    let exec = exec::get();
    for word in 0..ThreadBits::words_for(exec.thread_count) {
        for number in (Members { bits: exec.asleep.0[word], base: word as u16 * 64 }) {
            let pending = exec.threads[number as usize].pending;
            let pending = if exec.failing.contains(number) { pending.failed() } else { pending };
            if op::dependent(executed, &pending) {
                exec.asleep.remove(number);
            }
        }
    }
}

/// Fills the set of enabled threads; returns how many words it has.
fn find_enabled() -> usize {
    let exec = exec::get();
    let words = ThreadBits::words_for(exec.thread_count);
    for (i, enabled) in RUN.get().enabled.0[..words].iter_mut().enumerate() {
        let (pending, conditional) = (exec.pending.0[i], exec.conditional.0[i]);
        let members = Members { bits: pending & conditional, base: i as u16 * 64 };
        let certain = pending & !conditional;
        if exec.section > 0 {
            // Nobody else runs in an atomic section.
            *enabled = ((exec.current as usize / 64 == i) as u64) << (exec.current % 64);
            continue;
        }
        *enabled = members.fold(certain, |bits, number| bits | (can_go_on(number) as u64) << (number % 64));
    }
    leave_out_patient(words);
    if exec.any_exits {
        let_exit(words);
    }
    words
}

/// Whoever is about to end the process with status 0 does so only if nobody else can go on.
#[cold]
fn let_exit(words: usize) {
    let exec = exec::get();
    let steps = MOST_BEFORE_EXIT.min(channel::header().max_steps / 4);
    if step_number().saturating_sub(exec.exits_since) > steps && exec.section == 0 {
        return exits_now();
    }
    let enabled = &mut RUN.get().enabled.0[..words];
    if enabled.iter().zip(&exec.exits.0).any(|(all, exits)| all & !exits != 0) {
        enabled.iter_mut().zip(&exec.exits.0).for_each(|(all, exits)| *all &= !exits);
    }
}

/// Whoever is about to end the process waits no longer.
fn exits_now() {
    let exec = exec::get();
    exec.any_exits = false;
    let exits = core::mem::replace(&mut exec.exits, ThreadBits::EMPTY);
    for (i, &bits) in exits.0.iter().enumerate() {
        for number in (Members { bits, base: i as u16 * 64 }) {
            let pending = &mut exec.threads[number as usize].pending;
            *pending = pending.loud();
        }
    }
}

/// Threads that have looked in vain go on only if nobody else can.
fn leave_out_patient(words: usize) {
    if !turn::any_in_vain() {
        return;
    }
    let exec = exec::get();
    let enabled = &mut RUN.get().enabled.0[..words];
    let mut patient = ThreadBits::EMPTY;
    for (i, bits) in enabled.iter().enumerate() {
        for number in (Members { bits: *bits & exec.conditional.0[i], base: i as u16 * 64 }) {
            if turn::is_patient(&exec.threads[number as usize]) {
                patient.insert(number);
            }
        }
    }
    if enabled.iter().zip(&patient.0).any(|(all, patient)| all & !patient != 0) {
        enabled.iter_mut().zip(&patient.0).for_each(|(all, patient)| *all &= !patient);
    }
}

pub fn is_enabled(number: u16) -> bool {
    let exec = exec::get();
    exec.pending.contains(number) && !exec.exits.contains(number) && can_go_on(number)
}

/// Whether the operation that a thread stands before can be done.
#[inline(always)]
pub fn can_go_on(number: u16) -> bool {
    let exec = exec::get();
    let thread = &exec.threads[number as usize % MAX_THREADS];
    // By far the most frequent one: not by the table of jumps that the others become.
    if thread.pending.kind == OpKind::MutexLock {
        return crate::mutex::is_free(thread.pending_address);
    }
    thread.pending.may_be_cancelled() && crate::cancel::acts(thread) || is_ready(number, thread)
}

/// Whether it can be done even if the thread is not to be cancelled.
fn is_ready(number: u16, thread: &Thread) -> bool {
    match thread.pending.kind {
        OpKind::Waiting => false,
        OpKind::CondCancel => thread.waits_for == 0,
        OpKind::TryJoin if limits::holds_back(number) => crate::threads::has_ended(thread.pending.arg),
        OpKind::Once => crate::once::is_enabled(thread.pending_address),
        OpKind::CondTimeout => !limits::holds_back(number),
        OpKind::RwRead | OpKind::RwTryRead => held_back_or(number, thread, crate::rwlock::may_read),
        OpKind::RwWrite | OpKind::RwTryWrite => held_back_or(number, thread, crate::rwlock::may_write),
        OpKind::SemWait | OpKind::SemTry => held_back_or(number, thread, crate::semaphore::may_take),
        OpKind::TryLock if limits::holds_back(number) => crate::mutex::is_free(thread.pending_address),
        OpKind::BarrierPass => thread.waits_for == 0,
        OpKind::ThreadJoin => crate::threads::has_ended(thread.pending.arg),
        kind if turn::is_outside(kind) && thread.pending_address != 0 => turn::is_ready(thread.pending_address),
        _ => !spin::waits(number),
    }
}

/// Whether an operation that waits for an object, or tries and is held back or spins, finds it free.
fn held_back_or(number: u16, thread: &Thread, is_free: fn(usize) -> bool) -> bool {
    let tries = matches!(thread.pending.kind, OpKind::RwTryRead | OpKind::RwTryWrite | OpKind::SemTry);
    if tries && !limits::holds_back(number) {
        return !spin::waits(number);
    }
    is_free(thread.pending_address)
}

fn planned_thread(thread: u16) -> u16 {
    if thread >= exec::get().thread_count || !RUN.get().enabled.contains(thread) {
        end::finish(Outcome::Diverged);
    }
    thread
}

/// The default rule among enabled threads that do not sleep.
fn default_thread(words: usize) -> u16 {
    let exec = exec::get();
    let run = RUN.get();
    let me = exec.current;
    let yields = |n: u16| exec.threads[n as usize].yields;
    if let Some(next) = vain::next(&run.enabled, words) {
        return next;
    }
    let goes_on = run.enabled.contains(me) && !exec.asleep.contains(me) && !yields(me);
    if goes_on && !alike::is_like_a_sleeper(me) {
        return me;
    }
    // First those that did not just give way, beginning after the running one if that yields; of them, first those that are like
    // no sleeping thread. Then anyone.
    let after = if yields(me) { me + 1 } else { 0 };
    let ready = |from| run.enabled.find(from, words, &exec.asleep, |n| !yields(n));
    let fresh = |from| run.enabled.find(from, words, &exec.asleep, |n| !yields(n) && !alike::is_like_a_sleeper(n));
    let anyone = |from| run.enabled.find(from, words, &exec.asleep, |_| true);
    let first = fresh(after).or_else(|| fresh(0)).or(goes_on.then_some(me));
    match first.or_else(|| ready(after)).or_else(|| ready(0)).or_else(|| anyone(after)).or_else(|| anyone(0)) {
        Some(next) => next,
        None => end::finish(Outcome::SleepBlocked),
    }
}

fn record(thread: u16, alternative: u16, words: usize) {
    let exec = exec::get();
    let run = RUN.get();
    let chosen = &mut exec.threads[thread as usize];
    chosen.yields = false;
    exec.gave_way = 0;
    let alternatives = match chosen.pending.kind {
        OpKind::CondSignal => cond::waiters(chosen.pending_address).max(1),
        OpKind::FutexWake | OpKind::FutexRequeue | OpKind::FutexWakeOp => crate::futex::ways(chosen),
        OpKind::Choose => chosen.pending.arg as u16,
        kind if crate::cancel::is_undecided(kind, chosen) => 1 + is_ready(thread, chosen) as u16,
        _ => 1,
    };
    let len = size_of::<Step>() + 8 * words;
    if alternative >= alternatives {
        end::finish(Outcome::Diverged);
    }
    if run.trace_used + len > TRACE_BYTES {
        end::finish(Outcome::StepLimit);
    }
    run.last = Step {
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
    run.unwritten = true;
    ahead::note(run.step, thread, alternative);
    if channel::says(options::STACKS) {
        stack::write_step(thread);
    }
    crate::footprint::begin_step(thread);
    run.step += 1;
}

/// Writes the step under way to the trace, now that it is over.
fn write_last() {
    let run = RUN.get();
    if !core::mem::take(&mut run.unwritten) {
        return;
    }
    let address = channel::region(TRACE_OFFSET) + run.trace_used;
    let words = run.last.enabled_words as usize;
    const STEP_WORDS: usize = size_of::<Step>() / 8;
    // SAFETY: `record` checked that there is room in the trace region; a step consists of words without padding.
    unsafe {
        write_changed(address as *mut u64, (&raw const run.last).cast(), STEP_WORDS);
        write_changed((address as *mut u64).add(STEP_WORDS), run.enabled.0.as_ptr(), words);
    }
    run.trace_used += size_of::<Step>() + 8 * words;
}

/// Copies words, but writes only those that differ. Most steps are those of the execution before: what is not written
/// stays in the controller's cache, and neither side has to wait for it.
///
/// # Safety
/// As for a copy.
#[inline(always)]
unsafe fn write_changed(to: *mut u64, from: *const u64, count: usize) {
    for i in 0..count {
        // SAFETY: the caller's.
        unsafe {
            if *to.add(i) != *from.add(i) {
                *to.add(i) = *from.add(i);
            }
        }
    }
}

/// At the end of the execution: the rest of the trace, and how long it is.
pub fn end_trace() {
    write_last();
    let run = RUN.get();
    channel::header().step_count = run.step as u32;
    channel::header().trace_len = run.trace_used as u32;
}

/// The record of the operation under way, unless it is a part of an atomic section's.
pub fn last_step() -> Option<&'static mut Step> {
    under_way().filter(|_| exec::get().section == 0)
}

fn under_way() -> Option<&'static mut Step> {
    let run = RUN.get();
    (run.step != 0).then_some(&mut run.last)
}

/// Says how the operation under way turned out.
pub fn executed(kind: OpKind) {
    if let Some(step) = last_step() {
        step.op.kind = kind;
    }
}

/// The compare-and-exchange under way has failed: it is a load, of the order declared for that.
pub fn failed_with(order: u8) {
    if let Some(step) = last_step() {
        (step.op.arg, step.op.order) = (op::TRIED, order);
    }
}

/// Marks the operation under way as an attempt: a try-lock that succeeded.
pub fn tried() {
    if let Some(step) = last_step() {
        step.op.arg = op::TRIED;
    }
}

/// Notes which way a choice went, for reports.
pub fn chose(way: u16) {
    if let Some(step) = under_way() {
        step.new_value = way as u64;
        step.flags |= 1;
    }
}

/// Notes the values before and after, for reports.
pub fn values(old: u64, new: u64) {
    if let Some(step) = last_step() {
        (step.old_value, step.new_value) = (old, new);
        step.flags |= 1;
    }
}
