//! Residual code, canonically numbered and hashed: for points that have no behaviour (`behaviour.rs`).
//!
//! The rules R0 to R13 of Fig. 3 of the paper named in the crate's header, turned round: instead of building a
//! bijection for two pieces of code, each is written out with its locals and labels numbered in the order in which they
//! are met. Two have a bijection exactly when they are written the same. Globals, functions and constants stand for
//! themselves.
//!
//! What is written is the code in an order of our choice: instructions without effect that stand between the same two
//! effects come in the order in which they are needed, and the operands of commutative operators in an order that does
//! not depend on how they were written. Both are the same program, so equal text means equal code, whatever the order.
//!
//! Deviations from the paper: a block that a loop leads back to is written twice, its rest as label 0 and the whole of
//! it under a label of its own, with the same locals. Of a phi only the edges that can still be taken count.

use crate::colour::Colours;
use crate::function::Instruction;
use crate::hash::{Structure, mix};
use crate::opcode;
use crate::operand::Operand;
use crate::section::Rest;
use std::ops::Range;

const CODE: u64 = 4;

/// Tags of what is written.
mod tag {
    pub const SECTION: u64 = 1;
    pub const INSTRUCTION: u64 = 2;
    pub const UNDER_WAY: u64 = 3;
    pub const LOCAL: u64 = 4;
    pub const LABEL: u64 = 5;
    pub const CONSTANT: u64 = 6;
    pub const OPAQUE: u64 = 7;
    pub const PHI: u64 = 8;
}

const UNNUMBERED: u32 = u32::MAX;

/// Operators within operators that a key looks at, and operands of each.
const KEY_DEPTH: u32 = 3;
const KEY_WIDTH: usize = 4;

pub struct Written {
    pub text: Structure,
    /// Values in the order of their numbers.
    pub met: Vec<u32>,
    /// Everything in it can be compared.
    pub comparable: bool,
    /// Values that were not met are not needed, whatever the digest says.
    pub exact: bool,
}

pub fn write(rest: &Rest<'_>) -> Written {
    let function = rest.function;
    let mut writer = Writer {
        rest,
        out: Written { text: Structure::new(CODE), met: Vec::new(), comparable: true, exact: false },
        numbers: vec![UNNUMBERED; function.values.len()],
        visited: vec![0; function.instructions.len()],
        section: 0,
        range: 0..0,
        colours: None,
    };
    if let Some(call) = rest.under_way() {
        writer.under_way(call);
    }
    for section in rest.sections() {
        writer.section(section);
    }
    writer.out
}

struct Writer<'a> {
    rest: &'a Rest<'a>,
    out: Written,
    /// Per value.
    numbers: Vec<u32>,
    /// Per instruction, the last section in which it was taken up.
    visited: Vec<u32>,
    section: u32,
    range: Range<usize>,
    colours: Option<Colours>,
}

/// An instruction that waits for its operands to be written.
struct Waiting {
    place: usize,
    next: usize,
    exchange: Option<u64>,
}

impl Writer<'_> {
    /// Coming back from a call: its result is new, and an invoke also says where it goes on.
    fn under_way(&mut self, call: &Instruction) {
        self.out.text.words(&[tag::UNDER_WAY, call.opcode.into()]);
        self.out.text.wide(call.ty);
        call.result.into_iter().for_each(|local| self.local(local));
        for &operand in self.rest.function.operands(call) {
            if let Operand::Block(_) = operand {
                self.operand(operand);
            }
        }
    }

    /// Movable instructions are held back until the next effect.
    fn section(&mut self, section: Range<usize>) {
        self.section += 1;
        self.range = section.clone();
        self.out.text.word(tag::SECTION);
        let mut run = section.start;
        for place in section.clone() {
            if !self.rest.function.is_movable(&self.rest.function.instructions[place]) {
                self.take_up(place, run);
                self.take_up_all(run..place);
                self.finish(place);
                run = place + 1;
            }
        }
        self.take_up_all(run..section.end);
    }
}

