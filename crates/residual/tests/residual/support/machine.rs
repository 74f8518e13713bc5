//! Runs the rest of a function from its point on: what it does to others, in order.
//!
//! Locals are variables that instructions assign to, as in the paper's language. What is live at the point gets values
//! by its place in the residual code's list, so that two functions with equal code start alike.

use super::{Arg, Fun, Ins, Local, op};
use std::collections::HashMap;

/// Loops end here; the same in both functions that are compared. Steps do not count, as copies may differ in jumps.
const EVENTS: usize = 80;
/// Between two events there are only a few.
const STEPS: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Store(String, u64),
    Update(String, u64, u64),
    Call(String, u64),
    Return(u64),
}

pub struct Machine<'a> {
    fun: &'a Fun,
    values: HashMap<usize, u64>,
    memory: HashMap<usize, u64>,
    events: Vec<Event>,
}

/// Runs from the point at site 0, with what is live there in the order given.
pub fn run(fun: &Fun, live: &[Local], seed: u64) -> Vec<Event> {
    let mut machine = Machine { fun, values: HashMap::new(), memory: HashMap::new(), events: Vec::new() };
    for (place, &local) in live.iter().enumerate() {
        // Few different values, so that comparisons go both ways.
        let value = (seed.rotate_left(place as u32 * 3)) % 4;
        match local {
            Local::Value(id) => machine.values.insert(id, value),
            Local::Object(id) => machine.memory.insert(id, value),
        };
    }
    machine.go();
    machine.events
}

impl Machine<'_> {
    fn go(&mut self) {
        let (mut block, mut index) = self.fun.point_place();
        for _ in 0..STEPS {
            if self.events.len() >= EVENTS {
                return;
            }
            let ins = &self.fun.blocks[block][index];
            match self.step(ins) {
                Some(next) => index = self.enter(block, next, &mut block),
                None if index + 1 < self.fun.blocks[block].len() => index += 1,
                None => return,
            }
        }
    }

    /// Phis take over their values all at once. The first instruction behind them.
    fn enter(&mut self, from: usize, to: usize, block: &mut usize) -> usize {
        *block = to;
        let phis: Vec<&Ins> = self.fun.blocks[to].iter().take_while(|i| i.opcode == op::PHI).collect();
        let taken: Vec<Option<u64>> = phis.iter().map(|phi| self.incoming(phi, from)).collect();
        for (phi, value) in phis.iter().zip(taken) {
            self.values.insert(phi.result.expect("a phi has a result"), value.unwrap_or(0));
        }
        phis.len()
    }

    fn incoming(&self, phi: &Ins, from: usize) -> Option<u64> {
        phi.incoming.iter().position(|&b| b == from).map(|edge| self.get(&phi.args[edge]))
    }

    fn get(&self, arg: &Arg) -> u64 {
        match arg {
            Arg::Value(id) => self.values.get(id).copied().unwrap_or(0),
            Arg::Constant(value) => *value,
            Arg::Symbol(_) | Arg::Block(_) => 0,
        }
    }

    /// The block that comes next, if the instruction leads to another.
    fn step(&mut self, ins: &Ins) -> Option<usize> {
        let args: Vec<u64> = ins.args.iter().map(|a| self.get(a)).collect();
        match ins.opcode {
            op::BR => return Some(self.branch(ins, &args)),
            op::RET => self.events.push(Event::Return(args[0])),
            op::STORE => self.store(ins, args[0]),
            _ => {
                let value = self.compute(ins, &args);
                ins.result.into_iter().for_each(|id| _ = self.values.insert(id, value));
            }
        }
        None
    }

    fn branch(&self, ins: &Ins, args: &[u64]) -> usize {
        let chosen = if ins.args.len() == 1 { 0 } else { 1 + (args[0] & 1) as usize };
        let Arg::Block(next) = ins.args[chosen] else { panic!("a branch leads to a block") };
        next
    }

    fn store(&mut self, ins: &Ins, value: u64) {
        match &ins.args[1] {
            Arg::Value(object) => _ = self.memory.insert(*object, value),
            Arg::Symbol(name) => self.events.push(Event::Store((*name).to_owned(), value)),
            other => panic!("a store to {other:?}"),
        }
    }

    fn compute(&mut self, ins: &Ins, args: &[u64]) -> u64 {
        match ins.opcode {
            op::ADD => args[0].wrapping_add(args[1]),
            op::SUB => args[0].wrapping_sub(args[1]),
            op::MUL => args[0].wrapping_mul(args[1]),
            op::XOR => args[0] ^ args[1],
            op::ICMP => compare(ins.detail, args[0], args[1]).into(),
            op::LOAD => self.load(ins),
            op::CALL | op::ATOMIC_RMW => self.outside(ins, args),
            _ => 0,
        }
    }

    fn load(&self, ins: &Ins) -> u64 {
        let Arg::Value(object) = ins.args[0] else { panic!("a load from {:?}", ins.args[0]) };
        self.memory.get(&object).copied().unwrap_or(0)
    }

    /// Others answer by what they have seen so far.
    fn outside(&mut self, ins: &Ins, args: &[u64]) -> u64 {
        let symbol = ins.args.iter().find_map(|a| if let Arg::Symbol(name) = a { Some(*name) } else { None });
        let symbol = symbol.expect("a symbol").to_owned();
        let given = args.iter().sum();
        self.events.push(match ins.opcode {
            op::CALL => Event::Call(symbol, given),
            _ => Event::Update(symbol, ins.detail, given),
        });
        self.events.len() as u64 * 5 % 7
    }
}

fn compare(predicate: u64, a: u64, b: u64) -> bool {
    let (signed_a, signed_b) = (a as i64, b as i64);
    match predicate {
        32 => a == b,
        33 => a != b,
        34 => a > b,
        35 => a >= b,
        36 => a < b,
        37 => a <= b,
        38 => signed_a > signed_b,
        39 => signed_a >= signed_b,
        40 => signed_a < signed_b,
        _ => signed_a <= signed_b,
    }
}
