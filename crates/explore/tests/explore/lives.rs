//! Ends of threads that others ask about, and cancellation.
//!
//! Who is cancelled goes on with the last instructions of its code, which are its handlers, and cannot be cancelled again.

use crate::machine::{NOBODY, Phase, State, Thread, join, object, with_arg};
use crate::program::*;
use symdpor_abi::op::{MAY_BE_CANCELLED, NO_THREAD};
use symdpor_trace::{ObjectId, Op, OpKind};

/// What the program does with threads' lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lives {
    Unwatched,
    Watched,
    Cancelled,
}

/// Of `Thread::cancel`: it shall be cancelled, does not want to be, is being, and is about to be once it has its mutex.
const ASKED: u8 = 1;
const DISABLED: u8 = 2;
const ENDING: u8 = 4;
const ACTING: u8 = 8;

/// How many instructions at the end of a code are its handlers.
const HANDLERS: usize = 2;
/// The first register of who was cancelled.
const RESULT: i8 = -9;

impl Lives {
    pub fn of(program: &Program) -> Lives {
        let all = || program.codes.iter().flatten();
        if all().any(|i| matches!(i, Instr::Cancel(_) | Instr::CancelSelf)) {
            Lives::Cancelled
        } else if all().any(|i| matches!(i, Instr::TryJoin(..))) {
            Lives::Watched
        } else {
            Lives::Unwatched
        }
    }
}

fn can_be_cancelled_at(instr: Instr) -> bool {
    matches!(
        instr,
        Instr::TestCancel
            | Instr::Acquire(_)
            | Instr::Join(_)
            | Instr::JoinResult(..)
            | Instr::Put(..)
            | Instr::Take(..)
            | Instr::Look(_)
    )
}

impl Thread {
    fn life(number: u8) -> ObjectId {
        ObjectId::life(number as u16)
    }

    fn listens(&self) -> bool {
        self.cancel & (DISABLED | ENDING) == 0
    }

    pub fn acts(&self) -> bool {
        self.listens() && self.cancel & ASKED != 0
    }
}

impl State {
    /// Whether the thread can be cancelled where it is.
    fn is_cancellable(&self, t: usize) -> bool {
        self.lives == Lives::Cancelled && self.threads[t].listens()
    }

    /// What a thread is about to do that has to do with lives.
    pub fn pending_life(&self, t: usize, instr: Instr) -> Option<Op> {
        let target = |h: u8| self.threads[t].handles[h as usize];
        let me = t as u8;
        Some(match instr {
            Instr::TryJoin(_, h) => with_arg(Op::new(OpKind::TryJoin, Thread::life(target(h))), target(h) as u32),
            Instr::Cancel(_) | Instr::CancelSelf => {
                let whom = if let Instr::Cancel(h) = instr { target(h) } else { me };
                let mut op = with_arg(Op::new(OpKind::ThreadCancel, Thread::life(whom)), whom as u32);
                (op.object2, op.mask2) = (ObjectId::LIVES, 0xff);
                op
            }
            Instr::TestCancel => Op::new(OpKind::CancelPoint, ObjectId::NONE),
            _ => return None,
        })
    }

    /// The operation, if it is one where the thread can be cancelled as one that can be.
    pub fn with_life(&self, t: usize, instr: Instr, mut op: Op) -> Op {
        if self.lives != Lives::Cancelled {
            return op;
        }
        if let Instr::Signal(_) | Instr::Broadcast(_) = instr {
            return op.wakes_cancellable();
        }
        if !self.is_cancellable(t) {
            return op;
        }
        match instr {
            Instr::Wait(..) | Instr::WaitLimit(..) => op.arg |= MAY_BE_CANCELLED,
            Instr::Acquire(_) => op.mask = 0xff,
            Instr::Join(_) | Instr::JoinResult(..) => op.object = ObjectId::life(op.arg as u16),
            _ => {}
        }
        if can_be_cancelled_at(instr) { op.cancellable(t as u16) } else { op }
    }

    /// What a waiter stands before in programs that cancel: with a time limit, or not.
    pub fn pending_wait(&self, t: usize, condition: Op) -> Option<Op> {
        let cancellable = |kind| Op::new(kind, condition.object).cancellable(t as u16);
        match self.threads[t].phase {
            Phase::Waiting if self.is_cancellable(t) => Some(cancellable(OpKind::CondCancel)),
            Phase::Limited if self.is_cancellable(t) => Some(cancellable(OpKind::CondTimeout)),
            Phase::WokenFirst(_) => Some(cancellable(OpKind::CondCancel)),
            _ => None,
        }
    }

