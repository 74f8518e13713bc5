//! Signals between threads: what libc would do with ids of kernel threads, or where a thread can be cancelled.

use crate::syscalls::{emulate, errno, nr, signals};
use crate::threads::number_of;
use crate::{cancel, init};

/// Every set of signals is eight bytes for the kernel.
const SET: usize = 8;

#[unsafe(no_mangle)]
extern "C" fn pthread_kill(thread: usize, signal: i32) -> i32 {
    init::ensure();
    to_thread(thread, signal, signals::SI_TKILL, 0)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_sigqueue(thread: usize, signal: i32, value: u64) -> i32 {
    init::ensure();
    to_thread(thread, signal, signals::SI_QUEUE, value)
}

/// Returns the error, as functions for threads do.
fn to_thread(thread: usize, signal: i32, code: i32, value: u64) -> i32 {
    match number_of(thread) {
        Some(number) => -signals::to_number(number, signal as u32 as usize, code, value) as i32,
        None => -errno::ESRCH as i32,
    }
}

/// Returns the error instead of setting `errno`.
#[unsafe(no_mangle)]
extern "C" fn sigwait(set: usize, out: *mut i32) -> i32 {
    let signal = wait(set, 0, 0);
    if signal < 0 {
        return -signal as i32;
    }
    crate::access::write(out as usize, 4);
    // SAFETY: the caller passed it to be written to.
    unsafe { *out = signal as i32 };
    0
}

#[unsafe(no_mangle)]
extern "C" fn sigwaitinfo(set: usize, info: usize) -> i32 {
    errno::result(wait(set, info, 0))
}

#[unsafe(no_mangle)]
extern "C" fn sigtimedwait(set: usize, info: usize, timeout: usize) -> i32 {
    errno::result(wait(set, info, timeout))
}

fn wait(set: usize, info: usize, timeout: usize) -> isize {
    init::ensure();
    cancel::within(|| emulate(nr::rt_sigtimedwait, [set, info, timeout, SET, 0, 0]))
}

#[unsafe(no_mangle)]
extern "C" fn sigsuspend(set: usize) -> i32 {
    init::ensure();
    errno::result(cancel::within(|| emulate(nr::rt_sigsuspend, [set, SET, 0, 0, 0, 0])))
}

#[unsafe(no_mangle)]
extern "C" fn pause() -> i32 {
    init::ensure();
    errno::result(cancel::within(|| emulate(nr::pause, [0; 6])))
}
