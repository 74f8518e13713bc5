//! Values that each thread has one of, which are part of what it is, and that fall back to the start's at the end of an execution.
//!
//! They are persistent memory: an entry counts only if it was made in the running execution, so that forgetting all of
//! them costs one addition.

use crate::cell::Global;
use crate::snapshot::is_taken;
use symdpor_abi::MAX_THREADS;

/// Number of the running execution.
static EXECUTION: Global<u64> = Global::new(1);

/// Called after each execution: everything per thread is forgotten.
pub fn undo() {
    *EXECUTION.get() += 1;
}

pub struct PerThread<T> {
    entries: Global<[(u64, T); MAX_THREADS]>,
    /// What main had set when the snapshot was taken.
    start: Global<Option<T>>,
}

impl<T: Copy> PerThread<T> {
    pub const fn new(zero: T) -> PerThread<T> {
        PerThread { entries: Global::new([(0, zero); MAX_THREADS]), start: Global::new(None) }
    }

    /// What the thread has set in this execution, or main in the program's start.
    pub fn get(&self, thread: usize) -> Option<T> {
        match self.entries.get()[thread % MAX_THREADS] {
            (execution, value) if execution == *EXECUTION.get() => Some(value),
            _ if thread == 0 => *self.start.get(),
            _ => None,
        }
    }

    /// What main had set when the snapshot was taken.
    pub fn at_start(&self) -> Option<T> {
        *self.start.get()
    }

    pub fn set(&self, thread: usize, value: T) {
        if is_taken() {
            self.entries.get()[thread % MAX_THREADS] = (*EXECUTION.get(), value);
        } else {
            *self.start.get() = Some(value);
        }
    }
}

/// Number of the running thread.
pub fn current() -> usize {
    crate::sched::current() as usize
}
