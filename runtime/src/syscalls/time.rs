//! Virtual time: no clock of the machine is ever read.
//!
//! It starts at a fixed date, advances by what is slept, and by a microsecond whenever a thread asks that has been told the same time
//! already, so that a loop that waits for time to pass comes to an end. Threads that ask once each are told the same: those that
//! are alike otherwise stay so. A sleeping thread may be overtaken by any other, however short the sleep:
//! sleeping advances the clock and yields.
//!
//! Waiting with a time limit is in `crate::limits`.
//!
//! Not covered: all clocks run at one rate, those of CPU time too.

use super::errno::{EFAULT, EINVAL};
use super::kernel::{load, store, store_if_asked};
use super::names::nr;
use super::{Args, state};
use crate::snapshot::is_taken;

pub const SECOND: u64 = 1_000_000_000;
/// 2020-01-01T00:00:00Z.
pub const START_SECONDS: u64 = 1_577_836_800;
pub const REALTIME_START: u64 = START_SECONDS * SECOND;
pub const MONOTONIC_START: u64 = 1_000 * SECOND;
const PER_QUERY: u64 = 1_000;

/// Nanoseconds since the program's start.
pub struct Clock(u64);

impl Clock {
    pub const fn new() -> Clock {
        Clock(0)
    }

    fn advance(&mut self, nanoseconds: u64) {
        self.0 = self.0.saturating_add(nanoseconds).min(u64::MAX / 4);
    }
}

/// `struct timespec`, and `struct timeval` with microseconds in the second field.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Timespec {
    pub seconds: i64,
    pub fraction: i64,
}

impl Timespec {
    pub fn new(nanoseconds: u64) -> Timespec {
        Timespec { seconds: (nanoseconds / SECOND) as i64, fraction: (nanoseconds % SECOND) as i64 }
    }

    pub fn timeval(nanoseconds: u64) -> Timespec {
        Timespec { seconds: (nanoseconds / SECOND) as i64, fraction: (nanoseconds % SECOND / 1_000) as i64 }
    }

    /// In nanoseconds, if it is a valid time.
    pub fn nanoseconds(self) -> Option<u64> {
        let valid = self.seconds >= 0 && (0..SECOND as i64).contains(&self.fraction);
        valid.then(|| (self.seconds as u64).saturating_mul(SECOND).saturating_add(self.fraction as u64))
    }
}

/// Where a clock starts, or None if there is no such clock. The low three bits of a negative number say what it
/// measures: CPU time of some thread or process, by its id.
fn start_of(clock: i32) -> Option<u64> {
    match clock {
        0 | 5 | 8 | 11 => Some(REALTIME_START),
        1 | 4 | 6 | 7 | 9 => Some(MONOTONIC_START),
        2 | 3 => Some(0),
        _ if clock < 0 => Some(0),
        _ => None,
    }
}

/// What the clock shows, in nanoseconds. Asking again takes time.
pub fn now(clock: i32) -> Option<u64> {
    let start = start_of(clock)?;
    if crate::limits::last_told() == state().clock.0 {
        state().clock.advance(PER_QUERY);
    }
    crate::limits::answered(state().clock.0);
    Some(start + state().clock.0)
}

/// Nanoseconds since the program's start.
pub fn since_start() -> u64 {
    state().clock.0
}

/// Time passes, at least until then, counted from the program's start.
pub fn pass_until(nanoseconds: u64) {
    let clock = &mut state().clock;
    clock.advance(nanoseconds.saturating_sub(clock.0));
}

/// The smallest step of a clock, in nanoseconds.
pub fn resolution(clock: i32) -> Option<u64> {
    start_of(clock).map(|_| 1)
}

pub fn realtime() -> u64 {
    now(0).unwrap_or(REALTIME_START)
}

/// What has passed since the program's start, in nanoseconds. Asking takes no time.
pub fn elapsed() -> u64 {
    state().clock.0
}

/// Time passes.
pub fn advance(nanoseconds: u64) {
    state().clock.advance(nanoseconds);
}

