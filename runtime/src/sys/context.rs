//! Switching between user-space contexts, x86-64.
//!
//! A suspended context is a stack pointer and an FS base. On the stack, from the saved pointer up:
//!
//! ```text
//!   sp -> | mxcsr (4), x87 control word (4) |
//!         | r15 | r14 | r13 | r12 | rbx | rbp |
//!         | return address                    |
//! ```
//!
//! The control words are loaded only if they differ from those of the context that is left: loading them is dear.
//! All else is dead across a call by the C calling convention. The FS base is the thread control block, so that
//! thread-local storage of all code, instrumented or not, is the context's own.

use core::arch::naked_asm;

/// Saves the running context in `*save` and resumes the one at `to` with the given FS base.
///
/// # Safety
/// `to` must have been saved by this function or made by [`prepare`], its stack must still be there, and `fs` must be
/// the thread control block that belongs to it.
#[unsafe(naked)]
pub unsafe extern "C" fn switch(save: *mut usize, to: usize, fs: usize) {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "stmxcsr [rsp]",
        "fnstcw [rsp + 4]",
        "mov [rdi], rsp",
        "mov eax, [rsp]",
        "movzx ecx, word ptr [rsp + 4]",
        "mov rsp, rsi",
        "wrfsbase rdx",
        "cmp eax, [rsp]",
        "jne 2f",
        "3:",
        "cmp cx, [rsp + 4]",
        "jne 4f",
        "5:",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
        "2:",
        "ldmxcsr [rsp]",
        "jmp 3b",
        "4:",
        "fldcw [rsp + 4]",
        "jmp 5b",
    )
}

/// The first return of a new context: `rbx` holds the entry function, `r12` its argument, `r13` what takes its result.
/// In assembly so that nothing but the program's own frames is on the stack that an exception or `pthread_exit` unwinds.
#[unsafe(naked)]
unsafe extern "C" fn begin() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "mov rdi, r12",
        "xor ebp, ebp",
        "call rbx",
        "mov rdi, rax",
        "call r13",
        "ud2",
        ".cfi_endproc",
    )
}

/// How a context computes with floating-point numbers: MXCSR, which says what has happened as well, and the x87 control word above it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FloatingPoint(u64);

impl FloatingPoint {
    /// That of the running context.
    pub fn mine() -> FloatingPoint {
        let mut words = [0u32; 2];
        // SAFETY: stores six bytes.
        unsafe {
            core::arch::asm!("stmxcsr [{0}]", "fnstcw [{0} + 4]", in(reg) &raw mut words, options(nostack, preserves_flags))
        };
        FloatingPoint::of([words[0], words[1]])
    }

    /// That of a suspended context.
    ///
    /// # Safety
    /// `sp` must be what [`switch`] has saved or [`prepare`] has returned, and the stack still be there.
    pub unsafe fn at(sp: usize) -> FloatingPoint {
        // SAFETY: see above.
        FloatingPoint::of(unsafe { *(sp as *const [u32; 2]) })
    }

    fn of([mxcsr, control]: [u32; 2]) -> FloatingPoint {
        FloatingPoint(mxcsr as u64 | (control as u64 & 0xffff) << 32)
    }

    /// How it rounds and what it traps.
    pub fn modes(self) -> u64 {
        self.0 & !0x3f
    }

    /// What has happened: inexact results, divisions by zero.
    pub fn happened(self) -> u64 {
        self.0 & 0x3f
    }
}

/// Lays out a context below `top` that will call `entry(argument)` and then `done` with its result; returns its stack
/// pointer. It computes as the running one does.
///
/// # Safety
/// At least 128 bytes below `top` must be writable and unused, and `entry` be the address of a function.
pub unsafe fn prepare(top: usize, entry: usize, argument: usize, done: extern "C" fn(usize) -> !) -> usize {
    // `begin` calls with an aligned stack: after its `ret` the stack pointer is a multiple of 16.
    let aligned = top & !15;
    let words =
        [FloatingPoint::mine().0 as usize, 0, 0, done as usize, argument, entry, 0, begin as *const () as usize];
    let sp = aligned - words.len() * 8;
    for (i, word) in words.iter().enumerate() {
        // SAFETY: within the 128 bytes that the caller vouches for.
        unsafe { *((sp + i * 8) as *mut usize) = *word };
    }
    sp
}

/// The FS base of the running context.
#[inline(always)]
pub fn fs_base() -> usize {
    let fs: usize;
    // SAFETY: only reads a register; availability is checked at start.
    unsafe { core::arch::asm!("rdfsbase {}", out(reg) fs, options(nomem, nostack, preserves_flags)) };
    fs
}
