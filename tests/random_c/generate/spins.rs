//! Loops that wait: for a value, for a lock made of an atomic, for a mutex that is tried.

use super::Generator;
use crate::program::*;

impl Generator<'_> {
    pub(super) fn spinning(&mut self, depth: usize) {
        let register = self.register();
        match self.random.below(8) {
            0..=2 => self.wait_for_value(register),
            6 => self.retry(register),
            7 => self.retry_kept(register),
            3 if !self.held[1] => self.test_and_set(register, depth),
            4 if !self.held[0] => self.try_again(depth),
            _ => self.give(),
        }
    }

    /// What lets others go on: a store to what they wait for.
    fn give(&mut self) {
        let (variable, value, order) = (self.random.below(2), 1 + self.small(), self.order());
        self.code.push(Instruction::Store { variable, register: 0, value, order });
    }

    fn wait_for_value(&mut self, register: usize) {
        let (variable, value, order) = (self.random.below(2), 1 + self.small() / 2, self.order());
        let again = self.code.len();
        self.code.push(Instruction::Load { register, variable, order });
        self.turn(again, register, value);
    }

    /// Exchanges what it has loaded, until nobody has come in between.
    fn retry(&mut self, register: usize) {
        let (variable, value, order) = (self.random.below(2), 1 + self.small(), self.order());
        let again = self.code.len();
        self.code.push(Instruction::Load { register, variable, order });
        self.code.push(Instruction::CompareAdd { register, variable, value });
        self.turn(again, register, 1);
    }

    /// The same with what a failed exchange has found.
    fn retry_kept(&mut self, register: usize) {
        let (variable, value) = (self.random.below(2), 1 + self.small());
        let besides = if self.random.one_in(2) { Besides::Nothing } else { Besides::ALL[self.random.below(5)] };
        let order = if self.random.one_in(4) { self.order() } else { Order::Strong };
        self.code.push(Instruction::LoadKept { variable, order, besides });
        self.code.push(Instruction::AddToKept { register, variable, value, besides });
    }

    /// Goes back to `again`, after a turn of some kind, until the register has the value.
    fn turn(&mut self, again: usize, register: usize, value: i32) {
        let at = self.code.len();
        self.code.extend([Instruction::JumpUnless { register, value, target: at + 2 }, Instruction::Jump(0)]);
        for _ in 0..self.random.below(3) {
            let instruction = match self.random.below(8) {
                0 => Instruction::PlainLoad { register: 1 - register, variable: self.random.below(PLAIN) },
                1 => {
                    let (variable, order) = (self.random.below(ATOMICS), self.order());
                    Instruction::Load { register: 1 - register, variable, order }
                }
                _ => Instruction::GiveWay(self.random.below(WAYS_TO_GIVE_WAY.len())),
            };
            let careful = matches!(instruction, Instruction::PlainLoad { variable, .. } if !self.held[variable]);
            if !careful || self.style.careless {
                self.code.push(instruction);
            }
        }
        self.code.push(Instruction::Jump(again));
        self.code[at + 1] = Instruction::Jump(self.code.len());
    }

    /// A lock made of the last atomic, which protects plain variable 1.
    fn test_and_set(&mut self, register: usize, depth: usize) {
        let variable = ATOMICS - 1;
        let again = self.code.len();
        if self.random.one_in(3) {
            // Looks first.
            self.code.push(Instruction::Load { register, variable, order: Order::Relaxed });
            self.turn(again, register, 0);
        }
        self.code.push(Instruction::CompareExchange { register, variable, expected: 0, new: 1 });
        self.turn(again, register, 1);
        self.held[1] = true;
        self.inside(depth);
        self.held[1] = false;
        let order = if self.style.careless { self.order() } else { Order::Strong };
        self.code.push(Instruction::Add { register, variable, value: -1, order });
    }

    fn try_again(&mut self, depth: usize) {
        let at = self.code.len();
        self.code.extend([Instruction::Jump(0), Instruction::Jump(0)]);
        if !self.random.one_in(3) {
            self.code.push(Instruction::GiveWay(self.random.below(WAYS_TO_GIVE_WAY.len())));
        }
        self.code.push(Instruction::Jump(at));
        self.code[at] = Instruction::TryLock { mutex: 0, if_taken: at + 2 };
        self.code[at + 1] = Instruction::Jump(self.code.len());
        self.held[0] = true;
        self.inside(depth);
        self.held[0] = false;
        self.code.push(Instruction::Unlock(0));
    }

    fn inside(&mut self, depth: usize) {
        self.plain();
        if depth < 2 && self.random.one_in(3) {
            self.block(depth + 1);
        }
    }
}