/// Time passes, and others may go first.
pub fn sleep(nanoseconds: u64) {
    state().clock.advance(nanoseconds);
    pass_turn();
}

/// What the runtime's clock shows after so many nanoseconds.
pub fn after(nanoseconds: u64) -> u64 {
    state().clock.0.saturating_add(nanoseconds)
}

/// The clock shows at least this.
pub fn reach(time: u64) {
    let now = state().clock.0;
    state().clock.advance(time.saturating_sub(now));
}

/// Lets other threads go first, once there are others.
pub fn pass_turn() {
    if is_taken() {
        crate::sched::give_way();
    }
}

/// A relative or absolute time that a program passed: how long to wait for it.
pub fn time_until(clock: i32, absolute: bool, time: Timespec) -> Result<u64, isize> {
    let (Some(time), Some(start)) = (time.nanoseconds(), start_of(clock)) else { return Err(EINVAL) };
    Ok(if absolute { time.saturating_sub(start + state().clock.0) } else { time })
}

/// The duration at an address that may be null: no limit. An invalid one counts as none at all.
pub fn duration_at(address: usize) -> Option<u64> {
    let time = if address == 0 { None } else { load::<Timespec>(address) }?;
    Some(time.nanoseconds().unwrap_or(0))
}

/// The same for a `struct timeval`.
pub fn microseconds_at(address: usize) -> Option<u64> {
    let time = if address == 0 { None } else { load::<Timespec>(address) }?;
    Some((time.seconds.max(0) as u64).saturating_mul(SECOND).saturating_add(time.fraction.max(0) as u64 * 1_000))
}

fn written(ok: bool) -> isize {
    if ok { 0 } else { EFAULT }
}

pub fn clock_gettime(_: usize, args: Args) -> isize {
    match now(args[0] as i32) {
        Some(time) => written(store(args[1], Timespec::new(time))),
        None => EINVAL,
    }
}

pub fn clock_getres(_: usize, args: Args) -> isize {
    match resolution(args[0] as i32) {
        Some(resolution) => written(store_if_asked(args[1], Timespec::new(resolution))),
        None => EINVAL,
    }
}

pub fn gettimeofday(_: usize, args: Args) -> isize {
    let time = Timespec::timeval(realtime());
    written(store_if_asked(args[0], time) && store_if_asked(args[1], [0i32; 2]))
}

pub fn time(_: usize, args: Args) -> isize {
    let seconds = realtime() / SECOND;
    if store_if_asked(args[0], seconds) { seconds as isize } else { EFAULT }
}

pub fn times(_: usize, args: Args) -> isize {
    const PER_TICK: u64 = SECOND / 100;
    let ticks = now(1).unwrap_or(0) / PER_TICK;
    let used = (ticks - MONOTONIC_START / PER_TICK) as usize;
    if store_if_asked(args[0], [used, 0, 0, 0]) { ticks as isize } else { EFAULT }
}

/// `nanosleep(request, remaining)` and `clock_nanosleep(clock, flags, request, remaining)`. Nothing interrupts a sleep,
/// so the remaining time is never written.
pub fn nanosleep(call: usize, args: Args) -> isize {
    const TIMER_ABSTIME: usize = 1;
    const CLOCK_MONOTONIC: usize = 1;
    let (clock, flags, request) =
        if call == nr::nanosleep { (CLOCK_MONOTONIC, 0, args[0]) } else { (args[0], args[1], args[2]) };
    let Some(time) = load::<Timespec>(request) else { return EFAULT };
    match time_until(clock as i32, flags & TIMER_ABSTIME != 0, time) {
        Ok(nanoseconds) => {
            sleep(nanoseconds);
            0
        }
        Err(error) => error,
    }
}

pub fn sched_yield(_: usize, _: Args) -> isize {
    pass_turn();
    0
}

/// `struct rusage`: all time is the user's, nothing else is counted.
pub fn getrusage(_: usize, args: Args) -> isize {
    let mut usage = [0u64; 18];
    let used = Timespec::timeval(now(2).unwrap_or(0));
    usage[0] = used.seconds as u64;
    usage[1] = used.fraction as u64;
    written(store(args[1], usage))
}
