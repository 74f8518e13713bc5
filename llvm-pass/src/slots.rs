//! Slots: where a frame keeps what is live at its suspension points.
//!
//! A value is stored to its slot once, where it is defined; an object's slot holds its address. Locals that are live in
//! several blocks have slots of their own. The others take turns: once a value of the same block is past its last use,
//! its slot is free for the next.

use std::collections::{HashMap, HashSet};

use inkwell::llvm_sys::LLVMTypeKind;
use inkwell::llvm_sys::core::*;

use crate::bits::Bits;
use crate::emit::Emitter;
use crate::frames::{FrameEmitter, behind_allocas};
use crate::ir::{Kind, Module, Opcode, Type, Value, llvm};
use crate::liveness::{Live, Liveness};
use crate::locals::{Local, LocalTable, is_lifetime_marker};
use crate::shims::{first_insertion_point, has_fixed_size, split_normal_edge};

/// Larger values (whole structs held as one) are not kept.
const MAX_SLOTS: u32 = 32;

pub struct Slots {
    /// First slot of each local that has one.
    first: HashMap<Local, u32>,
    pub count: u32,
}

impl Slots {
    pub fn assign(module: Module, table: &LocalTable, liveness: &Liveness, live: &HashMap<Value, Live>) -> Slots {
        let mut needed = Bits::new(table.len());
        for point in live.values() {
            needed.union(&point.before);
        }
        let crossing = liveness.crossing();
        let mut slots = Slots { first: HashMap::new(), count: 0 };
        let mut turns: Vec<Local> = Vec::new();
        for local in needed.iter() {
            match slots_of(module, table, local) {
                None => {}
                Some(1) if takes_turns(table, local, &crossing) => turns.push(local),
                Some(size) => slots.take(local, size),
            }
        }
        slots.take_turns(table, &turns);
        slots
    }

    pub fn get(&self, local: Local) -> Option<u32> {
        self.first.get(&local).copied()
    }

    fn take(&mut self, local: Local, size: u32) {
        self.first.insert(local, self.count);
        self.count += size;
    }

    /// Hands slots round within each block. Locals come in the order of their definitions.
    fn take_turns(&mut self, table: &LocalTable, locals: &[Local]) {
        let base = self.count;
        for group in locals.chunk_by(|a, b| table.values[*a].block() == table.values[*b].block()) {
            let places: HashMap<Value, usize> =
                table.values[group[0]].block().instructions().into_iter().enumerate().map(|(i, v)| (v, i)).collect();
            // For each slot, the last use of the value it holds.
            let mut busy: Vec<usize> = Vec::new();
            for &local in group {
                let value = table.values[local];
                let last = value.users().iter().filter_map(|u| places.get(u)).max().copied().unwrap_or(0);
                let free = busy.iter().position(|&until| until < places[&value]);
                let slot = free.unwrap_or_else(|| {
                    busy.push(0);
                    busy.len() - 1
                });
                busy[slot] = last;
                self.first.insert(local, base + slot as u32);
            }
            self.count = self.count.max(base + busy.len() as u32);
        }
    }
}

/// Only results used within their own block; arguments and objects stay.
fn takes_turns(table: &LocalTable, local: Local, crossing: &Bits) -> bool {
    table.object_index(local).is_none() && !crossing.contains(local) && table.values[local].kind() != Kind::Argument
}

fn slots_of(module: Module, table: &LocalTable, local: Local) -> Option<u32> {
    match table.object_index(local) {
        Some(_) => Some(1),
        None if table.values[local].is(Opcode::LLVMCallBr) => None,
        None => slots_of_type(module, table.values[local].ty()).filter(|&n| n <= MAX_SLOTS),
    }
}

/// How many slots a value takes; None for what cannot be stored.
fn slots_of_type(module: Module, ty: Type) -> Option<u32> {
    use LLVMTypeKind::*;
    match ty.kind() {
        LLVMStructTypeKind | LLVMArrayTypeKind => {
            elements(ty).into_iter().map(|t| slots_of_type(module, t)).try_fold(0u32, |sum, n| Some(sum + n?))
        }
        LLVMIntegerTypeKind | LLVMHalfTypeKind | LLVMBFloatTypeKind | LLVMFloatTypeKind | LLVMDoubleTypeKind
        | LLVMX86_FP80TypeKind | LLVMFP128TypeKind | LLVMPointerTypeKind | LLVMVectorTypeKind => {
            has_fixed_size(module, ty).then(|| module.store_size(ty).div_ceil(8) as u32)
        }
        _ => None,
    }
}

