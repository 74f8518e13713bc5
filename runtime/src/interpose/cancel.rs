//! Cancellation, and joins that do not wait for ever.

use super::limited::{is_clock, with_registers};
use super::threads::store_word;
use crate::{cancel, footprint, init, limits, threads, unwind};

const CLOCK_REALTIME: i32 = 0;
const EINVAL: i32 = 22;

with_registers! {
    pthread_tryjoin_np => try_join, "rdx";
    pthread_timedjoin_np => timed_join, "rcx";
    pthread_clockjoin_np => clock_join, "r8";
    pthread_testcancel => test_cancel, "rdi";
}

fn joined(out: usize, result: Result<usize, i32>) -> i32 {
    match result {
        Ok(value) => {
            if out != 0 {
                footprint::result(value);
                store_word(out, value);
            }
            0
        }
        Err(error) => error,
    }
}

extern "C" fn try_join(thread: usize, out: usize, registers: usize) -> i32 {
    init::ensure();
    joined(out, threads::try_join(thread, registers, false))
}

extern "C" fn timed_join(thread: usize, out: usize, time: usize, registers: usize) -> i32 {
    clock_join(thread, out, CLOCK_REALTIME, time, registers)
}

extern "C" fn clock_join(thread: usize, out: usize, clock: i32, time: usize, registers: usize) -> i32 {
    init::ensure();
    if time == 0 {
        return joined(out, threads::join(thread));
    }
    if !is_clock(clock) {
        return EINVAL;
    }
    let Some(deadline) = limits::deadline(clock, time) else {
        // An invalid time is noticed by who has to wait.
        let result = threads::try_join(thread, registers, true);
        return joined(out, result.map_err(|e| if e == threads::EBUSY { EINVAL } else { e }));
    };
    joined(out, threads::join_until(thread, deadline, registers))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_cancel(thread: usize) -> i32 {
    init::ensure();
    cancel::ask(thread)
}

extern "C" fn test_cancel(registers: usize) -> i32 {
    init::ensure();
    cancel::test(Some(registers));
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_setcancelstate(state: i32, old: usize) -> i32 {
    init::ensure();
    cancel::set_state(state, old)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_setcanceltype(kind: i32, old: usize) -> i32 {
    init::ensure();
    cancel::set_type(kind, old)
}

/// `pthread_cleanup_push_defer_np`: cancellation is deferred here anyway.
#[unsafe(no_mangle)]
extern "C" fn __pthread_register_cancel_defer(buffer: usize) {
    unwind::push_handler(buffer);
}

#[unsafe(no_mangle)]
extern "C" fn __pthread_unregister_cancel_restore(buffer: usize) {
    unwind::pop_handler(buffer);
}
