//! Reading, writing and moving in files.
//!
//! Standard input and output go to their own modules whatever their number. Reading files is real: what is on disk does
//! not change, and offsets are put back. What is written after the snapshot goes to [`overlay`].

use super::descriptors::{Kind, is_hidden, is_writable, kind, moves, number, refuse_other};
use super::errno::{EBADF, EFAULT, EINVAL, ESPIPE};
use super::kernel::{self, load, mapped, real, writable};
use super::names::{name, nr};
use super::{Args, channels, overlay, random, stdin};
use crate::snapshot::is_taken;

/// Sizes of the kernel's `struct stat`, `struct statfs` and `struct statx`.
pub const STAT_BYTES: usize = 144;
pub const STATFS_BYTES: usize = 120;
pub const STATX_BYTES: usize = 256;

/// What a transfer goes to or comes from, once errors are out of the way.
fn kind_or_error(argument: usize, transfer: impl FnOnce(usize, Kind) -> isize) -> isize {
    let fd = number(argument);
    match kind(fd) {
        Ok(kind) => transfer(fd, kind),
        Err(error) => {
            if is_taken() {
                channels::is_closed(fd);
                overlay::is_closed(fd);
            }
            error
        }
    }
}

pub fn read(call: usize, args: Args) -> isize {
    let [_, buffer, len, ..] = args;
    kind_or_error(args[0], |fd, kind| read_kind(call, fd, kind, buffer, len))
}

fn read_kind(call: usize, fd: usize, kind: Kind, buffer: usize, len: usize) -> isize {
    let len = len.min(kernel::MOST_BYTES);
    match kind {
        Kind::Stdin => stdin::read(fd, buffer, len),
        Kind::Random => random::fill_program(buffer, len),
        Kind::Stdout | Kind::Stderr => EBADF,
        Kind::Channel => channels::read(fd, buffer, len),
        Kind::Regular if is_taken() => overlay::read(fd, buffer, len),
        Kind::Terminal | Kind::Other | Kind::Unknown if is_taken() => refuse_other(fd, name(call)),
        _ => {
            moves();
            writable(buffer, len);
            real(nr::read, [fd, buffer, len, 0, 0, 0])
        }
    }
}

pub fn pread(call: usize, args: Args) -> isize {
    let [_, buffer, len, offset, ..] = args;
    kind_or_error(args[0], |fd, kind| match kind {
        Kind::Stdin => stdin::read_at(fd, buffer, len, offset),
        Kind::Channel => ESPIPE,
        Kind::Regular if is_taken() => overlay::read_at(fd, buffer, len, offset),
        Kind::Regular | Kind::Directory => {
            writable(buffer, len);
            real(nr::pread64, [fd, buffer, len, offset, 0, 0])
        }
        Kind::Stdout | Kind::Stderr => ESPIPE,
        _ => read_kind(call, fd, kind, buffer, len),
    })
}

pub fn write(call: usize, args: Args) -> isize {
    let [_, buffer, len, ..] = args;
    kind_or_error(args[0], |fd, kind| write_kind(call, fd, kind, buffer, len))
}

fn write_kind(call: usize, fd: usize, kind: Kind, buffer: usize, len: usize) -> isize {
    match kind {
        Kind::Stdout => output(1, buffer, len),
        Kind::Stderr => output(2, buffer, len),
        Kind::Terminal if is_taken() => output(2, buffer, len),
        Kind::Channel => channels::write(fd, buffer, len),
        Kind::Sink | Kind::Random => real(nr::write, [fd, buffer, len, 0, 0, 0]),
        _ if !is_taken() => real(nr::write, [fd, buffer, len, 0, 0, 0]),
        _ if !is_writable(fd) => EBADF,
        Kind::Regular => overlay::write(fd, buffer, len),
        _ => refuse_other(fd, name(call)),
    }
}

fn output(stream: i32, buffer: usize, len: usize) -> isize {
    let len = len.min(kernel::MOST_BYTES);
    if mapped(buffer, len) { crate::output::write(stream, buffer, len) } else { EFAULT }
}

