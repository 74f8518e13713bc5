//! Turns in vain, as the controller wants them treated: see `Plan::stops_in_vain` of `symdpor_trace`.
//!
//! A thread that has come round to where it was (`spin`) might as well have waited. On request the execution stops there. In
//! executions that the controller runs in its place the thread sleeps, until something depends on the operation that it stands
//! before. A plain access to what it looks at is no operation, but may race with that look: then the thread wakes, and goes next.

use crate::channel;
use crate::exec;
use crate::names;
use crate::races;
use crate::set::{Members, ThreadBits};
use crate::spin;
use symdpor_abi::channel::{Step, options, sleeper};

/// Ranges of more granules than this wake everyone.
const MAX_GRANULES: usize = 64;

/// Puts a thread of the plan's sleep set to sleep.
pub fn sleeps(raw: u32) {
    let (exec, number) = (exec::get(), raw as u16);
    exec.asleep.insert(number);
    if raw & sleeper::FAILED != 0 {
        exec.failing.insert(number);
    }
    if raw & sleeper::IN_VAIN != 0 {
        exec.in_vain.insert(number);
        exec.any_in_vain = true;
    }
}

/// Whether the execution is to stop after its last step, the `count`-th: its thread, the running one, stands where it stood before,
/// and has touched nothing in its turn that others might touch later.
pub fn stops(last: &Step, count: usize) -> bool {
    let exec = exec::get();
    last.thread == exec.current
        && spin::is_round(exec.current)
        && channel::says(options::STOPS_IN_VAIN)
        && count >= channel::request().plan_len
        && spin::turn_is_pure(exec.current)
        // What depends on nothing would never wake the thread.
        && last.op.accesses().next().is_some()
        // Others that were woken along with it go first: where the execution is taken up again they would sleep.
        && exec.go_next.0.iter().all(|&w| w == 0)
}

/// The next of the threads that were woken, if it can go on.
pub fn next(enabled: &ThreadBits, words: usize) -> Option<u16> {
    let exec = exec::get();
    if !exec.any_in_vain {
        return None;
    }
    let next = exec.go_next.find(0, words, &exec.asleep, |n| enabled.contains(n));
    match next {
        Some(number) => exec.go_next.remove(number),
        None => exec.go_next = ThreadBits::EMPTY,
    }
    next
}

/// The running thread makes a plain access. One that it has made before, with nothing released since, makes no difference to any
/// race.
#[inline]
pub fn accessed(address: usize, len: usize, writes: bool) {
    let exec = exec::get();
    if exec.idle_threads != 0
        && spin::is_idle()
        && !(races::is_on() && races::detector().has_made(exec.current, address, len, writes))
    {
        spin::touched();
    }
    if exec.any_in_vain && !channel::says(options::VISIBLE_ALL) {
        wake(address, len);
    }
}

#[cold]
fn wake(address: usize, len: usize) {
    let exec = exec::get();
    let granules = (address & !7..address + len).step_by(8);
    for word in 0..ThreadBits::words_for(exec.thread_count) {
        let bits = exec.asleep.0[word] & exec.in_vain.0[word];
        for number in (Members { bits, base: word as u16 * 64 }) {
            let pending = exec.threads[number as usize].pending;
            let touches = |granule: usize| {
                let start = granule.max(address);
                let bytes = names::mask(start, (granule + 8).min(address + len) - start);
                let looks_at = [(pending.object, pending.mask), (pending.object2, pending.mask2)];
                looks_at.iter().any(|&(object, mask)| mask & bytes != 0 && object == names::object(granule))
            };
            if number != exec.current && (granules.len() > MAX_GRANULES || granules.clone().any(touches)) {
                exec.asleep.remove(number);
                exec.go_next.insert(number);
            }
        }
    }
}
