//! Questions that depend on where memory is: which of two addresses is the higher one, and what the bits of one come to. Exchanging two
//! threads exchanges what they have allocated, so it is told with the step whose memory was concerned (`symdpor_abi::local::footprint::ORDERED`).
//!
//! Nothing is told of addresses within one block, or on one stack: everything there is where it is for any other thread. How the heap, the
//! stacks and the modules lie to each other is the same for all.

use crate::cell::Global;
use crate::exec;
use crate::footprint;
use crate::names;
use crate::pool;
use symdpor_abi::local::footprint::ORDERED;
use symdpor_abi::module::HASHED;
use symdpor_detect::heap::Heap;

/// Blocks that are remembered: to find one takes the longer the larger it is.
const BLOCKS: usize = 8;
const MOST_TOLD: usize = 16;

/// Of the running execution.
struct State {
    /// Where blocks begin and end that have been asked about, none of which has been freed since. The last ones, at the places of their numbers.
    blocks: [(usize, usize); BLOCKS],
    block_count: usize,
    /// What has been told of in the step under way, likewise.
    told: [usize; MOST_TOLD],
    told_count: usize,
}

const NOWHERE: (usize, usize) = (1, 0);
const BEGINNING: State = State { blocks: [NOWHERE; BLOCKS], block_count: 0, told: [0; MOST_TOLD], told_count: 0 };

static STATE: Global<State> = Global::new(BEGINNING);

pub fn reset() {
    *STATE.get() = BEGINNING;
}

pub fn step_ends() {
    let state = STATE.get();
    if core::mem::take(&mut state.told_count) > 0 {
        state.told = [0; MOST_TOLD];
    }
}

/// A heap block is freed.
pub fn freed() {
    let state = STATE.get();
    if core::mem::take(&mut state.block_count) > 0 {
        state.blocks = [NOWHERE; BLOCKS];
    }
}

/// It is asked which of two addresses is the higher one, or, if the second is [`HASHED`], the first is hashed.
#[inline]
pub fn compared(one: usize, other: usize) {
    if footprint::is_new() {
        look(one, other);
    }
}

#[inline(never)]
fn look(one: usize, other: usize) {
    if other == HASHED as usize {
        return tell(one);
    }
    let on_stack = |address: usize| pool::STACKS.contains(&address);
    let is_one = match (on_stack(one), on_stack(other)) {
        (true, true) => pool::number_at(one) == pool::number_at(other),
        (false, false) if Heap::contains(one) && Heap::contains(other) => within(one, other),
        _ => true,
    };
    if !is_one {
        tell(one);
        tell(other);
    }
}

/// Whether one of two addresses is in the block of the other. Just behind a block is in it still.
fn within(one: usize, other: usize) -> bool {
    let holds = |(start, end): (usize, usize)| (start..=end).contains(&one) && (start..=end).contains(&other);
    let known = STATE.get().blocks.into_iter().any(holds);
    known || holds(block(one)) || holds(block(other))
}

/// Where the live block that an address is in begins and ends: at the address, if there is none.
fn block(address: usize) -> (usize, usize) {
    let state = STATE.get();
    if let Some(known) = state.blocks.iter().find(|(start, end)| (*start..*end).contains(&address)) {
        return *known;
    }
    let Some(block) = exec::get().heap.live_block(address) else { return (address, address) };
    let found = (block.base, block.base + block.size);
    state.blocks[state.block_count % BLOCKS] = found;
    state.block_count += 1;
    found
}

/// Tells whose memory it is that an address lies in, and where that begins.
fn tell(address: usize) {
    let (owner, start) = if pool::STACKS.contains(&address) {
        (pool::number_at(address), address)
    } else if Heap::contains(address) {
        let (start, _) = block(address);
        (Heap::arena_of(start).into(), start)
    } else {
        return;
    };
    let state = STATE.get();
    if !state.told.contains(&start) {
        state.told[state.told_count % MOST_TOLD] = start;
        state.told_count += 1;
        footprint::write(&[ORDERED | (owner as u64) << 8, names::object(start).0]);
    }
}
