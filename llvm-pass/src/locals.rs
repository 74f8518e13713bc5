//! The locals of a function: what can be live at a suspension point.
//!
//! Two kinds, numbered together. *Values*: arguments and results of instructions. *Objects*: what is in an alloca or a
//! `byval` argument. At -O0 nearly all locals are objects, so a scalar one (only ever loaded and stored whole) is
//! treated like the variable it is: a load uses it, a store ends what it held before.

use std::collections::{HashMap, HashSet};

use inkwell::llvm_sys::LLVMTypeKind;
use inkwell::llvm_sys::core::*;

use crate::attributes::{call_argument_type, parameter_bytes, parameter_type};
use crate::escape::{Locals as Private, stack_objects};
use crate::ir::{Kind, Module, Opcode, Type, Value, llvm};
use crate::shims::is_constructor;

/// Number of a local in its function.
pub type Local = usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectKind {
    /// Loaded and stored whole.
    Scalar,
    /// Accessed in parts, its address known to this function only.
    Private,
    /// Others may have its address: live throughout.
    Escaped,
}

#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// The alloca or argument.
    pub address: Value,
    pub kind: ObjectKind,
    /// Bytes, 0 if only known when it runs.
    pub size: u64,
}

pub struct LocalTable {
    module: Module,
    /// Arguments, then instructions that have a result, in order.
    pub values: Vec<Value>,
    numbers: HashMap<Value, Local>,
    pub objects: Vec<Object>,
    addresses: HashSet<Value>,
    /// Which objects an address may point into.
    pointees: HashMap<Value, Vec<usize>>,
}

impl LocalTable {
    pub fn of(module: Module, function: Value) -> LocalTable {
        let results = function.blocks().into_iter().flat_map(|b| b.instructions()).filter(|i| has_result(i.ty()));
        let values: Vec<Value> = function.arguments().into_iter().chain(results).collect();
        let numbers = values.iter().enumerate().map(|(i, &v)| (v, i)).collect();
        let private = Private::of(function);
        let describe = |address| describe(module, function, address, &private);
        let objects: Vec<Object> = stack_objects(function).into_iter().map(describe).collect();
        let addresses = objects.iter().map(|o| o.address).collect();
        let mut table = LocalTable { module, values, numbers, objects, addresses, pointees: HashMap::new() };
        for index in 0..table.objects.len() {
            table.follow(index);
        }
        table
    }

    /// All locals: values first, then objects.
    pub fn len(&self) -> usize {
        self.values.len() + self.objects.len()
    }

    pub fn number(&self, value: Value) -> Option<Local> {
        self.numbers.get(&value).copied()
    }

    pub fn object_number(&self, index: usize) -> Local {
        self.values.len() + index
    }

    pub fn object_index(&self, local: Local) -> Option<usize> {
        local.checked_sub(self.values.len())
    }

    pub fn pointees(&self, address: Value) -> &[usize] {
        self.pointees.get(&address).map_or(&[], Vec::as_slice)
    }

    /// The object that an instruction overwrites from its first byte to its last, whatever it held, and the operand that names it.
    pub fn overwritten(&self, instruction: Value) -> Option<(usize, usize)> {
        let (operand, size) = match instruction.kind() {
            Kind::Instruction(Opcode::LLVMStore) => (1, self.module.alloc_size(instruction.operand(0).ty())),
            Kind::Instruction(Opcode::LLVMCall) if is_block_write(instruction) => {
                (0, instruction.operand(2).constant_int()?)
            }
            // The result of a function that is too large for registers.
            Kind::Instruction(Opcode::LLVMCall | Opcode::LLVMInvoke) => {
                let result = |i: &u32| call_argument_type(instruction, *i, "sret").is_some();
                match (0..2).find(result) {
                    Some(argument) => {
                        let ty = call_argument_type(instruction, argument, "sret")?;
                        (argument as usize, self.module.alloc_size(ty))
                    }
                    // What an object holds before its life begins nobody may look at.
                    None => (0, constructed_bytes(instruction)?),
                }
            }
            _ => return None,
        };
        let address = instruction.operands().get(operand).copied()?;
        let [object] = self.pointees(address) else { return None };
        let Object { address: start, size: whole, .. } = self.objects[*object];
        (start == address && whole != 0 && size >= whole).then_some((*object, operand))
    }

