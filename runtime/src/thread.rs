//! A thread of the program, in one execution.

use crate::footprint::Lanes;
use crate::futex::Intent;
use symdpor_abi::op::Op;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Life {
    /// Not created in this execution: the state of zeroed memory, which is why nothing constructs it.
    #[allow(dead_code)]
    Unborn = 0,
    Alive,
    Ended,
}

/// What a thread does when it is joined or detached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Joining {
    Joinable = 0,
    Detached,
    Joined,
}

/// What the entry function returns: C11's threads return an int.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Start {
    Posix = 0,
    C11,
}

/// All zero is an unborn thread. What tells whether it can go on is in its first cache line: the scheduler looks at
/// every thread at each transition.
#[repr(C, align(64))]
pub struct Thread {
    pub life: Life,
    pub joining: Joining,
    pub start_kind: Start,
    /// Runs its prologue within its creator's transition.
    pub in_prologue: bool,
    /// Its last operation was a yield, or the fourth in a row that changed nothing.
    pub yields: bool,
    /// Operations in a row that changed nothing.
    pub idle_ops: u8,
    pub creator: u16,
    /// The operation it is about to do, once it has reached one: `Exec::pending` tells.
    pub pending: Op,
    /// Raw address of the object of that operation, for those whose being enabled depends on it.
    pub pending_address: usize,
    /// Saved stack pointer while it does not run.
    pub sp: usize,
    pub fs: usize,
    /// Its newest shadow frame while it does not run.
    pub top: usize,
    /// `*const Site` of the pending operation, or 0.
    pub pending_site: usize,
    /// The condition variable it waits for, and the mutex to take again; or the futex, marked in the lowest bit, and what may
    /// wake it, as bits.
    pub waits_for: usize,
    pub waits_with: usize,
    /// Orders waiters: the number of the step at which it began to wait.
    pub waits_since: u32,
    pub result: usize,
    /// Handlers of `pthread_cleanup_push` in C without exceptions: the buffer of the newest.
    pub cleanup: usize,
    /// Destructors of thread-locals: the newest block of the list.
    pub destructors: usize,
    /// The robust mutexes that it holds: the last one taken.
    pub robust: usize,
    /// Locks that it holds, and initialisers that it runs.
    pub held: u16,
    pub reading: Reading,
    /// It has assumed what is not so, and waits for ever.
    pub dropped: bool,
    /// It has asked who it is.
    pub identified: bool,
    /// What it has returned follows from what its local state was at any time.
    pub returns_the_same: bool,
    /// It waits in the midst of a call that its frames do not tell of.
    pub midway: bool,
    /// Operations of the call under way, as many as fit.
    pub parts: u8,
    /// With visible plain accesses: its local state where it was last known, and all that it has read since.
    pub chain: [u64; 2],
    /// How often in a row it has found nothing outside while no other thread did anything.
    pub in_vain: u8,
    /// It has stored to memory other than its own stack since it last gave back a lock. What it stores again before that need not be seen.
    pub has_stored: bool,
    /// What it is about to do to those who wait on futexes.
    pub intent: Intent,
    /// A hash of values that it got from elsewhere.
    pub learnt: u64,
    /// What it was started with.
    pub start: usize,
    pub argument: usize,
    /// How large a stack the program wanted for it; 0 for main.
    pub stack: usize,
    /// Whether it shall be cancelled: see `cancel`.
    pub cancel: u8,
    /// What `Exec::outside` says of it while it does not run: bit 0, and whether there is more.
    pub outside: u8,
}

/// The first sixteen fill a page.
const _: () = assert!(size_of::<Thread>() == 256);

/// The locks that a thread holds for reading, as others may at the same time: how often that is, and a sum of hashes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Reading {
    times: u16,
    sum: u64,
}

impl Reading {
    pub fn add(&mut self, lock: usize) {
        self.times += 1;
        self.sum = self.sum.wrapping_add(hash(lock));
    }

    pub fn remove(&mut self, lock: usize) {
        self.times -= 1;
        self.sum = self.sum.wrapping_sub(hash(lock));
    }

    pub fn times(&self) -> u16 {
        self.times
    }

    pub fn sum(&self) -> u64 {
        self.sum
    }
}

fn hash(lock: usize) -> u64 {
    let mut lanes = Lanes::new();
    lanes.add(lock as u64);
    lanes.finish()[0]
}

impl Thread {
    pub fn is_alive(&self) -> bool {
        self.life == Life::Alive
    }
}
