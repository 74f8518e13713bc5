//! Duplicating and closing descriptors.
//!
//! A program that closes every descriptor it can think of must work as always: the runtime's own are not there for it.

use super::descriptors::{self, Kind, LIMIT, about_to_change, closed, is_hidden, kind, number, opened};
use super::errno::{EBADF, EINVAL};
use super::kernel::real;
use super::names::nr;
use super::{Args, channels, overlay};
use crate::snapshot::is_taken;

pub fn close(_: usize, args: Args) -> isize {
    let fd = number(args[0]);
    if is_hidden(fd) || (fd >= LIMIT && is_taken()) {
        return EBADF;
    }
    if is_taken() && !descriptors::is_open(fd) {
        return EBADF;
    }
    announce_close(fd);
    if is_taken() && !descriptors::is_open(fd) {
        return EBADF;
    }
    about_to_change(fd);
    let result = real(nr::close, [fd, 0, 0, 0, 0, 0]);
    closed(fd);
    result
}

/// Closing is an operation on what others may be using.
fn announce_close(fd: usize) {
    match kind(fd) {
        Ok(Kind::Channel) => channels::close(fd),
        Ok(Kind::Regular) if is_taken() => overlay::about_to_close(fd),
        _ => {}
    }
}

/// Closes those that are open, one by one, so that hidden ones can be stepped over.
pub fn close_range(_: usize, args: Args) -> isize {
    const CLOSE_RANGE_CLOEXEC: usize = 4;
    let (first, last, flags) = (number(args[0]), number(args[1]), args[2]);
    if first > last || flags > 7 {
        return EINVAL;
    }
    if flags & CLOSE_RANGE_CLOEXEC != 0 {
        return 0; // No program is ever executed.
    }
    for fd in (first..LIMIT.min(last.saturating_add(1))).filter(|&fd| descriptors::is_open(fd)) {
        close(nr::close, [fd, 0, 0, 0, 0, 0]);
    }
    if last >= LIMIT && !is_taken() {
        close_high(first.max(LIMIT), last);
    }
    0
}

/// Above those that are kept track of there may be one hidden descriptor.
fn close_high(first: usize, last: usize) {
    let hidden = (first..=last.min(1 << 20)).find(|&fd| is_hidden(fd));
    let Some(hidden) = hidden else {
        real(nr::close_range, [first, last, 0, 0, 0, 0]);
        return;
    };
    if hidden > first {
        real(nr::close_range, [first, hidden - 1, 0, 0, 0, 0]);
    }
    if hidden < last {
        real(nr::close_range, [hidden + 1, last, 0, 0, 0, 0]);
    }
}

pub fn dup(_: usize, args: Args) -> isize {
    let fd = number(args[0]);
    duplicate(fd, |fd| real(nr::dup, [fd, 0, 0, 0, 0, 0]))
}

/// Duplicates to a number of the kernel's choice.
pub fn duplicate(fd: usize, call: impl FnOnce(usize) -> isize) -> isize {
    match kind(fd) {
        Ok(kind) => shared(fd, opened(call(fd), remembered(kind))),
        Err(error) => error,
    }
}

/// A duplicate shares all but its number.
fn shared(from: usize, to: isize) -> isize {
    if to >= 0 {
        overlay::duplicated(from, to as usize);
        channels::duplicated(from, to as usize);
    }
    to
}

/// What must be remembered of a kind; the rest can be found out again.
fn remembered(kind: Kind) -> Kind {
    match kind {
        Kind::Stdin | Kind::Stdout | Kind::Stderr | Kind::Channel => kind,
        _ => Kind::Unknown,
    }
}

pub fn dup2(_: usize, args: Args) -> isize {
    let (from, to) = (number(args[0]), number(args[1]));
    if from == to {
        return if descriptors::is_open(from) { to as isize } else { EBADF };
    }
    replace(from, to, 0)
}

pub fn dup3(_: usize, args: Args) -> isize {
    let (from, to) = (number(args[0]), number(args[1]));
    if from == to { EINVAL } else { replace(from, to, args[2]) }
}

fn replace(from: usize, to: usize, flags: usize) -> isize {
    if is_hidden(to) || (is_taken() && to >= LIMIT) {
        return EBADF;
    }
    let kind = match kind(from) {
        Ok(kind) => kind,
        Err(error) => return error,
    };
    announce_close(to);
    about_to_change(to);
    shared(from, opened(real(nr::dup3, [from, to, flags, 0, 0, 0]), remembered(kind)))
}
