//! What depends on where memory is: comparisons that ask which of two addresses is the higher one, and hashes of addresses.
//!
//! Exchanging two threads moves what they have to themselves, and so changes how it lies to everything else. Whoever asks for that is told
//! apart: the runtime notes which blocks were compared. Not asked is within one object, be it that it can be seen here or
//! when the program runs; nor is whether two ranges overlap, as in loops that were vectorised: those of different blocks never do, however they lie.
//!
//! A hash is what is divided, multiplied or shifted. To set and to look at the lowest bits, as those do that mark pointers, is none.
//!
//! Not covered: addresses that went through integers of other widths, or through arithmetic that is none of an address; several compared at once, by
//! vector instructions.

use std::collections::HashSet;

use inkwell::llvm_sys::LLVMIntPredicate;
use inkwell::llvm_sys::LLVMTypeKind;
use inkwell::llvm_sys::core::*;

use crate::ir::{Kind, Opcode, Value, llvm};

/// A comparison, and the addresses; or a hash, of one.
pub struct Order {
    pub instruction: Value,
    pub address: Value,
    pub other: Option<Value>,
}

/// Those of a function.
pub fn of(function: Value) -> Vec<Order> {
    let returns_hash = HASHES.iter().any(|prefix| function.name().starts_with(prefix));
    let all = function.blocks().into_iter().flat_map(|b| b.instructions());
    all.filter_map(|instruction| comparison(instruction).or_else(|| hash(instruction, returns_hash))).collect()
}

fn comparison(instruction: Value) -> Option<Order> {
    let [address, other] = addresses(instruction).filter(|addresses| matters(instruction, *addresses))?;
    Some(Order { instruction, address, other: Some(other) })
}

/// `std::hash` of a pointer.
const HASHES: [&str; 2] = ["_ZNKSt4hashIP", "_ZNKSt3__14hashIP"];

fn hash(instruction: Value, returns_hash: bool) -> Option<Order> {
    use Opcode::*;
    let Kind::Instruction(opcode) = instruction.kind() else { return None };
    let is_one = match opcode {
        LLVMMul | LLVMLShr | LLVMAShr | LLVMShl | LLVMUDiv | LLVMSDiv => true,
        // Whether something is aligned all memory of its kind agrees on.
        LLVMURem | LLVMSRem => instruction.operand(1).constant_int().is_none_or(|by| !by.is_power_of_two()),
        LLVMRet => returns_hash && !instruction.operands().is_empty(),
        _ => false,
    };
    let mut value = is_one.then(|| instruction.operand(0))?;
    while [LLVMXor, LLVMAnd, LLVMOr, LLVMAdd, LLVMFreeze].into_iter().any(|o| value.is(o)) {
        value = value.operand(0);
    }
    let address = if value.is(LLVMPtrToInt) { address(value.operand(0)) } else { address(value) };
    address.map(|address| Order { instruction, address, other: None })
}

/// What is compared, if it is addresses, and by their order.
fn addresses(comparison: Value) -> Option<[Value; 2]> {
    use LLVMIntPredicate::{LLVMIntEQ, LLVMIntNE};
    if !comparison.is(Opcode::LLVMICmp)
        || matches!(llvm!(LLVMGetICmpPredicate(comparison.0)), LLVMIntEQ | LLVMIntNE)
        || comparison.operand(0).ty().is_vector()
    {
        return None;
    }
    Some([address(comparison.operand(0))?, address(comparison.operand(1))?])
}

/// What may be an address, be it as an integer. The null pointer is none.
fn address(value: Value) -> Option<Value> {
    let ty = value.ty();
    let may_be_one = match ty.kind() {
        _ if ty.is_pointer() => llvm!(LLVMIsNull(value.0)) == 0 && llvm!(LLVMGetPointerAddressSpace(ty.0)) == 0,
        LLVMTypeKind::LLVMIntegerTypeKind => ty.int_width() == 64 && may_be_address(value),
        _ => false,
    };
    may_be_one.then_some(value)
}

/// Whether an integer may be an address. Code that is optimised keeps few signs of that: atomic pointers are loaded as integers, and those that
/// are only compared never become pointers. What counts from a constant on, or is computed otherwise, is none.
fn may_be_address(integer: Value) -> bool {
    use Opcode::*;
    let (mut seen, mut work) = (HashSet::new(), vec![integer]);
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        match value.kind() {
            Kind::Argument => {}
            Kind::Instruction(opcode) => match opcode {
                LLVMPtrToInt | LLVMCall | LLVMInvoke | LLVMExtractValue | LLVMAtomicRMW => {}
                LLVMLoad if counts(value.operand(0)) => return false,
                LLVMLoad => {}
                LLVMAdd | LLVMOr | LLVMAnd | LLVMFreeze => work.push(value.operand(0)),
                LLVMPHI => work.extend(value.operands()),
                LLVMSelect => work.extend([value.operand(1), value.operand(2)]),
                _ => return false,
            },
            _ => return false,
        }
    }
    true
}

/// Whether a variable is one that counts: something is added to what it holds.
fn counts(variable: Value) -> bool {
    let adds = |sum: Value| {
        let held = sum.operand(0);
        held.is(Opcode::LLVMLoad) && held.operand(0) == variable && sum.operand(1).constant_int().is_some()
    };
    let is_count =
        |user: Value| user.is(Opcode::LLVMStore) && user.operand(0).is(Opcode::LLVMAdd) && adds(user.operand(0));
    variable.is(Opcode::LLVMAlloca) && variable.users().into_iter().any(is_count)
}

fn matters(comparison: Value, addresses: [Value; 2]) -> bool {
    let [one, other] = addresses.map(bases);
    let only_one = one.len() == 1 && one == other;
    let on_own_stack = [&one, &other].iter().all(|all| all.iter().all(|base| base.is(Opcode::LLVMAlloca)));
    !only_one && !on_own_stack && !is_for_overlap(comparison, addresses, [&one, &other])
}

/// What an address is computed from.
fn bases(address: Value) -> HashSet<Value> {
    use Opcode::*;
    let (mut found, mut seen, mut work) = (HashSet::new(), HashSet::new(), vec![address]);
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        match () {
            _ if [LLVMGetElementPtr, LLVMBitCast, LLVMAddrSpaceCast, LLVMFreeze].into_iter().any(|o| value.is(o)) => {
                work.push(value.operand(0));
            }
            _ if value.is(LLVMIntToPtr) || value.is(LLVMPtrToInt) => work.push(value.operand(0)),
            _ if value.is(LLVMPHI) => work.extend(value.operands()),
            _ if value.is(LLVMSelect) => work.extend([value.operand(1), value.operand(2)]),
            _ => _ = found.insert(value),
        }
    }
    found
}

/// Whether it is one half of `a < end of b && b < end of a`.
fn is_for_overlap(comparison: Value, compared: [Value; 2], [one, other]: [&HashSet<Value>; 2]) -> bool {
    let both = comparison.users().into_iter().filter(|u| u.is(Opcode::LLVMAnd) || u.is(Opcode::LLVMSelect));
    let mut halves = both.flat_map(|u| u.operands()).filter(|half| *half != comparison);
    halves.any(|half| {
        let Some(addresses) = addresses(half) else { return false };
        let [first, second] = addresses.map(bases);
        let crossed = first == *other && second == *one || first == *one && second == *other;
        crossed && addresses != compared
    })
}
