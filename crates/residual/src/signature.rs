//! One step written out: the instruction, its operands, and what it passes on to the steps that follow.
//!
//! A step needs some locals, in an order: first those that it is known to need, then as the text meets them, the
//! operands first, then what each successor needs in the successor's own order. In the text they are numbers, so it
//! does not depend on their names. Text and order follow from what is known of the step and its successors, whatever
//! that is.

use crate::function::{Function, Instruction};
use crate::hash::Structure;
use crate::opcode;
use crate::steps::{Part, Steps};
use crate::term::{Operator, Shape, Term};
use crate::uses::{Colours, Keys, Uses};

const STEP: u64 = 8;

/// Tags of what is written.
mod tag {
    pub const INSTRUCTION: u64 = 1;
    pub const UNDER_WAY: u64 = 2;
    pub const NOWHERE: u64 = 3;
    pub const VALUE: u64 = 4;
    pub const EDGE: u64 = 5;
    pub const LOCAL: u64 = 6;
    pub const RESULT: u64 = 7;
    pub const CONSTANT: u64 = 8;
    pub const NOTHING: u64 = 9;
    pub const OPAQUE: u64 = 10;
    pub const OPERATOR: u64 = 11;
    pub const AGAIN: u64 = 12;
    pub const NEXT: u64 = 13;
}

/// How far into a term its numbers are looked for.
const NUMBER_DEPTH: u32 = 3;

/// What is known of a step so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    pub id: u128,
    /// Locals that it needs.
    pub needs: Vec<u32>,
    /// Something in it, or in what follows, can be compared with nothing.
    pub opaque: bool,
}

/// What a step is written from.
#[derive(Clone, Copy)]
struct At<'k> {
    step: usize,
    colours: Option<&'k Colours>,
    known: &'k [Known],
}

pub struct Writer<'a> {
    function: &'a Function,
    steps: &'a Steps,
    /// Per local, the text in which it was met and its number there.
    numbers: Vec<(u32, u32)>,
    text_number: u32,
    /// Per term, the moment at which it was written and its number.
    written: Vec<(u32, u32)>,
    moment: u32,
    terms_written: u32,
    text: Structure,
    known: Known,
    /// The local that the step assigns, while what follows it is written.
    result: Option<u32>,
    keys: Option<Keys>,
    /// Locals passed on so far, over all texts.
    pub work: usize,
}

impl<'a> Writer<'a> {
    pub fn new(function: &'a Function, steps: &'a Steps) -> Writer<'a> {
        Writer {
            function,
            steps,
            numbers: vec![(0, 0); function.values.len()],
            text_number: 0,
            written: vec![(0, 0); steps.terms.len()],
            moment: 0,
            terms_written: 0,
            text: Structure::new(STEP),
            known: Known::default(),
            result: None,
            keys: None,
            work: 0,
        }
    }

    /// The step as a whole; `needs` are locals that it is known to need, `colours` tell others apart.
    pub fn step(&mut self, step: usize, needs: &[u32], colours: Option<&Colours>, known: &[Known]) -> Known {
        self.begin();
        needs.iter().for_each(|&local| _ = self.number(local));
        let at = At { step, colours, known };
        let Some(place) = self.steps.all[step].instruction else {
            self.text.words(&[tag::NOWHERE, step as u64]);
            return self.end();
        };
        let instruction = &self.function.instructions[place];
        self.head(tag::INSTRUCTION, instruction);
        self.text.words(&[instruction.detail, self.steps.all[step].parts.len() as u64]);
        self.text.wide(instruction.source);
        for part in &self.steps.all[step].parts {
            match *part {
                Part::Edge(edge) => self.text.words(&[tag::EDGE, edge as u64]),
                Part::Value(term) => {
                    self.text.word(tag::VALUE);
                    self.term(term, at);
                }
            }
        }
        self.edges(at);
        self.end()
    }

    /// What is left of a call that is under way: its result is new.
    pub fn under_way(&mut self, step: usize, known: &[Known]) -> Known {
        self.begin();
        if let Some(place) = self.steps.all[step].instruction {
            self.head(tag::UNDER_WAY, &self.function.instructions[place]);
        }
        self.edges(At { step, colours: None, known });
        self.end()
    }

    fn begin(&mut self) {
        self.text_number += 1;
        self.text = Structure::new(STEP);
        self.known = Known::default();
        self.keys = None;
        self.result = None;
        self.next_moment();
    }

    fn end(&mut self) -> Known {
        self.known.id = self.text.finish();
        std::mem::take(&mut self.known)
    }

    /// A load means something else before and after a store, so terms are not shared between moments.
    fn next_moment(&mut self) {
        self.moment += 1;
        self.terms_written = 0;
    }

    fn head(&mut self, tag: u64, instruction: &Instruction) {
        self.text.words(&[tag, instruction.opcode.into()]);
        self.text.wide(instruction.ty);
    }

    fn edges(&mut self, at: At<'_>) {
        let step = &self.steps.all[at.step];
        self.result = step.instruction.and_then(|i| self.function.instructions[i].result);
        for edge in &step.edges {
            self.next_moment();
            let next = &at.known[edge.target];
            self.text.words(&[tag::NEXT, next.needs.len() as u64]);
            self.text.wide(next.id);
            self.known.opaque |= next.opaque;
            self.work += next.needs.len() + 1;
            for &local in &next.needs {
                match edge.assigned.get(&local) {
                    Some(&term) => self.term(term, at),
                    None => self.local(local),
                }
            }
        }
    }

    fn term(&mut self, term: Term, at: At<'_>) {
        match self.steps.terms.shape(term) {
            Shape::Local(local) => self.local(*local),
            Shape::Constant(hash) => {
                self.text.word(tag::CONSTANT);
                self.text.wide(*hash);
            }
            Shape::Nothing => self.text.word(tag::NOTHING),
            Shape::Opaque => {
                self.text.word(tag::OPAQUE);
                self.known.opaque = true;
            }
            Shape::Operator(operator) => match self.written[term.index()] {
                (moment, number) if moment == self.moment => self.text.words(&[tag::AGAIN, number.into()]),
                _ => self.operator(term, operator, at),
            },
        }
    }

    fn operator(&mut self, term: Term, operator: &Operator, at: At<'_>) {
        let exchange = self.exchange(operator, at);
        let detail = exchange.unwrap_or(operator.detail);
        self.text.words(&[tag::OPERATOR, operator.opcode.into(), detail, operator.args.len() as u64]);
        self.text.wide(operator.ty);
        self.text.wide(operator.source);
        match (exchange, &operator.args[..]) {
            (Some(_), &[first, second]) => [second, first].into_iter().for_each(|arg| self.term(arg, at)),
            (_, args) => args.iter().for_each(|&arg| self.term(arg, at)),
        }
        self.written[term.index()] = (self.moment, self.terms_written);
        self.terms_written += 1;
    }

    fn local(&mut self, local: u32) {
        if self.result == Some(local) {
            return self.text.word(tag::RESULT);
        }
        let number = self.number(local);
        self.text.words(&[tag::LOCAL, number.into()]);
    }

    fn number(&mut self, local: u32) -> u32 {
        let number = &mut self.numbers[local as usize];
        if number.0 != self.text_number {
            *number = (self.text_number, self.known.needs.len() as u32);
            self.known.needs.push(local);
        }
        number.1
    }
}

