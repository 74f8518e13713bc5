//! Shapes of atomic accesses: instructions and calls of the `__atomic_*` library.

use inkwell::llvm_sys::LLVMAtomicOrdering;
use inkwell::llvm_sys::core::*;
use symdpor_abi::module::{AtomicKind, atomic_shape};

use crate::ir::{Kind, Module, Opcode, Value, llvm};

/// C11's numbers for the memory orders.
pub mod order {
    pub const RELAXED: u32 = 0;
    pub const ACQUIRE: u32 = 2;
    pub const RELEASE: u32 = 3;
    pub const ACQ_REL: u32 = 4;
    pub const SEQ_CST: u32 = 5;
}

/// What to report after the access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Success {
    /// A load: nothing happens afterwards.
    NoReport,
    Always,
    /// Second field of the instruction's result.
    Field,
    /// The call's result.
    Result,
}

#[derive(Clone, Copy, Debug)]
pub struct Atomic {
    pub address: Value,
    pub shape: u32,
    pub success: Success,
}

fn c11_order(order: LLVMAtomicOrdering) -> u32 {
    match order {
        LLVMAtomicOrdering::LLVMAtomicOrderingAcquire => order::ACQUIRE,
        LLVMAtomicOrdering::LLVMAtomicOrderingRelease => order::RELEASE,
        LLVMAtomicOrdering::LLVMAtomicOrderingAcquireRelease => order::ACQ_REL,
        LLVMAtomicOrdering::LLVMAtomicOrderingSequentiallyConsistent => order::SEQ_CST,
        _ => order::RELAXED,
    }
}

pub fn is_atomic(instruction: Value) -> bool {
    llvm!(LLVMIsAtomic(instruction.0)) != 0
}

/// Whether it is an access that a loop may wait with: one that reads.
pub fn may_spin(instruction: Value) -> bool {
    match instruction.kind() {
        Kind::Instruction(Opcode::LLVMLoad) => is_atomic(instruction),
        Kind::Instruction(Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg) => true,
        _ => false,
    }
}

/// The order of a fence between threads; None for one that only the compiler heeds.
pub fn fence_order(fence: Value) -> Option<u32> {
    let single_thread = llvm!(LLVMIsAtomicSingleThread(fence.0)) != 0;
    (!single_thread).then(|| c11_order(llvm!(LLVMGetOrdering(fence.0))))
}

/// The access of an atomic load, store, read-modify-write or compare-exchange.
pub fn of_instruction(module: Module, instruction: Value) -> Atomic {
    let ordering = || c11_order(llvm!(LLVMGetOrdering(instruction.0)));
    let size = |value: Value| module.store_size(value.ty()) as u32;
    match instruction.opcode() {
        Opcode::LLVMLoad => access(instruction.operand(0), size(instruction), AtomicKind::Load, ordering()),
        Opcode::LLVMStore => {
            access(instruction.operand(1), size(instruction.operand(0)), AtomicKind::Store, ordering())
        }
        Opcode::LLVMAtomicRMW => {
            access(instruction.operand(0), size(instruction.operand(1)), AtomicKind::Rmw, ordering())
        }
        _ => compare_exchange(instruction, size(instruction.operand(1))),
    }
}

fn access(address: Value, size: u32, kind: AtomicKind, order: u32) -> Atomic {
    let success = if kind == AtomicKind::Load { Success::NoReport } else { Success::Always };
    Atomic { address, shape: atomic_shape(size, kind, order, 0), success }
}

fn compare_exchange(instruction: Value, size: u32) -> Atomic {
    let success = c11_order(llvm!(LLVMGetCmpXchgSuccessOrdering(instruction.0)));
    let failure = c11_order(llvm!(LLVMGetCmpXchgFailureOrdering(instruction.0)));
    let shape = atomic_shape(size, AtomicKind::Cas, success, failure);
    Atomic { address: instruction.operand(0), shape, success: Success::Field }
}

