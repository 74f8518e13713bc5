//! Barriers. The state is in the `pthread_barrier_t` itself; who waits is kept with the threads.
//!
//! `PTHREAD_BARRIER_SERIAL_THREAD` goes to the last to arrive. Arrivals at one barrier depend on each other, so each thread
//! is the last in some execution: nothing is lost by not letting others have it too. If nobody asks for the result, those who come together depend on
//! each other no more, and the last one goes on from there like all others do.

use crate::access;
use crate::end::misuse;
use crate::exec;
use crate::limits::EINVAL;
use crate::names;
use crate::races;
use crate::sched;
use crate::stack;
use symdpor_abi::module::SiteKind;
use symdpor_abi::op::{Op, OpKind};

const BYTES: usize = 32;
const READY: u32 = 0xba44_1e40;
const DESTROYED: u32 = 0xdead_ba44;
const SERIAL_THREAD: i32 = -1;
/// Clocks of the race detector, which generations use in turn.
const CLOCKS: u32 = 32;

#[repr(C)]
struct Barrier {
    count: u32,
    waiting: u32,
    generation: u32,
    mark: u32,
}

#[allow(clippy::mut_from_ref)]
fn at(address: usize) -> &'static mut Barrier {
    // SAFETY: the program says that there is a barrier; a wild pointer faults and is reported as the program's crash.
    unsafe { &mut *(address as *mut Barrier) }
}

fn check(address: usize, what: &str) {
    access::synchronisation_object(address, 4);
    match at(address).mark {
        READY => {}
        DESTROYED => misuse(what),
        _ => misuse("a barrier that was never initialised is used"),
    }
}

pub fn wait(address: usize) -> i32 {
    check(address, "threads wait at a destroyed barrier");
    crate::cycle::enter();
    let asks = !stack::is_at(SiteKind::Meet);
    let kind = if asks { OpKind::BarrierArrive } else { OpKind::BarrierMeet };
    sched::visible(Op::new(kind, names::object(address)), address, 0);
    let barrier = at(address);
    let clock = address + (barrier.generation % CLOCKS) as usize;
    if barrier.waiting == 0 {
        races::release(clock)
    } else {
        races::release_merge(clock)
    }
    barrier.waiting += 1;
    crate::spin::changed();
    if barrier.waiting == barrier.count {
        open(address);
        if asks {
            races::acquire(clock);
            return SERIAL_THREAD;
        }
    } else {
        exec::me().waits_for = address;
    }
    sched::visible(Op::new(OpKind::BarrierPass, names::object(address)), address, 0);
    races::acquire(clock);
    0
}

/// All have arrived.
fn open(address: usize) {
    let barrier = at(address);
    barrier.waiting = 0;
    barrier.generation = barrier.generation.wrapping_add(1);
    if let Some(step) = sched::last_step() {
        step.op.arg = 1;
    }
    let exec = exec::get();
    for thread in &mut exec.threads[..exec.thread_count as usize] {
        if thread.is_alive() && thread.waits_for == address {
            thread.waits_for = 0;
        }
    }
}

pub fn init(address: usize, count: u32) -> i32 {
    if count == 0 || count > i32::MAX as u32 {
        return EINVAL;
    }
    access::write(address, BYTES);
    // SAFETY: the program says that there is room for a barrier.
    unsafe { core::ptr::write_bytes(address as *mut u8, 0, BYTES) };
    (at(address).count, at(address).mark) = (count, READY);
    0
}

pub fn destroy(address: usize) -> i32 {
    check(address, "a destroyed barrier is destroyed again");
    if at(address).waiting > 0 {
        misuse("a barrier that threads wait at is destroyed");
    }
    access::write(address, BYTES);
    at(address).mark = DESTROYED;
    0
}
