//! Clocks and sleeping. libc's versions read the clock without a system call (vDSO), so they are replaced as functions.

use super::limited::with_registers;
use crate::access;
use crate::cancel;
use crate::exec;
use crate::spin;
use crate::syscalls::errno::{self, EINVAL};
use crate::syscalls::time::{self, SECOND, Timespec};

type Pointer = *mut Timespec;

/// Not on the thread's own stack, where most times are: a turn of a loop that looks, and sleeps for such a time, does nothing else.
fn is_shared(address: usize) -> bool {
    !spin::on_own_stack(exec::get().current, address)
}

/// Writes through a pointer that the C standard lets the caller leave null.
fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        if is_shared(to as usize) {
            access::write(to as usize, size_of::<T>());
        }
        // SAFETY: the caller passed it to be written to.
        unsafe { to.write(value) };
    }
}

fn get(from: *const Timespec) -> Timespec {
    if is_shared(from as usize) {
        access::read(from as usize, size_of::<Timespec>());
    }
    // SAFETY: the caller passed a time to be read.
    unsafe { from.read() }
}

#[unsafe(no_mangle)]
extern "C" fn clock_gettime(clock: i32, to: Pointer) -> i32 {
    match time::now(clock) {
        Some(now) => put(to, Timespec::new(now)),
        None => return errno::result(EINVAL),
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn clock_getres(clock: i32, to: Pointer) -> i32 {
    match time::resolution(clock) {
        Some(resolution) => put(to, Timespec::new(resolution)),
        None => return errno::result(EINVAL),
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn gettimeofday(to: Pointer, zone: *mut [i32; 2]) -> i32 {
    put(to, Timespec::timeval(time::realtime()));
    put(zone, [0; 2]);
    0
}

#[unsafe(export_name = "time")]
extern "C" fn seconds(to: *mut i64) -> i64 {
    let now = (time::realtime() / SECOND) as i64;
    put(to, now);
    now
}

/// Processor time in microseconds (`CLOCKS_PER_SEC` is a million).
#[unsafe(no_mangle)]
extern "C" fn clock() -> i64 {
    const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;
    (time::now(CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0) / 1_000) as i64
}

#[unsafe(no_mangle)]
extern "C" fn timespec_get(to: Pointer, base: i32) -> i32 {
    const TIME_UTC: i32 = 1;
    if base != TIME_UTC {
        return 0;
    }
    put(to, Timespec::new(time::realtime()));
    base
}

#[unsafe(no_mangle)]
extern "C" fn timespec_getres(to: Pointer, base: i32) -> i32 {
    const TIME_UTC: i32 = 1;
    if base != TIME_UTC {
        return 0;
    }
    put(to, Timespec::new(1));
    base
}

// They need the caller's registers, to see whether a loop that does nothing but sleep comes round.
with_registers! {
    nanosleep => sleep_relative, "rdx";
    clock_nanosleep => sleep_on_clock, "r8";
    thrd_sleep => sleep_c11, "rdx";
    usleep => sleep_microseconds, "rsi";
    sleep => sleep_seconds, "rsi";
}

extern "C" fn sleep_relative(request: *const Timespec, _remaining: Pointer, registers: usize) -> i32 {
    const CLOCK_MONOTONIC: i32 = 1;
    errno::result(sleep_for(CLOCK_MONOTONIC, false, get(request), registers))
}

/// Returns the error instead of setting `errno`, as POSIX has it.
extern "C" fn sleep_on_clock(
    clock: i32,
    flags: i32,
    request: *const Timespec,
    _remaining: Pointer,
    registers: usize,
) -> i32 {
    const TIMER_ABSTIME: i32 = 1;
    -sleep_for(clock, flags & TIMER_ABSTIME != 0, get(request), registers) as i32
}

/// C11: 0, or less than -1 for an error.
extern "C" fn sleep_c11(request: *const Timespec, _remaining: Pointer, registers: usize) -> i32 {
    const CLOCK_REALTIME: i32 = 0;
    if sleep_for(CLOCK_REALTIME, false, get(request), registers) == 0 { 0 } else { -2 }
}

fn sleep_for(clock: i32, absolute: bool, request: Timespec, registers: usize) -> isize {
    match time::time_until(clock, absolute, request) {
        Ok(nanoseconds) => {
            pass(nanoseconds, registers);
            0
        }
        Err(error) => error,
    }
}

/// Time passes, others go first, and the thread may be cancelled.
fn pass(nanoseconds: u64, registers: usize) {
    time::sleep(nanoseconds);
    cancel::test(Some(registers));
}

extern "C" fn sleep_microseconds(microseconds: u32, registers: usize) -> i32 {
    pass(microseconds as u64 * 1_000, registers);
    0
}

/// Returns the seconds that were left: nothing interrupts it.
extern "C" fn sleep_seconds(seconds: u32, registers: usize) -> u32 {
    pass(seconds as u64 * SECOND, registers);
    0
}

#[unsafe(no_mangle)]
extern "C" fn sched_yield() -> i32 {
    time::pass_turn();
    0
}

/// An older name of `sched_yield`.
#[unsafe(no_mangle)]
extern "C" fn pthread_yield() -> i32 {
    time::pass_turn();
    0
}

#[unsafe(no_mangle)]
extern "C" fn thrd_yield() {
    time::pass_turn();
}

/// Everything runs on processor 0 as far as the program can tell. (The vDSO again.)
#[unsafe(no_mangle)]
extern "C" fn sched_getcpu() -> i32 {
    0
}

#[unsafe(no_mangle)]
extern "C" fn getcpu(processor: *mut u32, node: *mut u32) -> i32 {
    put(processor, 0);
    put(node, 0);
    0
}