pub fn pwrite(call: usize, args: Args) -> isize {
    let [_, buffer, len, offset, ..] = args;
    kind_or_error(args[0], |fd, kind| match kind {
        Kind::Stdin | Kind::Stdout | Kind::Stderr | Kind::Channel => ESPIPE,
        _ if !is_taken() => real(nr::pwrite64, args),
        Kind::Regular if !is_writable(fd) => EBADF,
        Kind::Regular => overlay::write_at(fd, buffer, len, offset),
        _ => write_kind(call, fd, kind, buffer, len),
    })
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Buffer {
    address: usize,
    len: usize,
}

/// Does `transfer` with each buffer of an array, until one is not used up. As the kernel: an error counts only before
/// anything has been transferred.
pub fn each_buffer(array: usize, count: usize, mut transfer: impl FnMut(usize, usize) -> isize) -> isize {
    const MOST_BUFFERS: usize = 1024;
    if count > MOST_BUFFERS {
        return EINVAL;
    }
    let mut total = 0;
    for i in 0..count {
        let Some(buffer) = load::<Buffer>(array + i * size_of::<Buffer>()) else { return EFAULT };
        let done = transfer(buffer.address, buffer.len);
        if done < 0 {
            return if total == 0 { done } else { total };
        }
        total += done;
        if (done as usize) < buffer.len {
            break;
        }
    }
    total
}

pub fn readv(call: usize, args: Args) -> isize {
    kind_or_error(args[0], |fd, kind| match kind {
        Kind::Channel => channels::readv(fd, args[1], args[2]),
        _ => each_buffer(args[1], args[2], |buffer, len| read_kind(call, fd, kind, buffer, len)),
    })
}

/// `preadv`, `pwritev` and their later forms: one place after the other.
pub fn vector_at(call: usize, args: Args) -> isize {
    let mut offset = args[3];
    let (single, function): (usize, fn(usize, Args) -> isize) = match call {
        nr::preadv | nr::preadv2 => (nr::pread64, pread),
        _ => (nr::pwrite64, pwrite),
    };
    // An offset of -1 means the file's own, in the later forms.
    if matches!(call, nr::preadv2 | nr::pwritev2) && offset == usize::MAX {
        return if call == nr::preadv2 { readv(nr::readv, args) } else { writev(nr::writev, args) };
    }
    each_buffer(args[1], args[2], |buffer, len| {
        let done = function(single, [args[0], buffer, len, offset, 0, 0]);
        offset += done.max(0) as usize;
        done
    })
}

/// `sendfile`, `copy_file_range`: from a file to a file. To pipes and sockets they are refused.
pub fn transfer(call: usize, args: Args) -> isize {
    let (from, to) = if call == nr::sendfile { (args[1], args[0]) } else { (args[0], args[2]) };
    let (from, to) = (number(from), number(to));
    match (kind(from), kind(to)) {
        (Err(error), _) | (_, Err(error)) => error,
        _ if !is_taken() => real(call, args),
        (Ok(Kind::Regular), Ok(Kind::Regular)) if is_writable(to) => {
            overlay::end_of(from);
            overlay::copy(to, || {
                moves();
                // Where the kernel writes how far it came.
                for pointer in if call == nr::sendfile { [args[2], 0] } else { [args[1], args[3]] } {
                    writable(pointer, 8);
                }
                real(call, args)
            })
        }
        (_, Ok(Kind::Regular)) => EBADF,
        (_, Ok(Kind::Channel)) => refuse_channel(call),
        _ => refuse_other(to, name(call)),
    }
}

fn refuse_channel(call: usize) -> isize {
    crate::end::unsupported(format_args!(
        "the program calls {}() on a pipe or socket, which symdpor cannot control yet",
        name(call)
    ))
}

pub fn writev(call: usize, args: Args) -> isize {
    kind_or_error(args[0], |fd, kind| match kind {
        Kind::Channel => channels::writev(fd, args[1], args[2]),
        Kind::Regular if is_taken() && !is_writable(fd) => EBADF,
        // One operation, as the kernel has it.
        Kind::Regular if is_taken() => overlay::copy(fd, || real(nr::writev, args)),
        Kind::Regular | Kind::Other if !is_taken() => real(nr::writev, args),
        _ => each_buffer(args[1], args[2], |buffer, len| write_kind(call, fd, kind, buffer, len)),
    })
}

pub fn lseek(_: usize, args: Args) -> isize {
    let [_, offset, whence, ..] = args;
    kind_or_error(args[0], |fd, kind| match kind {
        Kind::Stdin => stdin::seek(fd, offset as isize, whence),
        Kind::Stdout | Kind::Stderr | Kind::Channel => ESPIPE,
        Kind::Regular if is_taken() => overlay::move_in(fd, offset, whence),
        _ => {
            if is_taken() {
                overlay::about_to_seek(fd);
            }
            moves();
            real(nr::lseek, [fd, offset, whence, 0, 0, 0])
        }
    })
}

pub fn getdents(call: usize, args: Args) -> isize {
    kind_or_error(args[0], |fd, _| {
        if is_taken() {
            return overlay::getdents(call, fd, args[1], args[2]);
        }
        writable(args[1], args[2]);
        real(call, [fd, args[1], args[2], 0, 0, 0])
    })
}

/// `fstatfs`: asks about a descriptor, and writes to the second argument.
pub fn fstatfs(call: usize, args: Args) -> isize {
    kind_or_error(args[0], |_, _| {
        writable(args[1], STATFS_BYTES);
        real(call, args)
    })
}

/// `stat` by path and its like, which may ask about a descriptor too.
pub fn stat(call: usize, args: Args) -> isize {
    if matches!(call, nr::newfstatat | nr::statx) && is_hidden(number(args[0])) {
        return EBADF;
    }
    overlay::stat(call, args)
}

/// `fsync` and its like: nothing has been written that could be lost.
pub fn sync(call: usize, args: Args) -> isize {
    kind_or_error(args[0], |_, kind| match kind {
        Kind::Regular | Kind::Directory if !is_taken() => real(call, args),
        Kind::Regular | Kind::Directory => 0,
        _ => EINVAL,
    })
}
