//! The system call `futex`: of the program, of the C++ library, of hand-written locks. See [`crate::futex`].

use super::Args;
use super::errno::{EAGAIN, EFAULT, EINVAL, ENOSYS, ETIMEDOUT};
use super::kernel::{load, mapped, writable};
use super::time::{self, Timespec};
use crate::access;
use crate::end::unsupported;
use crate::futex::{self, Part, Woken};

const ALL_BITS: u32 = u32::MAX;

pub fn futex(_: usize, args: Args) -> isize {
    const WAIT: usize = 0;
    const WAKE: usize = 1;
    const FD: usize = 2;
    const REQUEUE: usize = 3;
    const CMP_REQUEUE: usize = 4;
    const WAKE_OP: usize = 5;
    const WAIT_BITSET: usize = 9;
    const WAKE_BITSET: usize = 10;
    const COMMAND: usize = 0x7f;
    let [address, operation, value, timeout, other, last] = args;
    let (value, count) = (value as u32, (value as i32).max(0) as u32);
    // For those that wake or move a second time, the count is where others have a timeout.
    let second_count = (timeout as i32).max(0) as u32;
    let part = |bits| Part { address, count, bits };
    let second = || Part { address: other, count: second_count, bits: ALL_BITS };
    let command = operation & COMMAND;
    if let Err(error) = check(address) {
        return error;
    }
    if matches!(command, REQUEUE | CMP_REQUEUE | WAKE_OP)
        && let Err(error) = check(other)
    {
        return error;
    }
    match command {
        WAIT | WAIT_BITSET => {
            let bits = if command == WAIT { ALL_BITS } else { last as u32 };
            wait(address, value, bits, Limit { timeout, absolute: command == WAIT_BITSET, operation })
        }
        WAKE => futex::wake(part(ALL_BITS)) as isize,
        WAKE_BITSET if last as u32 == 0 => EINVAL,
        WAKE_BITSET => futex::wake(part(last as u32)) as isize,
        REQUEUE | CMP_REQUEUE if (value as i32) < 0 || (timeout as i32) < 0 => EINVAL,
        REQUEUE | CMP_REQUEUE => {
            let expected = (command == CMP_REQUEUE).then_some(last as u32);
            match futex::requeue(part(ALL_BITS), second(), expected) {
                // Only the newer of the two counts those moved.
                Some((woken, moved)) => (woken + if command == CMP_REQUEUE { moved } else { 0 }) as isize,
                None => EAGAIN,
            }
        }
        WAKE_OP => wake_op(part(ALL_BITS), second(), last as u32),
        FD => EINVAL,
        6..=8 | 11..=13 => unsupported(format_args!(
            "the program uses a futex with priority inheritance ({}), which symdpor does not support",
            name(command)
        )),
        _ => ENOSYS,
    }
}

fn name(command: usize) -> &'static str {
    match command {
        6 => "FUTEX_LOCK_PI",
        7 => "FUTEX_UNLOCK_PI",
        8 => "FUTEX_TRYLOCK_PI",
        11 => "FUTEX_WAIT_REQUEUE_PI",
        12 => "FUTEX_CMP_REQUEUE_PI",
        _ => "FUTEX_LOCK_PI2",
    }
}

/// The word must be aligned and there.
fn check(address: usize) -> Result<(), isize> {
    if !address.is_multiple_of(4) {
        return Err(EINVAL);
    }
    if !mapped(address, 4) {
        return Err(EFAULT);
    }
    Ok(())
}

struct Limit {
    timeout: usize,
    absolute: bool,
    operation: usize,
}

impl Limit {
    /// When time is up, on the runtime's clock.
    fn deadline(&self) -> Result<Option<u64>, isize> {
        const CLOCK_REALTIME: usize = 256;
        if self.timeout == 0 {
            return Ok(None);
        }
        let time = load::<Timespec>(self.timeout).ok_or(EFAULT)?;
        let clock = if self.operation & CLOCK_REALTIME != 0 { 0 } else { 1 };
        time::time_until(clock, self.absolute, time).map(|wait| Some(time::after(wait)))
    }
}

fn wait(address: usize, expected: u32, bits: u32, limit: Limit) -> isize {
    if bits == 0 {
        return EINVAL;
    }
    let deadline = match limit.deadline() {
        Ok(deadline) => deadline,
        Err(error) => return error,
    };
    // The kernel reads the word: it must be alive, and not be written to as plain memory meanwhile.
    access::synchronisation_object(address, 4);
    match futex::wait(address, expected, bits, deadline) {
        Woken::Mismatch => EAGAIN,
        Woken::ByAnother => 0,
        Woken::ByTime => ETIMEDOUT,
    }
}

/// `code`: four bits each for the change and the comparison, twelve for their operands.
fn wake_op(first: Part, second: Part, code: u32) -> isize {
    const SHIFT: u32 = 8;
    let signed = |bits: u32| ((bits << 20) as i32) >> 20;
    let (change, comparison) = (code >> 28, code >> 24 & 15);
    let (argument, compared) = (signed(code >> 12 & 0xfff), signed(code & 0xfff));
    let argument = if change & SHIFT != 0 { 1u32 << (argument & 31) } else { argument as u32 };
    if change & 7 > 4 || comparison > 5 {
        return ENOSYS;
    }
    writable(second.address, 4);
    access::synchronisation_object(second.address, 4);
    let changed = |old: u32| match change & 7 {
        0 => argument,
        1 => old.wrapping_add(argument),
        2 => old | argument,
        3 => old & !argument,
        _ => old ^ argument,
    };
    let more = |old: u32| {
        let old = old as i32;
        match comparison {
            0 => old == compared,
            1 => old != compared,
            2 => old < compared,
            3 => old <= compared,
            4 => old > compared,
            _ => old >= compared,
        }
    };
    futex::wake_op(first, second, changed, more) as isize
}
