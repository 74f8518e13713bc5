//! Syscall user dispatch: every system call that is not made from the runtime's own text raises SIGSYS.

use crate::cell::Global;
use crate::sys::maps;
use crate::sys::raw::{nr, syscall6};

const PR_SET_SYSCALL_USER_DISPATCH: usize = 59;
const PR_SYS_DISPATCH_ON: usize = 1;
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;

/// Read by the kernel at every system call.
static SELECTOR: Global<u8> = Global::new(ALLOW);

/// Turns it on for this kernel thread.
pub fn start() -> bool {
    let Some((start, end)) = own_text() else { return false };
    let selector = SELECTOR.as_ptr() as usize;
    *SELECTOR.get() = BLOCK;
    // SAFETY: the selector is a static; the range is the runtime's text.
    unsafe {
        syscall6(nr::PRCTL, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, start, end - start, selector, 0) == 0
    }
}

fn own_text() -> Option<(usize, usize)> {
    let here = own_text as *const () as usize;
    let mut found = None;
    maps::for_each(|m| {
        if m.executable && (m.start..m.end).contains(&here) {
            found = Some((m.start, m.end));
        }
    });
    found
}

/// System calls of libc go through to the kernel while this lives.
pub struct LetThrough(u8);

pub fn let_through() -> LetThrough {
    LetThrough(core::mem::replace(SELECTOR.get(), ALLOW))
}

impl Drop for LetThrough {
    fn drop(&mut self) {
        *SELECTOR.get() = self.0;
    }
}
