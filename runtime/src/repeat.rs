//! Executions that come back to a state they have been in: threads that keep each other from getting on, each taking and
//! giving back what the other needs. Such an execution is cut off, since whatever can come now could have come then; the explorer
//! sees to it that it does (`symdpor_explore::reduction`).
//!
//! A state is the local state of every thread (`local`: the code it has left, what is live), what each is about to do, and the
//! memory. Of that only what has changed since the look-out began is compared: the first content of each granule written
//! since is kept. Of a stack only the variables that are still needed count: below them lies what whoever ran there last has
//! left, this runtime among them. Looked for only once threads have tried in vain, and forgotten whenever something happens that is not followed:
//! calls of unknown code, allocation, other system calls than waiting, operations on anything but mutexes and atomics.
//!
//! A state must come up three times: an execution that goes round once more than its state needs may still be the shortest one to
//! a data race, with an access on the way round; but not one that goes round twice more.

use crate::cell::Global;
use crate::channel;
use crate::exec;
use crate::footprint::Lanes;
use crate::local::{self, Exact, Why};
use crate::spin;
use crate::thread::{Life, Thread};
use symdpor_abi::channel::Outcome;
use symdpor_abi::op::OpKind;

const MOST_WRITES: usize = 256;
const MOST_VISITS: usize = 1024;
const MOST_THREADS: usize = 64;
/// So often threads must have tried in vain before the look-out begins: for a lock, by giving way, by other operations that changed
/// nothing.
const VAIN_LOCKS: u32 = 2;
const VAIN_YIELDS: u32 = 6;
const VAIN_OTHERS: u32 = 32;
/// Or given back a lock without having stored anything since they last did: they look at something under it.
const VAIN_ROUNDS: u32 = 4;

type Print = [u64; 2];

#[derive(Clone, Copy)]
struct Visit {
    state: Print,
    step: u32,
    count: u8,
}

struct Lookout {
    on: bool,
    vain_locks: u32,
    vain_yields: u32,
    vain_others: u32,
    vain_rounds: u32,
    /// Granule, which bits of it count, what they were first.
    writes: [(usize, u64, u64); MOST_WRITES],
    write_count: usize,
    visits: [Visit; MOST_VISITS],
    visit_count: usize,
    /// Local states, as far as they are known.
    threads: [Option<Print>; MOST_THREADS],
}

static LOOKOUT: Global<Lookout> = Global::new(Lookout {
    on: false,
    vain_locks: 0,
    vain_yields: 0,
    vain_others: 0,
    vain_rounds: 0,
    writes: [(0, 0, 0); MOST_WRITES],
    write_count: 0,
    visits: [Visit { state: [0; 2], step: 0, count: 0 }; MOST_VISITS],
    visit_count: 0,
    threads: [None; MOST_THREADS],
});

/// Before each execution.
pub fn reset() {
    let lookout = LOOKOUT.get();
    lookout.on = false;
    (lookout.vain_locks, lookout.vain_yields, lookout.vain_others, lookout.vain_rounds) = (0, 0, 0, 0);
    (lookout.write_count, lookout.visit_count) = (0, 0);
}

/// Something has happened that is not followed.
#[inline(always)]
pub fn forget() {
    if LOOKOUT.get().on {
        begin();
    }
}

#[cold]
fn begin() {
    let lookout = LOOKOUT.get();
    (lookout.write_count, lookout.visit_count) = (0, 0);
    lookout.threads = [None; MOST_THREADS];
}

fn start() {
    if !LOOKOUT.get().on {
        LOOKOUT.get().on = true;
        // Every access is reported from now on: see `access::plain`.
        exec::get().idle_threads += 1;
        begin();
    }
}

/// So much has changed that it is no state of before: threads have to try in vain anew until it is worth looking out. A thread that
/// computes for long would otherwise pay for each of its accesses.
#[cold]
fn stop() {
    reset();
    exec::get().idle_threads -= 1;
}

/// Memory of the program is about to be written to.
#[inline(always)]
pub fn store(address: usize, len: usize) {
    let me = exec::me();
    me.has_stored |= !spin::on_own_stack(exec::get().current, address);
    if LOOKOUT.get().on {
        note_store(address, len);
    }
}

#[cold]
fn note_store(address: usize, len: usize) {
    for granule in (address & !7..address + len).step_by(8) {
        if LOOKOUT.get().on {
            add(granule, u64::MAX);
        }
    }
}

/// A mutex is about to be taken or given back. Where it was taken is kept in it, for reports only.
pub fn mutex(address: usize) {
    if LOOKOUT.get().on {
        add(address & !7, u64::MAX);
    }
    if LOOKOUT.get().on {
        add((address & !7) + 8, u32::MAX as u64);
    }
}

fn add(granule: usize, mask: u64) {
    let lookout = LOOKOUT.get();
    if lookout.writes[..lookout.write_count].iter().any(|w| w.0 == granule) {
        return;
    }
    if lookout.write_count == MOST_WRITES {
        return stop();
    }
    lookout.writes[lookout.write_count] = (granule, mask, content(granule) & mask);
    lookout.write_count += 1;
}

