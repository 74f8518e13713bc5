//! `syscall`, libc's way to any system call: carried out without the detour over a signal.

use crate::spin;
use crate::syscalls::{self, errno};

/// Whether a call leaves what the running thread knows as it was: it only waits, or lets others go first.
pub fn only_waits(number: usize) -> bool {
    const SCHED_YIELD: usize = 24;
    const NANOSLEEP: usize = 35;
    const FUTEX: usize = 202;
    const CLOCK_NANOSLEEP: usize = 230;
    matches!(number, SCHED_YIELD | NANOSLEEP | CLOCK_NANOSLEEP | FUTEX)
}

#[unsafe(no_mangle)]
extern "C" fn syscall(number: usize, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize {
    crate::init::ensure();
    if !only_waits(number) {
        spin::changed();
    }
    let value = syscalls::emulate(number, [a, b, c, d, e, f]);
    if (-4095..0).contains(&value) {
        errno::set(value);
        return -1;
    }
    value
}
