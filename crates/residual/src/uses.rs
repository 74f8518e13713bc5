//! How locals are used, without numbers: this decides the order of the operands of commutative operators.
//!
//! It may say anything: the program is the same either way. What is said of a copy should be said of the original, so
//! it comes from a step and what follows alone, and looks at no name and no order.

use crate::function::Function;
use crate::hash::mix;
use crate::opcode::Manner;
use crate::steps::{Edge, Part, Step, Steps};
use crate::term::{Shape, Term};
use rustc_hash::FxHashMap;

/// How far into a term uses are looked for.
const DEPTH: u32 = 3;

/// A number for each local that is used.
pub type Colours = FxHashMap<u32, u64>;

pub struct Uses<'a> {
    function: &'a Function,
    steps: &'a Steps,
    pub found: Colours,
}

impl<'a> Uses<'a> {
    pub fn new(function: &'a Function, steps: &'a Steps) -> Uses<'a> {
        Uses { function, steps, found: Colours::default() }
    }

    /// By the operands of a step.
    pub fn parts(&mut self, step: &Step) {
        let instruction = step.instruction.map(|i| &self.function.instructions[i]);
        let kind = instruction.map_or(0, |i| mix(mix(i.opcode.into(), i.detail), i.ty as u64));
        let fixed = |(i, part): (usize, &Part)| match *part {
            Part::Value(term) => match self.steps.terms.shape(term) {
                Shape::Constant(hash) => mix(i as u64, *hash as u64),
                _ => 0,
            },
            Part::Edge(_) => 1,
        };
        let kind = step.parts.iter().enumerate().map(fixed).fold(kind, mix);
        for (i, part) in step.parts.iter().enumerate() {
            if let Part::Value(term) = *part {
                self.term(term, mix(kind, i as u64), DEPTH);
            }
        }
    }

    /// By what comes next, in which locals have the given colours.
    pub fn edge(&mut self, index: usize, edge: &Edge, colours: impl Iterator<Item = (u32, u64)>) {
        for (local, colour) in colours {
            let place = mix(index as u64 + 2, colour);
            match edge.assigned.get(&local) {
                Some(&term) => self.term(term, place, DEPTH),
                None => self.local(local, place),
            }
        }
    }

    fn local(&mut self, local: u32, place: u64) {
        let ty = self.function.values[local as usize].ty as u64;
        let colour = self.found.entry(local).or_insert(ty);
        *colour = colour.wrapping_add(mix(place, 3));
    }

    fn term(&mut self, term: Term, place: u64, depth: u32) {
        match self.steps.terms.shape(term) {
            Shape::Local(local) => self.local(*local, place),
            Shape::Operator(operator) if depth > 0 => {
                let manner = Manner::of(operator.opcode, operator.detail);
                let place = mix(place, operator.key(|arg| self.anonymous(arg)));
                for (i, &arg) in operator.args.iter().enumerate() {
                    self.term(arg, mix(place, manner.role(i)), depth - 1);
                }
            }
            _ => {}
        }
    }

    fn anonymous(&self, term: Term) -> u64 {
        match self.steps.terms.shape(term) {
            Shape::Local(local) => self.function.values[*local as usize].ty as u64,
            Shape::Constant(hash) => *hash as u64,
            Shape::Operator(operator) => operator.opcode.into(),
            Shape::Nothing | Shape::Opaque => 0,
        }
    }
}

/// Keys of terms: how they are computed from locals of which colours.
pub struct Keys {
    locals: Colours,
    terms: FxHashMap<Term, u64>,
}

impl Keys {
    pub fn new(locals: Colours) -> Keys {
        Keys { locals, terms: FxHashMap::default() }
    }

    pub fn get(&mut self, steps: &Steps, term: Term) -> u64 {
        if let Some(&key) = self.terms.get(&term) {
            return key;
        }
        let key = match steps.terms.shape(term) {
            Shape::Local(local) => self.locals.get(local).copied().unwrap_or(0),
            Shape::Constant(hash) => *hash as u64,
            Shape::Nothing | Shape::Opaque => 0,
            Shape::Operator(operator) => operator.key(|arg| self.get(steps, arg)),
        };
        self.terms.insert(term, key);
        key
    }
}
