//! Functions that always return the same: a constant, or their first argument. Nobody can tell threads that run such a function apart by
//! what they return.

use symdpor_abi::module::function_flags::{RETURNS_ARGUMENT, RETURNS_CONSTANT};

use inkwell::llvm_sys::core::*;

use crate::ir::{Kind, Opcode, Value, llvm};

/// The flag that says which of the two, if it is one.
pub fn flag(function: Value) -> u32 {
    let instructions = || function.blocks().into_iter().flat_map(|b| b.instructions());
    let mut returned =
        instructions().filter(|i| i.is(Opcode::LLVMRet)).map(|i| i.operands().first().copied().and_then(origin));
    let Some(Some(first)) = returned.next() else { return 0 };
    if !returned.all(|next| next == Some(first)) {
        return 0;
    }
    match first.kind() {
        Kind::Constant if is_number(first) => RETURNS_CONSTANT,
        Kind::Argument if function.arguments().first() == Some(&first) => RETURNS_ARGUMENT,
        _ => 0,
    }
}

/// A number or null, perhaps as an address. What is not defined may be something else each time, and what is thread-local is elsewhere for each.
fn is_number(constant: Value) -> bool {
    let is_null = llvm!(LLVMIsNull(constant.0)) != 0;
    let is_cast = || {
        llvm!(LLVMIsConstant(constant.0)) != 0
            && !llvm!(LLVMIsAConstantExpr(constant.0)).is_null()
            && llvm!(LLVMGetConstOpcode(constant.0)) == Opcode::LLVMIntToPtr
            && constant.operand(0).constant_int().is_some()
    };
    is_null || constant.constant_int().is_some() || is_cast()
}

/// Where a value comes from: at -O0 through variables that hold nothing else.
fn origin(value: Value) -> Option<Value> {
    let mut value = value;
    while value.is(Opcode::LLVMLoad) {
        let variable = value.operand(0);
        let users = variable.users();
        let is_private = |user: &Value| {
            user.is(Opcode::LLVMLoad)
                || user.is(Opcode::LLVMStore) && user.operand(1) == variable && user.operand(0) != variable
        };
        let mut stored = users.iter().filter(|user| user.is(Opcode::LLVMStore)).map(|store| store.operand(0));
        let first = stored.next()?;
        if !variable.is(Opcode::LLVMAlloca) || !users.iter().all(is_private) || stored.any(|next| next != first) {
            return None;
        }
        value = first;
    }
    Some(value)
}
