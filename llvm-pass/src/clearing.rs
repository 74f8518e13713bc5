//! Objects on the stack that hold what was there before: they are cleared, so that what is not written is the same for all threads.
//!
//! An object of which a part may be live before it has been written is cleared where its life begins, as far as that is known, or on entry to
//! the function. One whose address others may have is cleared where its life ends as well, if the function may be suspended after that: whatever
//! still points to it is compared by what is there.

use std::collections::{HashMap, HashSet};

use crate::frames::behind_allocas;
use crate::ir::{Block, Opcode, Value};
use crate::liveness::Liveness;
use crate::locals::{LocalTable, Object, ObjectKind, is_lifetime_end, is_lifetime_marker};
use crate::slots::Slots;

/// Larger objects are left as they are: to clear them would take longer than most functions do.
const MOST: u64 = 16 << 10;

/// What is cleared before an instruction.
pub struct Clearing {
    pub before: Value,
    pub address: Value,
    pub size: u64,
}

/// All of a function, whose suspension points are these.
pub fn of(function: Value, table: &LocalTable, slots: &Slots, points: &[Value]) -> Vec<Clearing> {
    let entry = function.blocks()[0].instructions();
    let leading: HashSet<Value> = entry.iter().copied().take_while(|i| i.is(Opcode::LLVMAlloca)).collect();
    let unwritten: HashSet<usize> = Liveness::unwritten(function, table).into_iter().collect();
    let points = Points::of(function, points);
    let mut all = Vec::new();
    for (index, &Object { address, size, kind }) in table.objects.iter().enumerate() {
        let matters = slots.get(table.object_number(index)).is_some() && (1..=MOST).contains(&size);
        if !matters || !leading.contains(&address) {
            continue;
        }
        let (ends, begins): (Vec<Value>, Vec<Value>) =
            address.users().into_iter().filter(|u| is_lifetime_marker(*u)).partition(|u| is_lifetime_end(*u));
        let mut places = Vec::new();
        if unwritten.contains(&index) {
            places = if begins.is_empty() { vec![behind_allocas(&entry)] } else { begins };
        }
        if kind == ObjectKind::Escaped {
            places.extend(ends.into_iter().filter(|end| points.are_behind(*end)));
        }
        all.extend(places.into_iter().map(|before| Clearing { before, address, size }));
    }
    all
}

struct Points {
    points: HashSet<Value>,
    /// Blocks that are followed by one with a point.
    followed: HashSet<Block>,
}

impl Points {
    fn of(function: Value, points: &[Value]) -> Points {
        let mut predecessors: HashMap<Block, Vec<Block>> = HashMap::new();
        for block in function.blocks() {
            block.successors().into_iter().for_each(|next| predecessors.entry(next).or_default().push(block));
        }
        let mut followed = HashSet::new();
        let mut work: Vec<Block> = points.iter().map(|p| p.block()).collect();
        while let Some(block) = work.pop() {
            work.extend(predecessors.get(&block).into_iter().flatten().filter(|&&before| followed.insert(before)));
        }
        Points { points: points.iter().copied().collect(), followed }
    }

    /// Whether one of them may come after an instruction.
    fn are_behind(&self, instruction: Value) -> bool {
        let block = instruction.block();
        let rest = || block.instructions().into_iter().rev().take_while(|i| *i != instruction);
        self.followed.contains(&block) || rest().any(|i| self.points.contains(&i))
    }
}
