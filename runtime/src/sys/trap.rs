//! From a trapped system call to [`crate::syscalls::emulate`].
//!
//! Syscall user dispatch raises SIGSYS, whose handler runs on the signal stack and must not switch contexts there. So it
//! only notes where the program was and returns into [`entry`], which runs on the program's own stack as if the
//! `syscall` instruction had been a call to it: it saves all that a system call preserves, calls Rust, and jumps back.

use core::arch::naked_asm;

use crate::cell::Global;

/// Where the trapped system call returns to. Set by the signal handler, read by [`entry`] at once.
pub static RETURN_TO: Global<usize> = Global::new(0);

/// The registers that [`entry`] saved, lowest address first.
#[repr(C)]
pub struct Saved {
    rbp: usize,
    rbx: usize,
    r9: usize,
    r8: usize,
    r10: usize,
    rdx: usize,
    rsi: usize,
    rdi: usize,
    rax: usize,
}

extern "C" fn dispatch(saved: &Saved) -> isize {
    let s = saved;
    if !crate::interpose::raw::only_waits(s.rax) {
        crate::spin::changed();
    }
    crate::syscalls::turn::trapped(true);
    let result = crate::syscalls::emulate(s.rax, [s.rdi, s.rsi, s.rdx, s.r10, s.r8, s.r9]);
    crate::syscalls::turn::trapped(false);
    result
}

/// Size of the XSAVE area for x87, SSE, AVX and AVX-512 in the standard format, rounded up to 64.
const XSAVE_BYTES: usize = 2816;
/// The state components saved: x87, SSE, AVX, AVX-512.
const XSAVE_MASK: usize = 0xe7;

/// Entered with all registers as they were at the `syscall` instruction, except that rcx and r11 are free.
#[unsafe(naked)]
pub unsafe extern "C" fn entry() {
    naked_asm!(
        "lea rsp, [rsp - 128]", // the red zone
        "pushfq",
        "mov rcx, [rip + {return_to}]",
        "push rcx",
        "push rax",
        "push rdi",
        "push rsi",
        "push rdx",
        "push r10",
        "push r8",
        "push r9",
        "push rbx",
        "push rbp",
        "mov rbp, rsp",
        "cld",
        "sub rsp, {xsave_bytes}",
        "and rsp, -64",
        "xor eax, eax",
        "mov [rsp + 512], rax", // the XSAVE header must be zero
        "mov [rsp + 520], rax",
        "mov [rsp + 528], rax",
        "mov [rsp + 536], rax",
        "mov [rsp + 544], rax",
        "mov [rsp + 552], rax",
        "mov [rsp + 560], rax",
        "mov [rsp + 568], rax",
        "mov eax, {mask}",
        "xor edx, edx",
        "xsave64 [rsp]",
        "mov rbx, rsp",
        "mov rdi, rbp",
        "call {dispatch}",
        "mov [rbp + 64], rax",
        "mov eax, {mask}",
        "xor edx, edx",
        "xrstor64 [rbx]",
        "mov rsp, rbp",
        "pop rbp",
        "pop rbx",
        "pop r9",
        "pop r8",
        "pop r10",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rax",
        "pop rcx",
        "popfq",
        "lea rsp, [rsp + 128]",
        "jmp rcx",
        return_to = sym RETURN_TO,
        dispatch = sym dispatch,
        xsave_bytes = const XSAVE_BYTES,
        mask = const XSAVE_MASK,
    )
}