/// The order of the operands of commutative operators. It may depend on anything: it is the same program either way.
impl Writer<'_> {
    /// The detail to write with the operands exchanged, if they are better exchanged.
    fn exchange(&mut self, operator: &Operator, at: At<'_>) -> Option<u64> {
        let &[first, second] = &operator.args[..] else { return None };
        let detail = opcode::exchanged(operator.opcode, operator.detail)?;
        let exchanged = (self.rank(second, at), detail);
        (exchanged < (self.rank(first, at), operator.detail)).then_some(detail)
    }

    /// Numbered locals, the step's result, others by how they are computed and used, constants.
    fn rank(&mut self, term: Term, at: At<'_>) -> (u32, u64, u64) {
        match self.steps.terms.shape(term) {
            Shape::Local(local) if self.result == Some(*local) => (1, 0, 0),
            Shape::Local(local) if self.numbers[*local as usize].0 == self.text_number => {
                (0, self.numbers[*local as usize].1.into(), 0)
            }
            Shape::Local(_) | Shape::Operator(_) => {
                let keys = match self.keys.take() {
                    Some(keys) => keys,
                    None => self.keys(at),
                };
                (2, self.keys.insert(keys).get(self.steps, term), self.numbers_in(term, NUMBER_DEPTH))
            }
            Shape::Constant(hash) => (3, *hash as u64, 0),
            Shape::Nothing | Shape::Opaque => (4, 0, 0),
        }
    }

    /// By the numbers of the locals in it, where terms are otherwise alike.
    fn numbers_in(&self, term: Term, depth: u32) -> u64 {
        match self.steps.terms.shape(term) {
            Shape::Local(local) => match self.numbers[*local as usize] {
                (text, number) if text == self.text_number => u64::from(number) + 1,
                _ => 0,
            },
            Shape::Operator(operator) if depth > 0 => operator.key(|arg| self.numbers_in(arg, depth - 1)),
            _ => 0,
        }
    }

    fn keys(&self, at: At<'_>) -> Keys {
        if let Some(colours) = at.colours {
            return Keys::new(colours.clone());
        }
        let mut uses = Uses::new(self.function, self.steps);
        let step = &self.steps.all[at.step];
        uses.parts(step);
        for (i, edge) in step.edges.iter().enumerate() {
            let needs = at.known[edge.target].needs.iter();
            uses.edge(i, edge, needs.enumerate().map(|(place, &local)| (local, place as u64)));
        }
        Keys::new(uses.found)
    }
}