    /// Whether the thread can go on because it shall be cancelled.
    pub fn goes_on_cancelled(&self, t: usize, instr: Instr) -> bool {
        let thread = &self.threads[t];
        let at_point = match thread.phase {
            Phase::Waiting => true,
            Phase::Running => can_be_cancelled_at(instr),
            _ => false,
        };
        at_point && self.lives == Lives::Cancelled && thread.acts()
    }

    /// Whether it might be past the look at whether it shall be cancelled, and goes on as if it shall not.
    pub fn may_go_on_all_the_same(&self, t: usize, instr: Instr) -> bool {
        instr != Instr::TestCancel && self.goes_on_cancelled(t, instr) && self.is_ready(t, instr)
    }

    /// The phase of a waiter that has been woken, by a signal or by a broadcast.
    pub fn woken_phase(&self, t: usize, by_signal: bool) -> Phase {
        if self.is_cancellable(t) { Phase::WokenFirst(by_signal) } else { Phase::Woken }
    }

    /// Cancels a thread that shall be and is at a point for it; returns what it has done then.
    pub fn cancelled(&mut self, program: &Program, t: usize, instr: Instr, mut pending: Op, way: u16) -> Option<Op> {
        let (phase, acts) = (self.threads[t].phase, self.lives == Lives::Cancelled && self.threads[t].acts());
        match phase {
            Phase::Waiting | Phase::Limited if acts => {
                self.leave_queue(t);
                pending = Op { kind: OpKind::CondCancel, arg: NO_THREAD, ..pending };
            }
            Phase::WokenFirst(by_signal) => {
                pending.arg = NO_THREAD;
                if !acts {
                    self.threads[t].phase = Phase::Woken;
                    return Some(pending);
                }
                if let (true, Instr::Wait(c, _) | Instr::WaitLimit(c, ..)) = (by_signal, instr) {
                    pending.arg = self.pass_on(program, c);
                }
            }
            Phase::Running if acts && can_be_cancelled_at(instr) && way == 0 => {
                let pending = Op { kind: OpKind::CancelPoint, arg: 1, ..pending };
                self.go_to_handlers(program, t);
                return Some(pending);
            }
            _ => return None,
        }
        self.threads[t].phase = Phase::Woken;
        self.threads[t].cancel |= ACTING;
        Some(pending)
    }

    /// A waiter has its mutex again: whether it was cancelled.
    pub fn was_cancelled(&mut self, program: &Program, t: usize) -> bool {
        let acting = self.threads[t].cancel & ACTING != 0;
        if acting {
            self.threads[t].phase = Phase::Running;
            self.go_to_handlers(program, t);
        }
        acting
    }

    fn go_to_handlers(&mut self, program: &Program, t: usize) {
        let thread = &mut self.threads[t];
        let handlers = program.codes[thread.code as usize].len().saturating_sub(HANDLERS) as u8;
        thread.pc = (thread.pc + 1).max(handlers);
        thread.cancel |= ENDING;
        thread.regs[0] = RESULT;
    }

    /// Does what has to do with lives; the program counter is at the next instruction already.
    pub fn live(&mut self, t: usize, instr: Instr, mut op: Op) -> Op {
        match instr {
            Instr::TryJoin(r, _) => {
                let target = op.arg as usize;
                let ended = self.threads[target].phase == Phase::Ended;
                self.threads[t].regs[r as usize] = ended as i8;
                op.kind = if ended { OpKind::ThreadJoin } else { OpKind::TryJoinFailed };
                if ended {
                    let clock = self.threads[target].clock;
                    join(&mut self.threads[t].clock, &clock);
                }
            }
            Instr::Cancel(_) | Instr::CancelSelf => self.threads[op.arg as usize].cancel |= ASKED,
            _ => {}
        }
        op
    }

    /// Whether it is an instruction of these that is invisible now.
    pub fn invisible_life(&mut self, t: usize, instr: Instr) -> bool {
        let thread = &mut self.threads[t];
        match instr {
            Instr::TryJoin(_, h) | Instr::Cancel(h) => thread.handles[h as usize] == NOBODY,
            Instr::TestCancel => self.lives != Lives::Cancelled || !self.threads[t].listens(),
            Instr::CancelState(on) => {
                thread.cancel = if on { thread.cancel & !DISABLED } else { thread.cancel | DISABLED };
                true
            }
            _ => false,
        }
    }

    /// Where a thread is that has nothing left to do.
    pub fn end_phase(&self) -> Phase {
        if self.lives == Lives::Unwatched { Phase::Ended } else { Phase::Ending }
    }

    pub fn end_op(t: usize) -> Op {
        Op::new(OpKind::ThreadEnd, Thread::life(t as u8))
    }

    /// The object of the condition variable that an instruction waits for.
    pub fn condition(instr: Instr) -> Op {
        let c = if let Instr::Wait(c, _) | Instr::WaitLimit(c, ..) = instr { c } else { 0 };
        Op::new(OpKind::CondWait, object(3, c))
    }
}
