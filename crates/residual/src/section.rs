//! What of a function is left to run from a point on: a list of sections, each a straight piece of code with a label.

use crate::flow::Reach;
use crate::function::{Function, Instruction, LiveLocal, Suspension};
use crate::operand::Operand;
use std::ops::Range;

/// Where in the point's instruction the rest begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The instruction is still to be done.
    Before,
    /// It is a call that is under way: what is left is to come back from it.
    After,
}

/// The residual code of a point, before it is numbered.
pub struct Rest<'a> {
    pub function: &'a Function,
    pub point: &'a Suspension,
    pub side: Side,
    pub reach: &'a Reach,
}

impl<'a> Rest<'a> {
    /// The call that is under way.
    pub fn under_way(&self) -> Option<&'a Instruction> {
        (self.side == Side::After).then(|| &self.function.instructions[self.point.instruction])
    }

    /// Locals whose content it needs, by the digest.
    pub fn live(&self) -> impl Iterator<Item = &'a LiveLocal> {
        let side = self.side;
        self.point.live.iter().filter(move |l| side == Side::Before || l.after)
    }

    /// Instructions by label: the rest of the point's block, then whole blocks.
    pub fn sections(&self) -> impl Iterator<Item = Range<usize>> {
        let first = self.point.instruction + usize::from(self.side == Side::After);
        let own = first..self.function.blocks[self.point.block as usize].end;
        std::iter::once(own).chain(self.reach.blocks.iter().map(|&b| self.function.blocks[b as usize].clone()))
    }

    /// Labels under which a block runs: its rest and the whole of it are two.
    pub fn labels_of(&self, block: u32) -> impl Iterator<Item = u32> {
        let rest = (block == self.point.block).then_some(0);
        rest.into_iter().chain(Some(self.reach.labels[block as usize]).filter(|&label| label != 0))
    }

    /// Where a branch leads: to the beginning of a block.
    pub fn target(&self, block: u32) -> u32 {
        self.reach.labels[block as usize]
    }

    /// A phi's operands by the label they come from; those from blocks that can no longer run do not count.
    pub fn incoming(&self, phi: &Instruction) -> Vec<(u32, Operand)> {
        let edges = self.function.incoming(phi).iter().zip(self.function.operands(phi));
        let mut found: Vec<(u32, Operand)> =
            edges.flat_map(|(&from, &operand)| self.labels_of(from).map(move |label| (label, operand))).collect();
        found.sort_by_key(|&(label, _)| label);
        found
    }
}
