//! Footprints: what each new step did besides its visible operation, and what it left of its thread.
//!
//! Steps that repeat the plan leave none, except the last: the controller has seen them. See `symdpor_abi::local`.

use crate::addresses;
use crate::alike;
use crate::cell::Global;
use crate::channel;
use crate::exec;
use crate::limits;
use crate::local::{self, Sink};
use crate::names;
use crate::pool;
use crate::races;
use crate::syscalls;
use crate::thread::Life;
use symdpor_abi::channel::{FOOTPRINTS_BYTES, FOOTPRINTS_OFFSET, Step, options};
use symdpor_abi::local::footprint;
use symdpor_abi::op::OpKind;
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
    /// Who has come to its next operation in the step under way.
    left: [u16; MOST_LEFT],
    left_count: usize,
    fences: [Fence; MOST_FENCES],
    fence_count: usize,
}

/// A fence of the step under way.
#[derive(Clone, Copy)]
struct Fence {
    thread: u16,
    order: u8,
    /// How many accesses had been logged by then.
    added: u32,
    several: bool,
}

/// So many of a thread are told apart in one step, and so many there are of all.
const FENCES_EACH: usize = 4;
const MOST_FENCES: usize = FENCES_EACH * MOST_LEFT;

/// A step's own thread, and one that it has created. More of them are asked for if they are needed.
const MOST_LEFT: usize = 4;

const BEGINNING: State = State {
    on: false,
    first: 0,
    begun: 0,
    ended: 0,
    used: 0,
    identified: false,
    result: None,
    left: [0; MOST_LEFT],
    left_count: 0,
    fences: [Fence { thread: 0, order: 0, added: 0, several: false }; MOST_FENCES],
    fence_count: 0,
};

static STATE: Global<State> = Global::new(BEGINNING);

pub fn reset() {
    *STATE.get() = BEGINNING;
    addresses::reset();
    alike::reset();
    races::detector().log().switch(false);
    plan_is_known();
}

/// Only the steps from the plan's last choice on leave footprints.
pub fn plan_is_known() {
    let state = STATE.get();
    (state.on, state.first) = (channel::says(options::LOCALS), channel::request().plan_len.saturating_sub(1));
}

/// The execution is over.
pub fn finish() {
    channel::header().footprints_len = STATE.get().used as u32;
}

/// Whether the step under way leaves a footprint.
pub fn is_new() -> bool {
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
    alike::runs(thread);
}

/// The step under way, if there is one, has come to its end.
#[inline]
pub fn end_step() {
    let state = STATE.get();
    if !is_new() || state.ended == state.begun {
        return;
    }
    state.ended = state.begun;
    fences();
    accesses();
    leave_local(exec::get().current);
    let left = core::mem::take(&mut state.left_count);
    alike::tell(&state.left[..left]);
    addresses::step_ends();
    let (identified, result) = (core::mem::take(&mut state.identified), state.result.take());
    write(&[footprint::END | (identified as u64) << 8 | (result.is_some() as u64) << 9, result.unwrap_or(0) as u64]);
}

/// The running thread has executed a fence.
pub fn fence(order: u8) {
    if !is_new() {
        return;
    }
    let (state, thread) = (STATE.get(), exec::get().current);
    let own = state.fences[..state.fence_count].iter_mut().filter(|f| f.thread == thread);
    match own.enumerate().last() {
        Some((i, last)) if i + 1 == FENCES_EACH => last.several = true,
        _ => {
            if let Some(room) = state.fences.get_mut(state.fence_count) {
                *room = Fence { thread, order, added: races::detector().log().added(), several: false };
                state.fence_count += 1;
            }
        }
    }
}

fn fences() {
    let state = STATE.get();
    let added = races::detector().log().added();
    for fence in &state.fences[..core::mem::take(&mut state.fence_count)] {
        let (first, last) = (fence.added == 0, fence.added == added);
        write(&[footprint::FENCE
            | (fence.thread as u64) << 8
            | (fence.order as u64) << 24
            | (first as u64) << 32
            | (last as u64) << 33
            | (fence.several as u64) << 34]);
    }
}

