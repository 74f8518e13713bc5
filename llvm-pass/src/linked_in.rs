//! Functions of the C++ library that the runtime takes over, for programs that the library is linked into (`-static-libstdc++`): there the
//! dynamic linker never asks whose function it is.
//!
//! Each call goes to a function of the module's own, which asks whether the runtime is there (a weak symbol, as for the registration)
//! and otherwise does what was called. Calls that the library makes itself are not seen. Made after the digest, which knows the
//! functions by their own names.

use inkwell::llvm_sys::LLVMLinkage;
use inkwell::llvm_sys::core::*;

use crate::INSTRUMENTED;
use crate::attributes;
use crate::emit::Emitter;
use crate::ir::{Type, Value, c_string, llvm};
use symdpor_abi::module::LINKED_IN_PREFIX;

#[derive(Clone, Copy, PartialEq)]
enum How {
    /// The runtime's function is called in its place.
    Replaced,
    /// The runtime is told before it is called.
    Before,
    /// The same, with the record of what the thread has caught.
    BeforeWithGlobals,
    /// The runtime is told when it has returned.
    After,
}

const FUNCTIONS: [(&str, How); 7] = [
    ("__cxa_guard_acquire", How::Replaced),
    ("__cxa_guard_release", How::Replaced),
    ("__cxa_guard_abort", How::Replaced),
    ("__cxa_end_catch", How::BeforeWithGlobals),
    ("__cxa_decrement_exception_refcount", How::Before),
    // exception_ptr::_M_release
    ("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv", How::Before),
    // __future_base::_State_baseV2::_Make_ready::_M_set
    ("_ZNSt13__future_base13_State_baseV211_Make_ready6_M_setEv", How::After),
];

pub fn redirect(emit: &Emitter) {
    for (name, how) in FUNCTIONS {
        let found = llvm!(LLVMGetNamedFunction(emit.module.0, c_string(name).as_ptr()));
        if !found.is_null() && Value(found).is_declaration() {
            redirect_one(emit, name, Value(found), how);
        }
    }
}

fn declared(emit: &Emitter, name: &str, ty: Type, linkage: LLVMLinkage) -> Value {
    let known = llvm!(LLVMGetNamedFunction(emit.module.0, c_string(name).as_ptr()));
    if known.is_null() { emit.add_function(name, ty, linkage) } else { Value(known) }
}

fn redirect_one(emit: &Emitter, name: &str, librarys: Value, how: How) {
    let ty = Type(llvm!(LLVMGlobalGetValueType(librarys.0)));
    let own = emit.add_function(&format!("symdpor.{name}"), ty, LLVMLinkage::LLVMInternalLinkage);
    attributes::add_mark(own, emit.module, INSTRUMENTED);
    librarys.replace_uses(own);
    let arguments = own.arguments();
    let told = emit.function_type(emit.void, &[emit.ptr]);
    let runtimes_type = if how == How::Replaced { ty } else { told };
    let weak = LLVMLinkage::LLVMExternalWeakLinkage;
    let runtimes = declared(emit, &format!("{LINKED_IN_PREFIX}{name}"), runtimes_type, weak);
    let [entry, present, absent] = std::array::from_fn(|_| emit.new_block(own));
    emit.at_end(entry);
    let early = (how == How::After).then(|| emit.call(ty, librarys, &arguments));
    emit.branch_if(emit.is_not_null(runtimes), present, absent);
    emit.at_end(present);
    match how {
        How::Replaced => {
            let result = emit.call(ty, runtimes, &arguments);
            give_back(emit, ty, result);
        }
        How::BeforeWithGlobals => {
            let globals_type = emit.function_type(emit.ptr, &[]);
            let globals = declared(emit, "__cxa_get_globals", globals_type, LLVMLinkage::LLVMExternalLinkage);
            let record = emit.call(globals_type, globals, &[]);
            emit.call(told, runtimes, &[record]);
            emit.branch(absent);
        }
        How::Before | How::After => {
            emit.call(told, runtimes, &arguments);
            emit.branch(absent);
        }
    }
    emit.at_end(absent);
    let result = early.unwrap_or_else(|| emit.call(ty, librarys, &arguments));
    give_back(emit, ty, result);
}

fn give_back(emit: &Emitter, ty: Type, result: Value) {
    let returned = Type(llvm!(LLVMGetReturnType(ty.0)));
    if returned == emit.void { emit.return_void() } else { emit.return_value(result) }
}