/// Order.
impl Writer<'_> {
    /// Writes what an instruction needs of the run that begins at `run`, and then itself if it belongs to the run.
    fn take_up(&mut self, root: usize, run: usize) {
        let mut waiting = Vec::new();
        self.wait(root, &mut waiting);
        while let Some(top) = waiting.last_mut() {
            let place = top.place;
            match self.rest.function.operands(&self.rest.function.instructions[place]).get(top.position()) {
                Some(&operand) => {
                    top.next += 1;
                    let definition = self.in_run(operand, run, place);
                    definition.into_iter().for_each(|d| self.wait(d, &mut waiting));
                }
                None => {
                    let exchange = top.exchange;
                    waiting.pop();
                    if self.rest.function.is_movable(&self.rest.function.instructions[place]) {
                        self.instruction(place, exchange);
                    }
                }
            }
        }
    }

    /// What no effect asked for: results that have a number first, then by how they are computed.
    fn take_up_all(&mut self, run: Range<usize>) {
        let mut held: Vec<usize> = run.clone().filter(|&place| self.visited[place] != self.section).collect();
        if held.len() > 1 {
            held.sort_by_cached_key(|&place| self.held_rank(place));
        }
        held.into_iter().for_each(|place| self.take_up(place, run.start));
    }

    fn held_rank(&mut self, place: usize) -> (u32, u64) {
        let result = self.rest.function.instructions[place].result;
        match result.map_or(UNNUMBERED, |local| self.numbers[local as usize]) {
            UNNUMBERED => (UNNUMBERED, self.expression_key(place, KEY_DEPTH)),
            number => (number, 0),
        }
    }

    /// The root of an effect is written by [`Writer::finish`], behind the whole run.
    fn wait(&mut self, place: usize, waiting: &mut Vec<Waiting>) {
        if std::mem::replace(&mut self.visited[place], self.section) != self.section {
            let exchange = self.exchange(place);
            waiting.push(Waiting { place, next: 0, exchange });
        }
    }

    fn finish(&mut self, place: usize) {
        if self.rest.function.instructions[place].opcode == opcode::PHI {
            self.phi(place);
        } else {
            self.instruction(place, None);
        }
    }

    /// The instruction of the run that defines an operand of the one at `user`, if there is one.
    fn in_run(&self, operand: Operand, run: usize, user: usize) -> Option<usize> {
        let Operand::Local(local) = operand else { return None };
        self.rest.function.values[local as usize].definition.filter(|d| (run..user).contains(d))
    }

    /// The detail to write with the operands exchanged, if they are better exchanged.
    fn exchange(&mut self, place: usize) -> Option<u64> {
        let instruction = &self.rest.function.instructions[place];
        let &[first, second] = self.rest.function.operands(instruction) else { return None };
        let detail = opcode::exchanged(instruction.opcode, instruction.detail)?;
        let exchanged = (self.rank(second, place), detail);
        (exchanged < (self.rank(first, place), instruction.detail)).then_some(detail)
    }

    /// Numbered locals, other locals, constants.
    fn rank(&mut self, operand: Operand, user: usize) -> (u32, u64) {
        match operand {
            Operand::Local(local) => match self.numbers[local as usize] {
                UNNUMBERED => (1, self.key(local, user, KEY_DEPTH)),
                number => (0, number.into()),
            },
            Operand::Constant(hash) | Operand::Symbol(hash, _) | Operand::Assembly(hash) => (2, hash as u64),
            Operand::Block(_) | Operand::Opaque => (3, 0),
        }
    }

    /// A local that has no number, by how it is computed and where it is used.
    fn key(&mut self, local: u32, user: usize, depth: u32) -> u64 {
        // What lies before the point is no part of the code, however near.
        let definition = self.rest.function.values[local as usize].definition;
        let here = definition.filter(|d| depth > 0 && *d < user && self.range.contains(d));
        match here {
            Some(place) if self.rest.function.is_movable(&self.rest.function.instructions[place]) => {
                self.expression_key(place, depth)
            }
            _ => self.colour(local),
        }
    }

    fn expression_key(&mut self, place: usize, depth: u32) -> u64 {
        let instruction = &self.rest.function.instructions[place];
        let manner = opcode::Manner::of(instruction.opcode, instruction.detail);
        let mut parts = 0u64;
        for (i, &operand) in self.rest.function.operands(instruction).iter().take(KEY_WIDTH).enumerate() {
            let (class, key) = match operand {
                Operand::Local(local) if self.numbers[local as usize] == UNNUMBERED => {
                    (1, self.key(local, place, depth - 1))
                }
                other => self.rank(other, place),
            };
            parts = parts.wrapping_add(mix(mix(class.into(), key), manner.role(i)));
        }
        mix(
            mix(mix(instruction.opcode.into(), instruction.ty as u64), mix(manner.detail, instruction.source as u64)),
            parts,
        )
    }

    fn colour(&mut self, local: u32) -> u64 {
        self.colours.get_or_insert_with(|| Colours::of(self.rest)).get(local)
    }
}

impl Waiting {
    /// Which operand comes next.
    fn position(&self) -> usize {
        match self.exchange {
            Some(_) if self.next < 2 => 1 - self.next,
            _ => self.next,
        }
    }
}

/// Text.
impl Writer<'_> {
    fn instruction(&mut self, place: usize, exchange: Option<u64>) {
        let instruction = &self.rest.function.instructions[place];
        let operands = self.rest.function.operands(instruction);
        self.head(tag::INSTRUCTION, instruction, exchange.unwrap_or(instruction.detail), operands.len());
        match (exchange, operands) {
            (Some(_), &[first, second]) => [second, first].into_iter().for_each(|o| self.operand(o)),
            _ => operands.iter().for_each(|&o| self.operand(o)),
        }
        instruction.result.into_iter().for_each(|local| self.local(local));
    }

    fn phi(&mut self, place: usize) {
        let instruction = &self.rest.function.instructions[place];
        let incoming = self.rest.incoming(instruction);
        self.head(tag::PHI, instruction, instruction.detail, incoming.len());
        for (label, operand) in incoming {
            self.out.text.word(label.into());
            self.operand(operand);
        }
        instruction.result.into_iter().for_each(|local| self.local(local));
    }

    fn head(&mut self, tag: u64, instruction: &Instruction, detail: u64, operands: usize) {
        self.out.text.words(&[tag, instruction.opcode.into(), detail, operands as u64]);
        self.out.text.wide(instruction.ty);
        self.out.text.wide(instruction.source);
    }

    fn operand(&mut self, operand: Operand) {
        match operand {
            Operand::Local(local) => self.local(local),
            Operand::Block(block) => self.out.text.words(&[tag::LABEL, self.rest.target(block).into()]),
            Operand::Constant(hash) | Operand::Symbol(hash, _) | Operand::Assembly(hash) => {
                self.out.text.word(tag::CONSTANT);
                self.out.text.wide(hash);
            }
            Operand::Opaque => {
                self.out.text.word(tag::OPAQUE);
                self.out.comparable = false;
            }
        }
    }

    fn local(&mut self, local: u32) {
        let number = &mut self.numbers[local as usize];
        if *number == UNNUMBERED {
            *number = self.out.met.len() as u32;
            self.out.met.push(local);
        }
        self.out.text.words(&[tag::LOCAL, (*number).into()]);
    }
}
