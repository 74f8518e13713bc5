//! Every outcome of a program, by brute force over all interleavings, independent of everything else in this project.
//!
//! A state holds all there is, the vector clocks of the race check included, of which only the order counts; a state that was
//! seen is not entered again. A state from which no end can be reached is as good as a deadlock.

mod search;
mod shared;

use crate::program::*;
pub use search::outcomes;
use shared::{Clock, Shared, join_clock};

#[derive(Clone, PartialEq, Eq, Hash)]
struct Thread {
    started: bool,
    ended: bool,
    at: usize,
    registers: [i32; REGISTERS],
    kept: [i32; 2],
    hash: u32,
    clock: Clock,
    /// What its relaxed stores release: its clock at its last fence.
    fenced: Clock,
    /// What its next fence acquires: what its relaxed loads have seen.
    seen: Clock,
    wait: Wait,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Wait {
    No,
    Asleep,
    /// Asleep with a time limit.
    Limited,
    /// Woken, and wants mutex 0 back.
    Woken,
    AtBarrier,
    /// All have come to the barrier.
    Passing,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    threads: [Thread; THREADS],
    atomics: [i32; ATOMICS],
    /// What an acquiring load of the variable acquires.
    released: [Clock; ATOMICS],
    plain: [i32; PLAIN],
    /// The last write: thread and its clock. Reads: the clock of each thread's last one.
    writes: [Option<(usize, u8)>; PLAIN],
    reads: [Clock; PLAIN],
    owners: [Option<usize>; MUTEXES],
    locks: [Clock; MUTEXES],
    shared: Shared,
}

fn initial() -> State {
    let clocks = |t: usize| std::array::from_fn(|i| u8::from(i == t));
    let thread = |t: usize| Thread {
        started: t == 0,
        ended: false,
        at: 0,
        registers: [0; REGISTERS],
        kept: [0; 2],
        hash: 0,
        clock: clocks(t),
        fenced: [0; THREADS],
        seen: [0; THREADS],
        wait: Wait::No,
    };
    State {
        threads: std::array::from_fn(thread),
        atomics: [0; ATOMICS],
        released: [[0; THREADS]; ATOMICS],
        plain: [0; PLAIN],
        writes: [None; PLAIN],
        reads: [[0; THREADS]; PLAIN],
        owners: [None; MUTEXES],
        locks: [[0; THREADS]; MUTEXES],
        shared: Shared::default(),
    }
}

/// In how many ways the thread can go on: none if it is blocked or has ended, one per waiter for a signal.
fn alternatives(program: &Program, state: &State, thread: usize) -> usize {
    let me = &state.threads[thread];
    if !me.started || me.ended {
        return 0;
    }
    match me.wait {
        Wait::No => {}
        Wait::Asleep | Wait::AtBarrier => return 0,
        Wait::Limited | Wait::Passing => return 1,
        Wait::Woken => return usize::from(state.owners[0].is_none()),
    }
    match program.threads[thread][me.at] {
        Instruction::Take => usize::from(state.shared.can_take()),
        Instruction::ReadLock => usize::from(state.shared.can_read()),
        Instruction::WriteLock => usize::from(state.shared.can_write()),
        Instruction::Lock(mutex) => usize::from(state.owners[mutex].is_none()),
        Instruction::Join(other) => usize::from(state.threads[other].ended),
        Instruction::Signal => sleepers(state).count().max(1),
        _ => 1,
    }
}

fn sleepers(state: &State) -> impl Iterator<Item = usize> + '_ {
    (0..THREADS).filter(|t| matches!(state.threads[*t].wait, Wait::Asleep | Wait::Limited))
}

