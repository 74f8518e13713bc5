//! `epoll`: level and edge triggered, and once only.
//!
//! An edge is that a queue has become readier since it was last reported (`Queue::version`, `Queue::freed`).

use super::super::errno::{EEXIST, EFAULT, EINVAL, ELOOP, ENFILE, ENOENT, EPERM};
use super::super::kernel::{bytes_mut, load};
use super::super::names::nr;
use super::super::{Args, poll, time, turn};
use super::queue::{self, Set};
use super::ready::{ALWAYS, events, of_description};
use super::{DescriptorKind, Kind, O_CLOEXEC, Use, channels, describe, found, get, give, no_such_flags, touched};
use crate::exec;
use crate::snapshot::is_taken;
use symdpor_abi::op::OpKind;
use symdpor_abi::outside::What;

const MOST: usize = 512;

/// All that is watched, by whomever.
pub type Watches = [Watch; MOST];

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Watch {
    /// One more than the number of the description that watches; 0: not in use.
    by: u16,
    /// The one that is watched, and under which descriptor.
    target: u16,
    fd: u32,
    events: u32,
    /// It has been reported, and was to be so only once.
    is_off: bool,
    data: u64,
    seen: (u64, u64),
}

const EPOLLET: u32 = 1 << 31;
const EPOLLONESHOT: u32 = 1 << 30;

/// `epoll_create` and `epoll_create1`.
pub fn epoll_create(call: usize, args: Args) -> isize {
    let flags = if call == nr::epoll_create1 { args[0] } else { 0 };
    let make = || {
        no_such_flags(flags, O_CLOEXEC)?;
        let epoll = describe(Kind::Epoll, false)?;
        let d = get(epoll);
        d.inbox = queue::make(0, false)?;
        if let Some(queue) = d.inbox() {
            queue.readers = 1;
        }
        give(epoll, flags).map(|fd| fd as isize)
    };
    make().unwrap_or_else(|error| error)
}

fn watches(epoll: usize) -> impl Iterator<Item = &'static mut Watch> {
    channels().epolls.iter_mut().filter(move |w| w.by as usize == epoll + 1)
}

fn epoll_at(argument: usize) -> Result<(usize, usize), isize> {
    let fd = super::super::descriptors::number(argument);
    let kind = super::super::descriptors::kind(fd)?;
    match found(fd) {
        Ok(epoll) if get(epoll).kind == Kind::Epoll => Ok((fd, epoll)),
        Err(_) if kind == DescriptorKind::Other && is_taken() => {
            super::super::descriptors::refuse_other(fd, "epoll_wait")
        }
        _ => Err(EINVAL),
    }
}

/// `struct epoll_event`, which is packed.
type Event = [u8; 12];

fn event(events: u32, data: u64) -> Event {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&events.to_le_bytes());
    bytes[4..].copy_from_slice(&data.to_le_bytes());
    bytes
}

pub fn epoll_ctl(_: usize, args: Args) -> isize {
    change(args).unwrap_or_else(|error| error)
}

fn change(args: Args) -> Result<isize, isize> {
    const ADD: usize = 1;
    const DELETE: usize = 2;
    const MODIFY: usize = 3;
    let (fd, epoll) = epoll_at(args[0])?;
    let watched = super::super::descriptors::number(args[2]);
    let kind = super::super::descriptors::kind(watched)?;
    let target = match (kind, found(watched)) {
        (DescriptorKind::Channel, Ok(target)) => target,
        (DescriptorKind::Other, _) => super::super::descriptors::refuse_other(watched, "epoll_ctl"),
        _ => return Err(EPERM),
    };
    if target == epoll {
        return Err(EINVAL);
    }
    if get(target).kind == Kind::Epoll && watches(target).any(|w| w.target as usize == epoll) {
        return Err(ELOOP);
    }
    let (asked, data) = match args[1] {
        DELETE => (0, 0),
        _ => {
            let bytes = load::<Event>(args[3]).ok_or(EFAULT)?;
            let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            (word(0), word(4) as u64 | (word(8) as u64) << 32)
        }
    };
    turn::take(touched(epoll).op(OpKind::OutsideChange, What::Write, fd));
    let known = watches(epoll).find(|w| w.fd as usize == watched && w.target as usize == target);
    let new = Watch {
        by: epoll as u16 + 1,
        target: target as u16,
        fd: watched as u32,
        events: asked,
        is_off: false,
        data,
        seen: (u64::MAX, u64::MAX),
    };
    match (args[1], known) {
        (ADD, Some(_)) => return Err(EEXIST),
        (ADD, None) => *channels().epolls.iter_mut().find(|w| w.by == 0).ok_or(ENFILE)? = new,
        (MODIFY, Some(watch)) => *watch = new,
        (DELETE, Some(watch)) => watch.by = 0,
        (MODIFY | DELETE, None) => return Err(ENOENT),
        _ => return Err(EINVAL),
    }
    if let Some(queue) = get(epoll).inbox() {
        queue.version += 1;
    }
    widen_waiting(fd);
    Ok(0)
}

