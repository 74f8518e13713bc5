//! Colours of locals: what can be said of them without numbers.
//!
//! Colours only decide in which order the operands of a commutative operator are looked at. Two locals of one colour
//! are taken in the order they are written in, so a poor colour can make equal code look different, never different
//! code equal.

use crate::function::{Function, Instruction};
use crate::hash::mix;
use crate::opcode::{PHI, exchanged};
use crate::operand::Operand;
use crate::section::Rest;

/// How far a difference spreads: to uses of uses.
const ROUNDS: usize = 2;

/// One number per value of the function, from all its appearances in the residual code.
pub struct Colours {
    of: Vec<u64>,
}

impl Colours {
    pub fn of(rest: &Rest<'_>) -> Colours {
        let function = rest.function;
        let mut colours =
            Colours { of: (0..function.values.len()).map(|v| first_colour(function, v as u32)).collect() };
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
            Operand::Constant(hash) | Operand::Symbol(hash, _) => hash as u64,
            Operand::Block(_) | Operand::Opaque => 0,
        }
    }

    /// Effects keep their order, so their position tells their operands apart.
    fn spread(&mut self, rest: &Rest<'_>) {
        let mut next = self.of.clone();
        for (label, section) in rest.sections().enumerate() {
            let mut place = mix(label as u64, 1);
            for instruction in &rest.function.instructions[section] {
                if !rest.is_movable(instruction) {
                    place = mix(place, 2);
                }
                self.appearances(rest, instruction, place, &mut next);
            }
        }
        self.of = next;
    }

    fn appearances(&self, rest: &Rest<'_>, instruction: &Instruction, place: u64, next: &mut [u64]) {
        let function = rest.function;
        let operands = function.operands(instruction);
        let exchangeable = exchanged(instruction.opcode, instruction.detail);
        let detail = exchangeable.map_or(instruction.detail, |other| other.min(instruction.detail));
        let mut whole = mix(mix(place, instruction.opcode.into()), mix(instruction.ty as u64, detail));
        whole = mix(whole, instruction.source as u64);
        let ordered = exchangeable.is_none() && instruction.opcode != PHI;
        let position = |i: usize| if ordered { i as u64 } else { 0 };
        // Edges of a phi may no longer exist, so what it takes over is left out.
        if instruction.opcode != PHI {
            let parts = operands.iter().enumerate().map(|(i, &o)| mix(self.operand(o), position(i)));
            whole = mix(whole, parts.fold(0, u64::wrapping_add));
        }
        let mut meet = |local: u32, role: u64| {
            let colour = &mut next[local as usize];
            *colour = colour.wrapping_add(mix(whole, role));
        };
        instruction.result.into_iter().for_each(|local| meet(local, u64::MAX));
        if instruction.opcode == PHI {
            let locals = rest.incoming(instruction).into_iter();
            locals.for_each(|(label, o)| {
                if let Operand::Local(l) = o {
                    meet(l, label.into())
                }
            });
        } else {
            let locals = operands.iter().enumerate();
            locals.for_each(|(i, o)| {
                if let Operand::Local(l) = o {
                    meet(*l, position(i))
                }
            });
        }
    }
}

fn first_colour(function: &Function, value: u32) -> u64 {
    let ty = function.values[value as usize].ty as u64;
    let object = function.object_at.get(&value).map(|&i| &function.objects[i]);
    object.map_or(ty, |o| mix(ty, mix(o.kind as u64 + 1, o.size)))
}
