//! Loops and what an optimiser makes of them: the same body twice, before the loop and in it, with locals of their own.
//!
//! A body is straight code and branches within; it reads variables and leaves new values for them. In SSA form each
//! copy defines its own values, and phis join them where the loop begins.

use super::random::Dice;
use super::{Arg, Fun, Ins, Local, Ty, op};

/// Reads a variable of the loop, something computed earlier in the body, or a constant.
#[derive(Clone, Copy, Debug)]
enum From {
    Variable(usize),
    Earlier(usize),
    Constant(u64),
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    opcode: u64,
    detail: u64,
    symbol: Option<&'static str>,
    from: [From; 2],
}

/// One round: code up to a decision to leave, and code behind it, then again.
#[derive(Clone, Debug)]
pub struct Round {
    first: Vec<Operation>,
    second: Vec<Operation>,
    leave: From,
    /// What each variable is in the next round; those of the first part only.
    next: Vec<From>,
    /// What is done behind the loop.
    result: From,
    /// The operation that is the point.
    point: usize,
}

impl Round {
    pub fn random(dice: &mut Dice) -> Round {
        let variables = dice.below(3) + 1;
        let mut first = Vec::new();
        (0..dice.below(4)).for_each(|_| first.push(operation(dice, variables, first.len())));
        let point = first.len();
        first.push(Operation { opcode: op::ATOMIC_RMW, detail: 0x201, ..call(dice, variables, point) });
        (0..dice.below(4)).for_each(|_| first.push(operation(dice, variables, first.len())));
        let mut second = Vec::new();
        (0..dice.below(4)).for_each(|_| second.push(operation(dice, variables, first.len() + second.len())));
        let end = first.len() + second.len();
        let next = (0..variables).map(|_| from(dice, variables, end)).collect();
        let (leave, result) = (from(dice, variables, first.len()), from(dice, variables, first.len()));
        Round { first, second, leave, next, result, point }
    }

    pub fn variables(&self) -> usize {
        self.next.len()
    }

    /// Each variable gets a new value of its own: else a copy has constants, or one local for two variables.
    pub fn with_distinct_variables(mut self, dice: &mut Dice) -> Round {
        for variable in 0..self.variables() {
            let place = self.first.len() + self.second.len();
            self.second.push(call(dice, self.next.len(), place));
            self.next[variable] = From::Earlier(place);
        }
        self
    }

    /// One operation is another, or reads something else.
    pub fn disturb(&mut self, dice: &mut Dice) {
        let variables = self.variables();
        let end = self.first.len() + self.second.len();
        match dice.below(4) {
            0 => self.leave = from(dice, variables, self.first.len()),
            1 => self.next[dice.below(variables)] = from(dice, variables, end),
            2 => self.result = from(dice, variables, self.first.len()),
            _ => {
                let place = dice.below(self.first.len());
                self.first[place].from[dice.below(2)] = from(dice, variables, place);
            }
        }
    }
}

fn from(dice: &mut Dice, variables: usize, earlier: usize) -> From {
    match dice.below(6) {
        0 => From::Constant(dice.below(3) as u64),
        1..=3 if earlier > 0 => From::Earlier(dice.below(earlier)),
        _ => From::Variable(dice.below(variables)),
    }
}

fn call(dice: &mut Dice, variables: usize, place: usize) -> Operation {
    let from = [from(dice, variables, place), from(dice, variables, place)];
    Operation { opcode: op::CALL, detail: 0, symbol: Some(["f", "g", "h"][dice.below(3)]), from }
}

fn operation(dice: &mut Dice, variables: usize, place: usize) -> Operation {
    let plain = call(dice, variables, place);
    match dice.below(6) {
        0..=1 => plain,
        2 => Operation { opcode: op::ICMP, detail: 32 + dice.below(10) as u64, symbol: None, ..plain },
        _ => Operation { opcode: [op::ADD, op::SUB, op::XOR][dice.below(3)], symbol: None, ..plain },
    }
}

/// Writes copies of rounds, each with values of its own.
struct Writer {
    fun: Fun,
    next: usize,
}

/// What a copy of a round has computed.
struct Copy {
    entry: usize,
    /// Where it goes back from, and its values in the next round.
    last: usize,
    next: Vec<Arg>,
}

