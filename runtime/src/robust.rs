//! Robust mutexes: the owner may end while it holds one.
//!
//! A mutex whose owner has ended has `OWNER_DIED` for its owner. Who locks it next gets it, with EOWNERDEAD, and has to call
//! it consistent before unlocking; otherwise nobody can ever lock it again.

use crate::exec;
use crate::mutex::{self, INCONSISTENT, Mutex};
use crate::sched;
use symdpor_abi::op::{Op, OpKind};

const EOWNERDEAD: i32 = 130;
const ENOTRECOVERABLE: i32 = 131;
const EINVAL: i32 = 22;
const ROBUST: i32 = 16;
const OWNER_DIED: u32 = 0x7fff_ffff;
const NOT_RECOVERABLE: u32 = 0x7fff_fffe;

/// Whether a free mutex may be taken; then it is among those that the running thread holds.
pub fn take(address: usize, mutex: &mut Mutex) -> bool {
    match mutex.owner {
        NOT_RECOVERABLE => {
            if crate::snapshot::is_taken() {
                sched::executed(OpKind::TryLockFailed);
            }
            return false;
        }
        OWNER_DIED => mutex.kind |= INCONSISTENT,
        _ => {}
    }
    mutex.next = core::mem::replace(&mut exec::me().robust, address);
    true
}

/// What locking returns after [`take`].
pub fn result(mutex: &Mutex) -> i32 {
    match mutex.owner {
        NOT_RECOVERABLE => ENOTRECOVERABLE,
        _ if mutex.kind & INCONSISTENT != 0 => EOWNERDEAD,
        _ => 0,
    }
}

/// The running thread gives it up: what its owner shall be from now on.
pub fn give_up(address: usize, mutex: &mut Mutex) -> u32 {
    let mut link = &raw mut exec::me().robust;
    // SAFETY: the list goes through mutexes that the thread holds, and ends with 0.
    unsafe {
        while *link != 0 && *link != address {
            link = &raw mut mutex::at(*link).next;
        }
        if *link == address {
            *link = mutex.next;
        }
    }
    mutex.next = 0;
    let unrepaired = mutex.kind & INCONSISTENT != 0;
    mutex.kind &= !INCONSISTENT;
    if unrepaired { NOT_RECOVERABLE } else { 0 }
}

/// The running thread ends: whoever comes next is told.
pub fn owner_ends() {
    while exec::me().robust != 0 {
        let address = exec::me().robust;
        if crate::snapshot::is_taken() {
            sched::visible(Op::new(OpKind::MutexUnlock, crate::names::object(address)), address, 0);
        }
        mutex::at(address).kind &= !INCONSISTENT;
        mutex::give_up(address);
        mutex::at(address).owner = OWNER_DIED;
    }
}

pub fn consistent(address: usize) -> i32 {
    let mutex = mutex::at(address);
    if mutex.kind & ROBUST == 0 || mutex.kind & INCONSISTENT == 0 || !mutex::is_mine(address) {
        return EINVAL;
    }
    mutex.kind &= !INCONSISTENT;
    0
}
