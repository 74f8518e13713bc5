//! Statics of the runtime. Everything runs on one kernel thread, so a plain cell is enough.

use core::cell::UnsafeCell;

/// A static that is *persistent*: not restored between executions. What must be restored lives in [`crate::exec`].
pub struct Global<T>(UnsafeCell<T>);

// SAFETY: all code of the runtime runs on the program's first kernel thread; the parked threads of the pool touch
// nothing but the slot that was handed to them.
unsafe impl<T> Sync for Global<T> {}

impl<T> Global<T> {
    pub const fn new(value: T) -> Global<T> {
        Global(UnsafeCell::new(value))
    }

    /// The value. References are kept short: never across a context switch or a call that may reach the same cell.
    #[allow(clippy::mut_from_ref)]
    #[inline(always)]
    pub fn get(&self) -> &mut T {
        // SAFETY: one kernel thread (above), and borrows are short by the rule in the documentation.
        unsafe { &mut *self.0.get() }
    }

    pub const fn as_ptr(&self) -> *mut T {
        self.0.get()
    }
}
