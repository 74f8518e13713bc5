//! Standard input: every execution reads the same bytes.
//!
//! If it is a file, the program's position is kept here and the file's own offset never moves, so that executions and
//! workers all begin where the controller's offset is. Otherwise (a pipe, a terminal) what has been read is kept in a log
//! that only grows; an execution that reads on where an earlier one stopped reads on from the source. The end of the
//! input is remembered too.

use super::descriptors;
use super::errno::{EFAULT, EINVAL, ENOMEM, ESPIPE};
use super::kernel::{self, real};
use super::names::nr;
use super::state;
use crate::cell::Global;
use crate::sys::pages;

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

/// The bytes read so far from a stream.
struct Log {
    start: usize,
    capacity: usize,
    len: usize,
    ended: bool,
}

static LOG: Global<Log> = Global::new(Log { start: 0, capacity: 0, len: 0, ended: false });

const FIRST_CAPACITY: usize = 64 << 10;

impl Log {
    /// Room for `more` bytes behind those that are there. The log's memory is the runtime's, which is never given back;
    /// doubling it wastes no more than it holds.
    fn reserve(&mut self, more: usize) -> bool {
        let needed = self.len + more;
        if needed <= self.capacity {
            return true;
        }
        let capacity = needed.next_power_of_two().max(FIRST_CAPACITY);
        let start = pages::map(capacity);
        if start.is_null() {
            return false;
        }
        // SAFETY: the old log is ours and `len` bytes long, the new one is longer and does not overlap it.
        unsafe { core::ptr::copy_nonoverlapping(self.start as *const u8, start, self.len) };
        *self = Log { start: start as usize, capacity, ..*self };
        true
    }

    /// Reads on from the source; returns what the kernel does.
    fn extend(&mut self, fd: usize, most: usize) -> isize {
        const MOST_AT_ONCE: usize = 1 << 20;
        let most = most.min(MOST_AT_ONCE);
        if !self.reserve(most) {
            return ENOMEM;
        }
        let got = real(nr::read, [fd, self.start + self.len, most, 0, 0, 0]);
        if got >= 0 {
            self.len += got as usize;
            self.ended = got == 0;
        }
        got
    }
}

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
    let got = match source(fd) {
        Source::File(base) => {
            kernel::writable(buffer, len);
            real(nr::pread64, [fd, buffer, len, (base + *position) as usize, 0, 0])
        }
        _ => read_logged(fd, *position as usize, buffer, len),
    };
    *position += got.max(0) as u64;
    got
}

fn read_logged(fd: usize, position: usize, buffer: usize, len: usize) -> isize {
    let log = LOG.get();
    if position >= log.len && !log.ended && len != 0 {
        let got = log.extend(fd, len);
        if got < 0 {
            return got;
        }
    }
    let count = len.min(log.len - position.min(log.len));
    let Some(to) = kernel::bytes_mut(buffer, count) else { return EFAULT };
    // SAFETY: `count` bytes of the log begin at `position`, and the destination has room for them.
    unsafe { core::ptr::copy_nonoverlapping((log.start + position) as *const u8, to.as_mut_ptr(), count) };
    count as isize
}

/// `pread64`: does not move the position.
pub fn read_at(fd: usize, buffer: usize, len: usize, offset: usize) -> isize {
    match source(fd) {
        Source::File(_) => {
            kernel::writable(buffer, len);
            real(nr::pread64, [fd, buffer, len, offset, 0, 0])
        }
        _ => ESPIPE,
    }
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
        _ => {
            let log = LOG.get();
            let logged = log.len.saturating_sub(position as usize);
            if logged == 0 && !log.ended { 1 } else { logged }
        }
    }
}
