//! Waiting with a time limit.
//!
//! Time is virtual, and any thread may be slow: so whatever has to wait may find that its time has passed. A lock that is
//! taken within a time limit is a try: it fails if it is executed while the lock is held, and not being scheduled is its
//! waiting. A waiter on a condition variable has an operation of its own, `CondTimeout`, until it is woken.
//!
//! A loop that waits again and again would make the search endless. A thread that has given up, and comes to the same wait
//! with the same local state while nothing has changed since, is *held back*: it may give up again only when something has
//! changed, or when no other thread can go on. Then time passes, twice as much in each turn, and when that has gone on for long
//! it is a livelock.
//!
//! The same local state: the same registers and stack, where times that the clock has shown to the thread, and its time
//! limit, are equal to each other. What has changed: anything but locks taken and given back, and waits.

use crate::cell::Global;
use crate::end::{self, Details};
use crate::exec;
use crate::spin;
use crate::syscalls::time::{self, SECOND, Timespec};
use crate::thread::Thread;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::channel::{ErrorKind, Step};
use symdpor_abi::op::{NO_THREAD, OpKind};

pub const ETIMEDOUT: i32 = 110;
pub const EINVAL: i32 = 22;
/// Turns of a loop in which nothing changes and nobody else can go on, until it is called a livelock. Time has doubled as
/// often by then.
const MAX_TURNS: u32 = 32;
const ANSWERS: usize = 4;

/// What is known of a thread's waits. All zero: nothing.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Limit {
    /// What the clock said to the thread last, in nanoseconds since the start.
    answers: [u64; ANSWERS],
    next: usize,
    /// It has given up at a wait: with this local state, when so much had changed.
    gave_up: bool,
    state: u64,
    changes: u64,
    /// The wait under way: its local state, its time limit, and whether it is held back.
    here: u64,
    deadline: u64,
    held_back: bool,
    turns: u32,
}

/// Part of [`exec::Exec`]: on pages of their own, which programs that do not ask for the time never touch.
pub type Limits = [Limit; MAX_THREADS];

fn mine() -> &'static mut Limit {
    let exec = exec::get();
    &mut exec.limits[exec.current as usize % MAX_THREADS]
}

/// Whether the thread has given up in this execution.
pub fn has_given_up(thread: &Thread) -> bool {
    let exec = exec::get();
    let offset = thread as *const Thread as usize - exec.threads.as_ptr() as usize;
    watches() && exec.limits[offset / size_of::<Thread>() % MAX_THREADS].gave_up
}

/// The clock has said this to the running thread.
pub fn answered(nanoseconds: u64) {
    let limit = mine();
    limit.answers[limit.next % ANSWERS] = nanoseconds;
    limit.next = (limit.next + 1) % ANSWERS;
    if crate::snapshot::is_taken() {
        crate::footprint::learnt(nanoseconds as usize);
    }
}

impl Limit {
    /// What the clock said to the thread last, or to who created it, or to whom it has joined.
    fn last(&mut self) -> &mut u64 {
        &mut self.answers[(self.next + ANSWERS - 1) % ANSWERS]
    }
}

/// What time the running thread knows it to have been.
pub fn last_told() -> u64 {
    *mine().last()
}

/// The same of another.
pub fn last_told_to(number: u16) -> u64 {
    *exec::get().limits[number as usize % MAX_THREADS].last()
}

/// A thread comes after all that another has done: it is told no earlier time, nor the same again.
pub fn knows_times_of(number: u16, other: u16) {
    let told = last_told_to(other);
    if told > last_told_to(number) {
        *exec::get().limits[number as usize % MAX_THREADS].last() = told;
    }
}

/// When a time on a clock is, in nanoseconds since the start; None if it is not a valid time.
pub fn deadline(clock: i32, at: usize) -> Option<u64> {
    crate::access::read(at, size_of::<Timespec>());
    // SAFETY: the program passed it as a time; a wild pointer faults as the program's crash.
    let time = unsafe { *(at as *const Timespec) };
    let valid = (0..SECOND as i64).contains(&time.fraction);
    let past = Timespec { seconds: time.seconds.max(0), fraction: time.fraction };
    let left = time::time_until(clock, true, past).ok().filter(|_| valid)?;
    Some(time::since_start().saturating_add(left))
}

/// The running thread is about to wait until `deadline`; `registers` is the address of its saved registers, with its stack
/// above them.
pub fn begin(registers: usize, deadline: u64) {
    let exec = exec::get();
    let changes = exec.changes;
    let limit = mine();
    limit.deadline = deadline;
    limit.here = local_state(exec.current, registers, limit).unwrap_or(0);
    limit.held_back = limit.gave_up && limit.here != 0 && limit.state == limit.here && limit.changes == changes;
    if !limit.held_back {
        limit.turns = 0;
    }
}

/// Whether a thread must not give up now.
pub fn holds_back(number: u16) -> bool {
    let exec = exec::get();
    let limit = &exec.limits[number as usize % MAX_THREADS];
    limit.held_back && limit.changes == exec.changes
}

/// Whether the running thread's pending operation may have to wait although it is a try.
pub fn is_held_back() -> bool {
    mine().held_back
}

/// The wait is over: what was waited for has come.
pub fn end() {
    mine().held_back = false;
}

