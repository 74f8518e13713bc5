//! Which of a function's stack objects nobody else can see.
//!
//! An alloca (or a `byval` argument, which is the callee's own copy) is private when its address is only used to access
//! it, to compute addresses within it, to be compared, or as an argument that the callee keeps no copy of. Anything not
//! on that list counts as an escape.
//!
//! Not covered: flow. An object that escapes late is shared from the start.

use std::collections::HashSet;

use crate::attributes;
use crate::ir::{Kind, Opcode, Value};
use crate::shims::does_not_capture;

/// The private stack objects of one function.
pub struct Locals {
    private: HashSet<Value>,
}

impl Locals {
    pub fn of(function: Value) -> Locals {
        let private = stack_objects(function).into_iter().filter(|&object| !escapes(object)).collect();
        Locals { private }
    }

    /// Whether an address can only point into private objects.
    pub fn is_private(&self, address: Value) -> bool {
        let mut seen = HashSet::new();
        let mut work = vec![address];
        while let Some(value) = work.pop() {
            if seen.insert(value) && !self.private.contains(&value) {
                match origins(value) {
                    Some(more) => work.extend(more),
                    None => return false,
                }
            }
        }
        true
    }
}

/// Allocas and `byval` arguments.
pub fn stack_objects(function: Value) -> Vec<Value> {
    let arguments = function.arguments().into_iter().enumerate();
    let copies = arguments.filter(|&(i, _)| attributes::parameter_type(function, i as u32, "byval").is_some());
    let blocks = function.blocks().into_iter().flat_map(|b| b.instructions());
    copies.map(|(_, a)| a).chain(blocks.filter(|i| i.is(Opcode::LLVMAlloca))).collect()
}

/// The addresses that this one is computed from, if it is computed from addresses at all.
fn origins(value: Value) -> Option<Vec<Value>> {
    let Kind::Instruction(opcode) = value.kind() else { return None };
    match opcode {
        Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast | Opcode::LLVMFreeze => {
            (!value.ty().is_vector()).then(|| vec![value.operand(0)])
        }
        Opcode::LLVMPHI => Some(value.operands()),
        Opcode::LLVMSelect => Some(vec![value.operand(1), value.operand(2)]),
        _ => None,
    }
}

/// Whether any use of the object's address lets it out.
fn escapes(object: Value) -> bool {
    let mut seen = HashSet::new();
    let mut work = vec![object];
    while let Some(address) = work.pop() {
        if !seen.insert(address) {
            continue;
        }
        for user in address.users() {
            match effect(address, user) {
                Use::Harmless => {}
                Use::Derives => work.push(user),
                Use::Escapes => return true,
            }
        }
    }
    false
}

enum Use {
    Harmless,
    /// The user's result is an address into the object.
    Derives,
    Escapes,
}

fn effect(address: Value, user: Value) -> Use {
    let Kind::Instruction(opcode) = user.kind() else { return Use::Escapes };
    match opcode {
        Opcode::LLVMLoad | Opcode::LLVMICmp | Opcode::LLVMVAArg => Use::Harmless,
        Opcode::LLVMStore => harmless_unless(user.operand(0) == address),
        Opcode::LLVMAtomicRMW => harmless_unless(user.operand(1) == address),
        Opcode::LLVMAtomicCmpXchg => harmless_unless(user.operand(1) == address || user.operand(2) == address),
        Opcode::LLVMGetElementPtr if user.ty().is_vector() => Use::Escapes,
        Opcode::LLVMGetElementPtr
        | Opcode::LLVMBitCast
        | Opcode::LLVMAddrSpaceCast
        | Opcode::LLVMFreeze
        | Opcode::LLVMPHI
        | Opcode::LLVMSelect => Use::Derives,
        Opcode::LLVMCall | Opcode::LLVMInvoke | Opcode::LLVMCallBr => call_effect(address, user),
        _ => Use::Escapes,
    }
}

fn harmless_unless(escapes: bool) -> Use {
    if escapes { Use::Escapes } else { Use::Harmless }
}

/// Uses outside the argument list (callee, operand bundles) count as escapes.
fn call_effect(address: Value, call: Value) -> Use {
    let arguments = call.call_arguments();
    let inside = arguments.iter().filter(|&&a| a == address).count();
    let everywhere = call.operands().iter().filter(|&&o| o == address).count();
    let kept = (0..).zip(&arguments).any(|(i, &a)| a == address && !does_not_capture(call, i) && !passes_copy(call, i));
    harmless_unless(kept && !sleeps(call) || inside != everywhere)
}

/// Calls of libc's that read a time, perhaps write one, and keep neither address: loops that wait have them.
fn sleeps(call: Value) -> bool {
    let known = |f: Value| f.is_declaration() && matches!(&*f.name(), "nanosleep" | "clock_nanosleep" | "thrd_sleep");
    call.called_function().is_some_and(known)
}

/// A `byval` argument: the callee gets a copy, never the address.
fn passes_copy(call: Value, argument: u32) -> bool {
    attributes::call_argument_type(call, argument, "byval").is_some()
}
