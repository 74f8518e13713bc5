//! Threads that have come to the same local state. They may be twins, and the controller will want to know what memory they have to
//! themselves (`memory`): it is told at once, so that it need not ask, which would take an execution of its own.
//!
//! What is told stays true as long as the threads do not move, except that others may forget addresses of theirs. Then the
//! controller asks.

use crate::cell::Global;
use crate::exec;
use crate::footprint;
use crate::memory;
use crate::set::ThreadBits;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::local::footprint::OF_MEMORY;
use symdpor_abi::local::memory::THREAD;

const NONE: [u64; 2] = [0; 2];

/// Reset with every execution.
struct State {
    /// The local states of all threads, once one has come to a new one; none while a thread runs.
    locals: [[u64; 2]; MAX_THREADS],
    /// Of so many threads.
    known: u16,
    /// Those that have been told of since they came there, and whose stacks nobody else knew then: that is still so.
    told: ThreadBits,
    /// What those are, the blocks that only they have by their content.
    own: [[u64; 2]; MAX_THREADS],
}

static STATE: Global<State> =
    Global::new(State { locals: [NONE; MAX_THREADS], known: 0, told: ThreadBits::EMPTY, own: [NONE; MAX_THREADS] });

pub fn reset() {
    let state = STATE.get();
    (state.known, state.told) = (0, ThreadBits::EMPTY);
}

impl State {
    /// Those threads that have not moved since the new part of the execution began, and those that have been created meanwhile.
    fn fill(&mut self) {
        let exec = exec::get();
        for number in self.known..exec.thread_count {
            let waits = number != 0 && number != exec.current && exec.pending.contains(number);
            self.locals[number as usize] = if waits { footprint::hash_again(number) } else { NONE };
        }
        self.known = exec.thread_count;
    }
}

/// A thread runs.
#[inline]
pub fn runs(number: u16) {
    let state = STATE.get();
    state.locals[number as usize] = NONE;
    state.told.remove(number);
}

/// A thread has come to its next operation.
#[inline]
pub fn left(number: u16, local: [u64; 2]) {
    let state = STATE.get();
    state.fill();
    state.locals[number as usize] = local;
}

/// Tells of these threads, which have come to their next operations, and of those that are like them and have not been told of.
#[inline]
pub fn tell(newcomers: &[u16]) {
    let (state, mut group) = (STATE.get(), ThreadBits::EMPTY);
    let mut any = false;
    for &newcomer in newcomers.iter().filter(|&&n| n != 0) {
        let local = state.locals[newcomer as usize];
        if local == NONE {
            continue;
        }
        for number in (1..state.known).filter(|&n| n != newcomer && state.locals[n as usize] == local) {
            if !state.told.contains(number) {
                group.insert(number);
            }
            group.insert(newcomer);
            any = true;
        }
    }
    if any {
        memory::tell_of(&group);
    }
}

/// Whether a thread is like one that sleeps, as far as has been told: what it would do has then been explored, most likely.
pub fn is_like_a_sleeper(number: u16) -> bool {
    let (state, exec) = (STATE.get(), exec::get());
    if !state.told.contains(number) {
        return false;
    }
    let own = state.own[number as usize];
    let alike = |n: u16| state.told.contains(n) && state.own[n as usize] == own;
    let words = ThreadBits::words_for(exec.thread_count);
    exec.asleep.find(0, words, &ThreadBits::EMPTY, alike).is_some()
}

/// Puts a record of memory among the footprints.
pub fn record(words: &[u64]) {
    let [first, rest @ ..] = words else { return };
    if first & 0xff == THREAD && first >> 24 & 1 != 0 {
        let (state, number) = (STATE.get(), (first >> 8) as u16);
        state.told.insert(number);
        state.own[number as usize % MAX_THREADS] = rest.try_into().unwrap_or(NONE);
    }
    match rest {
        [a] => footprint::write(&[first + OF_MEMORY, *a]),
        [a, b] => footprint::write(&[first + OF_MEMORY, *a, *b]),
        _ => {}
    }
}
