//! Functions by which a program speaks to symdpor: those of `symdpor.h` and of the SV-COMP benchmarks
//! (`symdpor_abi::author`).
//!
//! - The header's functions have bodies that do nothing. Here they lose them before the optimiser can see that.
//! - SV-COMP's are declared and never defined, so that the program would not link.
//! - Where the program defines one that has a meaning here (`reach_error`, `assume_abort_if_not`), the meaning comes first and
//!   the program's own code after it: alone, the program does what it always did.
//! - Functions whose name begins with `__VERIFIER_atomic_` are atomic from entry to return.
//!
//! The first stage makes all of them calls of declared functions, about which the optimiser knows nothing. The second
//! defines those: each asks through the hook table.

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::debuginfo::LLVMSetSubprogram;
use inkwell::llvm_sys::{LLVMLinkage, LLVMTypeKind, LLVMVisibility};
use symdpor_abi::author::{ATOMIC_PREFIX, Author, HEADER, NONDET, NONDET_PREFIX, SV_COMP};

use crate::attributes;
use crate::emit::Emitter;
use crate::hooks::HookTable;
use crate::ir::{Opcode, Type, Value, c_string, llvm};
use crate::shims::first_insertion_point;

/// Declarations of our own begin like this; the number of what they ask follows.
const OWN: &str = "symdpor.author.";

/// What a function asks, and with what: its own first argument if there is nothing here.
#[derive(Clone, Copy)]
struct Asks {
    what: Author,
    value: Option<u64>,
}

fn header_name(name: &str) -> Option<Author> {
    // A static function of C++ has a mangled name even in an `extern "C"` block.
    let plain = |known: &str| name == known || name.starts_with(&format!("_ZL{}{known}", known.len()));
    HEADER.iter().find(|(known, _)| plain(known)).map(|h| h.1)
}

fn asked_by(name: &str) -> Option<Asks> {
    if let Some(number) = name.strip_prefix(OWN) {
        return number.parse().ok().and_then(Author::from_u32).map(|what| Asks { what, value: None });
    }
    if let Some(ty) = name.strip_prefix(NONDET_PREFIX) {
        let index = NONDET.iter().position(|n| n.0 == ty)?;
        return Some(Asks { what: Author::Nondet, value: Some(index as u64) });
    }
    let sv_comp = || SV_COMP.iter().find(|(known, _)| *known == name).map(|n| n.1);
    header_name(name).or_else(sv_comp).map(|what| Asks { what, value: None })
}

/// First stage.
pub fn announce(emit: &Emitter) {
    for function in emit.module.functions() {
        let name = function.name();
        if function.is_declaration() {
            if asked_by(&name).is_some_and(|a| a.what == Author::Assume) {
                give_type(emit, function);
            }
        } else if header_name(&name).is_some() {
            lose_body(emit, function, &name);
        } else if let Some(asks) = asked_by(&name) {
            if matches!(asks.what, Author::Assume | Author::Error) {
                ask_first(emit, function, asks.what);
            }
        } else if name.starts_with(ATOMIC_PREFIX) {
            make_atomic(emit, function);
        }
    }
}

/// A function that asks, declared with one word as its argument.
fn own_declaration(emit: &Emitter, what: Author) -> (Value, Type) {
    let ty = emit.function_type(emit.i64, &[emit.i64]);
    let name = format!("{OWN}{}", what as u32);
    let known = llvm!(LLVMGetNamedFunction(emit.module.0, c_string(&name).as_ptr()));
    let function =
        if known.is_null() { emit.add_function(&name, ty, LLVMLinkage::LLVMExternalLinkage) } else { Value(known) };
    (function, ty)
}

/// Declared without a prototype it has no parameters: what it is called with is known at the calls only.
fn give_type(emit: &Emitter, function: Value) {
    if !function.arguments().is_empty() {
        return;
    }
    let (own, ty) = own_declaration(emit, Author::Assume);
    for call in function.users().into_iter().filter(|u| u.is(Opcode::LLVMCall)) {
        let arguments = call.call_arguments();
        let is_result = call.ty().kind() != LLVMTypeKind::LLVMVoidTypeKind;
        if is_result || arguments.is_empty() || call.called_function() != Some(function) {
            continue;
        }
        emit.before(call);
        let value = as_word(emit, arguments[0]);
        emit.call(ty, own, &[value]);
        call.erase();
    }
}

