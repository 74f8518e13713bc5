//! Footprints: what each new step did besides its visible operation, and what it left of its thread.
//!
//! Steps that repeat the plan leave none, except the last: the controller has seen them. See `symdpor_abi::local`.

use crate::cell::Global;
use crate::channel;
use crate::exec;
use crate::local::{self, Sink};
use crate::names;
use crate::pool;
use crate::races;
use crate::thread::Life;
use symdpor_abi::channel::{FOOTPRINTS_BYTES, FOOTPRINTS_OFFSET, options};
use symdpor_abi::local::footprint;
use symdpor_detect::heap::Heap;

/// Reset with every execution.
struct State {
    on: bool,
    /// The first step to leave a footprint.
    first: usize,
    /// Steps that have begun, and ended.
    begun: usize,
    ended: usize,
    used: usize,
    identified: bool,
    result: Option<usize>,
}

static STATE: Global<State> =
    Global::new(State { on: false, first: 0, begun: 0, ended: 0, used: 0, identified: false, result: None });

pub fn reset() {
    let first = (channel::header().plan_len as usize).saturating_sub(1);
    let on = channel::says(options::LOCALS);
    *STATE.get() = State { on, first, begun: 0, ended: 0, used: 0, identified: false, result: None };
    channel::header().footprints_len = 0;
    channel::header().wanted_len = 0;
    channel::header().memory_len = 0;
    races::detector().log().switch(false);
}

fn is_new() -> bool {
    let state = STATE.get();
    state.on && state.begun > state.first
}

/// A step of the thread begins.
#[inline]
pub fn begin_step(thread: u16) {
    let state = STATE.get();
    state.begun += 1;
    if !is_new() {
        return;
    }
    let detector = races::detector();
    if !detector.log().is_on() {
        detector.log().switch(true);
    }
    detector.new_epoch(thread);
}

/// The step under way, if there is one, has come to its end.
#[inline]
pub fn end_step() {
    let state = STATE.get();
    if !is_new() || state.ended == state.begun {
        return;
    }
    state.ended = state.begun;
    accesses();
    leave_local(exec::get().current);
    let (identified, result) = (core::mem::take(&mut state.identified), state.result.take());
    write(&[footprint::END | (identified as u64) << 8 | (result.is_some() as u64) << 9, result.unwrap_or(0) as u64]);
}

fn accesses() {
    let log = races::detector().log();
    for entry in log.entries() {
        let first = footprint::ACCESS
            | (entry.thread as u64) << 8
            | (entry.mask as u64) << 24
            | (entry.write as u64) << 32
            | (entry.granules as u64) << 33;
        write(&[first, names::object(entry.granule).0]);
    }
    if log.is_full() {
        // Anything.
        let thread = exec::get().current as u64;
        write(&[footprint::ACCESS | thread << 8 | 0xff << 24 | 1 << 32 | 1 << 33, 0]);
    }
    log.clear();
}

/// Tells the local state of a thread that has come to its next operation.
pub fn leave_local(number: u16) {
    let thread = &exec::get().threads[number as usize];
    if !is_new() || thread.life != Life::Alive || !thread.has_pending {
        return;
    }
    let (exact, shape) = hash(number);
    write(&[footprint::LOCAL | (number as u64) << 8, exact[0], exact[1], shape[0], shape[1]]);
}

/// The running thread has asked who it is, or has been named by another.
pub fn identified(number: u16) {
    exec::get().threads[number as usize].identified = true;
    STATE.get().identified |= number == exec::get().current;
}

/// The result of the join under way is used.
pub fn result(value: usize) {
    STATE.get().result = Some(value);
}

fn write(words: &[u64]) {
    let state = STATE.get();
    let len = 8 * words.len();
    if state.used + len > FOOTPRINTS_BYTES {
        return;
    }
    let target = (channel::region(FOOTPRINTS_OFFSET) + state.used) as *mut u64;
    // SAFETY: within the region, as checked.
    unsafe { core::ptr::copy_nonoverlapping(words.as_ptr(), target, words.len()) };
    state.used += len;
    channel::header().footprints_len = state.used as u32;
}

/// Both hashes of a thread's local state; zero if it is like no other.
pub fn hash(number: u16) -> ([u64; 2], [u64; 2]) {
    let mut hash = Hash::new(number);
    match local::walk(number, &mut hash) {
        Ok(()) => hash.finish(),
        Err(_) => ([0; 2], [0; 2]),
    }
}

