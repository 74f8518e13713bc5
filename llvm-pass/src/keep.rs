//! Inline assembly that keeps accesses alive through the optimiser. It is empty, and gone before code is generated.
//!
//! A *use* takes a loaded value, so that the load stays though nobody needs it. `llvm.fake.use` is made for this, but
//! the inliner drops it (LLVM 22: it would keep variables in memory after inlining), and a read in an inlined function
//! would be lost with it. A *veil* stands between a value and its store where the value was made from what was there
//! before: `x += 0` writes `x`, and the optimiser must not find out that it changes nothing.
//!
//! An *anchor* keeps an atomic access in one place. The optimiser likes to turn `while (c) f();` into `if (c) do f(); while (c);`, where a
//! thread that waits comes round to the second copy of its condition only: that it has been there is noticed one turn later. Code that
//! must not depend on more conditions than before (`convergent`) is not copied so.
//!
//! Calls that try for a lock are marked in the same way.
//!
//! Copies of a global variable are made volatile instead: they may be split, but all of it stays.
//!
//! All of them are declared to touch no memory of the program, so that they hinder no other optimisation of memory accesses.

use inkwell::llvm_sys::LLVMInlineAsmDialect;
use inkwell::llvm_sys::core::*;

use crate::attributes;
use crate::emit::Emitter;
use crate::ir::{Kind, Opcode, Type, Value, bytes_to_string, llvm};
use crate::shims::{pointer_base, set_harmless, set_pure};

/// Comments, by which the second stage knows them.
const USE: &str = "# symdpor keeps this load";
const VEIL: &str = "# symdpor keeps this store";
const ANCHOR: &str = "# symdpor keeps this in one place";

/// How far back from a store its value is followed.
const MAX_STEPS: usize = 8;

/// Keeps a load.
pub fn add_use(emit: &Emitter, load: Value) {
    let ty = emit.function_type(emit.void, &[load.ty()]);
    let assembly = assembly(ty, USE, "X", true);
    emit.behind(load);
    set_harmless(emit.call(ty, assembly, &[load]));
}

/// Keeps an atomic access from being copied to a second place, as happens to a loop's condition.
pub fn add_anchor(emit: &Emitter, atomic: Value) {
    let ty = emit.function_type(emit.void, &[]);
    let assembly = assembly(ty, ANCHOR, "", true);
    emit.before(atomic);
    let anchor = emit.call(ty, assembly, &[]);
    set_harmless(anchor);
    attributes::add_to_call(anchor, emit.module, "convergent");
}

/// Keeps a store, if its value was made from what it overwrites.
pub fn add_veil(emit: &Emitter, store: Value) {
    let value = store.operand(0);
    if value.ty().is_aggregate() || !depends_on(emit, value, store.operand(1)) {
        return;
    }
    let ty = emit.function_type(value.ty(), &[value.ty()]);
    let assembly = assembly(ty, VEIL, "=X,0", false);
    emit.before(store);
    let veiled = emit.call(ty, assembly, &[value]);
    set_pure(veiled);
    llvm!(LLVMSetOperand(store.0, 0, veiled.0));
}

/// Keeps all that a copy reads, if it reads a global variable: without this only the members that are needed.
pub fn keep_copy(emit: &Emitter, call: Value) {
    let Some(callee) = call.called_function().map(|f| f.name()) else { return };
    if !callee.starts_with("llvm.memcpy.p0") && !callee.starts_with("llvm.memmove.p0") {
        return;
    }
    let source = pointer_base(emit.module, call.operand(1)).base;
    if source.kind() == Kind::GlobalVariable && !source.is_constant_global() {
        llvm!(LLVMSetOperand(call.0, 3, emit.int(emit.int_type(1), 1).0));
    }
}

fn assembly(ty: Type, template: &str, constraints: &str, effects: bool) -> Value {
    Value(llvm!(LLVMGetInlineAsm(
        ty.0,
        template.as_ptr().cast(),
        template.len(),
        constraints.as_ptr().cast(),
        constraints.len(),
        effects.into(),
        0,
        LLVMInlineAsmDialect::LLVMInlineAsmDialectATT,
        0,
    )))
}

/// Whether a load from the address is among the values that this one is computed from.
fn depends_on(emit: &Emitter, value: Value, address: Value) -> bool {
    let mut work = vec![value];
    for _ in 0..MAX_STEPS {
        let Some(value) = work.pop() else { return false };
        match value.kind() {
            Kind::Instruction(Opcode::LLVMLoad) if same_place(emit, value.operand(0), address) => return true,
            Kind::Instruction(Opcode::LLVMLoad | Opcode::LLVMCall | Opcode::LLVMInvoke) => {}
            Kind::Instruction(_) => work.extend(value.operands()),
            _ => {}
        }
    }
    false
}

fn same_place(emit: &Emitter, a: Value, b: Value) -> bool {
    let (a_base, b_base) = (pointer_base(emit.module, a), pointer_base(emit.module, b));
    let constant = !a_base.variable && !b_base.variable;
    a == b || (constant && a_base.base == b_base.base && a_base.offset == b_base.offset)
}

pub fn is_use(instruction: Value) -> bool {
    has_template(instruction, USE)
}

fn has_template(instruction: Value, template: &str) -> bool {
    if !instruction.is(Opcode::LLVMCall) || instruction.callee().kind() != Kind::InlineAsm {
        return false;
    }
    let mut len = 0;
    let data = llvm!(LLVMGetInlineAsmAsmString(instruction.callee().0, &mut len));
    bytes_to_string(data.cast(), len) == template
}

/// Takes out everything of ours.
pub fn remove_all(function: Value) {
    let instructions: Vec<Value> = function.blocks().into_iter().flat_map(|b| b.instructions()).collect();
    for call in instructions {
        if has_template(call, VEIL) {
            call.replace_uses(call.operand(0));
            call.erase();
        } else if is_use(call) || has_template(call, ANCHOR) {
            call.erase();
        }
    }
}
