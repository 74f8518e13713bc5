//! Opening files: for real before the snapshot and where nothing is kept, else see [`overlay`].

use super::alias::duplicate;
use super::descriptors::{Kind, kind, opened};
use super::errno::EFAULT;
use super::kernel::{self, load, real};
use super::names::nr;
use super::{Args, overlay, refusal};
use crate::snapshot::is_taken;

const O_WRONLY: usize = 0o1;
const O_CREAT: usize = 0o100;
const O_TRUNC: usize = 0o1000;

const AT_FDCWD: usize = -100isize as usize;

pub fn open(call: usize, args: Args) -> isize {
    by_path(call, args, (AT_FDCWD, args[0]), args[1], args[2])
}

pub fn creat(call: usize, args: Args) -> isize {
    by_path(call, args, (AT_FDCWD, args[0]), O_WRONLY | O_CREAT | O_TRUNC, args[1])
}

pub fn openat(call: usize, args: Args) -> isize {
    by_path(call, args, (args[0], args[1]), args[2], args[3])
}

pub fn openat2(call: usize, args: Args) -> isize {
    match (load::<[u64; 3]>(args[2]), is_taken()) {
        (None, _) => EFAULT,
        (Some([_, _, resolve]), true) if resolve != 0 => refusal::refuse(call, args, refusal::Reason::Yet),
        (Some([flags, mode, _]), _) => by_path(call, args, (args[0], args[1]), flags as usize, mode as usize),
    }
}

fn by_path(call: usize, args: Args, place: (usize, usize), flags: usize, mode: usize) -> isize {
    let Some(path) = kernel::path(place.1) else { return EFAULT };
    if let Some(fd) = standard(path) {
        return duplicate(fd, |fd| real(nr::dup, [fd, 0, 0, 0, 0, 0]));
    }
    if is_taken() && !keeps_nothing(path) {
        return overlay::open(place.0, path, flags, mode);
    }
    opened(real(call, args), Kind::Unknown)
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
