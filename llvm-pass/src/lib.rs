//! The compiler pass: instruments a program so that its threads can be run in any order.
//!
//!     clang -fpass-plugin=libsymdpor.so -g prog.c -o prog
//!
//! It comes twice. At the start of Clang's pipeline it keeps the optimiser from hiding accesses and from inventing
//! some ([`stage_start`]); at the end it puts a hook before each access to memory that threads can share, keeps shadow
//! frames of the functions under way, and adds tables that say where in the source each hook is ([`stage_end`]). Both
//! stages run at -O0 too.
//!
//! The layout of what it emits is `symdpor_abi::module`. Without the runtime the hooks are no-ops of the module's own,
//! and the program behaves as if the pass had not been there.
//!
//! What one function goes through in the second stage: [`retry`] has loops that exchange go back to their load, [`plan`] decides where hooks go ([`access`] knows what an
//! instruction touches, [`escape`] what nobody else can see, [`loops`] which cycles need a hook of their own),
//! [`liveness`] and [`slots`] what its frames hold, [`digest`] records its code, and only then is anything changed
//! ([`hooks`], [`frames`]). [`sites`] and [`tables`] collect what the module says about itself.
//!
//! Not covered: memory that library functions touch other than those of [`access`]; addresses that inline assembly
//! holds in registers; calls in tail position that would have reused the caller's stack frame keep it, so recursion
//! that never ends but for this needs more stack than without the pass.
//!
//! Environment: `SYMDPOR_VERIFY=1` checks each module with LLVM's verifier after the second stage.

mod access;
mod allocations;
mod assembly;
mod atomics;
mod attributes;
mod authors;
mod bits;
mod call_names;
mod clearing;
mod cxx_library;
mod details;
mod digest;
mod emit;
mod escape;
mod frames;
mod hooks;
mod instructions;
mod ir;
mod keep;
mod linked_in;
mod liveness;
mod locals;
mod locations;
mod loops;
mod names;
mod orders;
mod plan;
mod results;
mod retry;
mod shims;
mod sites;
mod slots;
mod stage_end;
mod stage_start;
mod strings;
mod tables;

use std::ffi::{c_char, c_void};

use inkwell::llvm_sys::analysis::{LLVMVerifierFailureAction, LLVMVerifyModule};
use inkwell::llvm_sys::prelude::LLVMModuleRef;

use crate::ir::{Module, llvm};

/// Marks of our own on functions: seen by the first stage, by the second.
const PREPARED: &str = "symdpor-prepared";
const INSTRUMENTED: &str = "symdpor-instrumented";
/// The function was to be checked by ThreadSanitizer before we came.
const SANITIZED_BY_USER: &str = "symdpor-keep-sanitize-thread";

/// `llvm::PassPluginLibraryInfo`.
#[repr(C)]
pub struct PluginInfo {
    api_version: u32,
    name: *const c_char,
    version: *const c_char,
    register: unsafe extern "C" fn(*mut c_void),
    before_code_generation: *const c_void,
}

/// `LLVM_PLUGIN_API_VERSION` of LLVM 22.
const API_VERSION: u32 = 2;

unsafe extern "C" {
    fn symdpor_register_stages(builder: *mut c_void);
}

/// What Clang looks for in a plugin.
#[unsafe(no_mangle)]
pub extern "C" fn llvmGetPassPluginInfo() -> PluginInfo {
    PluginInfo {
        api_version: API_VERSION,
        name: c"symdpor".as_ptr(),
        version: c"0.1".as_ptr(),
        register: symdpor_register_stages,
        before_code_generation: std::ptr::null(),
    }
}

/// The tables have words of 64 bits. Code for other machines is left as it is, and the controller says so.
fn is_supported(module: Module) -> bool {
    module.pointer_size() == 8
}

#[unsafe(no_mangle)]
extern "C" fn symdpor_stage_start(module: LLVMModuleRef, optimised: bool) {
    let module = Module(module);
    if is_supported(module) {
        stage_start::run(module, optimised);
    }
}

#[unsafe(no_mangle)]
extern "C" fn symdpor_stage_end(module: LLVMModuleRef) {
    let module = Module(module);
    if is_supported(module) {
        stage_end::run(module);
        verify(module);
    }
}

fn verify(module: Module) {
    if cfg!(debug_assertions) || std::env::var_os("SYMDPOR_VERIFY").is_some() {
        let action = LLVMVerifierFailureAction::LLVMAbortProcessAction;
        llvm!(LLVMVerifyModule(module.0, action, std::ptr::null_mut()));
    }
}
