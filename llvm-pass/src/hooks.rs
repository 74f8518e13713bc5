//! The module's hook table, and calls through it.
//!
//! In the file every hook is a no-op of the module's own, so that the program runs alone. Calls load the pointer each
//! time: the runtime fills the table in when the module registers, and a library may be loaded at any time.

use std::mem::offset_of;

use inkwell::llvm_sys::LLVMLinkage;
use symdpor_abi::module::Hooks;

use crate::INSTRUMENTED;
use crate::access::{Access, Lanes, Length};
use crate::atomics::{Atomic, Success};
use crate::attributes;
use crate::emit::Emitter;
use crate::ir::{Opcode, Type, Value};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hook {
    Load,
    Store,
    LoadRange,
    StoreRange,
    AtomicBefore,
    AtomicAfter,
    Fence,
    LoopBack,
    Clear,
    Order,
}

impl Hook {
    /// In the order of the table, behind `top`.
    const ALL: [Hook; 10] = [
        Hook::Load,
        Hook::Store,
        Hook::LoadRange,
        Hook::StoreRange,
        Hook::AtomicBefore,
        Hook::AtomicAfter,
        Hook::Fence,
        Hook::LoopBack,
        Hook::Clear,
        Hook::Order,
    ];

    fn offset(self) -> u64 {
        let offset = match self {
            Hook::Load => offset_of!(Hooks, load),
            Hook::Store => offset_of!(Hooks, store),
            Hook::LoadRange => offset_of!(Hooks, load_range),
            Hook::StoreRange => offset_of!(Hooks, store_range),
            Hook::AtomicBefore => offset_of!(Hooks, atomic_before),
            Hook::AtomicAfter => offset_of!(Hooks, atomic_after),
            Hook::Fence => offset_of!(Hooks, fence),
            Hook::LoopBack => offset_of!(Hooks, loop_back),
            Hook::Clear => offset_of!(Hooks, clear),
            Hook::Order => offset_of!(Hooks, order),
        };
        offset as u64
    }

    /// Integers are passed as whole words whatever their width in the runtime's declaration: the upper half of the
    /// register is then zero, and both sides agree.
    fn ty(self, emit: &Emitter) -> Type {
        let (word, ptr) = (emit.i64, emit.ptr);
        match self {
            Hook::Load | Hook::Store | Hook::LoadRange | Hook::StoreRange | Hook::AtomicBefore => {
                emit.function_type(emit.void, &[ptr, word, ptr])
            }
            Hook::AtomicAfter => emit.function_type(emit.void, &[ptr, word, word]),
            Hook::Fence => emit.function_type(emit.void, &[word, ptr]),
            Hook::LoopBack => emit.function_type(emit.void, &[ptr]),
            Hook::Clear => emit.function_type(emit.void, &[ptr, word]),
            Hook::Order => emit.function_type(emit.void, &[ptr, ptr]),
        }
    }
}

fn author_type(emit: &Emitter) -> Type {
    emit.function_type(emit.i64, &[emit.i64, emit.i64])
}

/// Alone, a program gets 0 for an answer.
fn no_author(emit: &Emitter) -> Value {
    let function = own_function(emit, "symdpor.no_author", author_type(emit));
    emit.at_end(emit.new_block(function));
    emit.return_value(emit.word(0));
    function
}

pub struct HookTable {
    pub global: Value,
    /// Calls the load or store hook if a mask's bit is set; made when first needed.
    lane_helpers: [Option<Value>; 2],
}

impl HookTable {
    pub fn new(emit: &Emitter) -> HookTable {
        let top = emit.private_global("symdpor.top", emit.null(), false);
        let outside = emit.private_global("symdpor.outside", emit.word(0), false);
        let hooks = Hook::ALL.into_iter().map(|h| no_op(emit, h.ty(emit)));
        let entries: Vec<Value> = std::iter::once(top).chain(hooks).chain([outside, no_author(emit)]).collect();
        let content = emit.constant_struct(&entries);
        HookTable { global: emit.private_global("symdpor.hooks", content, false), lane_helpers: [None; 2] }
    }

    /// The word where the running thread's newest frame is linked.
    pub fn top(&self, emit: &Emitter) -> Value {
        emit.load(emit.ptr, emit.constant_offset(self.global, offset_of!(Hooks, top) as u64))
    }

    fn outside(&self, emit: &Emitter) -> Value {
        emit.load(emit.ptr, emit.constant_offset(self.global, offset_of!(Hooks, outside) as u64))
    }

    /// Before a call whose callee may not be instrumented: see `Hooks::outside`.
    pub fn leave(&self, emit: &Emitter) {
        let word = self.outside(emit);
        let raised = emit.add(emit.load(emit.i64, word), emit.word(1));
        emit.store(emit.or(raised, emit.word(1)), word);
    }

    /// On entry to an instrumented function.
    pub fn enter(&self, emit: &Emitter) {
        let word = self.outside(emit);
        emit.store(emit.and(emit.load(emit.i64, word), emit.word(!1)), word);
    }

    pub fn call(&self, emit: &Emitter, hook: Hook, arguments: &[Value]) {
        let target = emit.load(emit.ptr, emit.constant_offset(self.global, hook.offset()));
        let call = emit.call(hook.ty(emit), target, arguments);
        attributes::add_to_call(call, emit.module, "nounwind");
    }

