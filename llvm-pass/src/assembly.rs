//! Inline assembly: what its memory operands tell.
//!
//! What the constraints declare as memory is seen, and an address in a register where a locked or moving instruction
//! goes through it. Other addresses are not followed, which is why functions with other assembly are flagged.

use inkwell::llvm_sys::LLVMTypeKind;
use inkwell::llvm_sys::core::*;

use crate::access::Access;
use crate::atomics::{self, order};
use crate::attributes::call_argument_type;
use crate::instructions::{self, Manner, Text};
use crate::ir::{Module, Opcode, Value, bytes_to_string, llvm};

fn template(assembly: Value) -> String {
    let mut len = 0;
    let data = llvm!(LLVMGetInlineAsmAsmString(assembly.0, &mut len));
    bytes_to_string(data.cast(), len)
}

fn constraints(assembly: Value) -> String {
    let mut len = 0;
    let data = llvm!(LLVMGetInlineAsmConstraintString(assembly.0, &mut len));
    bytes_to_string(data.cast(), len)
}

/// Whether everything that the code does to memory is known from its text and operands.
pub fn is_understood(call: Value) -> bool {
    Text::new(&template(call.callee())).is_understood()
}

/// One operand that is memory, or the address of memory.
struct Operand {
    address: Value,
    /// Its argument's number.
    index: u32,
    output: bool,
    /// Declared as memory, and not a register that holds an address.
    declared: bool,
}

/// Indirect operands (`*`) take one argument each, in order; other inputs take one too, outputs in registers and
/// clobbers none.
fn operands(call: Value, text: &Text) -> Vec<Operand> {
    let arguments = call.call_arguments();
    let mut found = Vec::new();
    let mut next = 0;
    for (number, constraint) in constraints(call.callee()).split(',').enumerate() {
        let output = constraint.starts_with('=');
        let declared = constraint.trim_start_matches(['=', '&', '+']).starts_with('*');
        if constraint.starts_with(['~', '!']) || (output && !declared) {
            continue;
        }
        if let Some(&address) = arguments.get(next)
            && (declared || (text.goes_through(number) && address.ty().kind() == LLVMTypeKind::LLVMPointerTypeKind))
        {
            found.push(Operand { address, index: next as u32, output, declared });
        }
        next += 1;
    }
    found
}

/// Accesses to memory, and the order that the processor's fences give.
pub fn accesses(module: Module, call: Value) -> Vec<Access> {
    let template = template(call.callee());
    let text = Text::new(&template);
    if text.is_thread_local() {
        return Vec::new();
    }
    let operands = operands(call, &text);
    // The labels of `asm goto` leave no place behind the access to report from.
    let manner = if call.is(Opcode::LLVMCall) { text.manner() } else { Manner::Plain };
    match manner {
        Manner::Locked => locked(module, call, &text, &operands),
        Manner::Move if is_barrier(call) => operands.iter().filter_map(|o| moved(module, call, &text, o)).collect(),
        Manner::Fence(order) => vec![Access::Fence { order }],
        _ => operands.iter().filter_map(|o| plain(module, call, o)).collect(),
    }
}

/// Volatile, and the compiler may move no other access across: the author means others to see it.
fn is_barrier(call: Value) -> bool {
    let volatile = llvm!(LLVMGetInlineAsmHasSideEffects(call.callee().0)) != 0;
    volatile && constraints(call.callee()).contains("~{memory}")
}

fn declared_size(module: Module, call: Value, operand: &Operand) -> Option<u64> {
    let declared = operand.declared.then(|| call_argument_type(call, operand.index, "elementtype"));
    declared.flatten().map(|ty| module.store_size(ty))
}

/// The instruction's size if it tells, for operands are often declared as something longer or shorter.
fn size(module: Module, call: Value, text: &Text, operand: &Operand) -> Option<u32> {
    let declared = || declared_size(module, call, operand).map(|size| size.min(255) as u32);
    text.size().or_else(declared)
}

fn plain(module: Module, call: Value, operand: &Operand) -> Option<Access> {
    let size = declared_size(module, call, operand)?;
    Some(if operand.output { Access::store(operand.address, size) } else { Access::load(operand.address, size) })
}

/// A read-write operand appears as output and as input; one atomic access covers both. Without an output it is the
/// input that is changed behind the compiler's back, and without an input the stack, to make a fence.
fn locked(module: Module, call: Value, text: &Text, operands: &[Operand]) -> Vec<Access> {
    let changed = operands.iter().find(|o| o.output).or_else(|| operands.iter().find(|o| o.declared));
    let Some(changed) = changed.or(operands.first()) else { return vec![Access::Fence { order: order::SEQ_CST }] };
    let Some(bytes) = size(module, call, text, changed) else { return Vec::new() };
    let atomic = Access::Atomic(atomics::locked(changed.address, bytes));
    let others = operands.iter().filter(|o| o.address != changed.address);
    others.filter_map(|o| plain(module, call, o)).chain([atomic]).collect()
}

/// A single move is an atomic load or store, with the order that this processor gives it.
fn moved(module: Module, call: Value, text: &Text, operand: &Operand) -> Option<Access> {
    let size = size(module, call, text, operand)?;
    let stores = if operand.declared { operand.output } else { instructions::stores_through(text) };
    Some(Access::Atomic(atomics::moved(operand.address, size, stores)))
}