/// Threads that wait here already have announced what they wait for: from now on it may be anything.
fn widen_waiting(fd: usize) {
    let exec = exec::get();
    let arg = What::Poll.arg(Some(fd as u32));
    for thread in &mut exec.threads[..exec.thread_count as usize] {
        if turn::is_outside(thread.pending.kind) && thread.pending.arg == arg {
            thread.pending = Set::ALL.op(thread.pending.kind, What::Poll, fd);
        }
    }
}

/// A description is not there any more: nobody watches it, and it watches nothing.
pub fn forget(description: usize) {
    for watch in channels().epolls.iter_mut() {
        if watch.by as usize == description + 1 || watch.by != 0 && watch.target as usize == description {
            watch.by = 0;
        }
    }
}

fn edge(watch: &Watch) -> (u64, u64) {
    let d = get(watch.target as usize);
    (d.inbox().map_or(0, |q| q.version), d.outbox().map_or(0, |q| q.freed))
}

/// What a watch would report now.
fn reported(watch: &Watch) -> u32 {
    if watch.is_off {
        return 0;
    }
    let found = events(watch.target as usize, watch.events) & (watch.events | ALWAYS) & !(EPOLLET | EPOLLONESHOT);
    let timer = get(watch.target as usize).kind == Kind::Timer;
    if watch.events & EPOLLET != 0 && !timer && edge(watch) == watch.seen { 0 } else { found }
}

pub fn is_ready(epoll: usize) -> bool {
    watches(epoll).any(|w| reported(w) != 0)
}

/// The queues that decide about it, and how long until the first timer goes off.
pub fn objects(epoll: usize) -> (Set, Option<u64>) {
    let mut set = touched(epoll);
    let mut left: Option<u64> = None;
    for watch in watches(epoll) {
        let (objects, timer) = of_description(watch.target as usize);
        set.join(objects);
        left = [left, timer].into_iter().flatten().min();
    }
    (set, left)
}

/// `epoll_wait`, `epoll_pwait`, `epoll_pwait2`.
pub fn epoll_wait(call: usize, args: Args) -> isize {
    let limit = if call == nr::epoll_pwait2 { time::duration_at(args[3]) } else { poll::milliseconds(args[3] as i32) };
    wait(args, limit).unwrap_or_else(|error| error)
}

fn wait(args: Args, limit: Option<u64>) -> Result<isize, isize> {
    let (fd, epoll) = epoll_at(args[0])?;
    let most = args[2] as i32;
    if most <= 0 {
        return Err(EINVAL);
    }
    let _use = Use::new(epoll);
    let (set, _) = objects(epoll);
    let changes = watches(epoll).any(|w| w.events & (EPOLLET | EPOLLONESHOT) != 0);
    let kind = if changes { OpKind::OutsideChange } else { OpKind::OutsideLook };
    let may_go_on = move || is_ready(epoll) || objects(epoll).1.is_some();
    turn::take_when(set.op(kind, What::Poll, fd), if limit.is_some() { None } else { Some(&may_go_on) });
    let waited = poll::let_time_pass(is_ready(epoll), objects(epoll).1, limit);
    let mut count = 0;
    for watch in watches(epoll) {
        let found = reported(watch);
        if found == 0 || count == most as usize {
            continue;
        }
        let to = bytes_mut(args[1] + 12 * count, 12).ok_or(EFAULT)?;
        to.copy_from_slice(&event(found, watch.data));
        queue::acquire(get(watch.target as usize).inbox);
        watch.seen = edge(watch);
        watch.is_off = watch.events & EPOLLONESHOT != 0;
        count += 1;
    }
    turn::looked(count != 0, waited);
    Ok(count as isize)
}