/// A read-modify-write with the strongest order, for `lock`ed inline assembly.
pub fn locked(address: Value, size: u32) -> Atomic {
    access(address, size, AtomicKind::Rmw, order::SEQ_CST)
}

/// A move of inline assembly: on x86 every load acquires, every store releases.
pub fn moved(address: Value, size: u32, store: bool) -> Atomic {
    let (kind, order) = if store { (AtomicKind::Store, order::RELEASE) } else { (AtomicKind::Load, order::ACQUIRE) };
    access(address, size, kind, order)
}

/// A call of the `__atomic_*` library: the access, and the plain memory it goes through besides.
pub struct LibraryCall {
    pub atomic: Atomic,
    /// Read and written through pointers (`expected`, `return`), of the access's size.
    pub reads: Vec<Value>,
    pub writes: Vec<Value>,
    pub size: u64,
}

/// Sizes above this do not fit into a shape.
const MAX_SIZE: u64 = 255;

pub fn of_library_call(name: &str, call: Value) -> Option<LibraryCall> {
    let rest = name.strip_prefix("__atomic_")?;
    let arguments = call.call_arguments();
    match rest.rsplit_once('_').and_then(|(op, size)| Some((op, size.parse::<u64>().ok()?))) {
        Some((operation, size)) => sized_call(operation, size, &arguments),
        None => generic_call(rest, &arguments),
    }
}

/// `__atomic_load_8` and the like: values are passed in registers.
fn sized_call(operation: &str, size: u64, arguments: &[Value]) -> Option<LibraryCall> {
    let kind = match operation {
        "load" => AtomicKind::Load,
        "store" => AtomicKind::Store,
        "compare_exchange" => AtomicKind::Cas,
        "exchange" => AtomicKind::Rmw,
        _ if operation.starts_with("fetch_") || operation.ends_with("_fetch") => AtomicKind::Rmw,
        _ => return None,
    };
    let reads = if kind == AtomicKind::Cas { vec![*arguments.get(1)?] } else { vec![] };
    library_call(kind, size, *arguments.first()?, arguments, reads, vec![])
}

/// `__atomic_load` and the like: the size comes first, values are passed by address.
fn generic_call(operation: &str, arguments: &[Value]) -> Option<LibraryCall> {
    let size = arguments.first()?.constant_int().unwrap_or(MAX_SIZE);
    let at = |i: usize| arguments.get(i).copied().into_iter().collect::<Vec<_>>();
    let (kind, reads, writes) = match operation {
        "load" => (AtomicKind::Load, vec![], at(2)),
        "store" => (AtomicKind::Store, at(2), vec![]),
        "exchange" => (AtomicKind::Rmw, at(2), at(3)),
        "compare_exchange" => (AtomicKind::Cas, [at(2), at(3)].concat(), vec![]),
        _ => return None,
    };
    library_call(kind, size, *arguments.get(1)?, arguments, reads, writes)
}

fn library_call(
    kind: AtomicKind,
    size: u64,
    address: Value,
    arguments: &[Value],
    reads: Vec<Value>,
    writes: Vec<Value>,
) -> Option<LibraryCall> {
    let orders: Vec<u32> = arguments.iter().rev().map(|a| constant_order(*a)).take(2).collect();
    let (order, failure) = if kind == AtomicKind::Cas { (*orders.get(1)?, orders[0]) } else { (orders[0], 0) };
    let success = match kind {
        AtomicKind::Load => Success::NoReport,
        AtomicKind::Cas => Success::Result,
        _ => Success::Always,
    };
    let shape = atomic_shape(size.min(MAX_SIZE) as u32, kind, order, failure);
    Some(LibraryCall { atomic: Atomic { address, shape, success }, reads, writes, size })
}

/// An order that is not constant is taken as the strongest.
fn constant_order(argument: Value) -> u32 {
    argument.constant_int().filter(|&o| o <= 5).map_or(order::SEQ_CST, |o| o as u32)
}
