//! Attributes of functions and calls, by name.

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::{LLVMAttributeFunctionIndex, LLVMAttributeReturnIndex, prelude::*};

use crate::ir::{Module, Type, Value, llvm};

/// Claims about a function that hooks in it make untrue: what memory it touches, that it ends, that nobody else runs
/// meanwhile, that it may be run earlier or not at all.
pub const UNTRUE_WITH_HOOKS: [&str; 6] = ["memory", "nosync", "willreturn", "speculatable", "nofree", "mustprogress"];

fn kind(name: &str) -> u32 {
    llvm!(LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()))
}

pub fn add(function: Value, module: Module, name: &str) {
    let attribute = llvm!(LLVMCreateEnumAttribute(module.context(), kind(name), 0));
    llvm!(LLVMAddAttributeAtIndex(function.0, LLVMAttributeFunctionIndex, attribute));
}

pub fn remove(function: Value, name: &str) {
    llvm!(LLVMRemoveEnumAttributeAtIndex(function.0, LLVMAttributeFunctionIndex, kind(name)));
}

pub fn has(function: Value, name: &str) -> bool {
    !llvm!(LLVMGetEnumAttributeAtIndex(function.0, LLVMAttributeFunctionIndex, kind(name))).is_null()
}

/// A mark of our own.
pub fn add_mark(function: Value, module: Module, name: &str) {
    let len = name.len() as u32;
    let attribute = llvm!(LLVMCreateStringAttribute(module.context(), name.as_ptr().cast(), len, c"".as_ptr(), 0));
    llvm!(LLVMAddAttributeAtIndex(function.0, LLVMAttributeFunctionIndex, attribute));
}

pub fn has_mark(function: Value, name: &str) -> bool {
    let (data, len) = (name.as_ptr().cast(), name.len() as u32);
    !llvm!(LLVMGetStringAttributeAtIndex(function.0, LLVMAttributeFunctionIndex, data, len)).is_null()
}

/// Whether a call or the function it calls has the attribute.
pub fn call_has(call: Value, name: &str) -> bool {
    !llvm!(LLVMGetCallSiteEnumAttribute(call.0, LLVMAttributeFunctionIndex, kind(name))).is_null()
        || call.called_function().is_some_and(|f| has(f, name))
}

pub fn remove_from_call(call: Value, name: &str) {
    llvm!(LLVMRemoveCallSiteEnumAttribute(call.0, LLVMAttributeFunctionIndex, kind(name)));
}

pub fn add_to_call(call: Value, module: Module, name: &str) {
    let attribute = llvm!(LLVMCreateEnumAttribute(module.context(), kind(name), 0));
    llvm!(LLVMAddCallSiteAttribute(call.0, LLVMAttributeFunctionIndex, attribute));
}

pub fn remove_from_result(function: Value, name: &str) {
    llvm!(LLVMRemoveEnumAttributeAtIndex(function.0, LLVMAttributeReturnIndex, kind(name)));
}

pub fn remove_from_call_result(call: Value, name: &str) {
    llvm!(LLVMRemoveCallSiteEnumAttribute(call.0, LLVMAttributeReturnIndex, kind(name)));
}

fn type_value(attribute: LLVMAttributeRef) -> Option<Type> {
    (!attribute.is_null()).then(|| Type(llvm!(LLVMGetTypeAttributeValue(attribute))))
}

/// The type in `byval(T)` or `elementtype(T)` of a call's argument.
pub fn call_argument_type(call: Value, argument: u32, name: &str) -> Option<Type> {
    type_value(llvm!(LLVMGetCallSiteEnumAttribute(call.0, argument + 1, kind(name))))
}

/// How many bytes a function's parameter points to at least.
pub fn parameter_bytes(function: Value, parameter: u32) -> u64 {
    let attribute = llvm!(LLVMGetEnumAttributeAtIndex(function.0, parameter + 1, kind("dereferenceable")));
    if attribute.is_null() { 0 } else { llvm!(LLVMGetEnumAttributeValue(attribute)) }
}

/// The type in `byval(T)` of a function's parameter.
pub fn parameter_type(function: Value, parameter: u32, name: &str) -> Option<Type> {
    type_value(llvm!(LLVMGetEnumAttributeAtIndex(function.0, parameter + 1, kind(name))))
}
