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

/// Callers of callers are looked at up to here.
const MAX_CALLERS: usize = 8;

/// Which functions are called in a loop, by what the module's own code shows.
#[derive(Default)]
pub struct Callees {
    known: HashMap<Value, bool>,
}

impl Callees {
    /// Whether control can come back to a block, be it that its function is called again.
    pub fn is_in_cycle(&mut self, block: Block) -> bool {
        is_in_cycle(block) || self.is_called_in_cycle(block.function(), MAX_CALLERS)
    }

    fn is_called_in_cycle(&mut self, function: Value, depth: usize) -> bool {
        if let Some(&known) = self.known.get(&function) {
            return known;
        }
        if depth == 0 {
            return false;
        }
        // One that calls itself is not looked at twice.
        self.known.insert(function, false);
        let calls: Vec<Value> =
            function.users().into_iter().filter(|u| u.is_call() && u.called_function() == Some(function)).collect();
        let found = calls.iter().any(|c| is_in_cycle(c.block()))
            || calls.iter().any(|c| self.is_called_in_cycle(c.block().function(), depth - 1));
        self.known.insert(function, found);
        found
    }
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