/// One visible operation, and the invisible ones after it. An error is an end of the execution.
fn transition(program: &Program, state: &mut State, thread: usize, alternative: usize) -> Result<(), Outcome> {
    if state.threads[thread].wait == Wait::Limited {
        return give_up(program, state, thread);
    }
    if state.threads[thread].wait == Wait::Passing {
        state.threads[thread].wait = Wait::No;
        return run_on(program, state, thread);
    }
    if state.threads[thread].wait == Wait::Woken {
        state.threads[thread].wait = Wait::No;
        acquire(state, thread, 0);
        state.threads[thread].at += 1;
        return run_on(program, state, thread);
    }
    let at = state.threads[thread].at;
    state.threads[thread].at += 1;
    match program.threads[thread][at] {
        Instruction::Lock(mutex) => acquire(state, thread, mutex),
        Instruction::Unlock(mutex) => release(state, thread, mutex),
        Instruction::TryLock { mutex, .. } if state.owners[mutex].is_none() => acquire(state, thread, mutex),
        Instruction::TryLock { if_taken, .. } => state.threads[thread].at = if_taken,
        Instruction::LockWithin { mutex, .. } if state.owners[mutex].is_none() => acquire(state, thread, mutex),
        Instruction::LockWithin { if_late, .. } => state.threads[thread].at = if_late,
        Instruction::Wait => return wait(state, thread, Wait::Asleep),
        Instruction::WaitWithin { register } => {
            state.threads[thread].registers[register] = 0;
            return wait(state, thread, Wait::Limited);
        }
        Instruction::Signal => signal(state, alternative),
        Instruction::Broadcast => (0..sleepers(state).count()).for_each(|_| signal(state, 0)),
        Instruction::Create(other) => create(program, state, thread, other)?,
        Instruction::Join(other) => {
            let clock = state.threads[other].clock;
            join_clock(&mut state.threads[thread].clock, &clock);
        }
        Instruction::Exit(status) => return Err(Outcome::Status(status)),
        Instruction::ExitHash => return Err(Outcome::Status(status(state.threads[thread].hash))),
        Instruction::Barrier => {
            arrive(state, thread);
            return Ok(());
        }
        instruction if is_shared(instruction) => shared(state, thread, instruction),
        instruction => atomic(state, thread, instruction),
    }
    run_on(program, state, thread)
}

fn acquire(state: &mut State, thread: usize, mutex: usize) {
    state.owners[mutex] = Some(thread);
    let clock = state.locks[mutex];
    join_clock(&mut state.threads[thread].clock, &clock);
}

fn release(state: &mut State, thread: usize, mutex: usize) {
    state.owners[mutex] = None;
    state.locks[mutex] = state.threads[thread].clock;
    state.threads[thread].clock[thread] += 1;
}

/// The thread stays at its `Wait` until it has the mutex again.
fn wait(state: &mut State, thread: usize, how: Wait) -> Result<(), Outcome> {
    release(state, thread, 0);
    state.threads[thread].at -= 1;
    state.threads[thread].wait = how;
    Ok(())
}

/// The time has passed: from now on no signal wakes the thread, and it wants the mutex back.
fn give_up(program: &Program, state: &mut State, thread: usize) -> Result<(), Outcome> {
    let me = &mut state.threads[thread];
    me.wait = Wait::Woken;
    if let Instruction::WaitWithin { register } = program.threads[thread][me.at] {
        me.registers[register] = 1;
    }
    Ok(())
}

fn arrive(state: &mut State, thread: usize) {
    let clock = state.threads[thread].clock;
    state.threads[thread].wait = Wait::AtBarrier;
    state.threads[thread].clock[thread] += 1;
    let Some((together, brought)) = state.shared.arrive(thread, &clock) else { return };
    for one in together {
        state.threads[one].wait = Wait::Passing;
        join_clock(&mut state.threads[one].clock, &brought);
    }
}

fn is_shared(instruction: Instruction) -> bool {
    use Instruction::*;
    matches!(
        instruction,
        Post | Take
            | TryTake { .. }
            | TakeWithin { .. }
            | ReadLock
            | WriteLock
            | TryReadLock { .. }
            | TryWriteLock { .. }
            | RwUnlock
    )
}

fn shared(state: &mut State, thread: usize, instruction: Instruction) {
    use Instruction::*;
    let (me, shared) = (&mut state.threads[thread], &mut state.shared);
    match instruction {
        Post => {
            shared.post(&me.clock);
            me.clock[thread] += 1;
        }
        Take => shared.take(&mut me.clock),
        TryTake { .. } | TakeWithin { .. } if shared.can_take() => shared.take(&mut me.clock),
        TryTake { if_none: target } | TakeWithin { if_late: target } => me.at = target,
        ReadLock => shared.lock_to_read(thread, &mut me.clock),
        TryReadLock { .. } if shared.can_read() => shared.lock_to_read(thread, &mut me.clock),
        WriteLock => shared.lock_to_write(thread, &mut me.clock),
        TryWriteLock { .. } if shared.can_write() => shared.lock_to_write(thread, &mut me.clock),
        TryReadLock { if_taken } | TryWriteLock { if_taken } => me.at = if_taken,
        RwUnlock => {
            shared.unlock(thread, &me.clock);
            me.clock[thread] += 1;
        }
        other => unreachable!("{other:?} is nothing shared"),
    }
}

