//! Pipes.

use super::super::Args;
use super::super::errno::{EBADF, EBUSY, EFAULT, EPERM};
use super::super::kernel::store;
use super::super::names::nr;
use super::{Description, Kind, O_CLOEXEC, O_NONBLOCK, describe, get, give, no_such_flags, queue};

const CAPACITY: usize = 64 << 10;
/// The most that the kernel lets anybody ask for.
const MOST: usize = 1 << 20;

/// `pipe` and `pipe2`.
pub fn pipe(call: usize, args: Args) -> isize {
    let flags = if call == nr::pipe { 0 } else { args[1] };
    make(args[0], flags).unwrap_or_else(|error| error)
}

fn make(output: usize, flags: usize) -> Result<isize, isize> {
    const O_DIRECT: usize = 0o40_000;
    if flags & O_DIRECT != 0 {
        super::super::refusal::refuse(nr::pipe2, [output, flags, 0, 0, 0, 0], super::super::refusal::Reason::Yet);
    }
    no_such_flags(flags, O_NONBLOCK | O_CLOEXEC)?;
    let nonblocking = flags & O_NONBLOCK != 0;
    let pipe = queue::make(CAPACITY, false)?;
    let (reader, writer) = (describe(Kind::PipeReader, nonblocking)?, describe_writer(nonblocking)?);
    get(reader).inbox = pipe;
    get(writer).outbox = pipe;
    if let Some(queue) = queue::get(pipe) {
        (queue.readers, queue.writers) = (1, 1);
    }
    let ends = [give(reader, flags)? as i32, give(writer, flags)? as i32];
    if store(output, ends) { Ok(0) } else { Err(EFAULT) }
}

fn describe_writer(nonblocking: bool) -> Result<usize, isize> {
    describe(Kind::PipeWriter, nonblocking)
}

/// The capacity of a pipe, or another one.
pub fn size(d: &Description, wanted: Option<usize>) -> isize {
    let queue = match d.kind {
        Kind::PipeReader => d.inbox(),
        Kind::PipeWriter => d.outbox(),
        _ => None,
    };
    let Some(queue) = queue else { return EBADF };
    let Some(wanted) = wanted else { return queue.capacity as isize };
    let size = wanted.max(4096).next_power_of_two();
    if size > MOST {
        return EPERM;
    }
    if size < queue.len() {
        return EBUSY;
    }
    queue.resize(size);
    size as isize
}