fn lose_body(emit: &Emitter, function: Value, name: &str) {
    let ty = Type(llvm!(LLVMGlobalGetValueType(function.0)));
    llvm!(LLVMSetValueName2(function.0, c"symdpor.gone".as_ptr(), 12));
    let declared = emit.add_function(name, ty, LLVMLinkage::LLVMExternalLinkage);
    function.replace_uses(declared);
    llvm!(LLVMDeleteFunction(function.0));
}

fn ask_first(emit: &Emitter, function: Value, what: Author) {
    let Some(&first) = function.blocks().first() else { return };
    let Some(at) = first_insertion_point(first) else { return };
    let (own, ty) = own_declaration(emit, what);
    emit.before_without_line(at);
    let value = function.arguments().first().map_or(emit.word(1), |&a| as_word(emit, a));
    emit.call(ty, own, &[value]);
}

fn make_atomic(emit: &Emitter, function: Value) {
    let Some(&first) = function.blocks().first() else { return };
    let Some(at) = first_insertion_point(first) else { return };
    let (begin, ty) = own_declaration(emit, Author::AtomicBegin);
    let (end, _) = own_declaration(emit, Author::AtomicEnd);
    emit.before_without_line(at);
    emit.call(ty, begin, &[emit.word(0)]);
    for block in function.blocks() {
        if block.terminator().is(Opcode::LLVMRet) {
            emit.before(block.terminator());
            emit.call(ty, end, &[emit.word(0)]);
        }
    }
}

fn as_word(emit: &Emitter, value: Value) -> Value {
    match value.ty().kind() {
        LLVMTypeKind::LLVMIntegerTypeKind => emit.int_cast(value, emit.i64),
        LLVMTypeKind::LLVMPointerTypeKind => emit.pointer_to_int(value, emit.i64),
        _ => emit.word(0),
    }
}

/// Second stage, when all other functions are done.
pub fn define(emit: &Emitter, hooks: &HookTable) {
    for function in emit.module.functions() {
        let name = function.name();
        if !function.is_declaration() || function.users().is_empty() {
            continue;
        }
        let Some(asks) = asked_by(&name) else { continue };
        let own = name.starts_with(OWN) || header_name(&name).is_some();
        body(emit, hooks, function, asks);
        if own {
            llvm!(LLVMSetLinkage(function.0, LLVMLinkage::LLVMInternalLinkage));
        } else {
            // Another file may define it after all.
            llvm!(LLVMSetLinkage(function.0, LLVMLinkage::LLVMWeakAnyLinkage));
            llvm!(LLVMSetVisibility(function.0, LLVMVisibility::LLVMHiddenVisibility));
        }
    }
}

fn body(emit: &Emitter, hooks: &HookTable, function: Value, asks: Asks) {
    // A declaration may have a description of its own, which is none of a definition.
    llvm!(LLVMSetSubprogram(function.0, std::ptr::null_mut()));
    emit.at_end(emit.new_block(function));
    let argument = function.arguments().first().map_or(emit.word(0), |&a| as_word(emit, a));
    let answer = hooks.author(emit, asks.what as u32, asks.value.map_or(argument, |v| emit.word(v)));
    let result = Type(llvm!(LLVMGetReturnType(LLVMGlobalGetValueType(function.0))));
    if attributes::has(function, "noreturn") {
        return emit.unreachable();
    }
    match result.kind() {
        LLVMTypeKind::LLVMVoidTypeKind => emit.return_void(),
        LLVMTypeKind::LLVMIntegerTypeKind => emit.return_value(emit.int_cast(answer, result)),
        LLVMTypeKind::LLVMPointerTypeKind => emit.return_value(emit.int_to_pointer(answer)),
        LLVMTypeKind::LLVMFloatTypeKind | LLVMTypeKind::LLVMDoubleTypeKind => {
            emit.return_value(emit.int_to_float(answer, result));
        }
        _ => emit.unreachable(),
    }
}
