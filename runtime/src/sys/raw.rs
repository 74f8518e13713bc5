//! Raw system calls. The runtime never goes through libc: libc's wrappers write errno into the thread-local storage of
//! whichever context is running, and may be interposed.
//!
//! System calls made from here are let through by syscall user dispatch, because the runtime's text is the allowed range.

use core::arch::asm;

/// A system call with six arguments; unused ones are ignored by the kernel. Returns the kernel's value, -errno on failure.
///
/// # Safety
/// As unsafe as the call itself: pointers must be valid for what the kernel does with them.
#[inline(always)]
pub unsafe fn syscall6(nr: usize, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize {
    let ret: isize;
    // SAFETY: the caller vouches for the arguments; the kernel preserves everything but rax, rcx and r11.
    unsafe {
        asm!("syscall", inlateout("rax") nr as isize => ret, in("rdi") a, in("rsi") b, in("rdx") c,
             in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    ret
}

/// # Safety
/// See [`syscall6`].
#[inline(always)]
pub unsafe fn syscall3(nr: usize, a: usize, b: usize, c: usize) -> isize {
    // SAFETY: as the caller vouches.
    unsafe { syscall6(nr, a, b, c, 0, 0, 0) }
}

pub mod nr {
    pub const READ: usize = 0;
    pub const WRITE: usize = 1;
    pub const OPEN: usize = 2;
    pub const CLOSE: usize = 3;
    pub const MMAP: usize = 9;
    pub const MPROTECT: usize = 10;
    pub const RT_SIGACTION: usize = 13;
    pub const RT_SIGPROCMASK: usize = 14;
    pub const RT_SIGRETURN: usize = 15;
    pub const PREAD64: usize = 17;
    pub const SIGALTSTACK: usize = 131;
    pub const PRCTL: usize = 157;
    pub const SCHED_YIELD: usize = 24;
    pub const FUTEX: usize = 202;
    pub const EXIT_GROUP: usize = 231;
}
