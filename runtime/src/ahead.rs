//! A head start: choices are made before the plan comes that begins with them.
//!
//! While the controller looks at an execution the worker would only wait. But most plans begin like the one before, and with each
//! the controller says how far the next one is likely to ([`Request::head_start`](crate::channel::Request)). So many choices of the
//! last execution are made again at once. Then the worker waits for the plan: if that begins with them the execution goes on,
//! otherwise memory is put back and it begins anew. On one CPU nothing would be gained, and it is not done.
//!
//! The controller may still be reading the last execution's answer meanwhile. Nothing of it changes before the next command: the header
//! is left alone, and steps that are made again leave the same words in the trace. (If they do not, the program does not repeat
//! itself, and whichever execution that shows in, it is told.)

use crate::cell::Global;
use crate::channel;
use crate::cycle;
use crate::end;
use crate::sys::pages;
use symdpor_abi::channel::{Outcome, PLAN_CAPACITY, command, options, pack_choice, unpack_choice, waiting};

struct Ahead {
    /// The choices of the execution under way, and up to the first one that was not made again those of the last one.
    choices: *mut u32,
    /// How many of them were made in the last execution, and whether it was one after which the search simply goes on.
    made: usize,
    goes_on: bool,
    /// How many are to be made before the plan comes; all, if it is there.
    until: usize,
    /// Something went another way: whatever the plan is, the execution has to begin anew.
    spoilt: bool,
}

/// The plan is there.
const NEVER: usize = usize::MAX;

static AHEAD: Global<Ahead> =
    Global::new(Ahead { choices: core::ptr::null_mut(), made: 0, goes_on: false, until: NEVER, spoilt: false });

/// What may differ between the options of two plans without a difference before the last choice.
const AFTERWARDS: u32 = options::ASK | options::STOPS_IN_VAIN;

/// Begins with the choices of the last execution, if it is known how many of them to make.
pub fn begins() -> bool {
    let ahead = AHEAD.get();
    let request = channel::request();
    let goes_on = core::mem::take(&mut ahead.goes_on) && request.waiting == waiting::SPINS;
    let Some(head_start) = request.head_start.filter(|_| goes_on) else { return false };
    (ahead.until, ahead.spoilt) = (head_start.min(ahead.made), false);
    // As long as the plan is not there, it has no last choice.
    request.plan_len = usize::MAX;
    request.options &= !AFTERWARDS;
    true
}

/// Whether there is no plan yet.
pub fn is_under_way() -> bool {
    AHEAD.get().until != NEVER
}

#[inline(always)]
pub fn is_at_its_end(step: usize) -> bool {
    AHEAD.get().until == step
}

/// The choice at a step, as long as there is no plan.
#[inline(always)]
pub fn planned(step: usize) -> Option<(u16, u16)> {
    let ahead = AHEAD.get();
    if ahead.until == NEVER {
        return None;
    }
    // SAFETY: below `until`, so it was made in the last execution.
    Some(unpack_choice(unsafe { *ahead.choices.add(step) }))
}

/// Waits for the plan, and goes on with it if it begins with the choices that were made.
#[cold]
pub fn meet() {
    if channel::wait_for_command() != command::RUN {
        end::quit(0);
    }
    let ahead = AHEAD.get();
    let (until, before) = (ahead.until, channel::request().options);
    channel::accept();
    let request = channel::request();
    let alike = |step: usize| {
        // SAFETY: as in `planned`.
        let made = unsafe { *ahead.choices.add(step) };
        channel::planned(step) == Some(unpack_choice(made))
    };
    let begins_so = until <= request.plan_len.saturating_sub(1) && (0..until).all(alike);
    if ahead.spoilt || request.options & !AFTERWARDS != before || !begins_so {
        cycle::leave(Outcome::Again);
    }
    ahead.until = NEVER;
    channel::open_answer();
    crate::footprint::plan_is_known();
}

/// Something is not as it was.
pub fn spoil() {
    AHEAD.get().spoilt = true;
}

/// A choice was made.
#[inline(always)]
pub fn note(step: usize, thread: u16, alternative: u16) {
    let ahead = AHEAD.get();
    if !ahead.choices.is_null() && step < PLAN_CAPACITY {
        // SAFETY: the list has room for as many as a plan can have.
        unsafe { *ahead.choices.add(step) = pack_choice(thread, alternative) };
    }
}

/// Whether the execution has been left before its plan came, or because of that.
pub fn has_failed() -> bool {
    core::mem::replace(&mut AHEAD.get().until, NEVER) != NEVER
}

/// An execution has ended.
pub fn ended(outcome: Outcome) {
    let ahead = AHEAD.get();
    let header = channel::header();
    if ahead.choices.is_null() {
        // Nothing is noted of the first one.
        ahead.choices = pages::map(4 * PLAN_CAPACITY) as *mut u32;
        return;
    }
    let fine = match outcome {
        Outcome::Exited => header.exit_status == 0,
        outcome => matches!(outcome, Outcome::SleepBlocked | Outcome::InVain | Outcome::Asked | Outcome::Dropped),
    };
    ahead.goes_on = fine && header.wanted_len == 0;
    ahead.made = (header.step_count as usize).min(PLAN_CAPACITY);
}
