//! The earlier access of a data race: found by running the same plan again and noting the stack of each access to the
//! granule, so that ordinary executions need not keep stacks.

use crate::cell::Global;
use crate::channel;
use crate::end::Details;
use crate::exec;
use crate::names;
use crate::stack::Stack;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::channel::options;

/// Per thread: the last read and the last write of the watched granule, plain and atomic. A plain access races though
/// atomic ones of the same thread came after it.
static LAST: Global<[[Stack; 4]; MAX_THREADS]> = Global::new([[Stack::EMPTY; 4]; MAX_THREADS]);

fn kind(writes: bool, atomic: bool) -> usize {
    usize::from(writes) | usize::from(atomic) << 1
}

pub fn is_on() -> bool {
    channel::says(options::WATCH)
}

/// Notes an access of the running thread if it touches the watched granule.
pub fn note(address: usize, len: usize, writes: bool, atomic: bool, site: usize) {
    let watched = channel::header().watch;
    let first = address & !7;
    let granules = ((address + len.max(1) - 1 - first) / 8 + 1).min(1 << 20);
    let mask = (channel::request().options >> options::WATCH_MASK_SHIFT) as u8;
    let touches = |granule: usize| {
        let (from, to) = (address.max(granule), (address + len.max(1)).min(granule + 8));
        mask == 0 || names::mask(from, to - from) & mask != 0
    };
    if (0..granules).map(|i| first + 8 * i).any(|g| names::object(g).0 == watched && touches(g)) {
        LAST.get()[exec::get().current as usize % MAX_THREADS][kind(writes, atomic)] = Stack::here(site);
    }
}

/// The stack of the earlier access that a race tells of.
pub fn earlier(details: &Details) -> Option<&'static Stack> {
    if !is_on() || details.other_thread as usize >= MAX_THREADS {
        return None;
    }
    let (writes, atomic) = (details.access_bits & 2 != 0, details.access_bits & 8 != 0);
    let stack = &LAST.get()[details.other_thread as usize][kind(writes, atomic)];
    (stack.len > 0).then_some(stack)
}

pub fn reset() {
    if is_on() {
        LAST.get().iter_mut().flatten().for_each(|stack| stack.len = 0);
    }
}