impl Writer {
    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    fn read(from: From, variables: &[Arg], earlier: &[usize]) -> Arg {
        match from {
            From::Variable(i) => variables[i].clone(),
            From::Earlier(i) => Arg::Value(earlier[i]),
            From::Constant(value) => Arg::Constant(value),
        }
    }

    fn block(&mut self) -> usize {
        self.fun.blocks.push(Vec::new());
        self.fun.blocks.len() - 1
    }

    fn operate(&mut self, block: usize, operation: &Operation, variables: &[Arg], earlier: &mut Vec<usize>) {
        let mut args: Vec<Arg> = operation.from.iter().map(|&f| Writer::read(f, variables, earlier)).collect();
        args.extend(operation.symbol.map(Arg::Symbol));
        let id = self.fresh();
        self.fun.blocks[block].push(Ins::new(operation.opcode, Ty::I32, args).detail(operation.detail).result(id));
        earlier.push(id);
    }

    /// A copy whose branches out go to a block of their own. With `split`, a jump in the middle.
    fn copy(&mut self, round: &Round, entry: usize, variables: &[Arg], site: Option<u64>, split: bool) -> Copy {
        let mut block = entry;
        let mut earlier = Vec::new();
        for (i, operation) in round.first.iter().enumerate() {
            if i == round.point && split {
                let next = self.block();
                self.fun.blocks[block].push(Ins::new(op::BR, Ty::Void, vec![Arg::Block(next)]));
                block = next;
            }
            self.operate(block, operation, variables, &mut earlier);
            if i == round.point {
                let live: Vec<Local> = (0..self.next - 1).map(Local::Value).collect();
                let ins = self.fun.blocks[block].pop().expect("the point");
                self.fun.blocks[block].push(match site {
                    Some(site) => ins.point(site, &live),
                    None => ins,
                });
            }
        }
        let (out, on) = (self.block(), self.block());
        let leave = Writer::read(round.leave, variables, &earlier);
        self.fun.blocks[block].push(Ins::new(op::BR, Ty::Void, vec![leave, Arg::Block(on), Arg::Block(out)]));
        let result = Writer::read(round.result, variables, &earlier);
        self.fun.blocks[out].push(Ins::new(op::RET, Ty::Void, vec![result]));
        round.second.iter().for_each(|o| self.operate(on, o, variables, &mut earlier));
        let next = round.next.iter().map(|&f| Writer::read(f, variables, &earlier)).collect();
        Copy { entry, last: on, next }
    }
}

/// `peeled` copies of the round, then a loop of `unrolled` copies; which copy has the point (site 0).
pub fn looped(round: &Round, peeled: usize, unrolled: usize, point: usize, dice: &mut Dice) -> Fun {
    let count = round.variables();
    let args = (0..count).map(|id| (id, Ty::I32)).collect();
    let mut writer = Writer { fun: Fun { args, ..Fun::default() }, next: count };
    let mut entry = writer.block();
    let mut variables: Vec<Arg> = (0..count).map(Arg::Value).collect();
    let mut before = entry;
    let mut head: Option<(usize, Vec<usize>)> = None;
    for copy in 0..peeled + unrolled {
        let split = dice.below(2) == 0;
        if copy == peeled {
            let block = writer.block();
            writer.fun.blocks[before].push(Ins::new(op::BR, Ty::Void, vec![Arg::Block(block)]));
            let phis: Vec<usize> = variables.iter().map(|_| writer.fresh()).collect();
            for (&id, start) in phis.iter().zip(&variables) {
                let mut phi = Ins::new(op::PHI, Ty::I32, vec![start.clone()]).result(id);
                phi.incoming.push(before);
                writer.fun.blocks[block].push(phi);
            }
            variables = phis.iter().map(|&id| Arg::Value(id)).collect();
            head = Some((block, phis));
            entry = block;
        } else if copy > 0 {
            entry = before;
        }
        let done = writer.copy(round, entry, &variables, (copy == point).then_some(0), split);
        (before, variables) = (done.last, done.next);
        assert_eq!(done.entry, entry);
    }
    let (block, phis) = head.expect("at least one copy is in the loop");
    for (place, value) in variables.into_iter().enumerate().take(phis.len()) {
        let phi = &mut writer.fun.blocks[block][place];
        phi.args.push(value);
        phi.incoming.push(before);
    }
    writer.fun.blocks[before].push(Ins::new(op::BR, Ty::Void, vec![Arg::Block(block)]));
    writer.fun
}
