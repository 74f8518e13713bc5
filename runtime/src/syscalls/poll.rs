//! Waiting for descriptors: `poll`, `select` and their like.
//!
//! What the runtime keeps is asked; files, sinks and the standard descriptors are always ready. A wait with a time limit
//! can always go on: if nothing is ready then, the time has passed. That it is explored both ways follows from its depending
//! on whatever makes one of the descriptors ready. A pipe or socket of the kernel's could only have been made before the
//! snapshot; waiting for one after it is refused.

use super::channels::{self, Entry, Set};
use super::descriptors::{Kind, kind, refuse_other};
use super::errno::{EBADF, EFAULT, EINVAL};
use super::kernel::{bytes_mut, load, real};
use super::names::{name, nr};
use super::{Args, time, turn, world};
use crate::snapshot::is_taken;
use symdpor_abi::op::OpKind;
use symdpor_abi::outside::What;

const POLLIN: i16 = 0x1;
const POLLPRI: i16 = 0x2;
const POLLOUT: i16 = 0x4;
const POLLERR: i16 = 0x8;
const POLLHUP: i16 = 0x10;
const POLLNVAL: i16 = 0x20;
/// POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM: what a file is always ready for.
const READY: i16 = 0x1 | 0x4 | 0x40 | 0x100;
const MOST: usize = 1024;

/// A copy of what the program passed, which lives as long as the call.
struct Entries {
    address: usize,
    count: usize,
}

impl Entries {
    fn new(count: usize) -> Entries {
        Entries { address: world::allocate(count.max(1) * size_of::<Entry>()), count }
    }

    fn all(&self) -> &'static mut [Entry] {
        // SAFETY: a buffer of that many plain records.
        unsafe { core::slice::from_raw_parts_mut(self.address as *mut Entry, self.count) }
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        world::release(self.address, self.count.max(1) * size_of::<Entry>());
    }
}

pub fn poll(call: usize, args: Args) -> isize {
    let [array, count, ..] = args;
    if count > MOST {
        return EINVAL;
    }
    let entries = Entries::new(count);
    for (i, entry) in entries.all().iter_mut().enumerate() {
        let Some(passed) = load::<Entry>(array + i * size_of::<Entry>()) else { return EFAULT };
        *entry = passed;
    }
    if is_before_and_real(&entries) {
        return real(call, args);
    }
    let limit = if call == nr::poll { milliseconds(args[2] as i32) } else { time::duration_at(args[2]) };
    let ready = wait(call, &entries, limit);
    let Some(bytes) = bytes_mut(array, count * size_of::<Entry>()) else { return EFAULT };
    for (entry, bytes) in entries.all().iter().zip(bytes.chunks_mut(size_of::<Entry>())) {
        bytes[6..8].copy_from_slice(&entry.found.to_le_bytes());
    }
    ready
}

/// Before the snapshot descriptors of any kind may be waited for, unless ours are among them.
fn is_before_and_real(entries: &Entries) -> bool {
    let has =
        |wanted: fn(Kind) -> bool| entries.all().iter().any(|e| e.fd >= 0 && kind(e.fd as usize).is_ok_and(wanted));
    !is_taken() && has(|k| matches!(k, Kind::Other | Kind::Terminal)) && !has(|k| k == Kind::Channel)
}

/// Looks at all of them; returns how many are ready.
fn look(call: usize, entries: &Entries) -> isize {
    let mut ready = 0;
    for entry in entries.all() {
        entry.found = found(call, entry);
        ready += (entry.found != 0) as isize;
    }
    ready
}

fn found(call: usize, entry: &Entry) -> i16 {
    if entry.fd < 0 {
        return 0;
    }
    let fd = entry.fd as usize;
    match kind(fd) {
        Err(_) => POLLNVAL,
        Ok(Kind::Channel) => channels::look(fd, entry.events as u16 as u32) as i16,
        Ok(Kind::Other | Kind::Terminal) => refuse_other(fd, name(call)),
        Ok(_) => entry.events & READY,
    }
}

