//! Raw futex calls, of libc's internals and of code that locks without libc.
//!
//! Nobody ever sleeps in the kernel, so there is nobody to wake. A call that would wait cannot be answered: the word
//! must be changed by a thread that the scheduler does not know to be waited for.

use super::Args;
use super::errno::{EAGAIN, EFAULT, ENOSYS};
use super::kernel::load;
use crate::end::unsupported;

pub fn futex(_: usize, args: Args) -> isize {
    const WAIT: usize = 0;
    const WAKE: usize = 1;
    const REQUEUE: usize = 3;
    const CMP_REQUEUE: usize = 4;
    const WAKE_OP: usize = 5;
    const WAIT_BITSET: usize = 9;
    const WAKE_BITSET: usize = 10;
    const COMMAND: usize = 0x7f;
    let [address, operation, value, ..] = args;
    match operation & COMMAND {
        WAIT | WAIT_BITSET => wait(address, value as u32),
        WAKE | WAKE_BITSET | REQUEUE => 0,
        CMP_REQUEUE if load::<u32>(address) == Some(args[5] as u32) => 0,
        CMP_REQUEUE => EAGAIN,
        WAKE_OP => unsupported(format_args!(
            "the program wakes and changes a futex at {address:#x} (FUTEX_WAKE_OP), which symdpor cannot control yet"
        )),
        _ => ENOSYS,
    }
}

fn wait(address: usize, expected: u32) -> isize {
    match load::<u32>(address) {
        None => EFAULT,
        Some(value) if value != expected => EAGAIN,
        Some(_) => unsupported(format_args!(
            "the program waits on a futex at {address:#x}; locks that call the kernel themselves (std::future, \
             std::atomic::wait, semaphores of C++20) are not supported yet"
        )),
    }
}
