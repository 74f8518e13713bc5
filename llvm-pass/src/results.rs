//! Functions that always return the same: a constant, or their first argument. Nobody can tell threads that run such a function apart by
//! what they return.

use symdpor_abi::module::function_flags::{RETURNS_ARGUMENT, RETURNS_CONSTANT};

use crate::ir::{Kind, Opcode, Value};

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
        Kind::Constant => RETURNS_CONSTANT,
        Kind::Argument if function.arguments().first() == Some(&first) => RETURNS_ARGUMENT,
        _ => 0,
    }
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
