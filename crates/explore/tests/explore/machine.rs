//! A machine that runs small programs one transition at a time.
//!
//! A transition is one visible operation and the invisible ones after it, as in the real runtime. Plain accesses are
//! invisible and checked by happens-before (sequentially consistent atomics, mutexes, once, creation, join).

use crate::futex;
use crate::lives::Lives;
use crate::program::*;
use crate::queues::{self, Queues};
use crate::shared::Shared;
use symdpor_abi::object::Region;
use symdpor_abi::op::{NO_THREAD, TIMED, TRIED, dependent};
use symdpor_trace::{ObjectId, Op, OpKind};

pub type Clock = [u8; THREADS];
pub const NOBODY: u8 = u8::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    Running,
    /// Waits on a condition variable.
    Waiting,
    /// The same, but may give up.
    Limited,
    /// Woken, has to lock the mutex again.
    Woken,
    /// Waits at a barrier, and may go on from there.
    Arrived,
    Released,
    /// Has assumed what is not so.
    Stuck,
    Ended,
    /// Waits on the futex of a cell, perhaps with a time limit.
    Futex(u8, bool),
    /// Woken from one.
    FutexWoken,
    /// Has nothing left to do but to end.
    Ending,
    /// Woken, by a signal or a broadcast, but might be cancelled yet.
    WokenFirst(bool),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Thread {
    pub code: u8,
    pub pc: u8,
    pub phase: Phase,
    pub regs: [i8; REGS],
    pub handles: [u8; HANDLES],
    pub loops: u8,
    /// What a spinning thread has looked at in vain since it was last written, as bits, and what it looks at next.
    pub vain: u8,
    pub turn: u8,
    /// In which looks of its turn it has looked at something plain as well, for the first time since it last released anything.
    pub touched: Unseen<u8>,
    /// Before which looks it has been since it began, as bits, and whether it stands before one of these again.
    been: Unseen<u8>,
    round: Unseen<bool>,
    /// What it has loaded and is about to exchange.
    pub loaded: i8,
    /// Whether it shall be cancelled, see `lives.rs`.
    pub cancel: u8,
    pub clock: Clock,
    /// What its relaxed reads have seen, and what it knew at its last releasing fence.
    seen: Clock,
    fenced: Clock,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Mutex {
    owner: u8,
    count: u8,
    clock: Clock,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum OnceState {
    Fresh,
    Running,
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Plain {
    value: i8,
    writes: Clock,
    reads: Clock,
}

/// Why an execution stops before all threads are done.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stop {
    Race,
    Assertion(u8),
    Misuse,
    Exit(u8),
    /// An assumption within an atomic section does not hold.
    Dropped,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub cells: [[i8; LANES]; CELLS],
    cell_clocks: [[Clock; LANES]; CELLS],
    plain: [Plain; PLAIN],
    mutexes: [Mutex; MUTEXES],
    /// Waiters in the order of waiting.
    conds: [Vec<u8>; CONDS],
    /// The same of futexes.
    pub futexes: [Vec<u8>; CELLS],
    onces: [(OnceState, Clock); ONCES],
    /// Who runs each `Once`.
    running_once: [u8; ONCES],
    pub threads: Vec<Thread>,
    pub shared: Shared,
    pub lives: Lives,
    /// Who is in an atomic section, and what the last one released.
    section: u8,
    section_clock: Clock,
    raw: [Accesses; CELLS],
    queues: Queues,
    /// Plain accesses of the last transition: thread, granule and bytes, whether it writes.
    pub log: Unseen<Vec<LoggedAccess>>,
    /// Its fences: thread, order, how many accesses there were before it.
    pub fences: Unseen<Vec<(usize, u8, usize)>>,
    /// The result of the last transition's join.
    pub joined: Unseen<Option<u64>>,
}

/// Thread, granule and bytes, whether it writes.
type LoggedAccess = (usize, (ObjectId, u8), bool);

/// Who has accessed an atomic cell how.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Accesses {
    plain_reads: Clock,
    plain_writes: Clock,
    atomic_reads: Clock,
    atomic_writes: Clock,
}

/// No part of the state.
#[derive(Clone, Debug, Default)]
pub struct Unseen<T>(pub T);

impl<T> PartialEq for Unseen<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Unseen<T> {}

impl<T> std::hash::Hash for Unseen<T> {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// One transition.
pub struct Done {
    pub op: Op,
    pub stop: Option<Stop>,
}

pub fn join(clock: &mut Clock, other: &Clock) {
    clock.iter_mut().zip(other).for_each(|(a, b)| *a = (*a).max(*b));
}

pub fn object(kind: u64, number: u8) -> ObjectId {
    ObjectId::new(Region::Heap, (kind << 16) | ((number as u64 + 1) * 8))
}

fn view_op(kind: OpKind, view: View) -> Op {
    let mut op = Op::new(kind, object(1, view.cell));
    op.mask = view.mask();
    op.order = if view.relaxed { 0 } else { 5 };
    if view.wide {
        op.object2 = object(1, view.cell + 1);
        op.mask2 = 0xff;
    }
    op
}

fn mutex_op(kind: OpKind, mutex: u8) -> Op {
    Op::new(kind, object(2, mutex))
}

pub fn with_arg(mut op: Op, arg: u32) -> Op {
    op.arg = arg;
    op
}

impl Thread {
    fn new(code: u8, number: usize, mut clock: Clock) -> Thread {
        clock[number] = 1;
        let handles = [NOBODY; HANDLES];
        Thread {
            code,
            pc: 0,
            phase: Phase::Running,
            regs: [0; REGS],
            handles,
            loops: 0,
            vain: 0,
            been: Unseen(0),
            round: Unseen(false),
            loaded: 0,
            turn: 0,
            touched: Unseen(0),
            cancel: 0,
            clock,
            seen: [0; THREADS],
            fenced: [0; THREADS],
        }
    }
}

impl State {
    /// The state before the first visible operation, or why there is none.
    pub fn new(program: &Program) -> (State, Option<Stop>) {
        let free = Mutex { owner: NOBODY, count: 0, clock: [0; THREADS] };
        let mut state = State {
            cells: Default::default(),
            cell_clocks: Default::default(),
            plain: Default::default(),
            mutexes: [free; MUTEXES],
            conds: Default::default(),
            futexes: Default::default(),
            onces: [(OnceState::Fresh, [0; THREADS]); ONCES],
            threads: vec![Thread::new(0, 0, [0; THREADS])],
            running_once: [NOBODY; ONCES],
            shared: Shared::new(),
            lives: Lives::of(program),
            section: NOBODY,
            section_clock: [0; THREADS],
            raw: Default::default(),
            queues: Default::default(),
            log: Unseen::default(),
            fences: Unseen::default(),
            joined: Unseen::default(),
        };
        let stop = state.tail(program, 0);
        (state, stop)
    }

    pub fn instr(&self, program: &Program, t: usize) -> Option<Instr> {
        let thread = &self.threads[t];
        program.codes.get(thread.code as usize)?.get(thread.pc as usize).copied()
    }

    /// What a thread that has not ended is about to do.
    pub fn pending(&self, program: &Program, t: usize) -> Option<Op> {
        if self.threads[t].phase == Phase::Ending {
            return Some(State::end_op(t));
        }
        let instr = self.instr(program, t)?;
        if let Some(op) = self.pending_wait(t, State::condition(instr)) {
            return Some(op);
        }
        let op = self.pending_instr(t, instr)?;
        Some(if self.threads[t].phase == Phase::Running { self.with_life(t, instr, op) } else { op })
    }

    fn pending_instr(&self, t: usize, instr: Instr) -> Option<Op> {
        match self.threads[t].phase {
            Phase::Ended => return None,
            Phase::Waiting | Phase::Stuck => return Some(Op::new(OpKind::Waiting, ObjectId::NONE)),
            Phase::Woken => return Some(mutex_op(OpKind::MutexLock, wait_mutex(instr))),
            Phase::Limited => return Some(Op::new(OpKind::CondTimeout, wait_op(instr).object)),
            Phase::Arrived | Phase::Released => {
                return Shared::pending(instr).map(|op| Op::new(OpKind::BarrierPass, op.object));
            }
            Phase::Futex(cell, true) => return Some(futex::op(OpKind::FutexTimeout, cell)),
            Phase::Futex(cell, false) => return Some(futex::op(OpKind::Waiting, cell)),
            Phase::FutexWoken => return Some(futex::op(OpKind::FutexWoken, 0)),
            Phase::Running | Phase::Ending | Phase::WokenFirst(_) => {}
        }
        if let Some(op) = self.pending_life(t, instr) {
            return Some(op);
        }
        if let Some(op) = Shared::pending(instr) {
            return Some(self.shared.unlocks(t, instr, op));
        }
        Some(match instr {
            Instr::Load(_, view) => view_op(OpKind::AtomicLoad, view),
            Instr::Store(view, _) | Instr::StoreReg(view, _) => view_op(OpKind::AtomicStore, view),
            Instr::Add(_, view, _) => view_op(OpKind::AtomicRmw, view),
            Instr::Cas(_, view, ..) | Instr::SpinLock(view) => view_op(OpKind::AtomicCas, view),
            Instr::Retry(_, view) => {
                let kind = if self.threads[t].turn == 0 { OpKind::AtomicLoad } else { OpKind::AtomicCas };
                view_op(kind, view)
            }
            Instr::Spin(view, _) | Instr::SpinPlain(view, ..) => view_op(OpKind::AtomicLoad, view),
            Instr::SpinEither(one, other, _) | Instr::SpinEitherPlain(one, other, ..) => {
                view_op(OpKind::AtomicLoad, if self.threads[t].turn == 0 { one } else { other })
            }
            Instr::Lock(m) => mutex_op(OpKind::MutexLock, m),
            Instr::TryLock(_, m) => mutex_op(OpKind::TryLock, m),
            Instr::Unlock(m) => mutex_op(OpKind::MutexUnlock, m),
            Instr::Wait(..) | Instr::WaitLimit(..) => wait_op(instr),
            Instr::Signal(c) => Op::new(OpKind::CondSignal, object(3, c)),
            Instr::Broadcast(c) => Op::new(OpKind::CondBroadcast, object(3, c)),
            Instr::FutexWait(_, cell, _, limited) => {
                with_arg(futex::op(OpKind::FutexWait, cell), limited as u32 * TIMED)
            }
            Instr::FutexWake(_, cell, _) => futex::op(OpKind::FutexWake, cell),
            Instr::FutexRequeue(one, other, ..) => futex::op_with(OpKind::FutexRequeue, one, other),
            Instr::FutexWakeOp(one, other, _) => futex::op_with(OpKind::FutexWakeOp, one, other),
            Instr::Once(o, _) => Op::new(OpKind::Once, object(4, o)),
            Instr::OnceEnd(o) => Op::new(OpKind::OnceEnd, object(4, o)),
            Instr::Create(..) => Op::new(OpKind::ThreadCreate, ObjectId::THREADS),
            Instr::Join(h) | Instr::JoinResult(_, h) => {
                with_arg(Op::new(OpKind::ThreadJoin, ObjectId::NONE), self.threads[t].handles[h as usize] as u32)
            }
            Instr::Exit(0) => Op::quiet_exit(),
            Instr::Exit(status) => with_arg(Op::new(OpKind::ProcessExit, ObjectId::NONE), status as u32),
            Instr::AtomicBegin => Op::new(OpKind::AtomicSection, ObjectId::NONE),
            Instr::Choose(_, n) => {
                let order = if self.section == NOBODY { 5 } else { 0 };
                Op { order, ..with_arg(Op::new(OpKind::Choose, ObjectId::NONE), n as u32) }
            }
            instr => queues::pending(instr).unwrap_or(Op::new(OpKind::Yield, ObjectId::NONE)),
        })
    }

    pub fn enabled(&self, program: &Program, t: usize) -> bool {
        if self.threads[t].phase == Phase::Ending {
            return true;
        }
        let Some(instr) = self.instr(program, t) else { return false };
        if self.section != NOBODY && self.section != t as u8 {
            return false;
        }
        self.goes_on_cancelled(t, instr) || self.is_ready(t, instr)
    }

    /// Whether it can do what it is about to do.
    pub fn is_ready(&self, t: usize, instr: Instr) -> bool {
        match (self.threads[t].phase, instr) {
            (Phase::WokenFirst(_), _) => true,
            (Phase::Ended | Phase::Waiting | Phase::Arrived | Phase::Stuck | Phase::Futex(_, false), _) => false,
            (Phase::Limited | Phase::Released | Phase::Futex(_, true) | Phase::FutexWoken, _) => true,
            (Phase::Woken, _) => self.mutexes[wait_mutex(instr) as usize].owner == NOBODY,
            (_, Instr::Spin(..) | Instr::SpinPlain(..) | Instr::SpinLock(_)) => self.threads[t].vain == 0,
            (_, Instr::SpinEither(..) | Instr::SpinEitherPlain(..) | Instr::Retry(..)) => self.threads[t].vain != 0b11,
            (_, Instr::Lock(m)) => self.mutexes[m as usize].owner == NOBODY,
            (_, Instr::Once(o, _)) => self.onces[o as usize].0 != OnceState::Running,
            // An error may stop a thread before a join that names nobody.
            (_, Instr::Join(h) | Instr::JoinResult(_, h)) => {
                let target = self.threads.get(self.threads[t].handles[h as usize] as usize);
                target.is_none_or(|t| t.phase == Phase::Ended)
            }
            (_, instr) => self.shared.enabled(instr) && queues::enabled(&self.queues, instr),
        }
    }

    /// In how many ways the thread's next operation can go.
    pub fn alternatives(&self, program: &Program, t: usize) -> u16 {
        match self.instr(program, t) {
            _ if self.threads[t].phase != Phase::Running => 1,
            Some(instr) if self.may_go_on_all_the_same(t, instr) => 2,
            Some(Instr::Signal(c)) => self.conds[c as usize].len().max(1) as u16,
            Some(Instr::Choose(_, n)) => n as u16,
            Some(instr) => self.futex_ways(instr),
            None => 1,
        }
    }

    /// Makes the transition of an enabled thread.
    pub fn step(&mut self, program: &Program, t: usize, alternative: u16) -> Done {
        self.log.0.clear();
        self.fences.0.clear();
        self.joined.0 = None;
        let (op, mut stop) = self.act(program, t, alternative);
        while stop.is_none() && self.section == t as u8 && self.threads[t].phase == Phase::Running {
            match self.instr(program, t) {
                Some(Instr::Choose(..)) => break,
                Some(Instr::AtomicEnd) | None => {
                    (self.section, self.section_clock) = (NOBODY, self.threads[t].clock);
                    self.threads[t].clock[t] += 1;
                    self.threads[t].pc += 1;
                    stop = self.tail(program, t);
                }
                // Nothing may wait in there, make threads or wake others.
                Some(_) if !self.enabled(program, t) => stop = Some(Stop::Misuse),
                Some(_) => stop = self.act(program, t, 0).1,
            }
        }
        if let (OpKind::ThreadCreate, None) = (op.kind, &stop)
            && let Some(child) = u8::try_from(op.arg).ok().filter(|&c| (c as usize) < self.threads.len())
        {
            stop = self.tail(program, child as usize);
        }
        Done { op, stop }
    }

    /// One operation, and what is invisible after it.
    fn act(&mut self, program: &Program, t: usize, alternative: u16) -> (Op, Option<Stop>) {
        let (op, mut stop) = self.operate(program, t, alternative);
        if stop.is_none() && !self.atomic_in_order(t, &op) {
            stop = Some(Stop::Race);
        }
        if matches!(op.kind, OpKind::AtomicStore | OpKind::AtomicRmw | OpKind::FutexWakeOp) {
            self.wake_spinners(program, &op);
        }
        // What comes after the operation is not covered by what the operation itself released.
        if !matches!(op.kind, OpKind::AtomicLoad | OpKind::TryLockFailed | OpKind::Yield) {
            self.threads[t].clock[t] += 1;
        }
        if stop.is_none() {
            stop = self.tail(program, t);
        }
        (op, stop)
    }

    /// Whether the thread is in an atomic section.
    pub fn is_atomic(&self, t: usize) -> bool {
        self.section == t as u8
    }

    /// Whether an assumption of some thread does not hold.
    pub fn is_dropped(&self) -> bool {
        self.threads.iter().any(|t| t.phase == Phase::Stuck)
    }

    /// Whether the thread holds something that is known to be its.
    pub fn holds(&self, t: usize) -> bool {
        self.mutexes.iter().any(|m| m.owner == t as u8) || self.shared.holds(t)
    }

    /// Whether the thread runs the code of a `Once`: nobody else does.
    pub fn runs_once(&self, t: usize) -> bool {
        self.running_once.contains(&(t as u8))
    }

    /// Whether the thread spins in vain.
    pub fn spins(&self, program: &Program, t: usize) -> bool {
        self.threads[t].vain != 0 && !self.enabled(program, t)
    }

    /// Whether the thread has just come round to where it was, having changed nothing, be it that what it looked at has been written since.
    pub fn comes_round(&self, t: usize) -> bool {
        self.threads[t].round.0
    }

    fn wake_spinners(&mut self, program: &Program, write: &Op) {
        for t in 0..self.threads.len() {
            let views = self.instr(program, t).map_or([None, None], Instr::spins_on);
            for (bit, view) in views.into_iter().enumerate() {
                if view.is_some_and(|v| dependent(&view_op(OpKind::AtomicLoad, v), write)) {
                    self.threads[t].vain &= !(1 << bit);
                }
            }
        }
    }

    fn operate(&mut self, program: &Program, t: usize, alternative: u16) -> (Op, Option<Stop>) {
        let pending = self.pending(program, t).expect("an enabled thread has an operation");
        if self.threads[t].phase == Phase::Ending {
            self.threads[t].phase = Phase::Ended;
            return (pending, None);
        }
        let instr = self.instr(program, t).expect("an enabled thread has an instruction");
        if let Some(op) = self.cancelled(program, t, instr, pending, alternative) {
            return (op, None);
        }
        if self.threads[t].phase == Phase::Woken {
            self.take(wait_mutex(instr), t);
            if self.was_cancelled(program, t) {
                return (pending, None);
            }
            self.threads[t].phase = Phase::Running;
            self.threads[t].pc += 1;
            return (pending, None);
        }
        match self.threads[t].phase {
            Phase::Limited => {
                self.leave_queue(t);
                self.wake(program, t, true);
                self.threads[t].phase = Phase::Woken;
                return (pending, None);
            }
            Phase::Released => {
                self.pass(t);
                return (pending, None);
            }
            Phase::Futex(..) | Phase::FutexWoken => return (self.leave_futex(t, instr, pending), None),
            _ => {}
        }
        let stays = matches!(instr, Instr::Wait(..) | Instr::WaitLimit(..) | Instr::Barrier(..) | Instr::Meet(_));
        if !stays && instr.spins_on() == [None, None] {
            self.threads[t].pc += 1;
        }
        match instr {
            Instr::Load(..) | Instr::Store(..) | Instr::StoreReg(..) | Instr::Add(..) | Instr::Cas(..) => {
                (self.atomic(t, instr, pending), None)
            }
            Instr::Spin(view, value) => (self.spin(t, view, value, false, pending), None),
            Instr::SpinPlain(view, value, var) => {
                let op = self.spin(t, view, value, false, pending);
                (op, self.look_aside(t, 0, Some(var)))
            }
            Instr::SpinEitherPlain(one, other, value, var) => {
                let turn = self.threads[t].turn;
                let op = self.spin(t, if turn == 0 { one } else { other }, value, true, pending);
                (op, self.look_aside(t, turn, Some(var).filter(|_| turn == 0)))
            }
            Instr::SpinEither(one, other, value) => {
                let view = if self.threads[t].turn == 0 { one } else { other };
                (self.spin(t, view, value, true, pending), None)
            }
            Instr::Retry(_, view) if self.threads[t].turn == 0 => {
                self.acquire(t, view);
                self.threads[t].loaded = self.digest(view);
                self.spun(t, false, true);
                // It never waits: what it has loaded may still be there.
                self.threads[t].vain = 0;
                (pending, None)
            }
            Instr::Retry(r, view) => {
                let (before, loaded) = (self.threads[t].regs, self.threads[t].loaded);
                let op = self.atomic(t, Instr::Cas(3, view, loaded, loaded.wrapping_add(1)), pending);
                self.threads[t].regs = before;
                let done = op.kind == OpKind::AtomicRmw;
                if done {
                    self.threads[t].regs[r as usize] = loaded;
                }
                self.threads[t].loaded = 0;
                self.spun(t, done, true);
                self.threads[t].vain = 0;
                (op, None)
            }
            Instr::SpinLock(view) => {
                // A turn in vain leaves nothing behind.
                let before = self.threads[t].regs;
                let op = self.atomic(t, Instr::Cas(3, view, 0, 1), pending);
                self.threads[t].regs = before;
                self.spun(t, op.kind == OpKind::AtomicRmw, false);
                (op, None)
            }
            Instr::Lock(_) | Instr::TryLock(..) | Instr::Unlock(_) => self.mutex(t, instr, pending),
            Instr::Wait(c, m) => (pending, self.wait(t, c, m, Phase::Waiting)),
            Instr::WaitLimit(c, m, _) => (pending, self.wait(t, c, m, Phase::Limited)),
            Instr::Signal(c) => (with_arg(pending, self.signal(program, c, alternative)), None),
            Instr::Broadcast(c) => {
                let waiters = std::mem::take(&mut self.conds[c as usize]);
                for &w in &waiters {
                    self.wake(program, w as usize, false);
                    self.threads[w as usize].phase = self.woken_phase(w as usize, false);
                }
                (pending, None)
            }
            Instr::FutexWait(..) | Instr::FutexWake(..) | Instr::FutexRequeue(..) | Instr::FutexWakeOp(..) => {
                (self.futex(t, instr, alternative, pending), None)
            }
            Instr::Once(o, skip) => (self.once(t, o, skip, pending), None),
            Instr::OnceEnd(o) => {
                self.running_once[o as usize] = NOBODY;
                self.onces[o as usize] = (OnceState::Done, self.threads[t].clock);
                (pending, None)
            }
            Instr::Create(code, handle) => (with_arg(pending, self.create(t, code, handle)), None),
            Instr::Join(h) | Instr::JoinResult(_, h) => {
                let target = self.threads[t].handles[h as usize] as usize;
                let clock = self.threads[target].clock;
                join(&mut self.threads[t].clock, &clock);
                if let Instr::JoinResult(r, _) = instr {
                    let result = self.threads[target].regs[0];
                    self.threads[t].regs[r as usize] = result;
                    self.joined.0 = Some(result as u64);
                }
                (pending, None)
            }
            Instr::Exit(status) => (pending, Some(Stop::Exit(status))),
            Instr::TryJoin(..) | Instr::Cancel(_) | Instr::CancelSelf | Instr::TestCancel => {
                (self.live(t, instr, pending), None)
            }
            Instr::Choose(r, _) => {
                self.threads[t].regs[r as usize] = alternative as i8;
                (pending, None)
            }
            Instr::AtomicBegin => {
                self.section = t as u8;
                let clock = self.section_clock;
                join(&mut self.threads[t].clock, &clock);
                (pending, None)
            }
            Instr::Put(..) | Instr::Take(..) | Instr::TakeNow(..) | Instr::Look(_) | Instr::Close(_) => {
                let changed = queues::operate(&mut self.queues, instr, &mut self.threads[t].clock);
                if let Some((r, value)) = changed {
                    self.threads[t].regs[r as usize] = value;
                }
                (pending, None)
            }
            _ => self.share(program, t, instr, pending),
        }
    }

    /// A waiter is woken, or gives up.
    fn wake(&mut self, program: &Program, t: usize, gave_up: bool) {
        self.threads[t].phase = Phase::Woken;
        if let Some(Instr::WaitLimit(_, _, r)) = self.instr(program, t) {
            self.threads[t].regs[r as usize] = gave_up as i8;
        }
    }

    pub fn digest(&self, view: View) -> i8 {
        let mix = |d: i8, v: i8| d.wrapping_mul(3).wrapping_add(v);
        let first = self.cells[view.cell as usize][view.from as usize];
        if view.places().all(|(c, l)| self.cells[c][l] == first) {
            return first;
        }
        view.places().fold(7, |d, (c, l)| mix(d, self.cells[c][l]))
    }

    fn atomic(&mut self, t: usize, instr: Instr, mut op: Op) -> Op {
        match instr {
            Instr::Load(r, view) => {
                self.acquire(t, view);
                self.threads[t].regs[r as usize] = self.digest(view);
            }
            Instr::Store(view, value) => self.store(t, view, false, |_| value),
            Instr::StoreReg(view, r) => {
                let value = self.threads[t].regs[r as usize].wrapping_add(1);
                self.store(t, view, false, |_| value);
            }
            Instr::Add(r, view, value) => {
                self.acquire(t, view);
                self.threads[t].regs[r as usize] = self.digest(view);
                self.store(t, view, true, |old| old.wrapping_add(value));
            }
            Instr::Cas(r, view, expected, value) => {
                self.acquire(t, view);
                let equal = self.digest(view) == expected;
                self.threads[t].regs[r as usize] = equal as i8;
                op.kind = if equal { OpKind::AtomicRmw } else { OpKind::AtomicLoad };
                if equal {
                    self.store(t, view, true, |_| value);
                } else {
                    op.arg = TRIED;
                }
            }
            _ => {}
        }
        op
    }

    fn spin(&mut self, t: usize, view: View, value: i8, either: bool, op: Op) -> Op {
        self.acquire(t, view);
        self.spun(t, self.digest(view) == value, either);
        op
    }

    /// A spinning thread that has looked in vain looks at a plain variable as well, which leaves nothing behind.
    fn look_aside(&mut self, t: usize, turn: u8, var: Option<u8>) -> Option<Stop> {
        let bit = 1 << turn;
        self.threads[t].touched.0 &= !bit;
        let var = var.filter(|_| self.threads[t].vain & bit != 0)?;
        let (clock, plain) = (self.threads[t].clock, self.plain[var as usize]);
        // One that it has made before, and released nothing since, makes no difference.
        if ![plain.reads[t], plain.writes[t]].contains(&clock[t]) {
            self.threads[t].touched.0 |= bit;
        }
        let before = self.threads[t].regs;
        let looked = self.plain_load(t, 3, var);
        self.threads[t].regs = before;
        looked.err()
    }

    /// A spinning thread has looked, and goes on if it saw what it wanted.
    fn spun(&mut self, t: usize, done: bool, either: bool) {
        let thread = &mut self.threads[t];
        if done {
            (thread.vain, thread.turn, thread.touched.0) = (0, 0, 0);
            (thread.been.0, thread.round.0) = (0, false);
            thread.pc += 1;
        } else {
            thread.vain |= 1 << thread.turn;
            thread.been.0 |= 1 << thread.turn;
            thread.turn ^= either as u8;
            thread.round.0 = thread.been.0 & 1 << thread.turn != 0;
        }
    }

    pub fn acquire(&mut self, t: usize, view: View) {
        for (cell, lane) in view.places() {
            let (clock, thread) = (self.cell_clocks[cell][lane], &mut self.threads[t]);
            join(if view.relaxed { &mut thread.seen } else { &mut thread.clock }, &clock);
        }
    }

    fn fence(&mut self, t: usize, order: u8) {
        self.fences.0.push((t, order, self.log.0.len()));
        let thread = &mut self.threads[t];
        if order != 3 {
            join(&mut thread.clock, &thread.seen);
        }
        if order >= 3 {
            thread.fenced = thread.clock;
            thread.clock[t] += 1;
        }
    }

    pub fn store(&mut self, t: usize, view: View, keep: bool, value: impl Fn(i8) -> i8) {
        let clock = if view.relaxed { self.threads[t].fenced } else { self.threads[t].clock };
        for (cell, lane) in view.places() {
            let place = &mut self.cells[cell][lane];
            *place = value(*place);
            if keep {
                join(&mut self.cell_clocks[cell][lane], &clock);
            } else {
                self.cell_clocks[cell][lane] = clock;
            }
        }
    }

    fn mutex(&mut self, t: usize, instr: Instr, mut op: Op) -> (Op, Option<Stop>) {
        match instr {
            Instr::Lock(m) => self.take(m, t),
            Instr::TryLock(r, m) => {
                let free = self.mutexes[m as usize].owner == NOBODY;
                self.threads[t].regs[r as usize] = free as i8;
                op.kind = if free { OpKind::MutexLock } else { OpKind::TryLockFailed };
                if free {
                    op.arg = TRIED;
                    self.take(m, t);
                }
            }
            Instr::Unlock(m) => return (op, self.release(m, t)),
            _ => {}
        }
        (op, None)
    }

    fn take(&mut self, m: u8, t: usize) {
        let mutex = &mut self.mutexes[m as usize];
        mutex.owner = t as u8;
        mutex.count = mutex.count.max(1);
        join(&mut self.threads[t].clock, &mutex.clock);
    }

    fn release(&mut self, m: u8, t: usize) -> Option<Stop> {
        let mutex = &mut self.mutexes[m as usize];
        if mutex.owner != t as u8 {
            return Some(Stop::Misuse);
        }
        *mutex = Mutex { owner: NOBODY, count: 0, clock: self.threads[t].clock };
        None
    }

    /// Releases the mutex however often it is held; it is held once afterwards.
    fn wait(&mut self, t: usize, c: u8, m: u8, phase: Phase) -> Option<Stop> {
        let stop = self.release(m, t);
        if stop.is_none() {
            self.conds[c as usize].push(t as u8);
            self.threads[t].phase = phase;
        }
        stop
    }

    fn signal(&mut self, program: &Program, c: u8, alternative: u16) -> u32 {
        let waiters = &mut self.conds[c as usize];
        if waiters.is_empty() {
            return NO_THREAD;
        }
        let waiter = waiters.remove(alternative as usize);
        self.wake(program, waiter as usize, false);
        self.threads[waiter as usize].phase = self.woken_phase(waiter as usize, true);
        waiter as u32
    }

    /// Whoever was signalled is cancelled: the one that has waited longest gets the signal.
    pub fn pass_on(&mut self, program: &Program, c: u8) -> u32 {
        self.signal(program, c, 0)
    }

    pub fn leave_queue(&mut self, t: usize) {
        self.conds.iter_mut().for_each(|waiters| waiters.retain(|&w| w as usize != t));
    }

    fn once(&mut self, t: usize, o: u8, skip: u8, mut op: Op) -> Op {
        let (state, clock) = self.onces[o as usize];
        if state == OnceState::Fresh {
            self.onces[o as usize].0 = OnceState::Running;
            self.running_once[o as usize] = t as u8;
            op.kind = OpKind::OnceBegin;
        } else {
            join(&mut self.threads[t].clock, &clock);
            self.threads[t].pc += skip;
            op.kind = OpKind::OnceDone;
        }
        op
    }

    fn create(&mut self, t: usize, code: u8, handle: u8) -> u32 {
        let number = self.threads.len();
        if number == THREADS {
            return NO_THREAD;
        }
        self.threads[t].handles[handle as usize] = number as u8;
        self.threads.push(Thread::new(code, number, self.threads[t].clock));
        if self.lives != Lives::Unwatched {
            // It knows those who were created before.
            self.threads[number].handles = self.threads[t].handles;
        }
        number as u32
    }

    /// Runs invisible instructions up to the next visible one.
    fn tail(&mut self, program: &Program, t: usize) -> Option<Stop> {
        for turn in 0.. {
            // A loop without any operation: programs that were made smaller have them.
            if turn == 100 {
                self.threads[t].phase = self.end_phase();
            }
            if self.threads[t].phase != Phase::Running {
                break;
            }
            let Some(instr) = self.instr(program, t) else {
                self.threads[t].phase = self.end_phase();
                break;
            };
            match self.invisible(program, t, instr) {
                Some(Ok(())) => self.threads[t].pc += 1,
                Some(Err(stop)) => return Some(stop),
                None => break,
            }
        }
        None
    }

    /// Executes an instruction if it is invisible.
    fn invisible(&mut self, program: &Program, t: usize, instr: Instr) -> Option<Result<(), Stop>> {
        if self.invisible_life(t, instr) {
            return Some(Ok(()));
        }
        let end = self.end_phase();
        let thread = &mut self.threads[t];
        let recursive = |m: u8| program.recursive & 1 << m != 0;
        match instr {
            Instr::If(r, value, skip) if thread.regs[r as usize] != value => thread.pc += skip,
            Instr::If(..) => {}
            Instr::Loop(back, times) => {
                thread.loops += 1;
                if thread.loops < times {
                    thread.pc = thread.pc.wrapping_sub(back + 1);
                } else {
                    thread.loops = 0;
                }
            }
            Instr::Again(r, value, back) => {
                if thread.regs[r as usize] == value {
                    thread.pc = thread.pc.wrapping_sub(back + 1);
                }
            }
            Instr::End => {
                thread.phase = end;
            }
            Instr::AssertNot(r, value, number) if thread.regs[r as usize] == value => {
                return Some(Err(Stop::Assertion(number)));
            }
            Instr::AssertNot(..) => {}
            Instr::Assume(r, value) if thread.regs[r as usize] != value => {
                if self.section == t as u8 {
                    return Some(Err(Stop::Dropped));
                }
                thread.phase = Phase::Stuck;
                return None;
            }
            Instr::Assume(..) => {}
            Instr::RawLoad(r, cell) => return Some(self.raw_load(t, r, cell)),
            Instr::RawStore(cell, value) => return Some(self.raw_store(t, cell, value)),
            Instr::Fence(order) => self.fence(t, order),
            Instr::PlainLoad(r, v) => return Some(self.plain_load(t, r, v)),
            Instr::PlainStore(v, value) => return Some(self.plain_store(t, v, value)),
            Instr::Lock(m) | Instr::TryLock(_, m) if recursive(m) && self.mutexes[m as usize].owner == t as u8 => {
                self.mutexes[m as usize].count += 1;
                if let Instr::TryLock(r, _) = instr {
                    thread.regs[r as usize] = 1;
                }
            }
            Instr::Unlock(m) if self.mutexes[m as usize].owner == t as u8 && self.mutexes[m as usize].count > 1 => {
                self.mutexes[m as usize].count -= 1;
            }
            Instr::Join(h) | Instr::JoinResult(_, h) if thread.handles[h as usize] == NOBODY => {}
            _ => return None,
        }
        Some(Ok(()))
    }

    /// Notes an atomic access, and whether it is ordered with the plain ones.
    fn atomic_in_order(&mut self, t: usize, op: &Op) -> bool {
        let write = match op.kind {
            OpKind::AtomicLoad | OpKind::FutexWait | OpKind::FutexMismatch | OpKind::FutexRequeue => false,
            OpKind::AtomicStore | OpKind::AtomicRmw | OpKind::FutexWakeOp => true,
            _ => return true,
        };
        let clock = self.threads[t].clock;
        let mut in_order = true;
        let places = match op.futex_word() {
            Some((word, ..)) => [word, ObjectId::NONE],
            None => [op.object, op.object2],
        };
        for cell in (0..CELLS).filter(|&c| places.contains(&object(1, c as u8))) {
            let raw = &mut self.raw[cell];
            in_order &= ordered(&raw.plain_writes, &clock).is_ok();
            in_order &= !write || ordered(&raw.plain_reads, &clock).is_ok();
            if write {
                raw.atomic_writes[t] = clock[t];
            } else {
                raw.atomic_reads[t] = clock[t];
            }
        }
        in_order
    }

    fn raw_load(&mut self, t: usize, r: u8, cell: u8) -> Result<(), Stop> {
        self.log.0.push((t, (object(1, cell), 0xff), false));
        self.threads[t].regs[r as usize] = self.digest(View::whole(cell));
        let clock = self.threads[t].clock;
        let raw = &mut self.raw[cell as usize];
        raw.plain_reads[t] = clock[t];
        ordered(&raw.plain_writes, &clock)?;
        ordered(&raw.atomic_writes, &clock)
    }

    fn raw_store(&mut self, t: usize, cell: u8, value: i8) -> Result<(), Stop> {
        self.log.0.push((t, (object(1, cell), 0xff), true));
        let clock = self.threads[t].clock;
        let raw = &mut self.raw[cell as usize];
        for accesses in [&raw.plain_writes, &raw.plain_reads, &raw.atomic_writes, &raw.atomic_reads] {
            ordered(accesses, &clock)?;
        }
        raw.plain_writes[t] = clock[t];
        self.cells[cell as usize] = [value; LANES];
        self.cell_clocks[cell as usize] = [[0; THREADS]; LANES];
        Ok(())
    }

    fn plain_load(&mut self, t: usize, r: u8, v: u8) -> Result<(), Stop> {
        self.log.0.push((t, (object(5, v), 0xff), false));
        let clock = self.threads[t].clock;
        let var = &mut self.plain[v as usize];
        self.threads[t].regs[r as usize] = var.value;
        var.reads[t] = clock[t];
        ordered(&var.writes, &clock)
    }

    fn plain_store(&mut self, t: usize, v: u8, value: i8) -> Result<(), Stop> {
        self.log.0.push((t, (object(5, v), 0xff), true));
        let clock = self.threads[t].clock;
        let var = &mut self.plain[v as usize];
        ordered(&var.writes, &clock)?;
        ordered(&var.reads, &clock)?;
        var.value = value;
        var.writes[t] = clock[t];
        Ok(())
    }

    fn clocks(&mut self) -> impl Iterator<Item = &mut Clock> {
        let raw = self.raw.iter_mut();
        let raw =
            raw.flat_map(|r| [&mut r.plain_reads, &mut r.plain_writes, &mut r.atomic_reads, &mut r.atomic_writes]);
        (self.cell_clocks.iter_mut().flatten())
            .chain(self.plain.iter_mut().flat_map(|p| [&mut p.writes, &mut p.reads]))
            .chain(self.mutexes.iter_mut().map(|m| &mut m.clock))
            .chain(self.onces.iter_mut().map(|o| &mut o.1))
            .chain(self.threads.iter_mut().flat_map(|t| [&mut t.clock, &mut t.seen, &mut t.fenced]))
            .chain(raw)
    }

    /// The state as a program could see it.
    pub fn without_clocks(&self) -> State {
        let mut state = self.clone();
        state.clocks().for_each(|c| *c = [0; THREADS]);
        state
    }

    /// The state with clocks as small as can be: only which is larger matters.
    pub fn with_small_clocks(&self) -> State {
        let mut state = self.clone();
        for t in 0..THREADS {
            let mut values: Vec<u8> = state.clocks().map(|c| c[t]).chain([0]).collect();
            values.sort_unstable();
            values.dedup();
            let rank = |value: u8| values.iter().position(|v| *v == value).expect("one of them") as u8;
            state.clocks().for_each(|c| c[t] = rank(c[t]));
        }
        state
    }

    /// All that can be seen of a state: memory and what the threads have read.
    pub fn visible(&self) -> Vec<i8> {
        let cells = self.cells.iter().flatten().copied();
        let plain = self.plain.iter().map(|p| p.value);
        let threads = self.threads.iter().flat_map(|t| std::iter::once(t.code as i8).chain(t.regs));
        cells.chain(plain).chain(threads).chain(queues::visible(&self.queues)).collect()
    }
}

fn ordered(accesses: &Clock, clock: &Clock) -> Result<(), Stop> {
    if accesses.iter().zip(clock).all(|(a, c)| a <= c) { Ok(()) } else { Err(Stop::Race) }
}

fn wait_mutex(instr: Instr) -> u8 {
    match instr {
        Instr::Wait(_, m) | Instr::WaitLimit(_, m, _) => m,
        _ => 0,
    }
}

fn wait_op(instr: Instr) -> Op {
    let (c, m, limit) = match instr {
        Instr::WaitLimit(c, m, _) => (c, m, TIMED),
        Instr::Wait(c, m) => (c, m, 0),
        _ => (0, 0, 0),
    };
    let mut op = with_arg(Op::new(OpKind::CondWait, object(3, c)), limit);
    (op.object2, op.mask2) = (object(2, m), 0xff);
    op
}