fn signal(state: &mut State, alternative: usize) {
    let chosen = sleepers(state).nth(alternative);
    if let Some(thread) = chosen {
        state.threads[thread].wait = Wait::Woken;
    }
}

fn create(program: &Program, state: &mut State, thread: usize, other: usize) -> Result<(), Outcome> {
    let clock = state.threads[thread].clock;
    join_clock(&mut state.threads[other].clock, &clock);
    state.threads[thread].clock[thread] += 1;
    state.threads[other].started = true;
    run_on(program, state, other)
}

fn atomic(state: &mut State, thread: usize, instruction: Instruction) {
    match instruction {
        Instruction::Load { register, variable, order } => {
            state.threads[thread].registers[register] = load(state, thread, variable, order);
        }
        Instruction::FoldVariable(variable) => {
            let value = load(state, thread, variable, Order::Strong);
            state.threads[thread].hash = fold(state.threads[thread].hash, value as u32);
        }
        Instruction::Store { variable, register, value, order } => {
            state.atomics[variable] = state.threads[thread].registers[register] + value;
            state.released[variable] = [0; THREADS];
            publish(state, thread, variable, order);
        }
        Instruction::Add { register, variable, value, order } => {
            let old = load(state, thread, variable, order);
            state.atomics[variable] = old + value;
            publish(state, thread, variable, order);
            state.threads[thread].registers[register] = old;
        }
        Instruction::CompareExchange { register, variable, expected, new } => {
            let succeeds = load(state, thread, variable, Order::Strong) == expected;
            state.threads[thread].registers[register] = i32::from(succeeds);
            if succeeds {
                state.atomics[variable] = new;
                publish(state, thread, variable, Order::Strong);
            }
        }
        Instruction::CompareAdd { register, variable, value } => {
            let expected = state.threads[thread].registers[register];
            let succeeds = load(state, thread, variable, Order::Strong) == expected;
            state.threads[thread].registers[register] = i32::from(succeeds);
            if succeeds {
                state.atomics[variable] = expected + value;
                publish(state, thread, variable, Order::Strong);
            }
        }
        Instruction::LoadKept { variable, order, besides } => {
            let found = load(state, thread, variable, order);
            state.threads[thread].kept = [found, if besides == Besides::First { found } else { 0 }];
        }
        Instruction::AddToKept { register, variable, value, besides } => {
            let found = load(state, thread, variable, Order::Strong);
            if found == state.threads[thread].kept[0] {
                state.atomics[variable] = found + value;
                publish(state, thread, variable, Order::Strong);
                let [_, other] = std::mem::take(&mut state.threads[thread].kept);
                state.threads[thread].registers[register] = found;
                state.threads[thread].registers[1 - register] = other;
            } else {
                let me = &mut state.threads[thread];
                match besides {
                    Besides::Nothing | Besides::First => {}
                    Besides::Failures => me.kept[1] += 1,
                    Besides::Failed => me.kept[1] = 1,
                    Besides::Previous => me.kept[1] = me.kept[0],
                }
                me.kept[0] = found;
                me.at -= 1;
            }
        }
        other => unreachable!("{other:?} is no atomic access"),
    }
}

fn load(state: &mut State, thread: usize, variable: usize, order: Order) -> i32 {
    let (released, me) = (state.released[variable], &mut state.threads[thread]);
    join_clock(if order == Order::Relaxed { &mut me.seen } else { &mut me.clock }, &released);
    state.atomics[variable]
}

fn publish(state: &mut State, thread: usize, variable: usize, order: Order) {
    let me = &mut state.threads[thread];
    join_clock(&mut state.released[variable], if order == Order::Relaxed { &me.fenced } else { &me.clock });
    if order != Order::Relaxed {
        me.clock[thread] += 1;
    }
}

/// Acquires what relaxed loads have seen, and lets later relaxed stores release everything up to here.
fn fence(me: &mut Thread, thread: usize) {
    let seen = me.seen;
    join_clock(&mut me.clock, &seen);
    me.fenced = me.clock;
    me.clock[thread] += 1;
}

