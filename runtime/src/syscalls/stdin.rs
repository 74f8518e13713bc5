//! Standard input: every execution reads the same bytes.
//!
//! If it is a file, the program's position is kept here and the file's own offset never moves, so that executions and
//! workers all begin where the controller's offset is. Otherwise (a pipe, a terminal) see [`super::input_log`].

use super::descriptors;
use super::errno::{EINVAL, ESPIPE};
use super::kernel::{real, writable};
use super::names::nr;
use super::{input_log, state};
use crate::cell::Global;

/// Where the program is in its standard input.
pub struct Position(u64);

impl Position {
    pub const fn new() -> Position {
        Position(0)
    }
}

/// What the standard input is, found out at first use.
#[derive(Clone, Copy)]
enum Source {
    Unknown,
    /// A file, and the offset that is position 0.
    File(u64),
    Stream,
}

static SOURCE: Global<Source> = Global::new(Source::Unknown);

fn source(fd: usize) -> Source {
    const SEEK_CUR: usize = 1;
    let source = SOURCE.get();
    if let Source::Unknown = source {
        let offset = real(nr::lseek, [fd, 0, SEEK_CUR, 0, 0, 0]);
        *source = if offset >= 0 { Source::File(offset as u64) } else { Source::Stream };
    }
    *source
}

/// `read` on a descriptor that stands for standard input.
pub fn read(fd: usize, buffer: usize, len: usize) -> isize {
    let position = &mut state().stdin.0;
    writable(buffer, len);
    let got = match source(fd) {
        Source::File(base) => real(nr::pread64, [fd, buffer, len, (base + *position) as usize, 0, 0]),
        _ => input_log::read(fd, *position, buffer, len),
    };
    *position += got.max(0) as u64;
    got
}

/// `pread64`: does not move the position.
pub fn read_at(fd: usize, buffer: usize, len: usize, offset: usize) -> isize {
    let Source::File(_) = source(fd) else { return ESPIPE };
    writable(buffer, len);
    real(nr::pread64, [fd, buffer, len, offset, 0, 0])
}

/// `lseek`: offsets are those of the file.
pub fn seek(fd: usize, offset: isize, whence: usize) -> isize {
    let Source::File(base) = source(fd) else { return ESPIPE };
    let position = &mut state().stdin.0;
    let from = match whence {
        0 => 0,
        1 => (base + *position) as isize,
        2 => descriptors::size(fd) as isize,
        _ => return EINVAL,
    };
    let target = from.wrapping_add(offset);
    // Before the point where the controller's offset was there is nothing for this program.
    if target < base as isize {
        return EINVAL;
    }
    *position = target as u64 - base;
    target
}

/// How many bytes could be read without waiting; at least 1 while the end has not been seen.
pub fn available(fd: usize) -> usize {
    let position = state().stdin.0;
    match source(fd) {
        Source::File(base) => descriptors::size(fd).saturating_sub(base + position) as usize,
        _ => input_log::available(position),
    }
}