fn accesses() {
    let log = races::detector().log();
    for entry in log.entries() {
        let first = footprint::ACCESS
            | (entry.thread as u64) << 8
            | (entry.mask as u64) << 24
            | (entry.write as u64) << 32
            | (entry.granules as u64) << 33;
        write(&[first, names::first_object(entry.granule, entry.granules as usize).0]);
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
    let exec = exec::get();
    let alive = exec.threads[number as usize].life == Life::Alive && exec.pending.contains(number);
    if is_new() && alive {
        let [low, high] = hash(number);
        write(&[footprint::LOCAL | (number as u64) << 8, low, high]);
        let state = STATE.get();
        if let Some(room) = state.left.get_mut(state.left_count) {
            *room = number;
            state.left_count += 1;
        }
        alike::left(number, [low, high]);
    }
}

/// The running thread has asked who it is, or has been named by another.
pub fn identified(number: u16) {
    exec::get().threads[number as usize].identified = true;
    STATE.get().identified |= number == exec::get().current;
}

/// A heap block has been allocated.
pub fn allocated(address: usize, len: usize) {
    if is_new() && address != 0 {
        write(&[footprint::BLOCK, names::object(address).0, len as u64]);
    }
}

/// The result of the join under way is used.
pub fn result(value: usize) {
    STATE.get().result = Some(value);
}

pub fn write(words: &[u64]) {
    let state = STATE.get();
    let len = 8 * words.len();
    if state.used + len > FOOTPRINTS_BYTES {
        return;
    }
    let target = (channel::region(FOOTPRINTS_OFFSET) + state.used) as *mut u64;
    // SAFETY: within the region, as checked.
    unsafe { core::ptr::copy_nonoverlapping(words.as_ptr(), target, words.len()) };
    state.used += len;
}

/// The hash of a thread's local state; zero if it is like no other.
fn hash(number: u16) -> [u64; 2] {
    if local::is_at_plain_access(number) {
        return chained(number).unwrap_or([0; 2]);
    }
    let mut hash = Hash { number, lanes: Lanes::new(), exact: None };
    if channel::says(options::VISIBLE_ALL) {
        hash.exact = Some(Lanes::new());
    }
    let walked = local::walk(number, &mut hash);
    if let Some(exact) = hash.exact {
        let thread = &mut exec::get().threads[number as usize];
        thread.chain = if walked.is_ok() { exact.finish() } else { [0; 2] };
        // What it still knows of that is part of its local state.
        thread.learnt = 0;
    }
    if walked.is_ok() { hash.lanes.finish() } else { [0; 2] }
}

/// The same of a thread that has not moved for some time. Leaves nothing behind.
pub fn hash_again(number: u16) -> [u64; 2] {
    if local::is_at_plain_access(number) {
        return chained(number).unwrap_or([0; 2]);
    }
    let mut hash = Hash { number, lanes: Lanes::new(), exact: None };
    if local::walk(number, &mut hash).is_ok() { hash.lanes.finish() } else { [0; 2] }
}

/// The local state of a thread that stands before a plain access, where it is not known what is live: what it was when that was
/// last known, and what it has read since. None if it was not known then, or is like no other.
pub fn chained(number: u16) -> Option<[u64; 2]> {
    let thread = &exec::get().threads[number as usize];
    local::is_plain(thread).ok()?;
    let mut lanes = Lanes(thread.chain);
    // What it has got elsewhere since then.
    lanes.add(thread.learnt);
    lanes.add(limits::last_told_to(number));
    lanes.add(local::floating_point(number));
    lanes.add(thread.stack as u64);
    syscalls::of_thread(number as usize).into_iter().for_each(|word| lanes.add(word));
    let op = &thread.pending;
    lanes.add(op.kind as u64 | (op.mask as u64) << 8);
    lanes.add(if op.object.region() as u8 == 3 {
        op.object.payload() - pool::base(number as usize) as u64
    } else {
        op.object.0
    });
    (thread.chain != [0; 2]).then(|| lanes.finish())
}

/// Where a thread begins.
pub fn chain_of_start(start: usize, argument: usize) -> [u64; 2] {
    let mut lanes = Lanes::new();
    lanes.add(start as u64);
    lanes.add(argument as u64);
    lanes.finish()
}

/// The running thread is about to read memory by a visible plain access.
pub fn read(address: usize, len: usize) {
    let thread = exec::me();
    if thread.chain != [0; 2] {
        let mut lanes = Lanes(thread.chain);
        local::for_each_word(address, len, |word| lanes.add(word));
        thread.chain = lanes.finish();
    }
}

/// With visible plain accesses: what a thread learnt by an operation that is none of them.
pub fn learn(step: &Step) {
    let thread = &mut exec::get().threads[step.thread as usize];
    if thread.chain == [0; 2] || matches!(step.op.kind, OpKind::PlainLoad | OpKind::PlainStore) {
        return;
    }
    // Of more than eight bytes only some are known. What a section did is not known at all.
    if step.op.object2.0 != 0 || step.op.kind == OpKind::AtomicSection {
        thread.chain = [0; 2];
        return;
    }
    let mut lanes = Lanes(thread.chain);
    lanes.add(step.op.kind as u64 | (step.alternative as u64) << 8);
    lanes.add(step.old_value);
    lanes.add(thread.learnt);
    thread.chain = lanes.finish();
}

/// The running thread got a value from a function that is not instrumented.
pub fn learnt(value: usize) {
    let thread = exec::me();
    thread.learnt = (thread.learnt.rotate_left(7) ^ value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
}

/// Two independent lanes of 64 bits.
#[derive(Clone, Copy)]
pub struct Lanes([u64; 2]);

impl Lanes {
    pub const fn new() -> Lanes {
        Lanes([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344])
    }

    #[inline]
    pub fn add(&mut self, word: u64) {
        const KEYS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];
        for (lane, key) in self.0.iter_mut().zip(KEYS) {
            let product = (lane.rotate_left(23) ^ word).wrapping_add(key) as u128 * (key | 1) as u128;
            *lane = product as u64 ^ (product >> 64) as u64;
        }
    }

    /// An address on the stack of the thread that is walked over: as an object and an offset, or as an offset alone.
    #[inline]
    pub fn add_own(&mut self, number: u16, address: usize) {
        match local::layout().find(address) {
            Some((index, offset)) => {
                self.add(2);
                self.add((index as u64) << 32 | offset as u64);
            }
            None => {
                self.add(4);
                self.add((address - pool::base(number as usize)) as u64);
            }
        }
    }

    /// Zero is no local state.
    pub fn finish(self) -> [u64; 2] {
        self.0.map(|w| w | 1)
    }
}

/// Hashes a local state. Addresses on the own stack are offsets; on the heap all are alike, since they may be of the thread's
/// own blocks: threads that differ in nothing else are looked at more closely (`memory`).
struct Hash {
    number: u16,
    lanes: Lanes,
    /// The same with addresses on the heap as they are, and on the stack by their distance from its beginning.
    exact: Option<Lanes>,
}

impl Sink for Hash {
    #[inline]
    fn code(&mut self, word: u64) {
        self.lanes.add(word);
        if let Some(exact) = &mut self.exact {
            exact.add(word);
        }
    }

    #[inline]
    fn word(&mut self, word: u64) {
        let address = word as usize;
        if let Some(exact) = &mut self.exact {
            let own = pool::on_stack(self.number as usize, address);
            exact.add(own as u64);
            exact.add(if own { (address - pool::base(self.number as usize)) as u64 } else { word });
        }
        if pool::on_stack(self.number as usize, address) {
            self.lanes.add_own(self.number, address);
        } else {
            self.lanes.add(if Heap::contains(address) { 3 } else { word });
        }
    }
}
