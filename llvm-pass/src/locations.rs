//! Where in the source an instruction belongs, when the optimiser no longer says.
//!
//! Moving or merging instructions costs them their line. A load that was moved out of a loop is still used by the
//! [`keep`] that the first stage put behind it, and that has not moved; failing that, a neighbour in the same
//! block is the next best thing. Line 0 helps nobody.

use std::collections::{HashMap, HashSet};

use inkwell::llvm_sys::debuginfo::*;

use crate::ir::{Opcode, Value, llvm};
use crate::keep;
use crate::shims::{Node, node};

pub struct Locations {
    found: HashMap<Value, Node>,
}

impl Locations {
    /// To be asked while the uses of `keep` are still there.
    pub fn of(function: Value) -> Locations {
        let mut found = HashMap::new();
        if llvm!(LLVMGetSubprogram(function.0)).is_null() {
            return Locations { found };
        }
        for block in function.blocks() {
            let instructions = block.instructions();
            for (i, &instruction) in instructions.iter().enumerate().filter(|(_, i)| own(**i).is_none()) {
                let near = || nearest(&instructions, i);
                if let Some(location) = from_kept_use(instruction).or_else(near) {
                    found.insert(instruction, location);
                }
            }
        }
        Locations { found }
    }

    /// The best known location, if there is any.
    pub fn get(&self, instruction: Value) -> Option<Node> {
        let given = node(llvm!(LLVMInstructionGetDebugLoc(instruction.0)));
        own(instruction).or_else(|| self.found.get(&instruction).copied()).or(given)
    }
}

/// The instruction's own location, if it names a line.
fn own(instruction: Value) -> Option<Node> {
    let location = node(llvm!(LLVMInstructionGetDebugLoc(instruction.0)))?;
    (llvm!(LLVMDILocationGetLine(location.0)) != 0).then_some(location)
}

/// Follows a load's value through phis to a use of `keep`; of several the one in the lowest line.
fn from_kept_use(load: Value) -> Option<Node> {
    if !load.is(Opcode::LLVMLoad) {
        return None;
    }
    let mut seen = HashSet::new();
    let mut work = vec![load];
    let mut found = Vec::new();
    while let Some(value) = work.pop() {
        for user in value.users().into_iter().filter(|u| seen.insert(*u)) {
            if keep::is_use(user) {
                found.extend(own(user));
            } else if user.is(Opcode::LLVMPHI) {
                work.push(user);
            }
        }
    }
    found.into_iter().min_by_key(|l| (llvm!(LLVMDILocationGetLine(l.0)), llvm!(LLVMDILocationGetColumn(l.0))))
}

/// Behind first: an address computation's user says more than what came before.
fn nearest(instructions: &[Value], index: usize) -> Option<Node> {
    let behind = instructions[index..].iter().find_map(|i| own(*i));
    behind.or_else(|| instructions[..index].iter().rev().find_map(|i| own(*i)))
}
