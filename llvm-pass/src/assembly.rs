//! Inline assembly: what its memory operands tell.
//!
//! Only operands that the constraints declare as memory are seen; an address in a register is not followed, which is
//! why functions with inline assembly are flagged.

use inkwell::llvm_sys::core::*;

use crate::access::Access;
use crate::atomics;
use crate::attributes::call_argument_type;
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

/// Code that touches no memory: empty, `pause`, `nop`, fences of the processor.
pub fn is_harmless(call: Value) -> bool {
    let text = template(call.callee());
    let mut lines = text.split(['\n', ';']).map(|l| l.trim().trim_start_matches("rep").trim());
    lines.all(|line| matches!(line, "" | "pause" | "nop" | "mfence" | "lfence" | "sfence") || line.starts_with('#'))
}

/// Whether the template contains a locked instruction. `xchg` with memory locks by itself.
fn is_locked(call: Value) -> bool {
    let text = template(call.callee());
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "lock" || word.starts_with("xchg"))
}

/// Accesses to the memory operands. Indirect operands (`*`) take one argument each, in order; other inputs take one
/// too, outputs in registers and clobbers none.
pub fn accesses(module: Module, call: Value) -> Vec<Access> {
    if is_harmless(call) {
        return Vec::new();
    }
    // The labels of `asm goto` leave no place behind the access to report from.
    let locked = is_locked(call) && call.is(Opcode::LLVMCall);
    let arguments = call.call_arguments();
    let mut found = Vec::new();
    let mut next = 0;
    for constraint in constraints(call.callee()).split(',') {
        let output = constraint.starts_with('=');
        let indirect = constraint.trim_start_matches(['=', '&', '+']).starts_with('*');
        if constraint.starts_with(['~', '!']) || (output && !indirect) {
            continue;
        }
        if indirect && let Some(&address) = arguments.get(next) {
            found.extend(operand(module, call, next as u32, address, output, locked));
        }
        next += 1;
    }
    found
}

fn operand(module: Module, call: Value, index: u32, address: Value, output: bool, locked: bool) -> Option<Access> {
    let size = module.store_size(call_argument_type(call, index, "elementtype")?);
    if !locked {
        return Some(if output { Access::store(address, size) } else { Access::load(address, size) });
    }
    // A read-write operand appears as output and as input; one atomic access covers both.
    output.then(|| Access::Atomic(atomics::locked(address, size.min(255) as u32)))
}