fn content(granule: usize) -> u64 {
    // SAFETY: the program is about to write to it, or has.
    unsafe { core::ptr::read_volatile(granule as *const u64) }
}

/// A thread has made a step; whether it was in vain.
pub fn made(thread: &mut Thread, kind: OpKind, in_vain: bool) {
    let lookout = LOOKOUT.get();
    if kind == OpKind::MutexUnlock {
        lookout.vain_rounds += !core::mem::take(&mut thread.has_stored) as u32;
    }
    lookout.vain_locks += (kind == OpKind::TryLockFailed) as u32;
    lookout.vain_yields += (kind == OpKind::Yield) as u32;
    lookout.vain_others += in_vain as u32;
    let reached = lookout.vain_locks >= VAIN_LOCKS || lookout.vain_yields >= VAIN_YIELDS;
    if reached || lookout.vain_others >= VAIN_OTHERS || lookout.vain_rounds >= VAIN_ROUNDS {
        start();
    }
    let followed = matches!(
        kind,
        OpKind::AtomicLoad
            | OpKind::AtomicStore
            | OpKind::AtomicRmw
            | OpKind::MutexLock
            | OpKind::TryLockFailed
            | OpKind::MutexUnlock
            | OpKind::Yield
            | OpKind::PlainLoad
            | OpKind::PlainStore
    );
    if !followed {
        forget();
    }
    let current = exec::get().current as usize;
    if let Some(known) = lookout.threads.get_mut(current) {
        *known = None;
    }
}

/// Between two steps: ends the execution if it has come back to where it was. `step`: how many there have been.
#[inline(always)]
pub fn look(step: u32) {
    if LOOKOUT.get().on {
        look_closely(step);
    }
}

#[cold]
fn look_closely(step: u32) {
    // Unknown code may have run since: its writes were not seen.
    if exec::get().outside & !1 != 0 {
        return forget();
    }
    let Some(state) = state() else { return };
    let lookout = LOOKOUT.get();
    let seen = lookout.visits[..lookout.visit_count].iter_mut().find(|v| v.state == state);
    let Some(visit) = seen else {
        if lookout.visit_count == MOST_VISITS {
            begin();
        }
        lookout.visits[lookout.visit_count] = Visit { state, step, count: 1 };
        lookout.visit_count += 1;
        return;
    };
    if visit.count == 2 {
        channel::header().exit_status = visit.step;
        crate::end::repeated();
    }
    (visit.count, visit.step) = (2, step);
}

/// The state of all threads and the memory, if it can be known.
fn state() -> Option<Print> {
    let exec = exec::get();
    let mut lanes = Lanes::new();
    for number in 0..exec.thread_count {
        let thread = &exec.threads[number as usize];
        lanes.add(thread.life as u64);
        if thread.life != Life::Alive {
            continue;
        }
        let [low, high] = local_state(number)?;
        lanes.add(low);
        lanes.add(high);
        lanes.add(spin::waits(number) as u64 | (exec.pending.contains(number) as u64) << 1);
    }
    let sum = sum_of_writes();
    sum.iter().for_each(|&word| lanes.add(word));
    Some(lanes.finish())
}

/// What has been written, in a sum: the order in which granules were first written to may differ from round to round.
fn sum_of_writes() -> Print {
    let lookout = LOOKOUT.get();
    let writes = &lookout.writes[..lookout.write_count];
    let mut counts = [true; MOST_WRITES];
    for number in 0..exec::get().thread_count {
        leave_out_dead(number, writes, &mut counts);
    }
    let mut sum = [0u64; 2];
    for (&(granule, mask, first), _) in writes.iter().zip(counts).filter(|(_, counts)| *counts) {
        for (value, sign) in [(content(granule) & mask, false), (first, true)] {
            let mut one = Lanes::new();
            one.add(granule as u64);
            one.add(value);
            for (total, word) in sum.iter_mut().zip(one.finish()) {
                *total = if sign { total.wrapping_sub(word) } else { total.wrapping_add(word) };
            }
        }
    }
    sum
}

/// Of the granules on a thread's stack only those in variables of its frames count.
fn leave_out_dead(number: u16, writes: &[(usize, u64, u64)], counts: &mut [bool]) {
    let mut collected = false;
    for (write, counts) in writes.iter().zip(counts).filter(|(write, _)| spin::on_own_stack(number, write.0)) {
        let alive = exec::get().threads[number as usize].life == Life::Alive;
        if alive && !collected {
            // It worked when its local state was asked for.
            let _ = local::collect(number);
            collected = true;
        }
        *counts = alive && local::layout().overlaps(write.0, 8);
    }
}

fn local_state(number: u16) -> Option<Print> {
    let known = LOOKOUT.get().threads.get_mut(number as usize)?;
    if known.is_none() {
        let mut exact = Exact(Lanes::new());
        match local::walk_all(number, &mut exact) {
            Ok(()) => *known = Some(exact.0.finish()),
            // The controller tells what is missing, and this execution is run again.
            Err(Why::Unknown) => crate::end::finish(Outcome::Asked),
            Err(_) => return None,
        }
    }
    *known
}
