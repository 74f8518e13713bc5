//! What the headers of the C++ library do that is the same to the program, but not to a search over its interleavings.
//!
//! - `std::__detail::__atomic_spin` looks sixteen times before a thread goes to sleep (`atomic::wait`, `latch`, `semaphore`), and
//!   longer with a time limit. A look in vain changes nothing, so that looking once is as good, and each further look is a place
//!   where others could go first.
//! - `std::atomic<std::shared_ptr>` of libstdc++ before version 13 gives its inner lock back with a relaxed order after a load.
//!   That is a race by the letter, in code that is not the program's; later versions release it, and so does this.

use inkwell::llvm_sys::core::{LLVMConstInt, LLVMSetOperand};

use crate::ir::{Module, Opcode, Value};

const SPIN: &str = "_ZNSt8__detail13__atomic_spin";
const SPIN_POLICY: &str = "spin_policyclEv";
const SPIN_COUNT: u64 = 16;
const UNLOCKS: [&str; 2] = ["13_Atomic_count6unlock", "13_Atomic_count14_M_wait_unlock"];

pub fn adapt(module: Module) {
    for function in module.functions() {
        if function.is_declaration() {
            continue;
        }
        let name = function.name();
        if name.starts_with(SPIN) {
            look_once(function);
        } else if name.starts_with("_ZNKSt10_Sp_atomic") && UNLOCKS.iter().any(|u| name.contains(u)) {
            release(function);
        }
    }
}

fn instructions(function: Value) -> Vec<Value> {
    function.blocks().into_iter().flat_map(|b| b.instructions()).collect()
}

fn look_once(function: Value) {
    for instruction in instructions(function) {
        if instruction.is(Opcode::LLVMICmp) && instruction.operand(1).constant_int() == Some(SPIN_COUNT) {
            // SAFETY: the operand is an integer, and its type is that of the new one.
            unsafe { LLVMSetOperand(instruction.0, 1, LLVMConstInt(instruction.operand(1).ty().0, 1, 0)) };
        }
        let policy = |f: Value| f.name().ends_with(SPIN_POLICY);
        if instruction.is(Opcode::LLVMCall) && instruction.called_function().is_some_and(policy) {
            // SAFETY: the call returns an integer of this type.
            instruction.replace_uses(Value(unsafe { LLVMConstInt(instruction.ty().0, 0, 0) }));
            instruction.erase();
        }
    }
}

/// The order is the last argument of a call.
fn release(function: Value) {
    const RELEASE: u64 = 3;
    let gives_back = |f: Value| f.name().contains("9fetch_sub");
    for call in instructions(function).into_iter().filter(|i| i.is(Opcode::LLVMCall)) {
        if let (true, Some(order)) = (call.called_function().is_some_and(gives_back), call.call_arguments().last()) {
            let last = call.call_arguments().len() as u32 - 1;
            // SAFETY: the argument is an integer, and its type is that of the new one.
            unsafe { LLVMSetOperand(call.0, last, LLVMConstInt(order.ty().0, RELEASE, 0)) };
        }
    }
}
