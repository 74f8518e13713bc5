//! Terms: what a local holds, as an expression over the locals of an earlier moment. Equal terms are one.

use crate::hash::mix;
use crate::opcode::Manner;
use rustc_hash::FxHashMap;

/// Deeper terms are refused, because they are walked recursively.
const MAX_DEPTH: u32 = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Term(u32);

/// An operator without effect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operator {
    pub opcode: u32,
    pub ty: u128,
    pub detail: u64,
    pub source: u128,
    pub args: Box<[Term]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    Local(u32),
    Constant(u128),
    /// A phi that has no operand for the edge.
    Nothing,
    /// Cannot be compared with anything.
    Opaque,
    Operator(Operator),
}

#[derive(Default)]
pub struct Terms {
    shapes: Vec<Shape>,
    depths: Vec<u32>,
    index: FxHashMap<Shape, Term>,
}

impl Terms {
    /// None if it is too deep.
    pub fn operator(&mut self, operator: Operator) -> Option<Term> {
        let depth = 1 + operator.args.iter().map(|&t| self.depths[t.index()]).max().unwrap_or(0);
        (depth <= MAX_DEPTH).then(|| self.intern(Shape::Operator(operator), depth))
    }

    /// What is no operator.
    pub fn leaf(&mut self, shape: Shape) -> Term {
        self.intern(shape, 0)
    }

    fn intern(&mut self, shape: Shape, depth: u32) -> Term {
        if let Some(&term) = self.index.get(&shape) {
            return term;
        }
        let term = Term(self.shapes.len() as u32);
        self.shapes.push(shape.clone());
        self.depths.push(depth);
        self.index.insert(shape, term);
        term
    }

    pub fn shape(&self, term: Term) -> &Shape {
        &self.shapes[term.index()]
    }

    pub fn len(&self) -> usize {
        self.shapes.len()
    }
}

impl Term {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Operator {
    /// A key that does not depend on the order in which the operands of a commutative operator are written.
    pub fn key(&self, mut of: impl FnMut(Term) -> u64) -> u64 {
        let manner = Manner::of(self.opcode, self.detail);
        let parts = self.args.iter().enumerate().map(|(i, &arg)| mix(of(arg), manner.role(i)));
        let parts = parts.fold(0, u64::wrapping_add);
        mix(mix(mix(self.opcode.into(), self.ty as u64), mix(manner.detail, self.source as u64)), parts)
    }
}