/// The time has passed.
pub fn give_up() {
    let exec = exec::get();
    let limit = mine();
    time::pass_until(limit.deadline);
    if !crate::snapshot::is_taken() {
        // Nobody else is there to change anything.
        limit.held_back = false;
        return;
    }
    if core::mem::take(&mut limit.held_back) && limit.changes == exec.changes {
        limit.turns += 1;
        time::pass_until(time::since_start() + (1_000_000 << limit.turns.min(MAX_TURNS)));
        if limit.turns >= MAX_TURNS {
            let text = format_args!(
                "thread {} waits with a time limit again and again, and no other thread will ever change anything",
                exec.current
            );
            end::error(ErrorKind::Livelock, &Details::at(0), text);
        }
    }
    if !core::mem::replace(&mut limit.gave_up, true) {
        // From now on every store is looked at: see `changed_by_store`.
        exec.idle_threads += 1;
        *WATCHES.get() = true;
    }
    (limit.state, limit.changes) = (limit.here, exec.changes);
}

/// Whether some thread has given up in this execution.
static WATCHES: Global<bool> = Global::new(false);

pub fn reset() {
    *WATCHES.get() = false;
}

/// Somebody stored to memory that is not on their own stack.
#[inline(always)]
pub fn watches() -> bool {
    *WATCHES.get()
}

pub fn changed() {
    exec::get().changes += 1;
}

/// A step is over: does it count as a change?
pub fn note(step: &Step) {
    if !watches() {
        return;
    }
    let changes = match step.op.kind {
        OpKind::AtomicStore | OpKind::AtomicRmw => step.flags & 1 == 0 || step.old_value != step.new_value,
        OpKind::CondSignal => step.op.arg != NO_THREAD,
        OpKind::CondBroadcast
        | OpKind::OnceBegin
        | OpKind::OnceEnd
        | OpKind::ThreadCreate
        | OpKind::ThreadJoin
        | OpKind::KeyTable
        | OpKind::Input
        | OpKind::SemPost
        | OpKind::SemWait
        | OpKind::SemTaken
        | OpKind::BarrierArrive
        | OpKind::BarrierMeet
        | OpKind::OutsideTake
        | OpKind::OutsidePut
        | OpKind::OutsideChange
        | OpKind::FutexWakeOp
        | OpKind::ThreadEnd
        | OpKind::ThreadCancel
        | OpKind::CondCancel
        | OpKind::AtomicSection => true,
        OpKind::FutexWake => step.op.arg != NO_THREAD,
        OpKind::FutexWakeAll | OpKind::FutexWakeSet | OpKind::FutexRequeue => true,
        OpKind::Waiting
        | OpKind::AtomicLoad
        | OpKind::AtomicCas
        | OpKind::MutexLock
        | OpKind::TryLock
        | OpKind::TryLockFailed
        | OpKind::MutexUnlock
        | OpKind::CondWait
        | OpKind::CondTimeout
        | OpKind::Once
        | OpKind::OnceDone
        | OpKind::ProcessExit
        | OpKind::PlainLoad
        // Told by the store itself.
        | OpKind::PlainStore
        | OpKind::Yield
        | OpKind::RwRead
        | OpKind::RwWrite
        | OpKind::RwTryRead
        | OpKind::RwTryWrite
        | OpKind::RwReadFailed
        | OpKind::RwWriteFailed
        | OpKind::RwUnlockRead
        | OpKind::RwUnlockWrite
        | OpKind::SemTry
        | OpKind::SemTryFailed
        | OpKind::SemValue
        | OpKind::BarrierPass
        | OpKind::OutsideLook
        | OpKind::FutexWait
        | OpKind::FutexMismatch
        | OpKind::FutexTimeout
        | OpKind::FutexWoken
        | OpKind::TryJoin
        | OpKind::TryJoinFailed
        | OpKind::CancelPoint
        | OpKind::Choose => false,
    };
    if changes {
        changed();
    }
}

/// When nobody can go on: of the threads that are held back the one whose time passes first.
pub fn first_to_give_up() -> Option<u16> {
    let exec = exec::get();
    let held = |n: &u16| exec.pending.contains(*n) && is_limited(*n) && holds_back(*n);
    (0..exec.thread_count).filter(held).min_by_key(|&n| exec.limits[n as usize].deadline)
}

/// Whether a thread stands before an operation with a time limit. (The thread may have been woken since it began to wait.)
fn is_limited(number: u16) -> bool {
    let kind = exec::get().threads[number as usize].pending.kind;
    matches!(
        kind,
        OpKind::CondTimeout
            | OpKind::TryLock
            | OpKind::TryJoin
            | OpKind::RwTryRead
            | OpKind::RwTryWrite
            | OpKind::SemTry
    )
}

fn local_state(thread: u16, registers: usize, limit: &Limit) -> Option<u64> {
    let words = spin::stack_words(thread, registers)?;
    let mix = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    };
    Some(words.iter().fold(registers as u64, |hash, &word| mix(hash, limit.without_time(word))) | 1)
}

impl Limit {
    /// The word, or the same for all words that say what time it is or was to be.
    fn without_time(&self, word: u64) -> u64 {
        // Fractions of a second and seconds of the monotonic clock; the other ranges that times are in.
        const RANGES: [core::ops::Range<u64>; 4] = [
            1_000..SECOND,
            time::REALTIME_START / SECOND..time::REALTIME_START / SECOND * 2,
            time::MONOTONIC_START..time::MONOTONIC_START * 100_000,
            time::REALTIME_START..time::REALTIME_START * 2,
        ];
        if !RANGES.iter().any(|r| r.contains(&word)) {
            return word;
        }
        let says = |&t: &u64| {
            let (seconds, fraction) = (t / SECOND, t % SECOND);
            [
                fraction,
                fraction / 1_000,
                t + time::REALTIME_START,
                t + time::MONOTONIC_START,
                seconds + time::REALTIME_START / SECOND,
                seconds + time::MONOTONIC_START / SECOND,
            ]
            .contains(&word)
        };
        let is_time = self.answers.iter().any(says) || says(&self.deadline);
        if is_time { u64::MAX / 3 } else { word }
    }
}
