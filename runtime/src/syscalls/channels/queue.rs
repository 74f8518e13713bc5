//! Bytes, messages or a number on their way from writers to readers.

use super::super::errno::ENFILE;
use super::super::{turn, world};
use super::buffers::Buffers;
use super::{MOST_QUEUES, channels, get as description};
use crate::races;
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind};
use symdpor_abi::outside::What;

/// How many queues can be told apart.
const NUMBERS: u32 = 16;

/// All zero: not in use.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Queue {
    in_use: bool,
    /// Messages with their lengths and senders, rather than bytes.
    pub has_messages: bool,
    /// Which of the queues that can be told apart it is.
    pub number: u8,
    pub readers: u16,
    pub writers: u16,
    /// The bytes, as a ring; 0 while there is no buffer.
    buffer: usize,
    pub capacity: usize,
    start: usize,
    len: usize,
    /// The number of an event descriptor.
    pub count: u64,
    /// How often it became readier than it was.
    pub version: u64,
    /// How often space was freed.
    pub freed: u64,
}

/// The queue with a number as descriptions keep it: one more, 0 for none.
pub fn get(number: u16) -> Option<&'static mut Queue> {
    (number as usize).checked_sub(1).map(|n| &mut channels().queues[n % MOST_QUEUES])
}

/// A new queue, as descriptions keep it.
pub fn make(capacity: usize, has_messages: bool) -> Result<u16, isize> {
    let channels = channels();
    let free = channels.queues.iter().position(|q| !q.in_use).ok_or(ENFILE)?;
    let number = (channels.made % NUMBERS) as u8;
    channels.made += 1;
    // SAFETY: plain numbers, for which zeros are valid.
    let mut queue: Queue = unsafe { core::mem::zeroed() };
    (queue.in_use, queue.capacity, queue.has_messages, queue.number) = (true, capacity, has_messages, number);
    channels.queues[free] = queue;
    // What is known of an earlier one in its place is forgotten.
    races::release(key(free as u16 + 1));
    Ok(free as u16 + 1)
}

/// Frees it once nobody can use it.
pub fn changed(number: u16) {
    let Some(queue) = get(number) else { return };
    queue.version += 1;
    queue.freed += 1;
    if queue.readers == 0 && queue.writers == 0 {
        if queue.buffer != 0 {
            world::release(queue.buffer, queue.capacity);
        }
        queue.in_use = false;
    }
}

/// What the race detector knows it by.
fn key(number: u16) -> usize {
    get(number).map_or(0, |q| q as *const Queue as usize)
}

/// What the running thread has done happens before what is done by whoever reads it.
pub fn release(number: u16) {
    if crate::snapshot::is_taken() && number != 0 {
        races::detector().release_merge(crate::exec::get().current, key(number));
    }
}

pub fn acquire(number: u16) {
    if number != 0 {
        races::acquire(key(number));
    }
}

/// Whoever sees that a description was closed knows what its last user did.
pub fn release_all(of: usize) {
    let d = description(of);
    release(d.inbox);
    release(d.outbox);
}

impl Queue {
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn space(&self) -> usize {
        self.capacity.saturating_sub(self.len)
    }

    fn buffer(&mut self) -> &'static mut [u8] {
        if self.buffer == 0 {
            self.buffer = world::allocate(self.capacity);
        }
        world::bytes(self.buffer, self.capacity)
    }

    /// Another capacity; there must be room for what is in it.
    pub fn resize(&mut self, capacity: usize) {
        let (mut kept, len) = (0, self.len);
        if self.buffer != 0 {
            kept = world::allocate(capacity);
            self.peek(0, world::bytes(kept, len));
            world::release(self.buffer, self.capacity);
        }
        (self.buffer, self.capacity, self.start) = (kept, capacity, 0);
    }

    /// The two parts of the ring that `len` bytes from `from` are in.
    fn parts(&self, from: usize, len: usize) -> [(usize, usize); 2] {
        let at = (self.start + from) % self.capacity.max(1);
        let first = len.min(self.capacity - at);
        [(at, first), (0, len - first)]
    }

    /// Copies bytes out, from `from` on, and leaves them there.
    pub fn peek(&mut self, from: usize, bytes: &mut [u8]) {
        let ring = self.buffer();
        let mut done = 0;
        for (at, len) in self.parts(from, bytes.len()) {
            bytes[done..done + len].copy_from_slice(&ring[at..at + len]);
            done += len;
        }
    }

    /// The same into the program's buffers.
    pub fn copy_to(&mut self, from: usize, len: usize, buffers: &mut Buffers) -> Result<(), isize> {
        let ring = self.buffer();
        for (at, len) in self.parts(from, len) {
            buffers.put(&ring[at..at + len])?;
        }
        Ok(())
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let ring = self.buffer();
        let mut done = 0;
        for (at, len) in self.parts(self.len, bytes.len()) {
            ring[at..at + len].copy_from_slice(&bytes[done..done + len]);
            done += len;
        }
        self.len += bytes.len();
    }

    pub fn push_from(&mut self, len: usize, buffers: &mut Buffers) -> Result<(), isize> {
        let ring = self.buffer();
        for (at, len) in self.parts(self.len, len) {
            buffers.get(&mut ring[at..at + len])?;
        }
        self.len += len;
        Ok(())
    }

    pub fn skip(&mut self, len: usize) {
        self.start = (self.start + len) % self.capacity.max(1);
        self.len -= len;
        self.freed += 1;
        if self.len == 0 {
            self.start = 0;
        }
    }

    /// Bytes that the next read could get: of the first message, or all.
    pub fn next_len(&mut self) -> usize {
        if self.has_messages && self.len > 0 { self.head().0 } else { self.len }
    }

    /// Lengths of the first message and of its sender's address.
    pub fn head(&mut self) -> (usize, usize) {
        let mut head = [0; 8];
        self.peek(0, &mut head);
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
        (word(0), word(4))
    }

    pub fn push_head(&mut self, len: usize, sender: &[u8]) {
        self.push(&(len as u32).to_le_bytes());
        self.push(&(sender.len() as u32).to_le_bytes());
        self.push(sender);
    }
}

/// Length of what stands before a message and its sender's address.
pub const HEAD: usize = 8;

/// A set of queues, as far as they can be told apart.
#[derive(Clone, Copy, Default)]
pub struct Set(u16);

impl Set {
    pub const ALL: Set = Set(u16::MAX);

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// A queue as descriptions keep it.
    pub fn add(&mut self, queue: u16) {
        if let Some(queue) = get(queue) {
            self.add_number(queue.number);
        }
    }

    pub fn add_number(&mut self, number: u8) {
        self.0 |= 1 << (number % NUMBERS as u8);
    }

    pub fn join(&mut self, other: Set) {
        self.0 |= other.0;
    }

    pub fn op(self, kind: OpKind, what: What, fd: usize) -> Op {
        self.op_of(kind, what, Some(fd))
    }

    pub fn op_of(self, kind: OpKind, what: What, fd: Option<usize>) -> Op {
        let [low, high] = self.0.to_le_bytes();
        let first = (ObjectId::channels(0), low);
        let second = (ObjectId::channels(1), high);
        let none = (ObjectId::NONE, 0);
        match (low, high) {
            (_, 0) => turn::op(kind, what, fd, first, none),
            (0, _) => turn::op(kind, what, fd, second, none),
            _ => turn::op(kind, what, fd, first, second),
        }
    }
}