    /// An alloca's address is the same throughout: only its content is a local.
    pub fn is_object_address(&self, value: Value) -> bool {
        self.addresses.contains(&value)
    }

    fn follow(&mut self, index: usize) {
        let mut seen = HashSet::new();
        let mut work = vec![self.objects[index].address];
        while let Some(address) = work.pop() {
            if seen.insert(address) {
                self.pointees.entry(address).or_default().push(index);
                work.extend(address.users().into_iter().filter(|u| is_address_computation(*u)));
            }
        }
    }
}

/// The function's variables that are only loaded and stored whole, and of what type they are.
pub fn scalars(module: Module, function: Value) -> HashMap<Value, Type> {
    let private = Private::of(function);
    let objects = stack_objects(function).into_iter().filter(|o| o.is(Opcode::LLVMAlloca));
    let scalars = objects.filter(|o| describe(module, function, *o, &private).kind == ObjectKind::Scalar);
    scalars.map(|o| (o, Type(llvm!(LLVMGetAllocatedType(o.0))))).collect()
}

fn has_result(ty: Type) -> bool {
    ty.kind() != LLVMTypeKind::LLVMVoidTypeKind
}

/// Its result points where an operand points, and it accesses nothing.
pub fn is_address_computation(instruction: Value) -> bool {
    let Kind::Instruction(opcode) = instruction.kind() else { return false };
    matches!(
        opcode,
        Opcode::LLVMGetElementPtr
            | Opcode::LLVMBitCast
            | Opcode::LLVMAddrSpaceCast
            | Opcode::LLVMFreeze
            | Opcode::LLVMPHI
            | Opcode::LLVMSelect
    )
}

fn describe(module: Module, function: Value, address: Value, private: &Private) -> Object {
    let size = object_size(module, function, address);
    let kind = match private.is_private(address) {
        false => ObjectKind::Escaped,
        true if size != 0 && address.users().into_iter().all(|u| is_whole_access(module, address, u, size)) => {
            ObjectKind::Scalar
        }
        true => ObjectKind::Private,
    };
    Object { address, kind, size }
}

fn object_size(module: Module, function: Value, address: Value) -> u64 {
    if address.is(Opcode::LLVMAlloca) {
        let element = module.alloc_size(Type(llvm!(LLVMGetAllocatedType(address.0))));
        return address.operand(0).constant_int().map_or(0, |count| count * element);
    }
    let index = function.arguments().iter().position(|a| *a == address).unwrap_or(0);
    parameter_type(function, index as u32, "byval").map_or(0, |ty| module.alloc_size(ty))
}

fn is_whole_access(module: Module, address: Value, user: Value, size: u64) -> bool {
    match user.kind() {
        Kind::Instruction(Opcode::LLVMLoad) => module.alloc_size(user.ty()) == size,
        Kind::Instruction(Opcode::LLVMStore) => {
            user.operand(0) != address && module.alloc_size(user.operand(0).ty()) == size
        }
        _ => is_lifetime_marker(user),
    }
}

pub fn is_construction(instruction: Value) -> bool {
    matches!(instruction.kind(), Kind::Instruction(Opcode::LLVMCall | Opcode::LLVMInvoke))
        && constructed_bytes(instruction).is_some()
}

/// How large what a call constructs is, at its first argument.
fn constructed_bytes(call: Value) -> Option<u64> {
    let function = call.called_function()?;
    let bytes = parameter_bytes(function, 0);
    (bytes > 0 && is_constructor(function)).then_some(bytes)
}

/// Copies or fills a range.
fn is_block_write(call: Value) -> bool {
    let names = ["llvm.memcpy.", "llvm.memmove.", "llvm.memset."];
    call.called_function().is_some_and(|f| names.iter().any(|n| f.name().starts_with(n)))
}

pub fn is_lifetime_marker(instruction: Value) -> bool {
    instruction.is(Opcode::LLVMCall)
        && instruction.called_function().is_some_and(|f| f.name().starts_with("llvm.lifetime."))
}

pub fn is_lifetime_end(marker: Value) -> bool {
    marker.called_function().is_some_and(|f| f.name().starts_with("llvm.lifetime.end"))
}
