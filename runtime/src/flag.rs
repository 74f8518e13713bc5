//! `std::call_once` of libc++.
//!
//! Compiled code reads the flag with an acquiring atomic load and calls the library unless all its bits are set. The library's
//! part runs as it is, on a mutex and a condition variable; but its store to the flag is not instrumented, so that whoever finds
//! the flag set would not be ordered behind the initialiser. Hence that store is made here, when the initialiser returns, and
//! the library's own changes nothing any more.

use crate::cell::Global;
use crate::exec;
use crate::library;
use crate::names;
use crate::races;
use crate::sched;
use crate::snapshot;
use crate::spin;
use core::arch::naked_asm;
use symdpor_abi::op::{Op, OpKind};

const DONE: usize = usize::MAX;
const RELEASE: u8 = 3;

extern "C" fn librarys() -> usize {
    static REAL: Global<usize> = Global::new(0);
    library::real(&REAL, c"_ZNSt3__111__call_onceERVmPvPFvS2_E")
}

/// The initialiser has returned.
extern "C" fn done(flag: usize) {
    if snapshot::is_taken() {
        let mut op = Op::new(OpKind::AtomicStore, names::object(flag));
        op.mask = names::mask(flag, 8);
        sched::visible(op, flag, 0);
        spin::wrote(flag, 8);
        races::detector().atomic_store(exec::get().current, flag, RELEASE);
        races::release(flag);
    }
    // SAFETY: the library's header passes the address of a word.
    unsafe { *(flag as *mut usize) = DONE };
}

/// The library has found that the flag is set: by the store above.
extern "C" fn seen(flag: usize) {
    races::acquire(flag);
}

/// `std::__1::__call_once`: a flag, an argument, and the function to call with it. In assembly, since an exception of the
/// initialiser passes through these frames, which it would not do with Rust's.
#[unsafe(naked)]
pub unsafe extern "C" fn call_once(_flag: usize, _argument: usize, _function: usize) {
    naked_asm!(
        ".cfi_startproc",
        "push rbx",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbx, -16",
        "sub rsp, 32",
        ".cfi_def_cfa_offset 48",
        "mov rbx, rdi",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "call {librarys}",
        "mov rdi, rbx",
        "mov rsi, rsp",
        "lea rdx, [rip + {initialise}]",
        "call rax",
        "mov rdi, rbx",
        "call {seen}",
        "add rsp, 32",
        ".cfi_def_cfa_offset 16",
        "pop rbx",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
        librarys = sym librarys,
        initialise = sym initialise,
        seen = sym seen,
    )
}

/// What the library calls instead of the initialiser, with the address of flag, argument and function.
#[unsafe(naked)]
unsafe extern "C" fn initialise(_what: usize) {
    naked_asm!(
        ".cfi_startproc",
        "push rbx",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbx, -16",
        "mov rbx, rdi",
        "mov rdi, [rbx + 8]",
        "call [rbx + 16]",
        "mov rdi, [rbx]",
        "call {done}",
        "pop rbx",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
        done = sym done,
    )
}
