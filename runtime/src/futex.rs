//! Futexes: threads that wait on a word of memory, and those who wake them.
//!
//! Who waits is kept with the threads (`Thread::waits_for`); the word is the program's own. A futex orders nothing as far as
//! data races go: the atomics around it do. Which waiters are woken, if there are more than that, is a choice.

use crate::exec;
use crate::names;
use crate::sched;
use crate::snapshot;
use crate::spin;
use crate::thread::Thread;
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{NO_THREAD, Op, OpKind, TIMED};

/// In `Thread::waits_for`: a futex, not a condition variable. Words of futexes are aligned.
const MARK: usize = 1;
/// So many threads can be named in an operation.
const NAMED: u16 = 32;
/// More ways than this are not followed.
const MOST_WAYS: u64 = 1000;

/// What a waiter was woken by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// It did not wait: the word had another value.
    Mismatch,
    ByAnother,
    ByTime,
}

/// What is done to the waiters of one futex.
#[derive(Clone, Copy)]
pub struct Part {
    pub address: usize,
    pub count: u32,
    pub bits: u32,
}

/// What a thread is about to do to waiters: kept with it until it is chosen, since the number of ways depends on them.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Intent {
    pub first: Part,
    pub second: Part,
}

fn queue(address: usize) -> ObjectId {
    ObjectId::futex(names::object(address), address)
}

pub fn op(kind: OpKind, address: usize) -> Op {
    Op::new(kind, queue(address))
}

pub fn op_with(kind: OpKind, address: usize, other: usize) -> Op {
    let mut op = op(kind, address);
    (op.object2, op.mask2) = (queue(other), 0xff);
    op
}

fn word(address: usize) -> u32 {
    // SAFETY: the caller has found the word to be there, and it is aligned.
    unsafe { core::ptr::read_volatile(address as *const u32) }
}

fn waits(thread: &Thread, part: &Part) -> bool {
    thread.is_alive() && thread.waits_for == part.address | MARK && thread.waits_with as u32 & part.bits != 0
}

fn waiters(part: &Part) -> u64 {
    let exec = exec::get();
    exec.threads[..exec.thread_count as usize].iter().filter(|t| waits(t, part)).count() as u64
}

/// The waiter that began to wait as the `index`-th of those that wait now.
fn waiter(part: &Part, index: u64) -> Option<u16> {
    let exec = exec::get();
    let waiting = |n: &u16| waits(&exec.threads[*n as usize], part);
    let rank = |n: &u16| {
        let since = exec.threads[*n as usize].waits_since;
        let earlier = |m: &u16| exec.threads[*m as usize].waits_since < since;
        (0..exec.thread_count).filter(waiting).filter(earlier).count() as u64
    };
    (0..exec.thread_count).filter(waiting).find(|n| rank(n) == index)
}

/// In how many ways `count` of `all` can be chosen.
fn choices(all: u64, count: u64) -> u64 {
    if count >= all {
        return 1;
    }
    (1..=count).fold(1u64, |ways, i| ways.saturating_mul(all - count + i) / i)
}

/// In how many ways the thread's pending operation can go.
pub fn ways(thread: &Thread) -> u16 {
    let Intent { first, second } = thread.intent;
    let ways = match thread.pending.kind {
        OpKind::FutexWake => choices(waiters(&first), first.count as u64),
        // Those that are left are moved.
        OpKind::FutexRequeue => {
            let all = waiters(&first);
            let left = all.saturating_sub(first.count as u64);
            choices(all, first.count as u64).saturating_mul(choices(left, second.count as u64))
        }
        _ => {
            choices(waiters(&first), first.count as u64).saturating_mul(choices(waiters(&second), second.count as u64))
        }
    };
    if ways > MOST_WAYS {
        crate::end::unsupported(format_args!(
            "a futex call can choose whom to wake in more than {MOST_WAYS} ways, which is too many to follow"
        ));
    }
    ways as u16
}

/// Threads that something is done to, as bits, and how many they are.
#[derive(Clone, Copy, Default)]
struct Chosen {
    bits: u32,
    count: u32,
    last: Option<u16>,
    nameless: bool,
}

/// Applies `each` to `part.count` of the waiters: those of the way with this number.
fn choose(part: &Part, way: u64, each: impl Fn(&mut Thread)) -> Chosen {
    let mut chosen = Chosen::default();
    let (mut way, mut index, mut all) = (way, 0, waiters(part));
    let mut wanted = (part.count as u64).min(all);
    while wanted > 0 && all > 0 {
        // The ways in which the next waiter is among the chosen come first.
        let with = choices(all - 1, wanted - 1);
        if way < with {
            let Some(number) = waiter(part, index) else { break };
            each(&mut exec::get().threads[number as usize]);
            chosen.bits |= 1u32.checked_shl(number as u32).unwrap_or(0);
            chosen.nameless |= number >= NAMED;
            chosen.count += 1;
            chosen.last = Some(number);
            wanted -= 1;
        } else {
            way -= with;
            index += 1;
        }
        all -= 1;
    }
    chosen
}

fn wake_up(thread: &mut Thread) {
    thread.waits_for = 0;
    thread.pending.kind = OpKind::FutexWoken;
}