    /// Says something to symdpor; a word comes back.
    pub fn author(&self, emit: &Emitter, what: u32, value: Value) -> Value {
        let target = emit.load(emit.ptr, emit.constant_offset(self.global, offset_of!(Hooks, author) as u64));
        emit.call(author_type(emit), target, &[emit.word(what.into()), value])
    }

    /// Reports one access, before the instruction that does it.
    pub fn before(&mut self, emit: &Emitter, access: &Access, site: Value) {
        match *access {
            Access::Load { address, size } => self.call(emit, Hook::Load, &[address, emit.word(size), site]),
            Access::Store { address, size } => self.call(emit, Hook::Store, &[address, emit.word(size), site]),
            Access::LoadRange { address, length } => {
                let length = length_value(emit, length);
                self.call(emit, Hook::LoadRange, &[address, length, site]);
            }
            Access::StoreRange { address, length } => {
                let length = length_value(emit, length);
                self.call(emit, Hook::StoreRange, &[address, length, site]);
            }
            Access::Masked { lanes, mask, size, store } => self.masked(emit, lanes, mask, size, store, site),
            Access::Atomic(atomic) => {
                self.call(emit, Hook::AtomicBefore, &[atomic.address, emit.word(atomic.shape.into()), site]);
            }
            Access::Fence { order } => self.call(emit, Hook::Fence, &[emit.word(order.into()), site]),
        }
    }

    /// Reports how an atomic access went, behind the instruction that did it.
    pub fn after(&self, emit: &Emitter, atomic: &Atomic, done: Value) {
        let success = match atomic.success {
            Success::NoReport => return,
            Success::Always => emit.word(1),
            Success::Field => emit.int_cast(emit.extract_value(done, 1), emit.i64),
            Success::Result => emit.int_cast(done, emit.i64),
        };
        self.call(emit, Hook::AtomicAfter, &[atomic.address, emit.word(atomic.shape.into()), success]);
    }

    fn masked(&mut self, emit: &Emitter, lanes: Lanes, mask: Value, size: u64, store: bool, site: Value) {
        let helper = self.lane_helper(emit, store);
        for lane in 0..mask.ty().lanes() {
            let address = match lanes {
                Lanes::Contiguous(base) => emit.byte_offset(base, u64::from(lane) * size),
                Lanes::Scattered(addresses) => emit.extract_lane(addresses, lane),
            };
            let enabled = emit.extract_lane(mask, lane);
            emit.call(lane_type(emit), helper, &[enabled, address, emit.word(size), site]);
        }
    }

    fn lane_helper(&mut self, emit: &Emitter, store: bool) -> Value {
        if let Some(helper) = self.lane_helpers[usize::from(store)] {
            return helper;
        }
        let name = if store { "symdpor.store_lane" } else { "symdpor.load_lane" };
        let helper = own_function(emit, name, lane_type(emit));
        // With a builder of its own: the given one stands where the helper is to be called.
        let own = Emitter::new(emit.module);
        self.fill_lane_helper(&own, helper, if store { Hook::Store } else { Hook::Load });
        self.lane_helpers[usize::from(store)] = Some(helper);
        helper
    }

    fn fill_lane_helper(&self, emit: &Emitter, helper: Value, hook: Hook) {
        let [entry, enabled, done] = std::array::from_fn(|_| emit.new_block(helper));
        let parameters = helper.arguments();
        emit.at_end(entry);
        emit.branch_if(parameters[0], enabled, done);
        emit.at_end(enabled);
        self.call(emit, hook, &parameters[1..]);
        emit.branch(done);
        emit.at_end(done);
        emit.return_void();
    }
}

/// enabled, address, size, site
fn lane_type(emit: &Emitter) -> Type {
    emit.function_type(emit.void, &[emit.int_type(1), emit.ptr, emit.i64, emit.ptr])
}

fn length_value(emit: &Emitter, length: Length) -> Value {
    match length {
        Length::Bytes(bytes) => emit.word(bytes),
        Length::Value(value) => emit.int_cast(value, emit.i64),
        Length::Scaled(count, size) => emit.multiply(emit.int_cast(count, emit.i64), emit.word(size)),
        Length::Enabled(mask, size) => {
            let lanes = (0..mask.ty().lanes()).map(|lane| emit.int_cast(emit.extract_lane(mask, lane), emit.i64));
            let count = lanes.reduce(|a, b| emit.add(a, b)).unwrap_or_else(|| emit.word(0));
            emit.multiply(count, emit.word(size))
        }
    }
}

/// A function of the pass's own, which is not to be instrumented itself.
pub fn own_function(emit: &Emitter, name: &str, ty: Type) -> Value {
    let function = emit.add_function(name, ty, LLVMLinkage::LLVMInternalLinkage);
    attributes::add_mark(function, emit.module, INSTRUMENTED);
    attributes::add(function, emit.module, "nounwind");
    function
}

fn no_op(emit: &Emitter, ty: Type) -> Value {
    let function = own_function(emit, "symdpor.no_op", ty);
    emit.at_end(emit.new_block(function));
    emit.return_void();
    function
}

/// Whether something can be reported right behind an instruction.
pub fn has_place_behind(instruction: Value) -> bool {
    !matches!(instruction.opcode(), Opcode::LLVMInvoke | Opcode::LLVMCallBr) && !instruction.is_musttail()
}
