//! `pthread_once` and what is built on it. The control word holds the state, with libc's values.

use crate::access;
use crate::exec;
use crate::names;
use crate::races;
use crate::sched;
use crate::unwind;
use core::arch::naked_asm;
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

/// Whether nobody is initialising: the lowest byte of a control word, or the byte of a guard, tells.
pub fn is_enabled(address: usize) -> bool {
    // SAFETY: the object of a pending operation of a live thread.
    unsafe { *(address as *const u8) & 3 != IN_PROGRESS as u8 }
}

/// Whether the running thread has to call the initialiser; waits while another does.
pub extern "C" fn begin(address: usize) -> bool {
    access::synchronisation_object(address, 4);
    let taken = crate::snapshot::is_taken();
    if taken && *at(address) == DONE && unwind::is_in_library(address) {
        // Done before there were threads: no concern of the search.
        return false;
    }
    if taken {
        sched::visible(op(OpKind::Once, address), address, 0);
    }
    races::acquire(address);
    let done = *at(address) == DONE;
    if taken {
        sched::executed(if done { OpKind::OnceDone } else { OpKind::OnceBegin });
    }
    if !done {
        exec::me().held += 1;
        *at(address) = IN_PROGRESS;
    }
    !done
}

/// The initialiser has returned.
pub extern "C" fn finish(address: usize) {
    if crate::snapshot::is_taken() {
        sched::visible(op(OpKind::OnceEnd, address), address, 0);
    }
    let me = exec::me();
    me.held = me.held.saturating_sub(1);
    races::release(address);
    *at(address) = DONE;
}

/// `pthread_once` in assembly: an exception of the initialiser passes through this frame, which a Rust one would not let it.
#[unsafe(naked)]
pub unsafe extern "C" fn once(_control: usize, _initialise: usize) -> i32 {
    naked_asm!(
        ".cfi_startproc",
        // Relative to the place, four bytes: the routine below.
        ".cfi_personality 0x1b, {passes}",
        "push rbx",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbx, -16",
        "push r12",
        ".cfi_def_cfa_offset 24",
        ".cfi_offset r12, -24",
        "sub rsp, 8",
        ".cfi_def_cfa_offset 32",
        "mov rbx, rdi",
        "mov r12, rsi",
        "call {begin}",
        "test al, al",
        "jz 2f",
        "call r12",
        "mov rdi, rbx",
        "call {finish}",
        "2:",
        "xor eax, eax",
        "add rsp, 8",
        ".cfi_def_cfa_offset 24",
        "pop r12",
        ".cfi_def_cfa_offset 16",
        "pop rbx",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
        begin = sym begin,
        finish = sym finish,
        passes = sym exception_passes,
    )
}

/// The personality routine of [`once`]: an initialiser that throws has not been called, so the next thread calls it again.
/// The control word's address is in `rbx` there.
extern "C" fn exception_passes(_: i32, actions: i32, _: u64, _: usize, context: usize) -> i32 {
    const CLEANUP_PHASE: i32 = 2;
    const CONTINUE: i32 = 8;
    const RBX: i32 = 3;
    if actions & CLEANUP_PHASE != 0 {
        let register = unwind::function(c"_Unwind_GetGR");
        // SAFETY: the unwinder is what calls this, so that the function is there and has this type.
        let register: extern "C" fn(usize, i32) -> usize = unsafe { core::mem::transmute(register) };
        let control = register(context, RBX);
        let me = exec::me();
        me.held = me.held.saturating_sub(1);
        races::release(control);
        *at(control) = 0;
    }
    CONTINUE
}
