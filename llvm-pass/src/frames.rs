//! Shadow frames: a record on the real stack for each function under way, linked through `*hooks.top`.
//!
//! Pushed at entry, popped before every way out (return, resume, `musttail`). An exception or a longjmp that leaves
//! functions between pops nothing: whoever catches links its own frame again, which drops all newer ones.
//! The record must outlive the calls it describes, so ordinary tail calls become plain ones.

use std::mem::offset_of;

use symdpor_abi::module::{FRAME_SLOTS_OFFSET, Frame};

use crate::attributes;
use crate::emit::Emitter;
use crate::hooks::HookTable;
use crate::ir::{Opcode, Value};
use crate::shims::first_insertion_point;

pub struct FrameEmitter {
    frame: Value,
}

impl FrameEmitter {
    /// Makes room for the record and links it. `descriptor` is the function's entry in the table.
    pub fn push(emit: &Emitter, hooks: &HookTable, function: Value, descriptor: Value, slots: u64) -> FrameEmitter {
        let entry = function.blocks()[0];
        let words = FRAME_SLOTS_OFFSET as u64 / 8 + slots;
        emit.before_without_line(entry.instructions()[0]);
        let frame = emit.alloca(emit.array_type(emit.i64, words), 8);
        emit.before_without_line(behind_allocas(&entry.instructions()));
        let top = hooks.top(emit);
        emit.store(emit.load(emit.ptr, top), emit.offset(frame, offset_of!(Frame, prev) as u64));
        emit.store(descriptor, emit.offset(frame, offset_of!(Frame, function) as u64));
        emit.store(emit.null(), emit.offset(frame, offset_of!(Frame, site) as u64));
        emit.store(function, emit.offset(frame, offset_of!(Frame, address) as u64));
        emit.store(frame, top);
        hooks.enter(emit);
        FrameEmitter { frame }
    }

    /// Notes where the function is, before a call.
    pub fn set_site(&self, emit: &Emitter, site: Value) {
        emit.store(site, emit.offset(self.frame, offset_of!(Frame, site) as u64));
    }

    /// The address of a live value's slot.
    pub fn slot(&self, emit: &Emitter, slot: u64) -> Value {
        emit.offset(self.frame, FRAME_SLOTS_OFFSET as u64 + 8 * slot)
    }

    fn link(&self, emit: &Emitter, hooks: &HookTable) {
        emit.store(self.frame, hooks.top(emit));
    }

    fn pop(&self, emit: &Emitter, hooks: &HookTable) {
        let previous = emit.load(emit.ptr, emit.offset(self.frame, offset_of!(Frame, prev) as u64));
        emit.store(previous, hooks.top(emit));
    }

    /// Links the record again where control may come from elsewhere, unlinks it where it leaves.
    pub fn at_instruction(&self, emit: &Emitter, hooks: &HookTable, instruction: Value) {
        match instruction.opcode() {
            Opcode::LLVMLandingPad => {
                let behind = first_insertion_point(instruction.block());
                self.link_at(emit, hooks, behind);
            }
            Opcode::LLVMRet if !follows_musttail(instruction) => self.pop_before(emit, hooks, instruction),
            Opcode::LLVMResume => self.pop_before(emit, hooks, instruction),
            Opcode::LLVMCall if instruction.is_musttail() => self.pop_before(emit, hooks, instruction),
            Opcode::LLVMCall if returns_twice(instruction) => self.link_at(emit, hooks, instruction.next()),
            Opcode::LLVMInvoke if returns_twice(instruction) => {
                self.link_at(emit, hooks, first_insertion_point(instruction.normal_destination()));
            }
            _ => {}
        }
    }

    fn link_at(&self, emit: &Emitter, hooks: &HookTable, place: Option<Value>) {
        if let Some(place) = place {
            emit.before_without_line(place);
            self.link(emit, hooks);
        }
    }

    fn pop_before(&self, emit: &Emitter, hooks: &HookTable, instruction: Value) {
        emit.before(instruction);
        self.pop(emit, hooks);
    }
}

fn returns_twice(call: Value) -> bool {
    attributes::call_has(call, "returns_twice")
}

/// `musttail call` is followed by its return, with at most a cast between.
fn follows_musttail(ret: Value) -> bool {
    let instructions = ret.block().instructions();
    instructions.iter().rev().skip(1).take(2).any(|i| i.is_musttail())
}

/// The entry block's first instruction that is no alloca.
pub fn behind_allocas(entry: &[Value]) -> Value {
    let first = entry.iter().find(|i| !i.is(Opcode::LLVMAlloca));
    *first.unwrap_or_else(|| unreachable!("a block ends in a terminator"))
}
