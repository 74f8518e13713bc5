//! Threads that spin: blocked until something that they read changes.
//!
//! When a thread comes round to the same point with the same local state, having changed nothing that others can see,
//! running on is pointless: it would do exactly the same again until another thread writes to what it read. Its local
//! state is the code that it has left and what is live there (`local`); where that is not known, as in frames of code that was not
//! instrumented, its callee-saved registers and its whole stack (all other registers are dead at a hook, which is a call).
//! Either is compared by a hash. A loop whose state never repeats (a counter that is live) is not recognised and simply runs on.
//!
//! Reset, because something may have changed or cannot be known:
//! - the thread stored to memory other than its own stack, allocated, made a system call, took or released anything,
//! - it called code that may not be instrumented (`Hooks::outside`).
//!
//! Another thread that writes to what it has read lets it go on. Its turn is *outdated* then: it may end otherwise the next time, but if it comes
//! round once more, having changed nothing, all that it did in the meantime could as well be left out.

use crate::end;
use crate::exec;
use crate::footprint::Lanes;
use crate::limits;
use crate::local::{self, Exact, Why};
use crate::names;
use crate::pool;
use crate::stack;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::channel::Outcome;

const MAX_SEEN: usize = 8;
const MAX_READS: usize = 12;
/// In place of reads that others have written to.
const WRITTEN: (usize, usize) = (usize::MAX, 0);
/// Deeper stacks are not looked at.
const MAX_STACK: usize = 256 << 10;

/// How much of the stack below the stack pointer is wiped when the runtime returns to a thread that may be spinning. The
/// runtime works on the thread's own stack, and leaves there what differs from execution to execution (clocks, the plan). A
/// function that is called next, and called anew in each turn of a loop, may have it in slots that it never writes.
pub const WIPED: usize = 4096;

/// All zero: nothing is known.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Spin {
    seen_count: u8,
    read_count: u8,
    /// Blocked.
    waits: bool,
    /// Which of the local states is that at the operation that it stands before, if it came there on a cycle: one more than the
    /// number; 0 once it has gone on from there.
    here: u8,
    /// It waits, and has made plain accesses in its turn that may make a difference: see [`touched`].
    turn_touched: bool,
    /// How many those were, since it last changed anything, and up to each of the local states.
    touches: u32,
    touches_before: [u32; MAX_SEEN],
    /// Local states at the operations since the last change. Of the first ones what was read has been written by others.
    seen: [u64; MAX_SEEN],
    outdated_count: u8,
    /// Whether it stands before an operation in a state that it has been in.
    is_round: bool,
    /// What was read since then: address, length. If only the first is there and nothing, it is what others have written to.
    reads: [(usize, usize); MAX_READS],
}

/// Part of [`exec::Exec`], by thread.
pub type Spins = [Spin; MAX_THREADS];

#[inline(always)]
fn mine() -> &'static mut Spin {
    let exec = exec::get();
    &mut exec.spins[exec.current as usize % MAX_THREADS]
}

impl Spin {
    #[inline(always)]
    fn is_idle(&self) -> bool {
        self.read_count > 0
    }

    fn reset(&mut self) {
        if self.is_idle() {
            exec::get().idle_threads -= 1;
        }
        self.seen_count = 0;
        self.read_count = 0;
        self.waits = false;
        self.here = 0;
        self.turn_touched = false;
        self.outdated_count = 0;
        self.is_round = false;
    }

    /// Another thread wrote to what was read: as if it had only just come to its operation.
    fn begin_anew(&mut self) {
        let here = (self.here as usize).checked_sub(1).map(|i| self.seen[i]);
        (self.waits, self.is_round, self.turn_touched) = (false, false, false);
        (self.reads[0], self.read_count) = (WRITTEN, 1);
        self.outdated_count = self.seen_count;
        self.here = 0;
        if let Some(state) = here {
            self.add(state);
            self.here = self.seen_count;
        }
    }

