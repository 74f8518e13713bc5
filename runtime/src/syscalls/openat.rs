//! Opening files: for reading always, for writing only before the snapshot or where nothing is kept.

use super::alias::duplicate;
use super::descriptors::{Kind, kind, opened};
use super::errno::EFAULT;
use super::kernel::{self, load, real};
use super::names::nr;
use super::{Args, refusal};
use crate::snapshot::is_taken;

const O_ACCMODE: usize = 0o3;
const O_WRONLY: usize = 0o1;
const O_CREAT: usize = 0o100;
const O_TRUNC: usize = 0o1000;
const O_TMPFILE: usize = 0o20_000_000;

pub fn open(call: usize, args: Args) -> isize {
    by_path(call, args, args[0], args[1])
}

pub fn creat(call: usize, args: Args) -> isize {
    by_path(call, args, args[0], O_WRONLY | O_CREAT | O_TRUNC)
}

pub fn openat(call: usize, args: Args) -> isize {
    by_path(call, args, args[1], args[2])
}

pub fn openat2(call: usize, args: Args) -> isize {
    match load::<u64>(args[2]) {
        Some(flags) => by_path(call, args, args[1], flags as usize),
        None => EFAULT,
    }
}

fn by_path(call: usize, args: Args, path: usize, flags: usize) -> isize {
    let Some(path) = kernel::path(path) else { return EFAULT };
    if let Some(fd) = standard(path) {
        return duplicate(fd, |fd| real(nr::dup, [fd, 0, 0, 0, 0, 0]));
    }
    if is_taken() && changes(flags) && !keeps_nothing(path) {
        refusal::opens_for_writing(path);
    }
    opened(real(call, args), Kind::Unknown)
}

fn changes(flags: usize) -> bool {
    flags & O_ACCMODE != 0 || flags & (O_CREAT | O_TRUNC | O_TMPFILE) != 0
}

/// Devices that take what is written and keep nothing of it, or show it to the user.
fn keeps_nothing(path: &[u8]) -> bool {
    matches!(path, b"/dev/null" | b"/dev/zero" | b"/dev/full" | b"/dev/tty" | b"/dev/urandom" | b"/dev/random")
}

/// The descriptor that a path stands for, if that descriptor is standard input, output or error.
fn standard(path: &[u8]) -> Option<usize> {
    let fd = match path {
        b"/dev/stdin" => 0,
        b"/dev/stdout" => 1,
        b"/dev/stderr" => 2,
        _ => number(path.strip_prefix(b"/dev/fd/").or_else(|| path.strip_prefix(b"/proc/self/fd/"))?)?,
    };
    matches!(kind(fd), Ok(Kind::Stdin | Kind::Stdout | Kind::Stderr)).then_some(fd)
}

fn number(digits: &[u8]) -> Option<usize> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}
