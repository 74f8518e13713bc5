//! Futexes of the machine: their words are the lower halves of cells.

use crate::machine::{Phase, State, object};
use crate::program::*;
use symdpor_abi::op::NO_THREAD;
use symdpor_trace::{ObjectId, Op, OpKind};

fn queue(cell: u8) -> ObjectId {
    ObjectId::futex(object(1, cell), 0)
}

pub fn op(kind: OpKind, cell: u8) -> Op {
    Op::new(kind, queue(cell))
}

pub fn op_with(kind: OpKind, cell: u8, other: u8) -> Op {
    Op { object2: queue(other), mask2: 0xff, ..op(kind, cell) }
}

fn word(cell: u8) -> View {
    View { lanes: 2, relaxed: true, ..View::whole(cell) }
}

/// All ways to choose `count` of `all`, as bits.
fn choices(all: usize, count: usize) -> Vec<u32> {
    let count = count.min(all) as u32;
    (0..1 << all).filter(|bits: &u32| bits.count_ones() == count).collect()
}

impl State {
    pub fn futex_ways(&self, instr: Instr) -> u16 {
        let waiters = |cell: u8| self.futexes[cell as usize].len();
        let ways = match instr {
            Instr::FutexWake(_, cell, count) => choices(waiters(cell), count as usize).len(),
            Instr::FutexRequeue(one, _, count, _) => {
                let left = waiters(one).saturating_sub(1);
                choices(waiters(one), 1).len() * choices(left, count as usize).len()
            }
            Instr::FutexWakeOp(one, other, _) => choices(waiters(one), 1).len() * choices(waiters(other), 1).len(),
            _ => 1,
        };
        ways as u16
    }

    /// Takes `count` waiters out of a queue.
    fn choose(&mut self, cell: u8, count: u8, way: usize) -> Vec<u8> {
        let waiters = std::mem::take(&mut self.futexes[cell as usize]);
        let bits = choices(waiters.len(), count as usize)[way];
        let is_chosen = |i: usize| bits & 1 << i != 0;
        let (mut chosen, mut rest) = (Vec::new(), Vec::new());
        for (i, &waiter) in waiters.iter().enumerate() {
            if is_chosen(i) { chosen.push(waiter) } else { rest.push(waiter) }
        }
        self.futexes[cell as usize] = rest;
        chosen
    }

    fn wake_futex(&mut self, cell: u8, count: u8, way: usize) -> Vec<u8> {
        let woken = self.choose(cell, count, way);
        woken.iter().for_each(|&w| self.threads[w as usize].phase = Phase::FutexWoken);
        woken
    }

    pub fn futex(&mut self, t: usize, instr: Instr, alternative: u16, mut op: Op) -> Op {
        let way = alternative as usize;
        let bits = |woken: &[u8]| woken.iter().fold(0, |bits, &w| bits | 1u32 << w);
        match instr {
            Instr::FutexWait(r, cell, value, timed) => {
                if self.digest(word(cell)) == value {
                    self.threads[t].pc -= 1;
                    self.threads[t].phase = Phase::Futex(cell, timed);
                    self.futexes[cell as usize].push(t as u8);
                } else {
                    self.threads[t].regs[r as usize] = 1;
                    op.kind = OpKind::FutexMismatch;
                }
            }
            Instr::FutexWake(r, cell, count) => {
                let woken = self.wake_futex(cell, count, way);
                self.threads[t].regs[r as usize] = woken.len() as i8;
                op.arg = match woken[..] {
                    [] => NO_THREAD,
                    [one] => one as u32,
                    _ => bits(&woken),
                };
                if woken.len() > 1 {
                    op.kind = OpKind::FutexWakeSet;
                }
            }
            Instr::FutexRequeue(one, other, count, value) => {
                if self.digest(word(one)) != value {
                    op.kind = OpKind::FutexMismatch;
                    return op;
                }
                let left = self.futexes[one as usize].len().saturating_sub(1);
                let ways = choices(left, count as usize).len();
                op.arg = bits(&self.wake_futex(one, 1, way / ways));
                for moved in self.choose(one, count, way % ways) {
                    if let Phase::Futex(cell, _) = &mut self.threads[moved as usize].phase {
                        *cell = other;
                    }
                    self.futexes[other as usize].push(moved);
                }
            }
            Instr::FutexWakeOp(one, other, value) => {
                let old = self.digest(word(other));
                let ways = choices(self.futexes[other as usize].len(), 1).len();
                let view = View { relaxed: false, ..word(other) };
                self.acquire(t, view);
                self.store(t, view, true, |_| value);
                let mut woken = self.wake_futex(one, 1, way / ways);
                if old == 0 {
                    woken.extend(self.wake_futex(other, 1, way % ways));
                }
                op.arg = bits(&woken);
            }
            _ => {}
        }
        op
    }

    /// A waiter has been woken, or its time is up.
    pub fn leave_futex(&mut self, t: usize, instr: Instr, op: Op) -> Op {
        let timed_out = op.kind == OpKind::FutexTimeout;
        if timed_out {
            self.futexes.iter_mut().for_each(|queue| queue.retain(|&w| w != t as u8));
        }
        let thread = &mut self.threads[t];
        if let Instr::FutexWait(r, ..) = instr {
            thread.regs[r as usize] = if timed_out { 2 } else { 0 };
        }
        thread.phase = Phase::Running;
        thread.pc += 1;
        op
    }
}
