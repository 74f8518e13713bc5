//! Waiting for descriptors: `poll`, `select` and their like.
//!
//! Files, sinks and the standard descriptors are always ready, so nothing is ever waited for but time. A pipe or socket
//! could only have been made before the snapshot; waiting for one after it is refused.

use super::descriptors::{Kind, kind, refuse_other};
use super::errno::{EFAULT, EINVAL};
use super::kernel::{load, real, store};
use super::names::{name, nr};
use super::{Args, time};
use crate::snapshot::is_taken;

#[repr(C)]
#[derive(Clone, Copy)]
struct PollFd {
    fd: i32,
    events: i16,
    found: i16,
}

const POLLNVAL: i16 = 0x20;
/// POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM: what a file is always ready for.
const READY: i16 = 0x1 | 0x4 | 0x40 | 0x100;

pub fn poll(call: usize, args: Args) -> isize {
    if before_and_real(args[0], args[1]) {
        return real(call, args);
    }
    let timeout = if call == nr::poll { milliseconds(args[2] as i32) } else { time::duration_at(args[2]) };
    let ready = poll_all(call, args[0], args[1]);
    if ready == 0 {
        return wait_in_vain(call, timeout);
    }
    ready
}

/// Before the snapshot descriptors of any kind may be waited for, unless the standard ones are among them.
fn before_and_real(array: usize, count: usize) -> bool {
    let is_other = |i| load::<PollFd>(array + i * size_of::<PollFd>()).is_some_and(|p| is_other(p.fd));
    !is_taken() && count <= 1024 && (0..count).any(is_other)
}

fn is_other(fd: i32) -> bool {
    fd >= 0 && matches!(kind(fd as usize), Ok(Kind::Other | Kind::Terminal))
}

fn poll_all(call: usize, array: usize, count: usize) -> isize {
    let mut ready = 0;
    for i in 0..count.min(1024) {
        let address = array + i * size_of::<PollFd>();
        let Some(mut entry) = load::<PollFd>(address) else { return EFAULT };
        entry.found = found(call, entry);
        ready += (entry.found != 0) as isize;
        if !store(address, entry) {
            return EFAULT;
        }
    }
    ready
}

fn found(call: usize, entry: PollFd) -> i16 {
    if entry.fd < 0 {
        return 0;
    }
    match kind(entry.fd as usize) {
        Err(_) => POLLNVAL,
        Ok(Kind::Other | Kind::Terminal) => refuse_other(entry.fd as usize, name(call)),
        Ok(_) => entry.events & READY,
    }
}

fn milliseconds(timeout: i32) -> Option<u64> {
    (timeout >= 0).then_some(timeout as u64 * 1_000_000)
}

/// Nothing will ever become ready: the time passes, if it is limited.
fn wait_in_vain(call: usize, nanoseconds: Option<u64>) -> isize {
    let Some(nanoseconds) = nanoseconds else {
        crate::end::unsupported(format_args!(
            "the program calls {}() without a timeout and with nothing to wait for but signals",
            name(call)
        ));
    };
    time::sleep(nanoseconds);
    0
}

/// `select` and `pselect6`: every descriptor in the first two sets is ready, none in the third.
pub fn select(call: usize, args: Args) -> isize {
    let [count, read, write, except, timeout, _] = args;
    if count > 1024 {
        return EINVAL;
    }
    if !is_taken() && [read, write].iter().any(|&set| members(set, count).any(is_other)) {
        return real(call, args);
    }
    let checked = members(read, count).chain(members(write, count));
    for fd in checked {
        match kind(fd as usize) {
            Err(error) => return error,
            Ok(Kind::Other | Kind::Terminal) => refuse_other(fd as usize, name(call)),
            Ok(_) => {}
        }
    }
    clear(except, count);
    let ready = members(read, count).count() + members(write, count).count();
    if ready != 0 {
        return ready as isize;
    }
    let limit = if call == nr::select { time::microseconds_at(timeout) } else { time::duration_at(timeout) };
    wait_in_vain(call, limit)
}

/// The descriptors in a set, which may be absent.
fn members(set: usize, count: usize) -> impl Iterator<Item = i32> {
    let word = move |fd: usize| if set == 0 { 0 } else { load::<u64>(set + fd / 64 * 8).unwrap_or(0) };
    (0..count).filter(move |&fd| word(fd) >> (fd % 64) & 1 != 0).map(|fd| fd as i32)
}

fn clear(set: usize, count: usize) {
    for word in 0..if set == 0 { 0 } else { count.div_ceil(64) } {
        store::<u64>(set + word * 8, 0);
    }
}
