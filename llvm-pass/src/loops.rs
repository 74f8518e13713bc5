//! Cycles of the control-flow graph: those without a hook, and whether a block lies on one.
//!
//! A thread that goes round a cycle without a hook would never be seen again. Every cycle of the control-flow graph that passes
//! no hook and no call gets a hook of its own: take the blocks that have one out of the graph, search what remains
//! depth first, and each edge back to a block still under way closes a cycle (irreducible ones too).

use std::collections::{HashMap, HashSet};

use crate::ir::{Block, Value};

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    UnderWay,
    Done,
}

/// The blocks whose end closes a cycle that `stops` does not interrupt.
pub fn silent_latches(function: Value, stops: &HashSet<Block>) -> Vec<Block> {
    let mut search = Search { stops, states: HashMap::new(), latches: Vec::new() };
    for block in function.blocks() {
        search.from(block);
    }
    search.latches
}

/// In larger functions than this, what is not found soon is not looked for.
const MAX_BLOCKS: usize = 1000;

/// Whether control can come back to a block.
pub fn is_in_cycle(block: Block) -> bool {
    let mut seen = HashSet::new();
    let mut waiting = block.successors();
    while let Some(next) = waiting.pop() {
        if next == block {
            return true;
        }
        if seen.len() < MAX_BLOCKS && seen.insert(next) {
            waiting.extend(next.successors());
        }
    }
    false
}

struct Search<'a> {
    stops: &'a HashSet<Block>,
    states: HashMap<Block, State>,
    latches: Vec<Block>,
}

impl Search<'_> {
    /// With a stack of its own: generated code has functions of many thousand blocks.
    fn from(&mut self, start: Block) {
        let mut path: Vec<(Block, Vec<Block>)> = self.enter(start).into_iter().collect();
        while let Some((block, rest)) = path.last_mut() {
            let block = *block;
            match rest.pop() {
                Some(next) if self.states.get(&next) == Some(&State::UnderWay) => self.close(block),
                Some(next) => path.extend(self.enter(next)),
                None => {
                    self.states.insert(block, State::Done);
                    path.pop();
                }
            }
        }
    }

    fn enter(&mut self, block: Block) -> Option<(Block, Vec<Block>)> {
        if self.stops.contains(&block) || self.states.contains_key(&block) {
            return None;
        }
        self.states.insert(block, State::UnderWay);
        Some((block, block.successors()))
    }

    fn close(&mut self, latch: Block) {
        if !self.latches.contains(&latch) {
            self.latches.push(latch);
        }
    }
}
