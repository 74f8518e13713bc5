//! Colours of locals: what can be said of them without numbers.
//!
//! Colours only decide in which order the operands of a commutative operator are looked at. Two locals of one colour
//! are taken in the order they are written in, so a poor colour can make equal code look different, never different
//! code equal.

use crate::function::Instruction;
use crate::hash::mix;
use crate::opcode::{Manner, PHI};
use crate::operand::Operand;
use crate::section::Rest;
use rustc_hash::FxHashSet;

/// How far a difference spreads: to uses of uses.
const ROUNDS: usize = 2;

/// One number per value of the function, from all its appearances in the residual code.
pub struct Colours {
    of: Vec<u64>,
}

impl Colours {
    pub fn of(rest: &Rest<'_>) -> Colours {
        let mut colours = Colours { of: first_colours(rest) };
        for _ in 0..ROUNDS {
            colours.spread(rest);
        }
        colours
    }

    pub fn get(&self, local: u32) -> u64 {
        self.of[local as usize]
    }

    pub fn operand(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Local(local) => self.get(local),
            Operand::Constant(hash) | Operand::Symbol(hash, _) | Operand::Assembly(hash) => hash as u64,
            Operand::Block(_) | Operand::Opaque => 0,
        }
    }

    /// Effects keep their order, so their position tells their operands apart.
    fn spread(&mut self, rest: &Rest<'_>) {
        let mut next = self.of.clone();
        for (label, section) in rest.sections().enumerate() {
            let mut place = mix(label as u64, 1);
            for instruction in &rest.function.instructions[section] {
                if !rest.function.is_movable(instruction) {
                    place = mix(place, 2);
                }
                self.appearances(rest, instruction, place, &mut next);
            }
        }
        self.of = next;
    }

    fn appearances(&self, rest: &Rest<'_>, instruction: &Instruction, place: u64, next: &mut [u64]) {
        let manner = Manner::of(instruction.opcode, instruction.detail);
        let operands = operands(rest, instruction, manner);
        let parts = operands.iter().map(|&(role, o)| mix(self.operand(o), role)).fold(0, u64::wrapping_add);
        let kind = mix(mix(place, instruction.opcode.into()), mix(instruction.ty as u64, manner.detail));
        let whole = mix(mix(kind, instruction.source as u64), parts);
        let results = instruction.result.map(|local| (u64::MAX, Operand::Local(local)));
        for (role, operand) in operands.into_iter().chain(results) {
            if let Operand::Local(local) = operand {
                let colour = &mut next[local as usize];
                *colour = colour.wrapping_add(mix(whole, role));
            }
        }
    }
}

/// Operands and their roles. Of a phi, only those that may still be taken over.
fn operands(rest: &Rest<'_>, instruction: &Instruction, manner: Manner) -> Vec<(u64, Operand)> {
    if instruction.opcode == PHI {
        return rest.incoming(instruction).into_iter().map(|(label, o)| (label.into(), o)).collect();
    }
    let written = rest.function.operands(instruction).iter().enumerate();
    written.map(|(i, &o)| (manner.role(i), o)).collect()
}

/// Type, object that it is the address of, whether either is live.
fn first_colours(rest: &Rest<'_>) -> Vec<u64> {
    let function = rest.function;
    let live: FxHashSet<u32> = rest.live().map(|l| l.local).collect();
    let colour = |local: u32| {
        let ty = function.values[local as usize].ty as u64;
        let own = mix(ty, live.contains(&local).into());
        let Some(&index) = function.object_at.get(&local) else { return own };
        let object = &function.objects[index];
        let content = live.contains(&((function.values.len() + index) as u32));
        mix(mix(own, object.kind as u64 + 1), mix(object.size, content.into()))
    };
    (0..function.values.len() as u32).map(colour).collect()
}