/// The blocks that a thread's local state leads to and that may be its alone.
pub fn blocks(number: u16) -> Blocks {
    let mut hash = Hash::new(number);
    if local::walk(number, &mut hash).is_err() {
        return Blocks::new();
    }
    hash.contents();
    hash.blocks
}

/// Two independent lanes of 64 bits.
#[derive(Clone, Copy)]
struct Lanes([u64; 2]);

impl Lanes {
    #[inline]
    fn add(&mut self, word: u64) {
        const KEYS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];
        for (lane, key) in self.0.iter_mut().zip(KEYS) {
            let product = (lane.rotate_left(23) ^ word).wrapping_add(key) as u128 * (key | 1) as u128;
            *lane = product as u64 ^ (product >> 64) as u64;
        }
    }
}

/// Hashes a local state, with addresses on the own stack as offsets. Blocks that may be the thread's own are numbered in the
/// shape, and their contents follow.
struct Hash {
    number: u16,
    stack: usize,
    exact: Lanes,
    shape: Lanes,
    blocks: Blocks,
}

impl Hash {
    fn new(number: u16) -> Hash {
        let lanes = Lanes([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]);
        Hash { number, stack: pool::base(number as usize), exact: lanes, shape: lanes, blocks: Blocks::new() }
    }

    fn both(&mut self, word: u64) {
        self.exact.add(word);
        self.shape.add(word);
    }

    /// The contents of the blocks, which may lead to others.
    fn contents(&mut self) {
        let mut next = 0;
        while next < self.blocks.count {
            let (base, size) = self.blocks.list[next];
            self.shape.add(size as u64);
            local::for_each_word(base, size, |word| self.shape_word(word));
            next += 1;
        }
    }

    fn finish(mut self) -> ([u64; 2], [u64; 2]) {
        self.contents();
        // Zero is no local state.
        (self.exact.0.map(|w| w | 1), self.shape.0.map(|w| w | 1))
    }

    fn shape_word(&mut self, word: u64) {
        let address = word as usize;
        if pool::on_stack(self.number as usize, address) {
            self.shape.add(2);
            self.shape.add((address - self.stack) as u64);
        } else if let Some((index, offset)) = self.blocks.find(self.number, address) {
            self.shape.add(3);
            self.shape.add((index as u64) << 32 | offset as u64);
        } else {
            self.shape.add(word);
        }
    }
}

impl Sink for Hash {
    fn code(&mut self, word: u64) {
        self.both(word);
    }

    fn word(&mut self, word: u64) {
        let address = word as usize;
        if pool::on_stack(self.number as usize, address) {
            self.both(2);
            self.both((address - self.stack) as u64);
            return;
        }
        self.exact.add(word);
        self.shape_word(word);
    }
}

/// Heap blocks that a thread's local state leads to and that may be its alone: the one it was given at its start, and those
/// that it has allocated itself.
pub struct Blocks {
    pub list: [(usize, usize); Blocks::MOST],
    pub count: usize,
    bytes: usize,
}

impl Blocks {
    pub const MOST: usize = 16;
    /// Larger ones, or more, stand for themselves.
    const BYTES: usize = 4096;

    pub const fn new() -> Blocks {
        Blocks { list: [(0, 0); Blocks::MOST], count: 0, bytes: 0 }
    }

    /// The number of the block that an address is in, and the offset there.
    pub fn find(&mut self, thread: u16, address: usize) -> Option<(usize, usize)> {
        if !Heap::contains(address) {
            return None;
        }
        let known = self.list[..self.count].iter().position(|&(base, size)| address.wrapping_sub(base) < size.max(1));
        if let Some(index) = known {
            return Some((index, address - self.list[index].0));
        }
        let block = exec::get().heap.live_block(address)?;
        let given = exec::get().threads[thread as usize].argument.wrapping_sub(block.base) < block.size.max(1);
        if !(given || block.thread == thread) || self.count == Blocks::MOST || self.bytes + block.size > Blocks::BYTES {
            return None;
        }
        self.list[self.count] = (block.base, block.size);
        self.count += 1;
        self.bytes += block.size;
        Some((self.count - 1, address - block.base))
    }
}
