//! The hooks that instrumented code calls: one line each into the modules that do the work.

use crate::access;
use crate::addresses;
use crate::atomics;
use crate::author;
use crate::exec;
use crate::footprint;
use crate::races;
use crate::snapshot;
use crate::spin;
use crate::stack;
use core::arch::naked_asm;
use symdpor_abi::channel::options;
use symdpor_abi::module::Hooks;

extern "C" fn load_work(address: usize, size: usize, site: usize) {
    access::plain(address, size, site, false);
}

extern "C" fn store_work(address: usize, size: usize, site: usize) {
    access::plain(address, size, site, true);
}

extern "C" fn load_range_work(address: usize, len: usize, site: usize) {
    if len > 0 {
        access::plain(address, len, site, false);
    }
}

extern "C" fn store_range_work(address: usize, len: usize, site: usize) {
    if len > 0 {
        access::plain(address, len, site, true);
    }
}

/// Whether what the running thread's stack holds is going to be compared.
extern "C" fn is_idle() -> bool {
    spin::is_idle() || crate::limits::watches()
}

/// A hook of a plain access: goes straight on to its work unless some thread may be spinning; if it is the running one the stack is
/// wiped afterwards, see [`spin::WIPED`].
macro_rules! plain_hook {
    ($name:ident, $work:ident) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(_address: usize, _size: usize, _site: usize) {
            naked_asm!(
                ".cfi_startproc",
                "cmp word ptr [rip + {exec} + {idle}], 0",
                "je {work}",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "call {work}",
                "call {idle_now}",
                "test al, al",
                "jz 2f",
                "lea rdi, [rsp - {wiped}]",
                "mov ecx, {wiped} / 8",
                "xor eax, eax",
                "rep stosq",
                "2:",
                "add rsp, 8",
                "ret",
                ".cfi_endproc",
                idle_now = sym is_idle,
                exec = sym exec::EXEC,
                idle = const core::mem::offset_of!(exec::Exec, idle_threads),
                work = sym $work,
                wiped = const spin::WIPED,
            )
        }
    };
}

plain_hook!(load, load_work);
plain_hook!(store, store_work);
plain_hook!(load_range, load_range_work);
plain_hook!(store_range, store_range_work);

/// The same where plain accesses are visible: a thread may spin at them, which its registers tell, as for atomics.
macro_rules! visible_hook {
    ($name:ident, $writes:literal) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(_address: usize, _size: usize, _site: usize) {
            naked_asm!(
                "push rbp",
                "push rbx",
                "push r12",
                "push r13",
                "push r14",
                "push r15",
                "mov rcx, rsp",
                "mov r8d, {writes}",
                "sub rsp, 8",
                "call {work}",
                "test al, al",
                "jz 2f",
                "lea rdi, [rsp - {wiped}]",
                "mov ecx, {wiped} / 8",
                "xor eax, eax",
                "rep stosq",
                "2:",
                "add rsp, 56",
                "ret",
                writes = const $writes,
                work = sym access::visible_hook,
                wiped = const spin::WIPED,
            )
        }
    };
}

visible_hook!(visible_load, 0);
visible_hook!(visible_store, 1);

/// Saves the registers that are alive across a call where they can be looked at: they and the stack above them are the local
/// state of the thread. What the runtime leaves below on the stack is wiped where that matters: see [`spin::WIPED`].
#[unsafe(naked)]
unsafe extern "C" fn atomic_before(_address: usize, _shape: u32, _site: usize) {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbp, 0",
        "push rbx",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbx, 0",
        "push r12",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r12, 0",
        "push r13",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r13, 0",
        "push r14",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r14, 0",
        "push r15",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r15, 0",
        "mov rcx, rsp",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {before}",
        "test al, al",
        "jz 2f",
        "lea rdi, [rsp - {wiped}]",
        "mov ecx, {wiped} / 8",
        "xor eax, eax",
        "rep stosq",
        "2:",
        "add rsp, 56",
        "ret",
        ".cfi_endproc",
        before = sym atomics::before_hook,
        wiped = const spin::WIPED,
    )
}

#[unsafe(naked)]
unsafe extern "C" fn atomic_after(_address: usize, _shape: u32, _success: u32) {
    naked_asm!(
        ".cfi_startproc",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {after}",
        "test al, al",
        "jz 2f",
        "lea rdi, [rsp - {wiped}]",
        "mov ecx, {wiped} / 8",
        "xor eax, eax",
        "rep stosq",
        "2:",
        "add rsp, 8",
        "ret",
        ".cfi_endproc",
        after = sym atomics::after_hook,
        wiped = const spin::WIPED,
    )
}

extern "C" fn fence(order: u32, _site: usize) {
    if snapshot::is_taken() {
        races::detector().fence(exec::get().current, order as u8);
        footprint::fence(order as u8);
    }
}

extern "C" fn author(what: u32, value: u64) -> u64 {
    author::asked(what, value)
}

extern "C" fn loop_back(site: usize) {
    access::tick(site);
}

extern "C" fn clear(address: usize, size: usize) {
    stack::clear(address, size);
}

extern "C" fn order(one: usize, other: usize) {
    addresses::compared(one, other);
}

/// The table that every module gets.
pub fn table() -> Hooks {
    let visible = crate::channel::is_attached() && crate::channel::says(options::VISIBLE_ALL);
    let (load, store) = if visible {
        (visible_load as *const (), visible_store as *const ())
    } else {
        (load as *const (), store as *const ())
    };
    Hooks {
        top: &raw const exec::get().top as usize,
        load: load as usize,
        store: store as usize,
        load_range: load_range as *const () as usize,
        store_range: store_range as *const () as usize,
        atomic_before: atomic_before as *const () as usize,
        atomic_after: atomic_after as *const () as usize,
        fence: fence as *const () as usize,
        loop_back: loop_back as *const () as usize,
        clear: clear as *const () as usize,
        order: order as *const () as usize,
        outside: &raw const exec::get().outside as usize,
        author: author as *const () as usize,
    }
}
