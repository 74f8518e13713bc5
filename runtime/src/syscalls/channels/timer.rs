//! Timer descriptors, in virtual time. Whoever waits for an armed timer, and for nothing that comes first, lets time pass
//! up to it.

use super::super::errno::{EBADF, EFAULT, EINVAL};
use super::super::kernel::{load, store, store_if_asked};
use super::super::time::{self, Timespec};
use super::super::{Args, turn};
use super::buffers::Buffers;
use super::{Kind, O_CLOEXEC, O_NONBLOCK, Use, describe, found, get, give, no_such_flags, queue, touched};
use symdpor_abi::op::OpKind;
use symdpor_abi::outside::What;

/// What there is of a description if it is a timer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Timer {
    clock: i32,
    is_armed: bool,
    /// When it goes off, in time since the program's start.
    next: u64,
    interval: u64,
}

impl Timer {
    pub fn has_gone_off(&self) -> bool {
        self.is_armed && self.next <= time::elapsed()
    }

    /// How long it still takes.
    pub fn left(&self) -> Option<u64> {
        self.is_armed.then(|| self.next.saturating_sub(time::elapsed()))
    }

    fn show(&self) -> [Timespec; 2] {
        let left = self.left().map_or(0, |left| left.max(1));
        [Timespec::new(self.interval), Timespec::new(left)]
    }
}

pub fn timerfd_create(_: usize, args: Args) -> isize {
    let make = || {
        no_such_flags(args[1], O_NONBLOCK | O_CLOEXEC)?;
        let clock = args[0] as i32;
        time::resolution(clock).ok_or(EINVAL)?;
        let timer = describe(Kind::Timer, args[1] & O_NONBLOCK != 0)?;
        let d = get(timer);
        d.timer.clock = clock;
        d.inbox = queue::make(0, false)?;
        if let Some(queue) = d.inbox() {
            queue.readers = 1;
        }
        give(timer, args[1]).map(|fd| fd as isize)
    };
    make().unwrap_or_else(|error| error)
}

fn timer_at(argument: usize) -> Result<usize, isize> {
    let fd = super::super::descriptors::number(argument);
    let timer = found(fd).map_err(|_| if super::super::descriptors::is_open(fd) { EINVAL } else { EBADF })?;
    if get(timer).kind == Kind::Timer { Ok(timer) } else { Err(EINVAL) }
}

pub fn timerfd_settime(_: usize, args: Args) -> isize {
    const TFD_TIMER_ABSTIME: usize = 1;
    let set = || {
        let timer = timer_at(args[0])?;
        let [interval, value] = load::<[Timespec; 2]>(args[2]).ok_or(EFAULT)?;
        let (interval, first) = (interval.nanoseconds().ok_or(EINVAL)?, value.nanoseconds().ok_or(EINVAL)?);
        turn::take(touched(timer).op(OpKind::OutsideChange, What::Write, super::message::first(args)));
        let d = get(timer);
        if !store_if_asked(args[3], d.timer.show()) {
            return Err(EFAULT);
        }
        let left = time::time_until(d.timer.clock, args[1] & TFD_TIMER_ABSTIME != 0, value)?;
        d.timer.is_armed = first != 0;
        (d.timer.next, d.timer.interval) = (time::elapsed() + left, interval);
        if let Some(queue) = d.inbox() {
            queue.version += 1;
        }
        Ok(0)
    };
    set().unwrap_or_else(|error| error)
}

pub fn timerfd_gettime(_: usize, args: Args) -> isize {
    match timer_at(args[0]) {
        Ok(timer) if store(args[1], get(timer).timer.show()) => 0,
        Ok(_) => EFAULT,
        Err(error) => error,
    }
}

pub fn read(fd: usize, timer: usize, buffers: &mut Buffers) -> Result<isize, isize> {
    if buffers.total() < 8 {
        return Err(EINVAL);
    }
    let _use = Use::new(timer);
    let nonblocking = get(timer).nonblocking;
    let is_ready = move || {
        let timer = &get(timer).timer;
        timer.has_gone_off() || (timer.is_armed && !nonblocking)
    };
    let op = touched(timer).op(OpKind::OutsideChange, What::Read, fd);
    let in_vain = crate::exec::me().in_vain;
    super::message::wait(fd, timer, op, nonblocking, &is_ready)?;
    // That a timer has gone off is nothing that another thread has done: see `turn::looked`.
    crate::exec::me().in_vain = in_vain;
    let timer = &mut get(timer).timer;
    let left = timer.left().unwrap_or(0);
    time::advance(left);
    if left > 0 {
        turn::found_nothing();
    }
    let late = time::elapsed() - timer.next;
    let mut count = 1;
    match late.checked_div(timer.interval) {
        Some(more) => {
            count += more;
            timer.next += count * timer.interval;
        }
        None => timer.is_armed = false,
    }
    buffers.put(&count.to_le_bytes())?;
    Ok(8)
}
