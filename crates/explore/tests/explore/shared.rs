//! Read-write locks, semaphores and barriers of the machine.

use crate::machine::{Clock, NOBODY, Phase, State, Stop, join, object, with_arg};
use crate::program::*;
use symdpor_abi::op::{POSTS, TRIED, WAITS};
use symdpor_trace::{Op, OpKind};

#[derive(Clone, PartialEq, Eq, Hash)]
struct RwLock {
    writer: u8,
    readers: Vec<u8>,
    /// What writers and readers have released.
    written: Clock,
    read: Clock,
}

/// Posts in their order: what each released.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Semaphore {
    value: u8,
    posts: Vec<Clock>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Barrier {
    waiting: Vec<u8>,
    clock: Clock,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Shared {
    locks: Vec<RwLock>,
    semaphores: Vec<Semaphore>,
    barriers: Vec<Barrier>,
}

fn lock_op(kind: OpKind, lock: u8) -> Op {
    Op::new(kind, object(6, lock))
}

fn semaphore_op(kind: OpKind, semaphore: u8, mask: u8) -> Op {
    let mut op = Op::new(kind, object(7, semaphore));
    op.mask = mask;
    op
}

impl Shared {
    pub fn new() -> Shared {
        let none = [0; THREADS];
        let semaphore = |value| Semaphore { value, posts: Vec::new() };
        Shared {
            locks: vec![RwLock { writer: NOBODY, readers: Vec::new(), written: none, read: none }; RW_LOCKS],
            semaphores: (0..SEMAPHORES as u8).map(semaphore).collect(),
            barriers: vec![Barrier { waiting: Vec::new(), clock: none }; BARRIERS],
        }
    }

    /// What an instruction is about to do, if it is one of these.
    pub fn pending(instr: Instr) -> Option<Op> {
        Some(match instr {
            Instr::ReadLock(l) => lock_op(OpKind::RwRead, l),
            Instr::WriteLock(l) => lock_op(OpKind::RwWrite, l),
            Instr::TryRead(_, l) => lock_op(OpKind::RwTryRead, l),
            Instr::TryWrite(_, l) => lock_op(OpKind::RwTryWrite, l),
            Instr::RwUnlock(l) => lock_op(OpKind::RwUnlockWrite, l),
            Instr::Post(s) => semaphore_op(OpKind::SemPost, s, POSTS),
            Instr::Acquire(s) => semaphore_op(OpKind::SemWait, s, WAITS),
            Instr::TryTake(_, s) => semaphore_op(OpKind::SemTry, s, 0xff),
            Instr::Value(_, s) => semaphore_op(OpKind::SemValue, s, 0xff),
            Instr::Barrier(b, _) => Op::new(OpKind::BarrierArrive, object(8, b)),
            Instr::Meet(b) => Op::new(OpKind::BarrierMeet, object(8, b)),
            _ => return None,
        })
    }

    /// The same operation, as what it is for who holds the lock.
    pub fn unlocks(&self, t: usize, instr: Instr, op: Op) -> Op {
        match instr {
            Instr::RwUnlock(l) if self.locks[l as usize].writer != t as u8 => Op { kind: OpKind::RwUnlockRead, ..op },
            _ => op,
        }
    }

    pub fn enabled(&self, instr: Instr) -> bool {
        match instr {
            Instr::ReadLock(l) => self.locks[l as usize].writer == NOBODY,
            Instr::WriteLock(l) => self.locks[l as usize].is_free(),
            Instr::Acquire(s) => self.semaphores[s as usize].value > 0,
            _ => true,
        }
    }

    pub fn holds(&self, t: usize) -> bool {
        self.locks.iter().any(|l| l.writer == t as u8)
    }

    /// How often a thread holds each lock for reading, as others may too.
    pub fn reads(&self, t: usize) -> impl Iterator<Item = usize> {
        self.locks.iter().map(move |l| l.readers.iter().filter(|&&r| r == t as u8).count())
    }
}

impl RwLock {
    fn is_free(&self) -> bool {
        self.writer == NOBODY && self.readers.is_empty()
    }
}

impl State {
    pub fn share(&mut self, program: &Program, t: usize, instr: Instr, op: Op) -> (Op, Option<Stop>) {
        match instr {
            Instr::ReadLock(l) => self.read_lock(t, l),
            Instr::WriteLock(l) => self.write_lock(t, l),
            Instr::TryRead(r, l) | Instr::TryWrite(r, l) => return (self.try_rw(t, instr, r, l), None),
            Instr::RwUnlock(l) => return self.rw_unlock(t, l, op),
            Instr::Post(s) => {
                let clock = self.threads[t].clock;
                let semaphore = &mut self.shared.semaphores[s as usize];
                semaphore.posts.push(clock);
                semaphore.value += 1;
            }
            Instr::Acquire(s) => return (with_arg(op, self.take_token(t, s)), None),
            Instr::TryTake(r, s) => {
                let free = self.shared.semaphores[s as usize].value > 0;
                self.threads[t].regs[r as usize] = free as i8;
                let kind = if free { OpKind::SemTaken } else { OpKind::SemTryFailed };
                let op = semaphore_op(kind, s, if free { WAITS } else { 0xff });
                return (if free { with_arg(op, self.take_token(t, s)) } else { op }, None);
            }
            Instr::Value(r, s) => {
                let value = self.shared.semaphores[s as usize].value;
                self.threads[t].regs[r as usize] = value as i8;
                return (with_arg(op, value as u32), None);
            }
            Instr::Barrier(b, _) | Instr::Meet(b) => return (with_arg(op, self.arrive(program, t, b) as u32), None),
            _ => {}
        }
        (op, None)
    }

    fn read_lock(&mut self, t: usize, l: u8) {
        let lock = &mut self.shared.locks[l as usize];
        lock.readers.push(t as u8);
        lock.readers.sort_unstable();
        join(&mut self.threads[t].clock, &lock.written);
    }

    fn write_lock(&mut self, t: usize, l: u8) {
        let lock = &mut self.shared.locks[l as usize];
        lock.writer = t as u8;
        join(&mut self.threads[t].clock, &lock.written);
        join(&mut self.threads[t].clock, &lock.read);
    }

    fn try_rw(&mut self, t: usize, instr: Instr, r: u8, l: u8) -> Op {
        let lock = &self.shared.locks[l as usize];
        let reads = matches!(instr, Instr::TryRead(..));
        let free = if reads { lock.writer == NOBODY } else { lock.is_free() };
        self.threads[t].regs[r as usize] = free as i8;
        match (free, reads) {
            (true, true) => self.read_lock(t, l),
            (true, false) => self.write_lock(t, l),
            (false, true) => return lock_op(OpKind::RwReadFailed, l),
            (false, false) => return lock_op(OpKind::RwWriteFailed, l),
        }
        with_arg(lock_op(if reads { OpKind::RwRead } else { OpKind::RwWrite }, l), TRIED)
    }

    fn rw_unlock(&mut self, t: usize, l: u8, op: Op) -> (Op, Option<Stop>) {
        let clock = self.threads[t].clock;
        let lock = &mut self.shared.locks[l as usize];
        if lock.writer == t as u8 {
            (lock.writer, lock.written) = (NOBODY, clock);
            return (op, None);
        }
        match lock.readers.iter().position(|&r| r == t as u8) {
            Some(at) => {
                lock.readers.remove(at);
                join(&mut lock.read, &clock);
                (op, None)
            }
            None => (op, Some(Stop::Misuse)),
        }
    }

    /// Takes one; what it was before. The tokens are taken in the order in which they came.
    fn take_token(&mut self, t: usize, s: u8) -> u32 {
        let semaphore = &mut self.shared.semaphores[s as usize];
        let value = semaphore.value as usize;
        if value <= semaphore.posts.len() {
            let clock = semaphore.posts[semaphore.posts.len() - value];
            join(&mut self.threads[t].clock, &clock);
        }
        semaphore.value -= 1;
        value as u32
    }

    /// Whether it was the last.
    fn arrive(&mut self, program: &Program, t: usize, b: u8) -> bool {
        let clock = self.threads[t].clock;
        let barrier = &mut self.shared.barriers[b as usize];
        join(&mut barrier.clock, &clock);
        if barrier.waiting.len() + 1 < 2 + b as usize {
            barrier.waiting.push(t as u8);
            barrier.waiting.sort_unstable();
            self.threads[t].phase = Phase::Arrived;
            return false;
        }
        let all = barrier.clock;
        for w in std::mem::take(&mut barrier.waiting) {
            self.threads[w as usize].phase = Phase::Released;
            join(&mut self.threads[w as usize].clock, &all);
            self.set_last(program, w as usize, 0);
        }
        join(&mut self.threads[t].clock, &all);
        self.set_last(program, t, 1);
        if matches!(self.instr(program, t), Some(Instr::Meet(_))) {
            self.threads[t].phase = Phase::Released;
        } else {
            self.threads[t].pc += 1;
        }
        true
    }

    fn set_last(&mut self, program: &Program, t: usize, last: i8) {
        if let Some(Instr::Barrier(_, r)) = self.instr(program, t) {
            self.threads[t].regs[r as usize] = last;
        }
    }

    pub fn pass(&mut self, t: usize) {
        self.threads[t].phase = Phase::Running;
        self.threads[t].pc += 1;
    }
}