fn elements(ty: Type) -> Vec<Type> {
    if ty.kind() == LLVMTypeKind::LLVMArrayTypeKind {
        let len = llvm!(LLVMGetArrayLength2(ty.0)).min(u64::from(MAX_SLOTS) + 1);
        return vec![ty.element(); len as usize];
    }
    (0..llvm!(LLVMCountStructElementTypes(ty.0))).map(|i| Type(llvm!(LLVMStructGetTypeAtIndex(ty.0, i)))).collect()
}

/// Emits the stores.
pub fn store_all(emit: &Emitter, frame: &FrameEmitter, function: Value, table: &LocalTable, slots: &Slots) {
    let first_block = function.blocks()[0].instructions();
    let entry = behind_allocas(&first_block);
    let leading: HashSet<Value> = first_block.iter().copied().take_while(|i| i.is(Opcode::LLVMAlloca)).collect();
    let mut assigned: Vec<(Local, u32)> = slots.first.iter().map(|(&l, &s)| (l, s)).collect();
    assigned.sort_unstable();
    for (local, slot) in assigned {
        let value = match table.object_index(local) {
            Some(object) => table.objects[object].address,
            None => table.values[local],
        };
        if leading.contains(&value) || value.kind() == Kind::Argument {
            emit.before_without_line(entry);
        } else {
            position_behind(emit, value, entry);
        }
        store_value(emit, frame, value, slot);
    }
}

/// Places the builder where an instruction's result is first there.
fn position_behind(emit: &Emitter, value: Value, entry: Value) {
    match value.kind() {
        Kind::Instruction(Opcode::LLVMPHI | Opcode::LLVMLandingPad) => {
            emit.before_without_line(first_insertion_point(value.block()).unwrap_or(entry));
        }
        Kind::Instruction(Opcode::LLVMInvoke) => {
            emit.before_without_line(first_insertion_point(split_normal_edge(value)).unwrap_or(entry));
        }
        _ => emit.behind(value),
    }
}

/// Whole words, so that no byte of a slot is left as it was.
fn store_value(emit: &Emitter, frame: &FrameEmitter, value: Value, slot: u32) -> u32 {
    let ty = value.ty();
    if ty.is_aggregate() {
        let parts = (0..elements(ty).len() as u32).map(|i| emit.extract_value(value, i));
        return parts.fold(slot, |next, part| store_value(emit, frame, part, next));
    }
    let words = emit.module.store_size(ty).div_ceil(8) as u32;
    emit.store_words(as_words(emit, value, words), frame.slot(emit, slot.into()));
    slot + words
}

fn as_words(emit: &Emitter, value: Value, words: u32) -> Value {
    let ty = value.ty();
    let bits = emit.int_type(llvm_bits(emit, ty));
    let integer = match ty.kind() {
        LLVMTypeKind::LLVMPointerTypeKind if words == 1 && is_default_space(ty) => return value,
        LLVMTypeKind::LLVMPointerTypeKind => emit.pointer_to_int(value, bits),
        LLVMTypeKind::LLVMIntegerTypeKind => value,
        LLVMTypeKind::LLVMVectorTypeKind if ty.element().kind() == LLVMTypeKind::LLVMPointerTypeKind => {
            let words = Type(llvm!(LLVMVectorType(emit.i64.0, ty.lanes())));
            emit.bit_cast(emit.pointer_to_int(value, words), bits)
        }
        _ => emit.bit_cast(value, bits),
    };
    emit.int_cast(integer, emit.int_type(64 * words))
}

fn is_default_space(ty: Type) -> bool {
    llvm!(LLVMGetPointerAddressSpace(ty.0)) == 0
}

/// Bits of a type that can be cast to an integer.
fn llvm_bits(emit: &Emitter, ty: Type) -> u32 {
    emit.module.bit_size(ty) as u32
}

/// Registered objects keep their place on the stack from entry to exit.
pub fn remove_lifetime_markers(function: Value) {
    let instructions = function.blocks().into_iter().flat_map(|b| b.instructions());
    for marker in instructions.filter(|i| is_lifetime_marker(*i)).collect::<Vec<_>>() {
        marker.erase();
    }
}
