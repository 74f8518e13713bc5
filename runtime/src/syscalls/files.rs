//! Reading, writing and moving in files.
//!
//! Standard input and output go to their own modules whatever their number. Reading files is real: contents do not
//! change, and offsets are put back. After the snapshot nothing is written anywhere but to sinks.

use super::descriptors::{Kind, is_hidden, kind, moves, number, path_of, refuse_other};
use super::errno::{EBADF, EFAULT, EINVAL, ESPIPE};
use super::kernel::{self, load, mapped, real, writable};
use super::names::{name, nr};
use super::{Args, random, refusal, stdin};
use crate::snapshot::is_taken;

/// Sizes of the kernel's `struct stat`, `struct statfs` and `struct statx`.
pub const STAT_BYTES: usize = 144;
pub const STATFS_BYTES: usize = 120;
const STATX_BYTES: usize = 256;

/// What a transfer goes to or comes from, once errors are out of the way.
fn kind_or_error(argument: usize, transfer: impl FnOnce(usize, Kind) -> isize) -> isize {
    let fd = number(argument);
    match kind(fd) {
        Ok(kind) => transfer(fd, kind),
        Err(error) => error,
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
        Kind::Sink | Kind::Random => real(nr::write, [fd, buffer, len, 0, 0, 0]),
        _ if !is_taken() => real(nr::write, [fd, buffer, len, 0, 0, 0]),
        _ if !is_writable(fd) => EBADF,
        Kind::Regular => refusal::changes_file(name(call), path_of(fd, &mut [0; 256])),
        _ => refuse_other(fd, name(call)),
    }
}

fn output(stream: i32, buffer: usize, len: usize) -> isize {
    let len = len.min(kernel::MOST_BYTES);
    if mapped(buffer, len) { crate::output::write(stream, buffer, len) } else { EFAULT }
}

fn is_writable(fd: usize) -> bool {
    const F_GETFL: usize = 3;
    const O_ACCMODE: isize = 3;
    const O_RDONLY: isize = 0;
    real(nr::fcntl, [fd, F_GETFL, 0, 0, 0, 0]) & O_ACCMODE != O_RDONLY
}

pub fn pwrite(call: usize, args: Args) -> isize {
    let [_, buffer, len, ..] = args;
    kind_or_error(args[0], |fd, kind| match kind {
        Kind::Stdin | Kind::Stdout | Kind::Stderr => ESPIPE,
        _ if !is_taken() => real(nr::pwrite64, args),
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
fn each_buffer(array: usize, count: usize, mut transfer: impl FnMut(usize, usize) -> isize) -> isize {
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
    kind_or_error(args[0], |fd, kind| {
        each_buffer(args[1], args[2], |buffer, len| read_kind(call, fd, kind, buffer, len))
    })
}

pub fn writev(call: usize, args: Args) -> isize {
    kind_or_error(args[0], |fd, kind| match kind {
        Kind::Regular | Kind::Other if !is_taken() => real(nr::writev, args),
        _ => each_buffer(args[1], args[2], |buffer, len| write_kind(call, fd, kind, buffer, len)),
    })
}

pub fn lseek(_: usize, args: Args) -> isize {
    let [_, offset, whence, ..] = args;
    kind_or_error(args[0], |fd, kind| match kind {
        Kind::Stdin => stdin::seek(fd, offset as isize, whence),
        Kind::Stdout | Kind::Stderr => ESPIPE,
        _ => {
            moves();
            real(nr::lseek, [fd, offset, whence, 0, 0, 0])
        }
    })
}

pub fn getdents(call: usize, args: Args) -> isize {
    kind_or_error(args[0], |fd, _| {
        moves();
        writable(args[1], args[2]);
        real(call, [fd, args[1], args[2], 0, 0, 0])
    })
}

/// `fstat` and `fstatfs`: ask about a descriptor, and write to the second argument.
pub fn query(call: usize, args: Args) -> isize {
    let len = if call == nr::fstat { STAT_BYTES } else { STATFS_BYTES };
    kind_or_error(args[0], |_, _| {
        writable(args[1], len);
        real(call, args)
    })
}

/// `newfstatat` and `statx`, which ask about a descriptor too, if the path is empty.
pub fn query_at(call: usize, args: Args) -> isize {
    let (output, len) = if call == nr::statx { (4, STATX_BYTES) } else { (2, STAT_BYTES) };
    if is_hidden(number(args[0])) {
        return EBADF;
    }
    writable(args[output], len);
    real(call, args)
}

/// `fsync` and its like: nothing has been written that could be lost.
pub fn sync(call: usize, args: Args) -> isize {
    kind_or_error(args[0], |_, kind| match kind {
        Kind::Regular | Kind::Directory if !is_taken() => real(call, args),
        Kind::Regular | Kind::Directory => 0,
        _ => EINVAL,
    })
}