    /// It stands before an operation in a state that is to be compared with the next.
    fn arrived(&mut self, state: Option<u64>) {
        (self.seen_count, self.outdated_count, self.is_round) = (0, 0, false);
        if let Some(state) = state {
            self.add(state);
        }
        self.here = self.seen_count;
    }

    fn add(&mut self, state: u64) {
        if self.seen_count as usize == MAX_SEEN {
            let kept = self.outdated_count as usize % MAX_SEEN..MAX_SEEN;
            self.seen.copy_within(kept.clone(), 0);
            self.touches_before.copy_within(kept.clone(), 0);
            // Without any that are outdated it begins anew.
            self.seen_count = if self.outdated_count == 0 { 0 } else { kept.len() as u8 % MAX_SEEN as u8 };
            self.outdated_count = 0;
        }
        self.seen[self.seen_count as usize] = state;
        self.touches_before[self.seen_count as usize] = self.touches;
        self.seen_count += 1;
    }

    /// What it waits for: part of the thread's local state. How far the turns of one that does not wait have been followed decides only
    /// when it is noticed that it spins.
    pub fn for_each_word(&self, mut each: impl FnMut(u64)) {
        each(self.waits as u64);
        let reads = if self.waits { self.reads() } else { &[] };
        reads.iter().for_each(|&(address, len)| each((address as u64) << 8 | len as u64));
    }

    fn reads(&self) -> &[(usize, usize)] {
        let reads = &self.reads[..self.read_count as usize];
        reads.strip_prefix(&[WRITTEN]).unwrap_or(reads)
    }
}

/// Whether the last operations of the running thread only read.
pub fn is_idle() -> bool {
    mine().is_idle()
}

/// Wipes the stack below the caller: see [`WIPED`].
#[inline(always)]
pub fn wipe() {
    if is_idle() {
        wipe_below();
    }
}

/// The same whatever the thread does.
#[inline(always)]
pub fn wipe_below() {
    // SAFETY: writes only below the stack pointer, where the compiler keeps nothing across an assembly block that may
    // use the stack.
    unsafe {
        core::arch::asm!(
            "lea rdi, [rsp - {wiped}]",
            "rep stosq",
            wiped = const WIPED,
            inout("rcx") WIPED / 8 => _,
            in("rax") 0usize,
            out("rdi") _,
        );
    }
}

/// The running thread changed something.
#[inline(always)]
pub fn changed() {
    crate::repeat::forget();
    went_on();
}

fn went_on() {
    let spin = mine();
    if spin.is_idle() || spin.seen_count != 0 {
        spin.reset();
    }
}

/// The running thread stored to memory: its own stack is part of the state that is compared.
#[inline(always)]
pub fn stored(address: usize) {
    let exec = exec::get();
    let idle = mine().is_idle();
    if (idle || limits::watches()) && !on_own_stack(exec.current, address) {
        if idle {
            mine().reset();
        }
        limits::changed();
    }
}

/// Whether an address is on a thread's stack.
pub fn on_own_stack(thread: u16, address: usize) -> bool {
    if thread == 0 { names::main_stack().contains(&address) } else { pool::on_stack(thread as usize, address) }
}

/// The running thread has made a plain access that is more than a repetition.
#[inline]
pub fn touched() {
    let spin = mine();
    if spin.is_idle() {
        spin.touches = spin.touches.wrapping_add(1);
    }
}

/// Whether the turn with which a thread has come round had no such access in any of its steps.
pub fn turn_is_pure(number: u16) -> bool {
    !exec::get().spins[number as usize % MAX_THREADS].turn_touched
}

/// The running thread's operation only read.
pub fn read(address: usize, len: usize) {
    let spin = mine();
    (spin.here, spin.is_round) = (0, false);
    if spin.reads().contains(&(address, len)) {
        return;
    }
    if spin.read_count as usize == MAX_READS {
        spin.reset();
    }
    if !spin.is_idle() {
        exec::get().idle_threads += 1;
    }
    spin.reads[spin.read_count as usize] = (address, len);
    spin.read_count += 1;
}

