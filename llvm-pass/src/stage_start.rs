//! First stage, before any optimisation: keeps the optimiser from hiding accesses and from making some up.
//!
//! - `sanitize_thread` forbids what would invent accesses: speculated loads, stores merged over branches. (What it does
//!   not forbid, registration turns off: `cpp/plugin.cpp`.)
//! - Without `mustprogress`, `while (!flag);` stays, however little it does.
//! - Variables that only this file can name are marked as used elsewhere: one that is written and never read would
//!   vanish with all its writes, and a race between them with it.
//! - Allocations are concealed ([`allocations`]): blocks that stay in one function would vanish with their misuse.
//! - Calls of functions that are elsewhere stay apart: two that unlock the same mutex would become one, and its line that of neither.
//! - Loads whose value nobody needs and stores that change nothing are kept ([`keep`]), and atomic accesses that read stay in one place.

use inkwell::llvm_sys::LLVMLinkage;

use crate::allocations;
use crate::atomics;
use crate::attributes;
use crate::authors;
use crate::cxx_library;
use crate::emit::Emitter;
use crate::escape::Locals;
use crate::ir::{Module, Opcode, Value};
use crate::keep;
use crate::shims::{append_to_compiler_used, drop_loop_mustprogress};
use crate::{PREPARED, SANITIZED_BY_USER};

pub fn run(module: Module, optimised: bool) {
    let emit = Emitter::new(module);
    cxx_library::adapt(module);
    if optimised {
        keep_variables(module);
        allocations::conceal(module);
    }
    authors::announce(&emit);
    for function in module.functions() {
        if !function.is_declaration() {
            prepare(&emit, function, optimised);
        }
    }
}

fn keep_variables(module: Module) {
    let shared = |v: &Value| {
        let local = matches!(v.linkage(), LLVMLinkage::LLVMInternalLinkage | LLVMLinkage::LLVMPrivateLinkage);
        local && !v.is_declaration() && !v.is_constant_global() && !v.is_thread_local() && !v.users().is_empty()
    };
    let found: Vec<Value> = module.global_variables().into_iter().filter(shared).collect();
    append_to_compiler_used(module, &found);
}

fn prepare(emit: &Emitter, function: Value, optimised: bool) {
    let module = emit.module;
    if attributes::has_mark(function, PREPARED) || attributes::has(function, "naked") {
        return;
    }
    attributes::add_mark(function, module, PREPARED);
    if attributes::has(function, "sanitize_thread") {
        attributes::add_mark(function, module, SANITIZED_BY_USER);
    }
    attributes::add(function, module, "sanitize_thread");
    attributes::remove(function, "mustprogress");
    for block in function.blocks() {
        drop_loop_mustprogress(block.terminator());
    }
    if optimised {
        keep_calls_apart(module, function);
        keep_accesses(emit, function);
    }
}

/// What loops wait with besides atomics: see [`keep::add_anchor`].
const TRIES: [&str; 7] = [
    "pthread_mutex_trylock",
    "pthread_rwlock_tryrdlock",
    "pthread_rwlock_trywrlock",
    "pthread_spin_trylock",
    "sem_trywait",
    "mtx_trylock",
    "pthread_tryjoin_np",
];

fn keep_calls_apart(module: Module, function: Value) {
    for call in function.blocks().into_iter().flat_map(|b| b.instructions()).filter(|i| i.is_call()) {
        let Some(callee) = call.called_function().filter(|f| f.is_declaration() && !f.is_intrinsic()) else { continue };
        attributes::add_to_call(call, module, "nomerge");
        if TRIES.contains(&&*callee.name()) {
            // Of the function too: a call is no more so than what it calls.
            attributes::add(callee, module, "convergent");
            attributes::add_to_call(call, module, "convergent");
        }
    }
}

/// Variables that nobody else can see are for the optimiser to remove: they are most of what the front end makes.
fn keep_accesses(emit: &Emitter, function: Value) {
    let locals = Locals::of(function);
    for instruction in function.blocks().into_iter().flat_map(|b| b.instructions()) {
        if atomics::may_spin(instruction) {
            keep::add_anchor(emit, instruction);
        }
        if instruction.is(Opcode::LLVMLoad) && !locals.is_private(instruction.operand(0)) {
            keep::add_use(emit, instruction);
        } else if instruction.is(Opcode::LLVMStore) && !locals.is_private(instruction.operand(1)) {
            keep::add_veil(emit, instruction);
        } else if instruction.is(Opcode::LLVMCall) {
            keep::keep_copy(emit, instruction);
        }
    }
}
