//! Statements with semaphores, the read-write lock, the barrier, time limits and spin loops.

use super::Generator;
use crate::program::*;

impl Generator<'_> {
    pub(super) fn shared(&mut self, depth: usize) {
        let next = self.code.len() + 1;
        match self.random.below(12) {
            0 | 1 => self.code.push(Instruction::Post),
            2 => self.code.push(Instruction::Take),
            3 => self.guarded(depth, |if_none| Instruction::TryTake { if_none }),
            4 => self.guarded(depth, |if_late| Instruction::TakeWithin { if_late }),
            5 => self.reading(Instruction::ReadLock, depth),
            6 => self.writing(Instruction::WriteLock, depth),
            7 => self.reading(Instruction::TryReadLock { if_taken: 0 }, depth),
            8 => self.writing(Instruction::TryWriteLock { if_taken: 0 }, depth),
            9 => self.code.push(Instruction::Barrier),
            10 => self.waiting_within(),
            _ => {
                let (register, variable, value) = (self.register(), self.random.below(ATOMICS), 1 + self.small());
                let load = Instruction::Load { register, variable, order: Order::Strong };
                self.code.extend([load, Instruction::JumpUnless { register, value, target: next - 1 }]);
            }
        }
    }

    /// What is done only if an attempt succeeds.
    fn guarded(&mut self, depth: usize, attempt: impl Fn(usize) -> Instruction) {
        let at = self.code.len();
        self.code.push(attempt(0));
        if depth < 2 {
            self.block(depth + 1);
        }
        self.code[at] = attempt(self.code.len());
    }

    fn reading(&mut self, lock: Instruction, depth: usize) {
        let before = std::mem::replace(&mut self.reads, true);
        self.holding(lock, depth);
        self.reads = before;
    }

    fn writing(&mut self, lock: Instruction, depth: usize) {
        self.holding(lock, depth);
    }

    /// With the read-write lock, which protects plain variable 1.
    fn holding(&mut self, lock: Instruction, depth: usize) {
        if self.held[1] {
            return self.atomic(depth);
        }
        let at = self.code.len();
        self.code.push(lock);
        self.held[1] = true;
        self.plain();
        if depth < 2 {
            self.block(depth + 1);
        }
        self.held[1] = false;
        self.code.push(Instruction::RwUnlock);
        let end = self.code.len();
        self.code[at] = match lock {
            Instruction::TryReadLock { .. } => Instruction::TryReadLock { if_taken: end },
            Instruction::TryWriteLock { .. } => Instruction::TryWriteLock { if_taken: end },
            other => other,
        };
    }

    /// With a time limit: once, in a loop that gives up never, or for the mutex itself.
    fn waiting_within(&mut self) {
        if self.held[0] {
            return self.plain();
        }
        let at = self.code.len();
        let wait = Instruction::WaitWithin { register: 1 };
        match self.random.below(3) {
            0 => self.code.extend([Instruction::Lock(0), wait, Instruction::Unlock(0)]),
            1 => {
                let again = at + 1;
                let look = Instruction::PlainLoad { register: 0, variable: 0 };
                let done = Instruction::JumpUnless { register: 0, value: 0, target: again + 4 };
                self.code.extend([Instruction::Lock(0), look, done, wait, Instruction::Jump(again)]);
                self.code.push(Instruction::Unlock(0));
            }
            _ => {
                self.code.push(Instruction::LockWithin { mutex: 0, if_late: at + 3 });
                self.code.push(Instruction::PlainStore { variable: 0, value: 1 });
                self.code.push(Instruction::Unlock(0));
            }
        }
    }
}
