//! The local state of a machine's thread: its residual code, and those of its registers and handles that are still read.

use crate::lives::Lives;
use crate::machine::{Phase, State};
use crate::program::{Instr, Program};
use std::hash::{Hash, Hasher};
use symdpor_trace::LocalState;

/// What an instruction reads and writes, as bits: registers from 0, handles from 8, the loop counter 31.
fn uses(instr: Instr) -> (u32, u32) {
    let reg = |r: u8| 1u32 << r;
    let handle = |h: u8| 1u32 << (8 + h);
    const COUNTER: u32 = 1 << 31;
    match instr {
        Instr::Load(r, _) | Instr::Retry(r, _) | Instr::Add(r, ..) | Instr::Cas(r, ..) | Instr::TryLock(r, _) => {
            (0, reg(r))
        }
        Instr::TryRead(r, _) | Instr::TryWrite(r, _) | Instr::TryTake(r, _) | Instr::Value(r, _) => (0, reg(r)),
        Instr::WaitLimit(_, _, r) | Instr::Barrier(_, r) => (0, reg(r)),
        Instr::PlainLoad(r, _) | Instr::RawLoad(r, _) | Instr::Choose(r, _) => (0, reg(r)),
        Instr::FutexWait(r, ..) | Instr::FutexWake(r, ..) => (0, reg(r)),
        Instr::StoreReg(_, r) | Instr::If(r, ..) | Instr::AssertNot(r, ..) | Instr::Assume(r, _) => (reg(r), 0),
        Instr::Take(r, _) | Instr::TakeNow(r, _) | Instr::Look(r) => (0, reg(r)),
        Instr::Create(_, h) => (0, handle(h)),
        Instr::Join(h) => (handle(h), 0),
        Instr::JoinResult(r, h) | Instr::TryJoin(r, h) => (handle(h), reg(r)),
        Instr::Cancel(h) => (handle(h), 0),
        Instr::Loop(..) => (COUNTER, 0),
        Instr::Again(r, ..) => (reg(r), 0),
        _ => (0, 0),
    }
}

/// Where an instruction may lead besides the next one, and whether it leads there.
fn successors(code: &[Instr], at: usize) -> [Option<usize>; 2] {
    let next = Some(at + 1);
    match code[at] {
        Instr::If(_, _, skip) | Instr::Once(_, skip) => [next, Some(at + 1 + skip as usize)],
        Instr::Loop(back, _) | Instr::Again(_, _, back) => [next, Some(at - (back as usize).min(at))],
        Instr::End | Instr::Exit(_) => [None, None],
        _ => [next, None],
    }
}

fn reachable(code: &[Instr], from: usize) -> Vec<bool> {
    let mut seen = vec![false; code.len()];
    let mut stack = vec![from];
    while let Some(at) = stack.pop() {
        if at < code.len() && !std::mem::replace(&mut seen[at], true) {
            stack.extend(successors(code, at).into_iter().flatten());
        }
    }
    seen
}

/// What is live before each instruction, and at the end.
fn liveness(code: &[Instr], at_end: u32) -> Vec<u32> {
    let mut live = vec![0; code.len() + 1];
    live[code.len()] = at_end;
    loop {
        let mut changed = false;
        for at in (0..code.len()).rev() {
            let (read, written) = uses(code[at]);
            let ends = matches!(code[at], Instr::End).then_some(at_end).unwrap_or(0);
            let out = successors(code, at).into_iter().flatten().fold(ends, |l, s| l | live[s.min(code.len())]);
            let before = read | out & !written;
            changed |= before != live[at];
            live[at] = before;
        }
        if !changed {
            return live;
        }
    }
}

/// Of each place in each code: a hash of the residual code, and what is live.
pub struct Table(Vec<Vec<(u64, u32)>>, Vec<Vec<Instr>>);

impl Table {
    pub fn new(program: &Program) -> Table {
        let results = program.codes.iter().flatten().any(|i| matches!(i, Instr::JoinResult(..)));
        let places = |code: &Vec<Instr>| {
            let live = liveness(code, results as u32);
            (0..=code.len()).map(|at| (residual(code, at), live[at])).collect()
        };
        Table(program.codes.iter().map(places).collect(), program.codes.clone())
    }

    fn instr(&self, code: u8, pc: u8) -> Option<Instr> {
        self.1.get(code as usize)?.get(pc as usize).copied()
    }
}

fn residual(code: &[Instr], at: usize) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    let rest = reachable(code, at);
    let first = rest.iter().position(|r| *r).unwrap_or(at);
    (at - first.min(at), in_once(code, at)).hash(&mut hasher);
    for (i, instr) in code.iter().enumerate().skip(first) {
        rest[i].then_some(instr).hash(&mut hasher);
    }
    hasher.finish()
}

/// The local state of a thread that has not ended.
pub fn state(state: &State, table: &Table, t: usize) -> LocalState {
    let thread = &state.threads[t];
    // Who is watched, or may be cancelled, is known by its number.
    if matches!(thread.phase, Phase::Ended) || state.lives != Lives::Unwatched {
        return LocalState::UNKNOWN;
    }
    let (residual, live) = table.0[thread.code as usize][thread.pc as usize];
    let mut hasher = rustc_hash::FxHasher::default();
    residual.hash(&mut hasher);
    for (i, reg) in thread.regs.iter().enumerate().filter(|(i, _)| live & 1 << i != 0) {
        (i, reg).hash(&mut hasher);
    }
    for (i, handle) in thread.handles.iter().enumerate().filter(|(i, _)| live & 1 << (8 + i) != 0) {
        (i, handle).hash(&mut hasher);
    }
    let phase = match thread.phase {
        Phase::Running => 0,
        Phase::Waiting | Phase::Woken | Phase::Ended => 1,
        Phase::Limited => 2,
        Phase::Arrived => 3,
        Phase::Released => 4,
        Phase::Stuck => 5,
        Phase::Futex(_, false) | Phase::FutexWoken => 6,
        Phase::Futex(_, true) => 7,
        Phase::Ending | Phase::WokenFirst(_) => 8,
    };
    (thread.loops, thread.vain, thread.turn, thread.loaded, phase).hash(&mut hasher);
    // What it is told when it is woken is known already.
    if let (Phase::Woken | Phase::Released, Some(Instr::WaitLimit(_, _, r) | Instr::Barrier(_, r))) =
        (thread.phase, table.instr(thread.code, thread.pc))
    {
        thread.regs[r as usize].hash(&mut hasher);
    }
    state.shared.reads(t).for_each(|times| times.hash(&mut hasher));
    (t == 0).hash(&mut hasher);
    if state.holds(t) || state.runs_once(t) || state.is_atomic(t) {
        (t, "itself").hash(&mut hasher);
    }
    let hash = u128::from(hasher.finish()) | 1 << 100;
    LocalState(hash)
}

/// Whether the thread runs the code of a `Once`.
fn in_once(code: &[Instr], at: usize) -> bool {
    code.iter().enumerate().any(|(i, instr)| matches!(instr, Instr::Once(_, n) if i < at && at <= i + *n as usize))
}
