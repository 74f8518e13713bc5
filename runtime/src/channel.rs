//! The shared memory with the controller: the header, and byte regions that are filled from the front.

use crate::cell::Global;
use crate::sys::pages;
use crate::sys::raw::{nr, syscall3, syscall6};
use core::sync::atomic::{AtomicU32, Ordering};
use symdpor_abi::channel::{self, Header, Outcome, command, waiting};

static BASE: Global<usize> = Global::new(0);

/// What the execution under way was asked for. A copy: the controller may write the next request while choices that it will
/// begin with are being made ([`crate::ahead`]).
#[derive(Clone, Copy)]
pub struct Request {
    pub plan_len: usize,
    pub options: u32,
    /// How many choices of the execution may be made again before the next plan comes, if any is expected.
    pub head_start: Option<usize>,
    /// One of [`channel::waiting`].
    pub waiting: u32,
}

static REQUEST: Global<Request> = Global::new(Request { plan_len: 0, options: 0, head_start: None, waiting: 0 });

/// Maps the channel. None if the descriptor is not a channel of this version.
pub fn attach(fd: usize) -> Option<()> {
    *BASE.get() = pages::map_file(fd, channel::SIZE)? as usize;
    let fits = header().magic == channel::MAGIC && header().version == symdpor_abi::CHANNEL_VERSION;
    fits.then(accept)
}

pub fn request() -> &'static mut Request {
    REQUEST.get()
}

/// Takes over what the controller asks for. It has given its command.
pub fn accept() {
    let header = header();
    *REQUEST.get() = Request {
        plan_len: (header.plan_len as usize).min(channel::PLAN_CAPACITY),
        options: header.options,
        head_start: (header.head_start as usize).checked_sub(1),
        waiting: header.waiting,
    };
}

/// What the last execution has left in the header is of no use any more. Not before the controller has given its next command:
/// until then it may be reading.
pub fn open_answer() {
    let header = header();
    header.outcome = Outcome::Running as u32;
    header.error_kind = 0;
    header.error_len = 0;
    header.signal = 0;
    header.exit_status = 0;
    header.step_count = 0;
    header.trace_len = 0;
    header.stacks_len = 0;
    header.footprints_len = 0;
    header.wanted_len = 0;
    header.memory_len = 0;
    (header.accesses_len, header.names_len, header.blocks_len) = (0, 0, 0);
}

pub fn is_attached() -> bool {
    *BASE.get() != 0
}

#[allow(clippy::mut_from_ref)]
pub fn header() -> &'static mut Header {
    // SAFETY: the channel is mapped before anything else is done, and stays so; the controller writes only while this
    // side waits, except for words that are accessed atomically.
    unsafe { &mut *(*BASE.get() as *mut Header) }
}

fn atomic(word: &mut u32) -> &AtomicU32 {
    // SAFETY: an aligned word of the channel.
    unsafe { AtomicU32::from_ptr(word) }
}

/// Address of a region of the channel.
pub fn region(offset: usize) -> usize {
    *BASE.get() + offset
}

/// The choice at a step of the plan: thread and alternative.
pub fn planned(step: usize) -> Option<(u16, u16)> {
    if step >= request().plan_len {
        return None;
    }
    // SAFETY: within the plan's region.
    let raw = unsafe { *((region(channel::PLAN_OFFSET) + 4 * step) as *const u32) };
    Some(channel::unpack_choice(raw))
}

/// The threads of the plan's sleep set.
pub fn sleepers() -> &'static [u32] {
    let len = (header().sleep_len as usize).min(channel::SLEEP_CAPACITY);
    // SAFETY: within the sleep set's region.
    unsafe { core::slice::from_raw_parts(region(channel::SLEEP_OFFSET) as *const u32, len) }
}

pub fn beat() {
    let beat = &mut header().heartbeat;
    *beat = beat.wrapping_add(1);
}

pub fn says(option: u32) -> bool {
    REQUEST.get().options & option != 0
}

/// Tells the controller that the execution is over.
pub fn answer(outcome: Outcome) {
    let header = header();
    header.outcome = outcome as u32;
    let sequence = atomic(&mut header.command).load(Ordering::Acquire) >> 8;
    atomic(&mut header.answer).store(sequence, Ordering::SeqCst);
    if atomic(&mut header.controller_sleeps).load(Ordering::SeqCst) != 0 {
        futex(&raw const header.answer as usize, FUTEX_WAKE, 1);
    }
}

/// Waits for a command other than the one that was answered last.
pub fn wait_for_command() -> u32 {
    let (looks, between): (u32, fn()) = match request().waiting {
        waiting::SPINS => (4_000, core::hint::spin_loop),
        waiting::YIELDS => (4, give_way),
        _ => (0, || ()),
    };
    for _ in 0..looks {
        if let Some(command) = new_command() {
            return command;
        }
        between();
    }
    loop {
        let header = header();
        let seen = atomic(&mut header.command).load(Ordering::SeqCst);
        atomic(&mut header.worker_sleeps).store(1, Ordering::SeqCst);
        if let Some(command) = new_command() {
            atomic(&mut header.worker_sleeps).store(0, Ordering::SeqCst);
            return command;
        }
        futex(&raw const header.command as usize, FUTEX_WAIT, seen);
        atomic(&mut header.worker_sleeps).store(0, Ordering::SeqCst);
    }
}

fn give_way() {
    // SAFETY: without arguments.
    unsafe { syscall3(nr::SCHED_YIELD, 0, 0, 0) };
}

fn new_command() -> Option<u32> {
    let header = header();
    let word = atomic(&mut header.command).load(Ordering::Acquire);
    let answered = atomic(&mut header.answer).load(Ordering::Relaxed);
    (word & 0xff != command::NONE && word >> 8 != answered).then_some(word & 0xff)
}

const FUTEX_WAIT: usize = 0;
const FUTEX_WAKE: usize = 1;

fn futex(address: usize, operation: usize, value: u32) {
    // SAFETY: a word of the channel, shared with the controller; no timeout.
    unsafe { syscall6(nr::FUTEX, address, operation, value as usize, 0, 0, 0) };
}

/// Appends bytes to a region of the channel; false, and nothing written, if they do not fit.
pub struct Writer {
    start: usize,
    capacity: usize,
    used: usize,
}

impl Writer {
    pub fn new(offset: usize, capacity: usize) -> Writer {
        Writer { start: region(offset), capacity, used: 0 }
    }

    pub fn resume(offset: usize, capacity: usize, used: usize) -> Writer {
        Writer { start: region(offset), capacity, used: used.min(capacity) }
    }

    pub fn used(&self) -> usize {
        self.used
    }

    pub fn bytes(&mut self, from: usize, len: usize) -> bool {
        let padded = (len + 7) & !7;
        if self.capacity - self.used < padded {
            return false;
        }
        // SAFETY: the destination lies within the region; callers pass readable memory of that length.
        unsafe { core::ptr::copy_nonoverlapping(from as *const u8, (self.start + self.used) as *mut u8, len) };
        self.used += padded;
        true
    }

    pub fn record<T: Copy>(&mut self, record: &T) -> bool {
        self.bytes(record as *const T as usize, size_of::<T>())
    }
}