/// The running thread's operation wrote: those who wait for it go on, and so may it.
pub fn wrote(address: usize, len: usize) {
    went_on();
    let exec = exec::get();
    if exec.idle_threads == 0 {
        return;
    }
    for spin in &mut exec.spins[..exec.thread_count as usize] {
        let touched = spin.reads().iter().any(|&(a, l)| address < a + l && a < address + len);
        if touched {
            spin.begin_anew();
        }
    }
}

/// The running thread is about to do an operation that may only read; `registers` is the address of its saved registers, with
/// its stack above them, `site` where it is, if it is known what is live there, `in_loop` whether it may come back there soon: then the
/// first turn is compared already. Decides whether it has to wait.
pub fn arrive(registers: usize, site: Option<usize>, in_loop: bool) {
    let exec = exec::get();
    if core::mem::take(&mut exec.outside) != 0 {
        changed();
    }
    let current = exec.current;
    let spin = mine();
    if !spin.is_idle() {
        return spin.arrived(site.filter(|_| in_loop).and_then(|site| live_state(current, site)));
    }
    let Some(state) = site.and_then(|site| live_state(current, site)).or_else(|| local_state(current, registers))
    else {
        return;
    };
    let on_cycle = |count: u8| if in_loop { count } else { 0 };
    spin.is_round = false;
    if let Some(index) = spin.seen[..spin.seen_count as usize].iter().rposition(|s| *s == state) {
        spin.turn_touched = spin.touches != spin.touches_before[index];
        spin.is_round = true;
        if index >= spin.outdated_count as usize {
            (spin.waits, spin.here) = (true, on_cycle(index as u8 + 1));
            return;
        }
    }
    spin.add(state);
    spin.here = on_cycle(spin.seen_count);
}

/// A hash of what is live of a thread that stands before an operation, if that is known.
fn live_state(thread: u16, site: usize) -> Option<u64> {
    let mut exact = Exact(Lanes::new());
    exec::me().pending_site = stack::innermost(site);
    match local::walk_frames(thread, &mut exact) {
        Ok(()) => Some(exact.0.finish()[0]),
        // The controller tells what is missing, and this execution is run again.
        Err(Why::Unknown) => end::finish(Outcome::Asked),
        Err(_) => None,
    }
}

/// A hash of everything from `registers` to the bottom of the thread's stack.
fn local_state(thread: u16, registers: usize) -> Option<u64> {
    stack_words(thread, registers).map(|words| hash(registers as u64, words))
}

/// A thread's stack from an address on, if it is not too deep.
pub fn stack_words(thread: u16, registers: usize) -> Option<&'static [u64]> {
    let end = if thread == 0 { names::main_stack().end } else { pool::slot(thread as usize)?.sp & !7 };
    let len = end.checked_sub(registers).filter(|&len| len <= MAX_STACK)?;
    // SAFETY: between the stack pointer and the bottom of the same stack.
    Some(unsafe { core::slice::from_raw_parts(registers as *const u64, len / 8) })
}

/// In four lanes, since each step of one has to wait for the one before.
fn hash(seed: u64, words: &[u64]) -> u64 {
    let mix = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    };
    let mut lanes = [seed, 1, 2, 3];
    let (fours, rest) = words.as_chunks::<4>();
    for four in fours {
        for (lane, &word) in lanes.iter_mut().zip(four) {
            *lane = mix(*lane, word);
        }
    }
    rest.iter().chain(&lanes[1..]).fold(lanes[0], |hash, &word| mix(hash, word))
}

/// Whether a thread has come round to where it was, having changed nothing: it waits, or its turn is outdated.
pub fn is_round(number: u16) -> bool {
    exec::get().spins[number as usize % MAX_THREADS].is_round
}

/// Whether a thread waits for something that it read to change.
pub fn waits(number: u16) -> bool {
    exec::get().spins[number as usize % MAX_THREADS].waits
}

/// The first thread that spins, if any does.
pub fn spinner() -> Option<u16> {
    let exec = exec::get();
    (0..exec.thread_count).find(|&n| exec.threads[n as usize].is_alive() && exec.pending.contains(n) && waits(n))
}
