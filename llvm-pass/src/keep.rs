//! Uses that keep a load alive through the optimiser: empty inline assembly that takes the loaded value.
//!
//! `llvm.fake.use` is made for this, but the inliner drops it (LLVM 22: it would keep variables in memory after
//! inlining), and a read in an inlined function would be lost with it. Inline assembly stays. It is declared to touch
//! no memory of the program, so that it hinders no other optimisation of memory accesses.

use inkwell::llvm_sys::LLVMInlineAsmDialect;
use inkwell::llvm_sys::core::*;

use crate::emit::Emitter;
use crate::ir::{Kind, Opcode, Value, bytes_to_string, llvm};
use crate::shims::set_harmless;

/// A comment, by which the second stage knows it.
const TEMPLATE: &str = "# symdpor keeps this load";

/// Any operand will do.
const CONSTRAINT: &str = "X";

pub fn add_use(emit: &Emitter, load: Value) {
    let ty = emit.function_type(emit.void, &[load.ty()]);
    let assembly = Value(llvm!(LLVMGetInlineAsm(
        ty.0,
        TEMPLATE.as_ptr().cast(),
        TEMPLATE.len(),
        CONSTRAINT.as_ptr().cast(),
        CONSTRAINT.len(),
        1,
        0,
        LLVMInlineAsmDialect::LLVMInlineAsmDialectATT,
        0,
    )));
    emit.behind(load);
    set_harmless(emit.call(ty, assembly, &[load]));
}

pub fn is_use(instruction: Value) -> bool {
    instruction.is(Opcode::LLVMCall) && instruction.callee().kind() == Kind::InlineAsm && is_ours(instruction.callee())
}

fn is_ours(assembly: Value) -> bool {
    let mut len = 0;
    let data = llvm!(LLVMGetInlineAsmAsmString(assembly.0, &mut len));
    bytes_to_string(data.cast(), len) == TEMPLATE
}

pub fn remove_uses(function: Value) {
    let instructions = function.blocks().into_iter().flat_map(|b| b.instructions());
    for call in instructions.filter(|i| is_use(*i)).collect::<Vec<_>>() {
        call.erase();
    }
}