/// Waits until something is ready or the time is over; returns how many are.
fn wait(call: usize, entries: &Entries, limit: Option<u64>) -> isize {
    let (set, timer) = objects(entries);
    let is_ready = || look(call, entries) != 0 || objects(entries).1.is_some();
    if set.is_empty() && !is_ready() {
        return wait_in_vain(call, limit);
    }
    if !set.is_empty() {
        let awaited = entries.all().iter().map(|e| e.fd as u32 as u64 | (e.events as u16 as u64) << 32);
        turn::copies(awaited.chain([limit.is_some() as u64, limit.unwrap_or(0)]));
        let only = entries.all().first().filter(|_| entries.count == 1).map(|e| e.fd as usize);
        let op = set.op_of(OpKind::OutsideLook, What::Poll, only);
        turn::take_when(op, if limit.is_some() || timer.is_some() { None } else { Some(&is_ready) });
    }
    let ready = look(call, entries) != 0;
    let waited = let_time_pass(ready, objects(entries).1, limit);
    let ready = look(call, entries);
    entries.all().iter().filter(|e| e.found != 0 && e.fd >= 0).for_each(|e| channels::seen(e.fd as usize));
    if set.is_empty() {
        return ready;
    }
    turn::looked(ready != 0, waited);
    ready
}

/// The queues behind the descriptors, and how long it takes until the first of their timers goes off.
fn objects(entries: &Entries) -> (Set, Option<u64>) {
    let mut set = Set::default();
    let mut left: Option<u64> = None;
    for entry in entries.all().iter().filter(|e| e.fd >= 0) {
        let (queues, timer) = channels::objects(entry.fd as usize);
        set.join(queues);
        left = [left, timer].into_iter().flatten().min();
    }
    (set, left)
}

/// If nothing is ready, time passes up to the first timer or to the end of the wait, whatever comes first. Returns whether it had to.
pub fn let_time_pass(is_ready: bool, timer: Option<u64>, limit: Option<u64>) -> bool {
    if !is_ready && let Some(left) = [timer, limit].into_iter().flatten().min() {
        time::advance(left);
    }
    !is_ready
}

pub fn milliseconds(timeout: i32) -> Option<u64> {
    (timeout >= 0).then_some(timeout as u64 * 1_000_000)
}

/// Nothing will ever become ready: the time passes, if it is limited.
fn wait_in_vain(call: usize, nanoseconds: Option<u64>) -> isize {
    let Some(nanoseconds) = nanoseconds else {
        crate::end::unsupported(format_args!(
            "the program calls {}() without a timeout and with nothing to wait for but signals",
            name(call)
        ));
    };
    time::sleep(nanoseconds);
    0
}

/// `select` and `pselect6`.
pub fn select(call: usize, args: Args) -> isize {
    let [count, read, write, except, timeout, _] = args;
    if count > MOST {
        return EINVAL;
    }
    let asked = |fd: usize| {
        let bit = |set, events| if is_member(set, fd) { events } else { 0 };
        bit(read, POLLIN) | bit(write, POLLOUT) | bit(except, POLLPRI)
    };
    let entries = Entries::new((0..count).filter(|&fd| asked(fd) != 0).count());
    for (entry, fd) in entries.all().iter_mut().zip((0..count).filter(|&fd| asked(fd) != 0)) {
        *entry = Entry { fd: fd as i32, events: asked(fd), found: 0 };
        if kind(fd).is_err() {
            return EBADF;
        }
    }
    if is_before_and_real(&entries) {
        return real(call, args);
    }
    let limit = if call == nr::select { time::microseconds_at(timeout) } else { time::duration_at(timeout) };
    wait(call, &entries, limit);
    let mut ready = 0;
    for (set, events) in [(read, POLLIN | POLLHUP | POLLERR), (write, POLLOUT | POLLERR), (except, POLLPRI)] {
        ready += answer(set, count, &entries, events);
    }
    ready
}

/// The length of a set, in bytes.
fn set_len(count: usize) -> usize {
    count.div_ceil(64) * 8
}

fn is_member(set: usize, fd: usize) -> bool {
    set != 0 && load::<u64>(set + fd / 64 * 8).is_some_and(|word| word >> (fd % 64) & 1 != 0)
}

/// Leaves in a set those that are ready, and counts them.
fn answer(set: usize, count: usize, entries: &Entries, events: i16) -> isize {
    if set == 0 {
        return 0;
    }
    let mut ready = 0;
    let mut bits = [0u8; MOST / 8];
    for entry in entries.all().iter().filter(|e| e.found & events != 0 && is_member(set, e.fd as usize)) {
        bits[entry.fd as usize / 8] |= 1 << (entry.fd % 8);
        ready += 1;
    }
    if let Some(bytes) = bytes_mut(set, set_len(count)) {
        let len = bytes.len();
        bytes.copy_from_slice(&bits[..len]);
    }
    ready
}
