//! `pthread_once` and what is built on it. The control word holds the state, with libc's values.

use crate::access;
use crate::names;
use crate::races;
use crate::sched;
use symdpor_abi::op::{Op, OpKind};

const IN_PROGRESS: i32 = 1;
const DONE: i32 = 2;

#[allow(clippy::mut_from_ref)]
fn at(address: usize) -> &'static mut i32 {
    // SAFETY: the program says that there is a control word; a wild pointer faults as the program's crash.
    unsafe { &mut *(address as *mut i32) }
}

fn op(kind: OpKind, address: usize) -> Op {
    let mut op = Op::new(kind, names::object(address));
    op.mask = names::mask(address, 4);
    op
}

pub fn is_enabled(address: usize) -> bool {
    *at(address) & 3 != IN_PROGRESS
}

/// Calls `initialise` if nobody has; waits while another thread does.
pub fn once(address: usize, initialise: extern "C-unwind" fn()) -> i32 {
    access::synchronisation_object(address, 4);
    if crate::snapshot::is_taken() {
        sched::visible(op(OpKind::Once, address), address, 0);
    }
    races::acquire(address);
    if *at(address) == DONE {
        sched::executed(OpKind::OnceDone);
        return 0;
    }
    sched::executed(OpKind::OnceBegin);
    *at(address) = IN_PROGRESS;
    initialise();
    finish(address);
    0
}

fn finish(address: usize) {
    if crate::snapshot::is_taken() {
        sched::visible(op(OpKind::OnceEnd, address), address, 0);
    }
    races::release(address);
    *at(address) = DONE;
}
