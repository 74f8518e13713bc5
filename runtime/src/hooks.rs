//! The hooks that instrumented code calls: one line each into the modules that do the work.

use crate::access;
use crate::atomics;
use crate::exec;
use crate::races;
use crate::snapshot;
use core::arch::naked_asm;
use symdpor_abi::module::Hooks;

extern "C" fn load(address: usize, size: usize, site: usize) {
    access::plain(address, size, site, false);
}

extern "C" fn store(address: usize, size: usize, site: usize) {
    access::plain(address, size, site, true);
}

extern "C" fn load_range(address: usize, len: usize, site: usize) {
    if len > 0 {
        access::plain(address, len, site, false);
    }
}

extern "C" fn store_range(address: usize, len: usize, site: usize) {
    if len > 0 {
        access::plain(address, len, site, true);
    }
}

/// Saves the registers that are alive across a call where they can be looked at: they and the stack above them are the local
/// state of the thread.
#[unsafe(naked)]
unsafe extern "C" fn atomic_before(_address: usize, _shape: u32, _site: usize) {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov rcx, rsp",
        "sub rsp, 8",
        "call {before}",
        "add rsp, 56",
        "ret",
        before = sym atomics::before,
    )
}

extern "C" fn atomic_after(address: usize, shape: u32, success: u32) {
    atomics::after(address, shape, success != 0);
}

extern "C" fn fence(order: u32, _site: usize) {
    if snapshot::is_taken() {
        races::detector().fence(exec::get().current, order as u8);
    }
}

extern "C" fn loop_back(site: usize) {
    access::tick(site);
}

/// The table that every module gets.
pub fn table() -> Hooks {
    Hooks {
        top: &raw const exec::get().top as usize,
        load: load as *const () as usize,
        store: store as *const () as usize,
        load_range: load_range as *const () as usize,
        store_range: store_range as *const () as usize,
        atomic_before: atomic_before as *const () as usize,
        atomic_after: atomic_after as *const () as usize,
        fence: fence as *const () as usize,
        loop_back: loop_back as *const () as usize,
        outside: &raw const exec::get().outside as usize,
    }
}
