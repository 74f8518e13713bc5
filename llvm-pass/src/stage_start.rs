//! First stage, before any optimisation: keeps the optimiser from hiding accesses and from making some up.
//!
//! - `sanitize_thread` forbids what would invent accesses: speculated loads, stores merged over branches.
//! - Without `mustprogress`, `while (!flag);` stays, however little it does.
//! - A `llvm.fake.use` of each load's result keeps loads whose value nobody needs. The second stage takes it out again.

use inkwell::llvm_sys::core::*;

use crate::attributes;
use crate::emit::Emitter;
use crate::escape::{Locals, stack_objects};
use crate::ir::{Module, Opcode, Type, Value, llvm};
use crate::shims::{drop_loop_mustprogress, pointer_base};
use crate::{COROUTINE, PREPARED, SANITIZED_BY_USER};

pub fn run(module: Module, optimised: bool) {
    let emit = Emitter::new(module);
    for function in module.functions() {
        if !function.is_declaration() {
            prepare(&emit, function, optimised);
        }
    }
}

fn prepare(emit: &Emitter, function: Value, optimised: bool) {
    let module = emit.module;
    if attributes::has(function, "presplitcoroutine") {
        attributes::add_mark(function, module, COROUTINE);
    }
    if attributes::has_mark(function, PREPARED) || attributes::has(function, "naked") {
        return;
    }
    attributes::add_mark(function, module, PREPARED);
    if attributes::has(function, "sanitize_thread") {
        attributes::add_mark(function, module, SANITIZED_BY_USER);
    }
    attributes::add(function, module, "sanitize_thread");
    attributes::remove(function, "mustprogress");
    for block in function.blocks() {
        drop_loop_mustprogress(block.terminator());
    }
    if optimised {
        keep_loads(emit, function);
    }
}

/// Loads from the function's own variables are for the optimiser to remove: they are most of what the front end makes.
fn keep_loads(emit: &Emitter, function: Value) {
    let own = stack_objects(function);
    let locals = Locals::of(function);
    for load in function.blocks().into_iter().flat_map(|b| b.instructions()) {
        if load.is(Opcode::LLVMLoad) && !own.contains(&pointer_base(emit.module, load.operand(0)).base)
            && !locals.is_private(load.operand(0))
        {
            keep(emit, load);
        }
    }
}

fn keep(emit: &Emitter, load: Value) {
    if let Some(next) = load.next() {
        let (ty, function) = fake_use(emit);
        emit.before(next);
        emit.call(ty, function, &[load]);
    }
}

fn fake_use(emit: &Emitter) -> (Type, Value) {
    let name = "llvm.fake.use";
    let id = llvm!(LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len()));
    let function = Value(llvm!(LLVMGetIntrinsicDeclaration(emit.module.0, id, std::ptr::null_mut(), 0)));
    (Type(llvm!(LLVMGlobalGetValueType(function.0))), function)
}
