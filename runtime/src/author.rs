//! What the program asks of symdpor itself: choices, assumptions, names, errors. See `symdpor_abi::author`.

use crate::channel;
use crate::cycle;
use crate::end::{self, Details};
use crate::exec;
use crate::library;
use crate::sched;
use crate::section;
use crate::syscalls;
use symdpor_abi::author::{Author, NONDET, NONDET_PREFIX};
use symdpor_abi::channel::{ErrorKind, Outcome, options};
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind};

/// The plan has that many bits for it.
const MOST_WAYS: u64 = u16::MAX as u64;

pub fn asked(what: u32, value: u64) -> u64 {
    match Author::from_u32(what) {
        Some(Author::Choose) => return choose(value & 0xffff_ffff),
        Some(Author::Assume) => assume(value != 0),
        Some(Author::AtomicBegin) => section::begin(),
        Some(Author::AtomicEnd) => section::end(),
        Some(Author::Yield) => sched::give_way(),
        Some(Author::ThreadName) => name_thread(value as usize),
        Some(Author::Error) => end::error(
            ErrorKind::Assertion,
            &Details::at(0),
            format_args!("reach_error() or __VERIFIER_error() is called"),
        ),
        Some(Author::Nondet) => return nondet(value as usize),
        None => {}
    }
    0
}

/// One of so many ways: each is explored.
fn choose(ways: u64) -> u64 {
    if ways == 0 || ways > MOST_WAYS {
        end::unsupported(format_args!(
            "symdpor_choose({ways}): there must be between 1 and {MOST_WAYS} values to choose from"
        ));
    }
    if ways == 1 {
        return 0;
    }
    cycle::enter();
    let mut op = Op::new(OpKind::Choose, ObjectId::NONE);
    op.arg = ways as u32;
    op.order = if exec::get().section > 0 { 0 } else { 5 };
    let way = sched::visible(op, 0, 0);
    sched::chose(way);
    way as u64
}

/// A thread whose assumption does not hold waits for ever, and what the others do meanwhile is as if it had been slow. Within
/// an atomic section others would see what they never can, so that the execution ends there.
fn assume(holds: bool) {
    if holds {
        return;
    }
    cycle::enter();
    if exec::get().section > 0 {
        end::finish(Outcome::DroppedHere);
    }
    let me = exec::me();
    me.dropped = true;
    // Like no other thread: it never goes on.
    me.held += 1;
    loop {
        sched::block();
    }
}

/// Whether some thread's assumption does not hold.
pub fn is_dropped() -> bool {
    let exec = exec::get();
    exec.threads[..exec.thread_count as usize].iter().any(|t| t.is_alive() && t.dropped)
}

fn name_thread(name: usize) {
    if name == 0 {
        return;
    }
    let len = library::text_length(name).min(syscalls::NAME_BYTES - 1);
    let mut kept = [0; syscalls::NAME_BYTES];
    // SAFETY: the string has at least that many bytes.
    kept[..len].copy_from_slice(unsafe { core::slice::from_raw_parts(name as *const u8, len) });
    syscalls::set_name(exec::get().current as usize, kept);
}

/// A number of a type, from the range that was given, as far as the type has it.
fn nondet(index: usize) -> u64 {
    let Some(&(name, bits, signed)) = NONDET.get(index) else { return 0 };
    if bits == 1 {
        return choose(2);
    }
    if bits == 0 {
        end::unsupported(format_args!("the program calls {NONDET_PREFIX}{name}(); only numbers can be tried"));
    }
    if !channel::says(options::NONDET) {
        end::unsupported(format_args!(
            "the program calls {NONDET_PREFIX}{name}(); give the range of numbers to try with --nondet LO..HI"
        ));
    }
    let (lowest, highest) = match (bits, signed) {
        (64, true) => (i64::MIN, i64::MAX),
        (64, false) => (0, i64::MAX),
        (_, true) => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
        (_, false) => (0, (1i64 << bits) - 1),
    };
    let low = channel::header().nondet_low.max(lowest);
    let high = channel::header().nondet_high.min(highest);
    if low > high {
        end::unsupported(format_args!("{NONDET_PREFIX}{name}(): the type has no number in the range of --nondet"));
    }
    let ways = (high as i128 - low as i128 + 1) as u64;
    low.wrapping_add(choose(ways) as i64) as u64
}
