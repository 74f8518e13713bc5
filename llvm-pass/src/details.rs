//! What an instruction means beyond its opcode and operands, for the digest: one number, a type, case values.
//!
//! Two instructions with equal opcode, types, operands and details do the same. Left out is what only helps the
//! optimiser (no overflow, in bounds, alignment, attributes of calls).

use inkwell::llvm_sys::core::*;

use crate::ir::{Opcode, Type, Value, llvm};

/// What tells two instructions with the same opcode and operands apart.
pub fn detail(instruction: Value) -> u64 {
    use Opcode::*;
    let raw = instruction.0;
    match instruction.opcode() {
        LLVMICmp => llvm!(LLVMGetICmpPredicate(raw)) as u64,
        LLVMFCmp => llvm!(LLVMGetFCmpPredicate(raw)) as u64 | fast_math(instruction) << 8,
        LLVMAtomicRMW | LLVMAtomicCmpXchg | LLVMLoad | LLVMStore | LLVMFence => memory_detail(instruction),
        LLVMExtractValue | LLVMInsertValue => indices(instruction),
        LLVMShuffleVector => shuffle_mask(instruction),
        LLVMLandingPad => llvm!(LLVMIsCleanup(raw)) as u64,
        _ => fast_math(instruction),
    }
}

/// The type that an instruction names besides that of its result.
pub fn source_type(instruction: Value) -> Option<Type> {
    match instruction.opcode() {
        Opcode::LLVMAlloca => Some(Type(llvm!(LLVMGetAllocatedType(instruction.0)))),
        Opcode::LLVMGetElementPtr => Some(Type(llvm!(LLVMGetGEPSourceElementType(instruction.0)))),
        _ => None,
    }
}

/// LLVM keeps the values that a switch compares with apart from its operands. The first successor has none.
pub fn case_values(instruction: Value) -> Vec<Value> {
    if !instruction.is(Opcode::LLVMSwitch) {
        return Vec::new();
    }
    let successors = llvm!(LLVMGetNumSuccessors(instruction.0));
    (1..successors).map(|i| Value(llvm!(LLVMGetSwitchCaseValue(instruction.0, i)))).collect()
}

/// How memory is accessed: orders, and for whom.
fn memory_detail(instruction: Value) -> u64 {
    use Opcode::*;
    let raw = instruction.0;
    let own_thread = llvm!(LLVMIsAtomicSingleThread(raw)) as u64;
    match instruction.opcode() {
        LLVMAtomicRMW => {
            let order = llvm!(LLVMGetOrdering(raw)) as u64;
            llvm!(LLVMGetAtomicRMWBinOp(raw)) as u64 | order << 8 | own_thread << 16
        }
        LLVMAtomicCmpXchg => {
            let failure = llvm!(LLVMGetCmpXchgFailureOrdering(raw)) as u64;
            let weak = llvm!(LLVMGetWeak(raw)) as u64;
            llvm!(LLVMGetCmpXchgSuccessOrdering(raw)) as u64 | failure << 8 | own_thread << 16 | weak << 17
        }
        LLVMFence => llvm!(LLVMGetOrdering(raw)) as u64 | own_thread << 16,
        _ => llvm!(LLVMGetOrdering(raw)) as u64 | (llvm!(LLVMGetVolatile(raw)) as u64) << 8 | own_thread << 16,
    }
}

/// What floating-point arithmetic may ignore; 0 for anything else.
fn fast_math(instruction: Value) -> u64 {
    let may = llvm!(LLVMCanValueUseFastMathFlags(instruction.0)) != 0;
    if may { llvm!(LLVMGetFastMathFlags(instruction.0)).into() } else { 0 }
}

/// The path into an aggregate, in one number.
fn indices(instruction: Value) -> u64 {
    let count = llvm!(LLVMGetNumIndices(instruction.0)) as usize;
    let data = llvm!(LLVMGetIndices(instruction.0));
    // SAFETY: the instruction's own indices, which live as long as it does.
    let indices = unsafe { std::slice::from_raw_parts(data, count) };
    fold(indices.iter().map(|&i| u64::from(i)))
}

fn shuffle_mask(instruction: Value) -> u64 {
    let count = llvm!(LLVMGetNumMaskElements(instruction.0));
    fold((0..count).map(|i| llvm!(LLVMGetMaskValue(instruction.0, i)) as u64))
}

/// FNV-1a over numbers: equal lists have equal numbers, and different ones practically never do.
fn fold(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0xcbf2_9ce4_8422_2325, |hash, n| (hash ^ n).wrapping_mul(0x100_0000_01b3))
}
