//! Which locals are live at each suspension point: backward dataflow over the function's blocks.
//!
//! Live *before* a point counts what the point itself uses (a thread about to store 1 differs from one about to store
//! 2); live *after* is what remains once a call has come back.

use std::collections::{HashMap, HashSet};

use inkwell::llvm_sys::core::*;

use crate::bits::Bits;
use crate::ir::{Block, Opcode, Value, llvm};
use crate::locals::{LocalTable, ObjectKind, is_address_computation, is_construction, is_lifetime_marker};

pub struct Liveness<'a> {
    table: &'a LocalTable,
    blocks: Vec<Block>,
    numbers: HashMap<Block, usize>,
    /// Live at the end of each block, uses by successors' phis included.
    live_out: Vec<Bits>,
    /// Whether what an object holds before its life begins is nothing to anybody. It is there all the same.
    lives: bool,
}

/// Locals live at one instruction.
pub struct Live {
    pub before: Bits,
    pub after: Bits,
    /// Of these, objects that this function itself will not read again before it overwrites them: they matter only to whoever
    /// has their address.
    pub weak_before: Bits,
    pub weak_after: Bits,
}

impl<'a> Liveness<'a> {
    pub fn of(function: Value, table: &'a LocalTable) -> Liveness<'a> {
        Liveness::with(function, table, true)
    }

    /// Objects of which a part may be live that nobody has written: what is there is what was on the stack before.
    pub fn unwritten(function: Value, table: &'a LocalTable) -> Vec<usize> {
        if table.objects.is_empty() {
            return Vec::new();
        }
        let live = Liveness::with(function, table, false).live_in(0);
        (0..table.objects.len()).filter(|&i| live.contains(table.object_number(i))).collect()
    }

    fn with(function: Value, table: &'a LocalTable, lives: bool) -> Liveness<'a> {
        let blocks = function.blocks();
        let numbers = blocks.iter().enumerate().map(|(i, &b)| (b, i)).collect();
        let live_out = vec![Bits::new(table.len()); blocks.len()];
        let mut liveness = Liveness { table, blocks, numbers, live_out, lives };
        liveness.solve();
        liveness
    }

    /// Backward over the blocks until nothing changes; blocks come roughly in the order they run.
    fn solve(&mut self) {
        let predecessors = self.predecessors();
        let mut waiting: Vec<usize> = (0..self.blocks.len()).collect();
        let mut queued = vec![true; self.blocks.len()];
        while let Some(block) = waiting.pop() {
            queued[block] = false;
            let live_in = self.live_in(block);
            for &from in &predecessors[block] {
                let mut at_end = live_in.clone();
                self.add_phi_uses(self.blocks[from], self.blocks[block], &mut at_end);
                if self.live_out[from].union(&at_end) && !queued[from] {
                    queued[from] = true;
                    waiting.push(from);
                }
            }
        }
    }

    fn predecessors(&self) -> Vec<Vec<usize>> {
        let mut found = vec![Vec::new(); self.blocks.len()];
        for (i, block) in self.blocks.iter().enumerate() {
            for next in block.successors() {
                let list: &mut Vec<usize> = &mut found[self.numbers[&next]];
                if !list.contains(&i) {
                    list.push(i);
                }
            }
        }
        found
    }

    fn live_in(&self, block: usize) -> Bits {
        let mut live = self.live_out[block].clone();
        for instruction in self.blocks[block].instructions().into_iter().rev() {
            self.step(instruction, &mut live);
        }
        live
    }

    /// Phis use their operands at the end of the block the edge comes from.
    fn add_phi_uses(&self, from: Block, to: Block, live: &mut Bits) {
        for phi in to.instructions().into_iter().take_while(|i| i.is(Opcode::LLVMPHI)) {
            for edge in 0..llvm!(LLVMCountIncoming(phi.0)) {
                if llvm!(LLVMGetIncomingBlock(phi.0, edge)) == from.0 {
                    self.add_use(Value(llvm!(LLVMGetIncomingValue(phi.0, edge))), live);
                }
            }
        }
    }

    fn add_use(&self, value: Value, live: &mut Bits) {
        if let Some(number) = self.table.number(value).filter(|_| !self.table.is_object_address(value)) {
            live.insert(number);
        }
    }

    /// Turns what is live behind an instruction into what is live before it.
    fn step(&self, instruction: Value, live: &mut Bits) {
        if let Some(number) = self.table.number(instruction) {
            live.remove(number);
        }
        if instruction.is(Opcode::LLVMPHI) {
            return;
        }
        if is_lifetime_marker(instruction) {
            // What an object holds before its life begins, or after it has ended, is nothing.
            return if self.lives {
                self.forget(instruction, live)
            };
        }
        self.step_objects(instruction, live);
        for operand in instruction.operands() {
            self.add_use(operand, live);
        }
    }

    fn step_objects(&self, instruction: Value, live: &mut Bits) {
        if is_address_computation(instruction) {
            return;
        }
        let written = self.table.overwritten(instruction).filter(|_| self.lives || !is_construction(instruction));
        if let Some((object, _)) = written {
            live.remove(self.table.object_number(object));
        }
        for (index, operand) in instruction.operands().into_iter().enumerate() {
            if written.is_some_and(|(_, by)| by == index) {
                continue;
            }
            for &object in self.table.pointees(operand) {
                live.insert(self.table.object_number(object));
            }
        }
    }

    fn forget(&self, marker: Value, live: &mut Bits) {
        for operand in marker.operands() {
            if let [object] = self.table.pointees(operand)
                && self.table.objects[*object].address == operand
            {
                live.remove(self.table.object_number(*object));
            }
        }
    }

    /// What is live at each of `points`.
    pub fn at(&self, points: &[Value]) -> HashMap<Value, Live> {
        let mut wanted: HashMap<Block, HashSet<Value>> = HashMap::new();
        for &point in points {
            wanted.entry(point.block()).or_default().insert(point);
        }
        let mut found = HashMap::new();
        for (block, points) in wanted {
            let mut live = self.live_out[self.numbers[&block]].clone();
            for instruction in block.instructions().into_iter().rev() {
                let after = points.contains(&instruction).then(|| live.clone());
                self.step(instruction, &mut live);
                if let Some(after) = after {
                    found.insert(instruction, self.finish(instruction, live.clone(), after));
                }
            }
        }
        found
    }

    /// A call's own result is not there yet, and escaped objects always are.
    fn finish(&self, point: Value, mut before: Bits, mut after: Bits) -> Live {
        if let Some(own) = self.table.number(point) {
            after.remove(own);
        }
        let escaped = self.table.objects.iter().enumerate().filter(|(_, o)| o.kind == ObjectKind::Escaped);
        let (mut weak_before, mut weak_after) = (Bits::new(self.table.len()), Bits::new(self.table.len()));
        for number in escaped.map(|(i, _)| self.table.object_number(i)) {
            for (live, weak) in [(&mut before, &mut weak_before), (&mut after, &mut weak_after)] {
                if !live.contains(number) {
                    live.insert(number);
                    weak.insert(number);
                }
            }
        }
        Live { before, after, weak_before, weak_after }
    }

    /// Locals that are live at the end of some block.
    pub fn crossing(&self) -> Bits {
        let mut all = Bits::new(self.table.len());
        self.live_out.iter().for_each(|live| _ = all.union(live));
        all
    }
}