/// Runs a thread up to its next visible operation or its end.
fn run_on(program: &Program, state: &mut State, thread: usize) -> Result<(), Outcome> {
    loop {
        let at = state.threads[thread].at;
        let instruction = program.threads[thread][at];
        if instruction.is_visible() {
            return Ok(());
        }
        state.threads[thread].at += 1;
        match instruction {
            Instruction::Fence => fence(&mut state.threads[thread], thread),
            Instruction::GiveWay(_) => {}
            Instruction::PlainLoad { register, variable } => {
                read(state, thread, variable)?;
                state.threads[thread].registers[register] = state.plain[variable];
            }
            Instruction::PlainStore { variable, value } => {
                write(state, thread, variable)?;
                state.plain[variable] = value;
            }
            Instruction::JumpUnless { register, value, target } => {
                if state.threads[thread].registers[register] != value {
                    state.threads[thread].at = target;
                }
            }
            Instruction::Jump(target) => state.threads[thread].at = target,
            Instruction::Assert { register, forbidden } => {
                if state.threads[thread].registers[register] == forbidden {
                    return Err(Outcome::Assertion(thread, at));
                }
            }
            Instruction::Fold(other) => {
                let value = result(state.threads[other].registers);
                state.threads[thread].hash = fold(state.threads[thread].hash, value);
            }
            Instruction::Return => {
                state.threads[thread].ended = true;
                return Ok(());
            }
            other => unreachable!("{other:?} is visible"),
        }
    }
}

fn read(state: &mut State, thread: usize, variable: usize) -> Result<(), Outcome> {
    let clock = state.threads[thread].clock;
    let ordered = state.writes[variable].is_none_or(|(writer, at)| clock[writer] >= at);
    state.reads[variable][thread] = clock[thread];
    if ordered { Ok(()) } else { Err(Outcome::Race) }
}

fn write(state: &mut State, thread: usize, variable: usize) -> Result<(), Outcome> {
    read(state, thread, variable)?;
    let clock = state.threads[thread].clock;
    state.writes[variable] = Some((thread, clock[thread]));
    let ordered = state.reads[variable].iter().zip(&clock).all(|(read, seen)| read <= seen);
    if ordered { Ok(()) } else { Err(Outcome::Race) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Instruction::*;
    use std::collections::BTreeSet;

    fn of(threads: Vec<Vec<Instruction>>) -> BTreeSet<Outcome> {
        outcomes(&Program { threads, twins: None }, 100_000).expect("small")
    }

    fn main_of_two() -> Vec<Instruction> {
        vec![Create(1), Create(2), Join(1), Fold(1), Join(2), Fold(2), ExitHash]
    }

    #[test]
    fn store_buffering_has_three_results() {
        let body = |mine, other| {
            vec![
                Store { variable: mine, register: 0, value: 1, order: Order::Strong },
                Load { register: 0, variable: other, order: Order::Strong },
                Return,
            ]
        };
        assert_eq!(of(vec![main_of_two(), body(0, 1), body(1, 0)]).len(), 3);
    }

    #[test]
    fn opposite_locks_deadlock_and_a_plain_access_outside_of_them_races() {
        let body = |a, b| vec![Lock(a), Lock(b), Unlock(b), Unlock(a), Return];
        let found = of(vec![main_of_two(), body(0, 1), body(1, 0)]);
        assert_eq!(found, [Outcome::Status(1), Outcome::Deadlock].into());
        let write = |held: bool| {
            let access = PlainStore { variable: 0, value: 1 };
            if held { vec![Lock(0), access, Unlock(0), Return] } else { vec![access, Return] }
        };
        assert_eq!(of(vec![main_of_two(), write(true), write(true)]), [Outcome::Status(1)].into());
        assert!(of(vec![main_of_two(), write(true), write(false)]).contains(&Outcome::Race));
    }

    #[test]
    fn a_signal_may_be_lost_and_may_wake_either() {
        let waiter = vec![Lock(0), Wait, Unlock(0), Return];
        let found = of(vec![main_of_two(), waiter.clone(), vec![Signal, Return]]);
        assert_eq!(found, [Outcome::Status(1), Outcome::Deadlock].into());
        let main = vec![Create(1), Create(2), Create(3), Join(1), ExitHash];
        let found = of(vec![main, waiter.clone(), waiter, vec![Signal, Return]]);
        assert_eq!(found, [Outcome::Status(1), Outcome::Deadlock].into());
    }
}