/// Waits if the word has the value. `limit`: when time is up, on the runtime's clock.
pub fn wait(address: usize, expected: u32, bits: u32, limit: Option<u64>) -> Woken {
    if !snapshot::is_taken() && word(address) != expected {
        return Woken::Mismatch;
    }
    crate::cycle::enter();
    let mut wait = op(OpKind::FutexWait, address);
    wait.arg = if limit.is_some() { TIMED } else { 0 };
    sched::visible(wait, address, 0);
    let value = word(address) as u64;
    sched::values(value, value);
    spin::read(address, 4);
    if word(address) != expected {
        sched::executed(OpKind::FutexMismatch);
        return Woken::Mismatch;
    }
    let thread = exec::me();
    thread.waits_for = address | MARK;
    thread.waits_with = bits as usize;
    thread.waits_since = sched::step_number();
    if limit.is_some() {
        // A wait that ends by itself leaves nothing behind: its thread may be spinning.
        thread.yields = true;
        sched::visible(op(OpKind::FutexTimeout, address), address, 0);
    } else {
        spin::changed();
        thread.pending_address = address;
        sched::block_at(op(OpKind::Waiting, address).object);
    }
    exec::me().waits_for = 0;
    if sched::last_step().is_some_and(|s| s.op.kind == OpKind::FutexTimeout) {
        crate::syscalls::time::reach(limit.unwrap_or(0));
        return Woken::ByTime;
    }
    spin::changed();
    Woken::ByAnother
}

fn announce(op: Op, first: Part, second: Part) -> u64 {
    exec::me().intent = Intent { first, second };
    sched::visible(op, first.address, 0) as u64
}

/// Whom the step under way has woken.
fn note(kind: OpKind, chosen: Chosen) {
    if chosen.nameless {
        crate::end::unsupported(format_args!(
            "a futex call wakes several threads, and some of them are beyond the first {NAMED}"
        ));
    }
    sched::executed(kind);
    if let Some(step) = sched::last_step() {
        step.op.arg = chosen.bits;
    }
}

/// Wakes waiters; how many.
pub fn wake(part: Part) -> u32 {
    if !snapshot::is_taken() {
        return 0;
    }
    let way = announce(op(OpKind::FutexWake, part.address), part, part);
    let everyone = Part { bits: u32::MAX, ..part };
    let all = waiters(&everyone);
    let chosen = choose(&part, way, wake_up);
    if chosen.count <= 1 {
        if let Some(step) = sched::last_step() {
            step.op.arg = chosen.last.map_or(NO_THREAD, |n| n as u32);
        }
    } else if chosen.nameless && all == chosen.count as u64 && !exec::get().futex_moved {
        sched::executed(OpKind::FutexWakeAll);
    } else {
        note(OpKind::FutexWakeSet, chosen);
    }
    if chosen.count > 0 {
        spin::changed();
    }
    chosen.count
}

/// Wakes some waiters of the first futex and moves others to the second. None if the word has not the expected value.
pub fn requeue(first: Part, second: Part, expected: Option<u32>) -> Option<(u32, u32)> {
    let matches = |e: u32| word(first.address) == e;
    if !snapshot::is_taken() {
        return expected.is_none_or(matches).then_some((0, 0));
    }
    let way = announce(op_with(OpKind::FutexRequeue, first.address, second.address), first, second);
    if !expected.is_none_or(matches) {
        sched::executed(OpKind::FutexMismatch);
        spin::read(first.address, 4);
        return None;
    }
    spin::changed();
    let left = waiters(&first).saturating_sub(first.count as u64);
    let ways = choices(left, second.count as u64);
    let woken = choose(&first, way / ways, wake_up);
    let step = sched::step_number();
    let moved = choose(&Part { count: second.count, ..first }, way % ways, |thread| {
        thread.waits_for = second.address | MARK;
        thread.waits_since = step;
        if thread.pending.kind == OpKind::FutexTimeout {
            thread.pending = op(OpKind::FutexTimeout, second.address);
        }
    });
    exec::get().futex_moved |= moved.count > 0;
    note(OpKind::FutexRequeue, woken);
    Some((woken.count, moved.count))
}

/// Changes the word of the second futex, wakes waiters of the first, and those of the second if `more` says so of the old value.
pub fn wake_op(first: Part, second: Part, change: impl Fn(u32) -> u32, more: impl Fn(u32) -> bool) -> u32 {
    let old = word(second.address);
    if !snapshot::is_taken() {
        // SAFETY: the caller has found the word to be there.
        unsafe { core::ptr::write_volatile(second.address as *mut u32, change(old)) };
        return 0;
    }
    let way = announce(op_with(OpKind::FutexWakeOp, first.address, second.address), first, second);
    let old = word(second.address);
    // SAFETY: as above.
    unsafe { core::ptr::write_volatile(second.address as *mut u32, change(old)) };
    sched::values(old as u64, change(old) as u64);
    spin::wrote(second.address, 4);
    crate::races::detector().atomic_rmw(exec::get().current, second.address, 5);
    let ways = choices(waiters(&second), second.count as u64);
    let mut woken = choose(&first, way / ways, wake_up);
    if more(old) {
        let others = choose(&second, way % ways, wake_up);
        woken.bits |= others.bits;
        woken.count += others.count;
        woken.nameless |= others.nameless;
    }
    note(OpKind::FutexWakeOp, woken);
    woken.count
}
