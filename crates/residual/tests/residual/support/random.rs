//! Random functions: a point, then blocks of arithmetic, stores and calls, with branches between them.

use super::{Arg, Fun, Ins, Local, Ty, op};

pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % end.max(1) as u64) as usize
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

const SYMBOLS: [&str; 3] = ["f", "g", "h"];

struct Maker<'a> {
    dice: &'a mut Dice,
    fun: Fun,
    /// Ids of values so far.
    values: Vec<usize>,
    objects: Vec<usize>,
    next: usize,
    constant: u64,
    /// Upper bound for the instructions of a block between its phis and its end.
    length: usize,
}

pub fn function(dice: &mut Dice) -> Fun {
    let blocks = dice.below(6) + 1;
    sized_function(dice, blocks, 5)
}

/// Some code, the point at site 0 in the first block, some more code; every store has a constant of its own.
pub fn sized_function(dice: &mut Dice, blocks: usize, length: usize) -> Fun {
    let fun = Fun::default();
    let mut maker = Maker { dice, fun, values: vec![], objects: vec![], next: 0, constant: 1000, length };
    for _ in 0..maker.dice.below(4) + 1 {
        let id = maker.fresh();
        maker.fun.args.push((id, Ty::I32));
        maker.values.push(id);
    }
    for block in 0..blocks {
        let code = maker.block(block, blocks);
        maker.fun.blocks.push(code);
    }
    maker.fun
}

impl Maker<'_> {
    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    fn constant(&mut self) -> Arg {
        self.constant += 1;
        Arg::Constant(self.constant)
    }

    fn arg(&mut self) -> Arg {
        match self.dice.below(5) {
            0 => self.constant(),
            _ => Arg::Value(self.values[self.dice.below(self.values.len())]),
        }
    }

    fn block(&mut self, block: usize, blocks: usize) -> Vec<Ins> {
        let mut code = Vec::new();
        if block == 0 {
            (0..self.dice.below(3)).for_each(|_| code.push(self.alloca()));
        } else {
            (0..self.dice.below(2)).for_each(|_| code.push(self.phi(block)));
        }
        (0..self.dice.below(self.length)).for_each(|_| code.push(self.plain()));
        if block == 0 {
            code.push(self.point());
            (0..self.dice.below(self.length)).for_each(|_| code.push(self.plain()));
        }
        code.push(self.marked_store());
        code.push(self.terminator(blocks));
        code
    }

    fn alloca(&mut self) -> Ins {
        let id = self.fresh();
        self.fun.objects.push((id, 0, 4));
        self.objects.push(id);
        Ins::new(op::ALLOCA, Ty::Pointer, vec![Arg::Constant(1)]).result(id)
    }

    fn define(&mut self, ins: Ins) -> Ins {
        let id = self.fresh();
        self.values.push(id);
        ins.result(id)
    }

    fn plain(&mut self) -> Ins {
        let object = self.objects.get(self.dice.below(self.objects.len())).copied();
        match (self.dice.below(7), object) {
            (0, Some(object)) => self.define(Ins::new(op::LOAD, Ty::I32, vec![Arg::Value(object)])),
            (1, Some(object)) => {
                let value = self.arg();
                Ins::new(op::STORE, Ty::Void, vec![value, Arg::Value(object)])
            }
            (2, _) => {
                let args = vec![self.arg(), Arg::Symbol(SYMBOLS[self.dice.below(3)])];
                self.define(Ins::new(op::CALL, Ty::I32, args))
            }
            (3, _) => {
                let args = vec![self.arg(), self.arg()];
                let predicate = 32 + self.dice.below(10) as u64;
                self.define(Ins::new(op::ICMP, Ty::I32, args).detail(predicate))
            }
            _ => {
                let opcode = [op::ADD, op::SUB, op::MUL, op::XOR][self.dice.below(4)];
                let args = vec![self.arg(), self.arg()];
                self.define(Ins::new(opcode, Ty::I32, args))
            }
        }
    }

    /// Takes over one value from each of the blocks before, but not from more than a few.
    fn phi(&mut self, block: usize) -> Ins {
        let from = block.saturating_sub(6)..block;
        let args = from.clone().map(|_| self.arg()).collect();
        let mut phi = self.define(Ins::new(op::PHI, Ty::I32, args));
        phi.incoming = from.collect();
        phi
    }

    fn point(&mut self) -> Ins {
        let objects = self.objects.iter().map(|&o| Local::Object(o));
        let live: Vec<Local> = self.values.iter().map(|&v| Local::Value(v)).chain(objects).collect();
        let args = vec![Arg::Symbol("shared"), self.arg()];
        let ins = Ins::new(op::ATOMIC_RMW, Ty::I32, args).detail(0x201).point(0, &live);
        self.define(ins)
    }

    fn marked_store(&mut self) -> Ins {
        let args = vec![self.constant(), Arg::Symbol("mark")];
        Ins::new(op::STORE, Ty::Void, args)
    }

    fn terminator(&mut self, blocks: usize) -> Ins {
        let args = match self.dice.below(4) {
            0 => return Ins::new(op::RET, Ty::Void, vec![self.arg()]),
            1 => vec![Arg::Block(self.dice.below(blocks))],
            _ => vec![self.arg(), Arg::Block(self.dice.below(blocks)), Arg::Block(self.dice.below(blocks))],
        };
        Ins::new(op::BR, Ty::Void, args)
    }
}
