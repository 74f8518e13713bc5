//! A function as a graph of steps.
//!
//! A step is an instruction with an effect, or a decision (a branch with a condition, a switch). What lies between two
//! steps - instructions without effect, jumps, phis - becomes part of the edge: what each local holds when the next
//! step begins, as a term over the locals at the end of the step before. So the order of blocks, jumps to jumps, which
//! locals a value is carried in, and the order of instructions without effect leave no trace. Locals are variables that
//! instructions assign to; nothing depends on each having one definition that dominates its uses.
//!
//! A decision has no effect, so the instructions without effect before it in its block belong to it, and its condition
//! is a term: `if (a != b) x else y` becomes `if (a == b) y else x`.

use crate::function::{Function, Instruction};
use crate::opcode;
use crate::operand::Operand;
use crate::term::{Operator, Shape, Term, Terms};
use rustc_hash::FxHashMap;

/// Work per instruction of the function before it is given up.
const WORK: usize = 50;

/// Where code ends without saying so.
pub const END: usize = 0;
/// Where nothing ever happens again.
pub const IDLE: usize = 1;
/// Steps from here on are those of the function.
pub const FIRST: usize = 2;

const NONE: usize = usize::MAX;

pub struct Steps {
    pub all: Vec<Step>,
    pub terms: Terms,
    /// By instruction.
    at: Vec<usize>,
}

#[derive(Default)]
pub struct Step {
    /// None for the end and for idling.
    pub instruction: Option<usize>,
    pub parts: Vec<Part>,
    pub edges: Vec<Edge>,
}

/// An operand.
pub enum Part {
    /// Over the locals before the step.
    Value(Term),
    /// Which edge.
    Edge(usize),
}

/// What comes next, and what has been assigned on the way; everything else is as it was.
#[derive(Clone)]
pub struct Edge {
    pub target: usize,
    pub assigned: FxHashMap<u32, Term>,
}

impl Steps {
    /// None if there is too much of it, or something that a compiler would not write.
    pub fn of(function: &Function) -> Option<Steps> {
        let at = vec![NONE; function.instructions.len()];
        let steps = Steps { all: vec![Step::default(), Step::default()], terms: Terms::default(), at };
        let mut builder =
            Builder { function, steps, places: Vec::new(), work: 1000 + WORK * function.instructions.len() };
        for block in 0..function.blocks.len() as u32 {
            builder.find_steps(block)?;
        }
        for (i, (block, start, place)) in std::mem::take(&mut builder.places).into_iter().enumerate() {
            builder.steps.all[FIRST + i] = builder.step(block, start, place)?;
        }
        Some(builder.steps)
    }

    /// The step that an instruction is, if what comes before it is no part of the step.
    pub fn at(&self, function: &Function, instruction: usize) -> Option<usize> {
        let step = self.at[instruction];
        let own = step != NONE && self.all[step].instruction == Some(instruction);
        (own && !decides(&function.instructions[instruction])).then_some(step)
    }
}

struct Builder<'a> {
    function: &'a Function,
    steps: Steps,
    /// Block, first instruction that belongs to it, and its own.
    places: Vec<(u32, usize, usize)>,
    work: usize,
}

fn decides(instruction: &Instruction) -> bool {
    matches!(instruction.opcode, opcode::BR | opcode::SWITCH)
}

