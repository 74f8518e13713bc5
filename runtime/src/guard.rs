//! Guards of C++ function-local statics (`__cxa_guard_*`).
//!
//! Byte 0 of the guard says that the static is initialised: compiled code reads it with an acquiring atomic load and calls
//! the library only if it is 0. Byte 1 says that a thread is initialising. The library's own version is not instrumented,
//! so its release would be missed, and it waits with a futex.

use crate::access;
use crate::exec;
use crate::names;
use crate::races;
use crate::sched;
use crate::snapshot;
use symdpor_abi::op::{Op, OpKind};

const RELEASE: u8 = 3;
const BUSY: usize = 1;

fn byte(guard: usize, index: usize) -> &'static mut u8 {
    // SAFETY: the compiler passes the address of an eight-byte guard.
    unsafe { &mut *((guard + index) as *mut u8) }
}

/// The operation on one byte of the guard.
fn visible(kind: OpKind, guard: usize, index: usize) {
    let mut op = Op::new(kind, names::object(guard + index));
    op.mask = names::mask(guard + index, 1);
    sched::visible(op, guard + index, 0);
}

/// Whether the running thread has to initialise; waits while another does.
pub fn acquire(guard: usize) -> bool {
    access::synchronisation_object(guard, 8);
    let taken = snapshot::is_taken();
    if taken {
        visible(OpKind::Once, guard, BUSY);
    }
    races::acquire(guard);
    let done = *byte(guard, 0) != 0;
    if taken {
        sched::executed(if done { OpKind::OnceDone } else { OpKind::OnceBegin });
    }
    if !done {
        exec::me().held += 1;
        *byte(guard, BUSY) = 1;
    }
    !done
}

/// The static is initialised.
pub fn release(guard: usize) {
    if snapshot::is_taken() {
        visible(OpKind::AtomicStore, guard, 0);
        races::detector().atomic_store(exec::get().current, guard, RELEASE);
    }
    *byte(guard, 0) = 1;
    leave(guard);
}

/// The initialiser threw: the next thread tries again.
pub fn leave(guard: usize) {
    if snapshot::is_taken() {
        visible(OpKind::OnceEnd, guard, BUSY);
    }
    let me = exec::me();
    me.held = me.held.saturating_sub(1);
    races::release(guard);
    *byte(guard, BUSY) = 0;
}
