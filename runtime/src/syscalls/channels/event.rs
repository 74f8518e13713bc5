//! Event descriptors: a number that writing adds to and reading takes.

use super::super::Args;
use super::super::errno::EINVAL;
use super::super::names::nr;
use super::super::turn;
use super::buffers::Buffers;
use super::{Kind, O_CLOEXEC, O_NONBLOCK, Use, describe, get, give, no_such_flags, queue, touched};
use symdpor_abi::op::OpKind;
use symdpor_abi::outside::What;

const EFD_SEMAPHORE: usize = 1;

/// `eventfd` and `eventfd2`.
pub fn eventfd(call: usize, args: Args) -> isize {
    let flags = if call == nr::eventfd { 0 } else { args[1] };
    make(args[0] as u32, flags).unwrap_or_else(|error| error)
}

fn make(count: u32, flags: usize) -> Result<isize, isize> {
    no_such_flags(flags, O_NONBLOCK | O_CLOEXEC | EFD_SEMAPHORE)?;
    let event = describe(Kind::Event, flags & O_NONBLOCK != 0)?;
    let d = get(event);
    d.is_semaphore = flags & EFD_SEMAPHORE != 0;
    d.inbox = queue::make(0, false)?;
    if let Some(queue) = d.inbox() {
        queue.count = count as u64;
        queue.readers = 1;
    }
    give(event, flags).map(|fd| fd as isize)
}

pub fn read(fd: usize, event: usize, buffers: &mut Buffers) -> Result<isize, isize> {
    if buffers.total() < 8 {
        return Err(EINVAL);
    }
    let _use = Use::new(event);
    let is_ready = move || get(event).inbox().is_some_and(|q| q.count > 0);
    let op = touched(event).op(OpKind::OutsideChange, What::Read, fd);
    super::message::wait(fd, event, op, get(event).nonblocking, &is_ready)?;
    let d = get(event);
    let Some(queue) = d.inbox() else { return Err(EINVAL) };
    let taken = if d.is_semaphore { 1 } else { queue.count };
    queue.count -= taken;
    queue.freed += 1;
    queue::acquire(d.inbox);
    buffers.put(&taken.to_le_bytes())?;
    Ok(8)
}

pub fn write(fd: usize, event: usize, buffers: &mut Buffers) -> Result<isize, isize> {
    let mut bytes = [0; 8];
    if buffers.total() < 8 {
        return Err(EINVAL);
    }
    buffers.get(&mut bytes)?;
    let added = u64::from_le_bytes(bytes);
    if added == u64::MAX {
        return Err(EINVAL);
    }
    let _use = Use::new(event);
    let fits = move || get(event).inbox().is_some_and(|q| q.count < u64::MAX - added);
    let op = touched(event).op(OpKind::OutsideChange, What::Write, fd);
    super::message::wait(fd, event, op, get(event).nonblocking, &fits)?;
    let d = get(event);
    if let Some(queue) = d.inbox() {
        queue.count += added;
        queue.version += 1;
    }
    queue::release(d.inbox);
    turn::found();
    Ok(8)
}