impl Builder<'_> {
    fn jump(&self, instruction: &Instruction) -> Option<u32> {
        match self.function.operands(instruction) {
            &[Operand::Block(to)] if instruction.opcode == opcode::BR && instruction.detail == 0 => Some(to),
            _ => None,
        }
    }

    /// The first instruction of a block that is no phi.
    fn behind_phis(&self, block: u32) -> usize {
        let range = self.function.blocks[block as usize].clone();
        let end = range.end;
        range.into_iter().find(|&p| self.function.instructions[p].opcode != opcode::PHI).unwrap_or(end)
    }

    fn find_steps(&mut self, block: u32) -> Option<()> {
        let first = self.behind_phis(block);
        let mut start = first;
        for place in first..self.function.blocks[block as usize].end {
            let instruction = &self.function.instructions[place];
            if instruction.opcode == opcode::PHI {
                return None;
            }
            if self.function.is_movable(instruction) || self.jump(instruction).is_some() {
                continue;
            }
            let begin = if decides(instruction) { start } else { place };
            self.steps.at[begin] = FIRST + self.places.len();
            self.places.push((block, begin, place));
            self.steps.all.push(Step::default());
            start = place + 1;
        }
        Some(())
    }

    fn step(&mut self, block: u32, start: usize, place: usize) -> Option<Step> {
        let mut assigned = FxHashMap::default();
        (start..place).try_for_each(|p| self.assign(p, &mut assigned))?;
        let instruction = &self.function.instructions[place];
        let mut step = Step { instruction: Some(place), ..Step::default() };
        for &operand in self.function.operands(instruction) {
            if let Operand::Block(to) = operand {
                step.parts.push(Part::Edge(step.edges.len()));
                let (mut assigned, mut from) = (assigned.clone(), block);
                let first = self.enter(&mut from, to, &mut assigned)?;
                step.edges.push(self.follow(from, first, assigned)?);
            } else {
                step.parts.push(Part::Value(self.term(operand, &assigned)));
            }
        }
        if step.edges.is_empty() && place + 1 < self.function.blocks[block as usize].end {
            step.edges.push(self.follow(block, place + 1, FxHashMap::default())?);
        }
        self.straighten(instruction, &mut step)?;
        Some(step)
    }

    /// Conditions that include equality, or are inequality, the other way round.
    fn straighten(&mut self, instruction: &Instruction, step: &mut Step) -> Option<()> {
        let &[Part::Value(condition), Part::Edge(0), Part::Edge(1)] = &step.parts[..] else { return Some(()) };
        if instruction.opcode != opcode::BR {
            return Some(());
        }
        if let Shape::Operator(operator) = self.steps.terms.shape(condition)
            && operator.opcode == opcode::ICMP
            && let Some(detail) = opcode::opposite(operator.detail)
        {
            let opposite = Operator { detail, ..operator.clone() };
            step.parts[0] = Part::Value(self.steps.terms.operator(opposite)?);
            step.edges.swap(0, 1);
        }
        Some(())
    }

    /// From an instruction on to the next step.
    fn follow(&mut self, mut block: u32, mut place: usize, mut assigned: FxHashMap<u32, Term>) -> Option<Edge> {
        let mut entered = 0;
        loop {
            if place >= self.function.blocks[block as usize].end {
                return Some(Edge { target: END, assigned });
            }
            if self.steps.at[place] != NONE {
                return Some(Edge { target: self.steps.at[place], assigned });
            }
            if let Some(to) = self.jump(&self.function.instructions[place]) {
                entered += 1;
                if entered > self.function.blocks.len() {
                    return Some(Edge { target: IDLE, assigned: FxHashMap::default() });
                }
                place = self.enter(&mut block, to, &mut assigned)?;
            } else {
                self.assign(place, &mut assigned)?;
                place += 1;
            }
            self.work = self.work.checked_sub(1)?;
        }
    }

    /// Phis take over their values all at once.
    fn enter(&mut self, block: &mut u32, to: u32, assigned: &mut FxHashMap<u32, Term>) -> Option<usize> {
        let first = self.behind_phis(to);
        let from = std::mem::replace(block, to);
        let mut taken = Vec::new();
        for place in self.function.blocks[to as usize].start..first {
            let phi = &self.function.instructions[place];
            let edge = self.function.incoming(phi).iter().position(|&b| b == from);
            let term = match edge {
                Some(edge) => self.term(self.function.operands(phi)[edge], assigned),
                None => self.steps.terms.leaf(Shape::Nothing),
            };
            // A phi may have flags about the numbers it takes over.
            let term = if phi.detail == 0 { term } else { self.operator(phi, Box::new([term]))? };
            taken.extend(phi.result.map(|local| (local, term)));
        }
        self.work = self.work.checked_sub(taken.len() + assigned.len())?;
        assigned.extend(taken);
        Some(first)
    }

    fn assign(&mut self, place: usize, assigned: &mut FxHashMap<u32, Term>) -> Option<()> {
        let instruction = &self.function.instructions[place];
        let operands = self.function.operands(instruction);
        let args = operands.iter().map(|&o| self.term(o, assigned)).collect();
        let term = self.operator(instruction, args)?;
        instruction.result.into_iter().for_each(|local| _ = assigned.insert(local, term));
        Some(())
    }

    fn operator(&mut self, instruction: &Instruction, args: Box<[Term]>) -> Option<Term> {
        let &Instruction { opcode, ty, detail, source, .. } = instruction;
        self.steps.terms.operator(Operator { opcode, ty, detail, source, args })
    }

    fn term(&mut self, operand: Operand, assigned: &FxHashMap<u32, Term>) -> Term {
        match operand {
            Operand::Local(local) => match assigned.get(&local) {
                Some(&term) => term,
                None => self.steps.terms.leaf(Shape::Local(local)),
            },
            Operand::Constant(hash) | Operand::Symbol(hash, _) | Operand::Assembly(hash) => {
                self.steps.terms.leaf(Shape::Constant(hash))
            }
            Operand::Block(_) | Operand::Opaque => self.steps.terms.leaf(Shape::Opaque),
        }
    }
}
