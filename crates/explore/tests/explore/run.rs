//! Runs plans on the machine as the worker would, and collects what an explorer sees of a program.

use crate::local::{self, Table};
use crate::machine::{Phase, State, Stop};
use crate::program::{CELLS, LANES, PLAIN, Program, THREADS};
use std::collections::BTreeSet;
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::dependent;
use symdpor_explore::{Explorer, Statistics};
use symdpor_trace::{
    Choice, End, Execution, Fence, Footprints, LocalState, Op, OpKind, PendingOp, PlainAccess, Plan, Step, ThreadId,
    ThreadMemory, ThreadSet,
};

/// How an execution ended, with everything that can be seen of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    Final(Vec<i8>),
    /// What is blocked (thread, kind of operation, object) and the memory.
    Deadlock(Vec<(usize, u8, u64)>, Vec<i8>),
    /// The process exited with this status, leaving that memory.
    Exit(u8, Vec<i8>),
    /// An assertion failed in a thread that had these registers.
    Assertion(u8, Vec<i8>),
    Misuse(Vec<i8>),
    Race,
    /// It does not count.
    Dropped,
}

impl Outcome {
    pub fn of_stop(state: &State, thread: usize, stop: Stop) -> Outcome {
        let regs = state.threads[thread].regs.to_vec();
        match stop {
            Stop::Race => Outcome::Race,
            Stop::Assertion(number) => Outcome::Assertion(number, regs),
            Stop::Misuse => Outcome::Misuse(regs),
            Stop::Exit(status) => Outcome::Exit(status, state.visible()),
            Stop::Dropped => Outcome::Dropped,
        }
    }

    /// The outcome of a state in which no thread is enabled.
    pub fn of_end(state: &State, program: &Program) -> Outcome {
        if state.is_dropped() {
            return Outcome::Dropped;
        }
        if state.threads.iter().all(|t| t.phase == Phase::Ended) {
            return Outcome::Final(state.visible());
        }
        let pending = (0..state.threads.len()).filter_map(|t| Some((t, state.pending(program, t)?)));
        // Which of the things that it looks at is next for a spinning thread does not matter.
        let object = |t: usize, op: Op| if state.spins(program, t) { 0 } else { op.object.0 };
        let blocked = pending.map(|(t, op)| (t, op.kind as u8, object(t, op))).collect();
        Outcome::Deadlock(blocked, state.visible())
    }
}

impl Outcome {
    /// What can be seen of it without knowing which thread is which.
    pub fn anonymous(&self) -> Outcome {
        let memory = |all: &[i8]| all[..CELLS * LANES + PLAIN].to_vec();
        match self {
            Outcome::Final(all) => Outcome::Final(memory(all)),
            Outcome::Deadlock(blocked, all) => {
                let mut blocked: Vec<_> = blocked.iter().map(|b| (0, b.1, b.2)).collect();
                blocked.sort_unstable();
                Outcome::Deadlock(blocked, memory(all))
            }
            Outcome::Exit(status, all) => Outcome::Exit(*status, memory(all)),
            Outcome::Assertion(number, _) => Outcome::Assertion(*number, Vec::new()),
            Outcome::Misuse(_) => Outcome::Misuse(Vec::new()),
            Outcome::Race => Outcome::Race,
            Outcome::Dropped => Outcome::Dropped,
        }
    }
}

pub type Outcomes = BTreeSet<Outcome>;

/// Whether a thread is about to end the process without an error.
fn is_at_exit(state: &State, program: &Program, t: ThreadId) -> bool {
    state.pending(program, t.index()).is_some_and(|op| op.is_quiet_exit())
}

/// Whoever ends the process without an error waits for others, as in the real runtime.
pub fn enabled_set(state: &State, program: &Program) -> ThreadSet {
    let able = |t: &ThreadId| state.enabled(program, t.index());
    let all: ThreadSet = (0..state.threads.len()).map(|t| ThreadId(t as u16)).filter(able).collect();
    let others: ThreadSet = all.iter().filter(|t| !is_at_exit(state, program, *t)).collect();
    if others.is_empty() { all } else { others }
}

/// The default rule of `symdpor_trace::Plan`.
fn default_choice(awake: &ThreadSet, last: Option<(ThreadId, &Op)>) -> Option<ThreadId> {
    match last {
        Some((thread, op)) if op.kind == OpKind::Yield => awake.iter().find(|t| *t > thread).or(awake.first()),
        Some((thread, _)) if awake.contains(thread) => Some(thread),
        _ => awake.first(),
    }
}

/// Runs one plan. The outcome is `None` if the execution was cut off as redundant.
pub fn run(program: &Program, plan: &Plan) -> (Execution, Option<Outcome>) {
    run_with(program, &Table::new(program), plan)
}

pub fn run_with(program: &Program, table: &Table, plan: &Plan) -> (Execution, Option<Outcome>) {
    let (state, stop) = State::new(program);
    let mut run = Run {
        program,
        table,
        state,
        steps: Vec::new(),
        sleep: ThreadSet::new(),
        failed: ThreadSet::new(),
        footprints: Footprints::default(),
        visits: Vec::new(),
        in_vain: ThreadSet::new(),
        next: ThreadSet::new(),
    };
    run.state.log.0.clear();
    let loops = program.has_loops();
    if let Some(stop) = stop {
        let outcome = Outcome::of_stop(&run.state, 0, stop);
        return run.end(End::Cut, Some(outcome));
    }
    loop {
        let position = run.steps.len();
        if position + 1 == plan.choices.len().max(1) {
            run.sleep.clone_from(&plan.sleep);
            run.failed.clone_from(&plan.failed);
            run.in_vain.clone_from(&plan.in_vain);
        }
        let enabled = enabled_set(&run.state, program);
        if enabled.is_empty() {
            let outcome = Outcome::of_end(&run.state, program);
            // The real runtime calls it a livelock, which is an error of its own.
            let spins = (0..run.state.threads.len()).any(|t| run.state.spins(program, t));
            return run.end(if spins { End::Cut } else { End::Complete }, Some(outcome));
        }
        if loops && let Some(since) = run.comes_back() {
            return run.end(End::Repeated(since), None);
        }
        if plan.ask && position + 1 == plan.choices.len() {
            return run.answer();
        }
        let Some(choice) = run.choose(plan, &enabled) else { return run.end(End::SleepBlocked, None) };
        assert!(enabled.contains(choice.thread), "the plan names a thread that cannot run");
        if let Some(stop) = run.step(choice, enabled) {
            let end = if matches!(stop, Stop::Exit(_)) { End::Complete } else { End::Cut };
            let outcome = Outcome::of_stop(&run.state, choice.thread.index(), stop);
            return run.end(end, Some(outcome));
        }
        let may_stop = run.next.is_empty() && run.state.threads[choice.thread.index()].touched.0 == 0;
        let in_vain = plan.stops_in_vain && position + 1 >= plan.choices.len() && may_stop;
        if in_vain && run.state.comes_round(choice.thread.index()) {
            return run.end(End::InVain, None);
        }
    }
}

/// Whether a thread comes round in vain in an execution.
pub fn has_turn_in_vain(program: &Program, execution: &Execution) -> bool {
    let (mut state, _) = State::new(program);
    execution.steps.iter().any(|step| {
        let t = step.thread.index();
        state.step(program, t, step.alternative);
        state.comes_round(t)
    })
}

/// State that belongs to one execution.
struct Run<'a> {
    program: &'a Program,
    table: &'a Table,
    state: State,
    steps: Vec<Step>,
    sleep: ThreadSet,
    /// Of the sleeping threads, those whose operation fails.
    failed: ThreadSet,
    footprints: Footprints,
    /// States that it has been in, where last, how often.
    visits: Vec<(State, usize, u32)>,
    /// Of the sleeping threads, those that came round in vain; and those that have been woken and shall go next.
    in_vain: ThreadSet,
    next: ThreadSet,
}

impl Run<'_> {
    /// Whether the state is one that the execution has been in, as in the real runtime: since which position.
    fn comes_back(&mut self) -> Option<usize> {
        let (state, position) = (self.state.without_clocks(), self.steps.len());
        let Some(visit) = self.visits.iter_mut().find(|v| v.0 == state) else {
            self.visits.push((state, position, 1));
            return None;
        };
        if visit.2 == 2 {
            return Some(visit.1);
        }
        (visit.1, visit.2) = (position, visit.2 + 1);
        None
    }

    fn choose(&self, plan: &Plan, enabled: &ThreadSet) -> Option<Choice> {
        if let Some(&choice) = plan.choices.get(self.steps.len()) {
            assert!(!self.sleep.contains(choice.thread), "the plan names a thread that sleeps");
            return Some(choice);
        }
        let awake: ThreadSet = enabled.iter().filter(|t| !self.sleep.contains(*t)).collect();
        if let Some(thread) = self.next.iter().find(|t| awake.contains(*t)) {
            return Some(Choice { thread, alternative: 0 });
        }
        // Time is up only if nobody else wants to go on.
        let limited = |t: &ThreadId| {
            self.state.pending(self.program, t.index()).is_some_and(|op| op.kind == OpKind::FutexTimeout)
        };
        let ready: ThreadSet = awake.iter().filter(|t| !limited(t)).collect();
        let awake = if ready.is_empty() { awake } else { ready };
        let fresh: ThreadSet = awake.iter().filter(|t| !self.is_like_a_sleeper(*t)).collect();
        let awake = if fresh.is_empty() { awake } else { fresh };
        let thread = default_choice(&awake, self.steps.last().map(|s| (s.thread, &s.op)))?;
        Some(Choice { thread, alternative: 0 })
    }

    fn is_like_a_sleeper(&self, thread: ThreadId) -> bool {
        let local = |t: ThreadId| local::state(&self.state, self.table, t.index());
        let mut asleep = self.sleep.iter().filter(|t| *t != ThreadId::MAIN);
        thread != ThreadId::MAIN && local(thread).is_known() && asleep.any(|t| local(t) == local(thread))
    }

    fn step(&mut self, choice: Choice, enabled: ThreadSet) -> Option<Stop> {
        let t = choice.thread.index();
        let alternatives = self.state.alternatives(self.program, t);
        assert!(choice.alternative < alternatives, "the plan names a way that does not exist");
        self.next.remove(choice.thread);
        let asleep: Vec<(ThreadId, Op)> =
            self.sleep.iter().filter_map(|s| Some((s, self.state.pending(self.program, s.index())?))).collect();
        let done = self.state.step(self.program, t, choice.alternative);
        for (sleeper, op) in asleep {
            let as_it_was = if self.failed.contains(sleeper) { op.failed() } else { op };
            if dependent(&done.op, &as_it_was) {
                self.sleep.remove(sleeper);
            }
            let touches = |(thread, place, _): &(usize, (ObjectId, u8), bool)| {
                let looks_at = [(op.object, op.mask), (op.object2, op.mask2)];
                let overlaps = looks_at.iter().any(|&(object, mask)| object == place.0 && mask & place.1 != 0);
                *thread != sleeper.index() && overlaps
            };
            if self.in_vain.contains(sleeper) && self.sleep.contains(sleeper) && self.state.log.0.iter().any(touches) {
                self.sleep.remove(sleeper);
                self.next.insert(sleeper);
            }
        }
        self.leave_footprint(t, &done.op);
        let Choice { thread, alternative } = choice;
        self.steps.push(Step { thread, op: done.op, alternatives, alternative, enabled });
        done.stop
    }

    fn leave_footprint(&mut self, t: usize, op: &Op) {
        let prints = &mut self.footprints;
        let accesses = self.state.log.0.len();
        for (thread, order, before) in self.state.fences.0.drain(..) {
            let (thread, first, last) = (ThreadId(thread as u16), before == 0, before == accesses);
            prints.fences.push(Fence { thread, order, first, last, several: false });
        }
        for (thread, place, write) in self.state.log.0.drain(..) {
            let (object, mask) = (place.0, place.1);
            prints.accesses.push(PlainAccess { thread: ThreadId(thread as u16), object, granules: 1, mask, write });
        }
        let created = (op.kind == OpKind::ThreadCreate).then_some(op.arg as usize).filter(|&c| c < THREADS);
        for thread in std::iter::once(t).chain(created) {
            prints.locals.push((ThreadId(thread as u16), local::state(&self.state, self.table, thread)));
        }
        // Threads that are alike are told of at once, as the real runtime does. Now and then it does not.
        for thread in std::iter::once(t).chain(created).filter(|t| !(self.steps.len() + t).is_multiple_of(5)) {
            let local = local::state(&self.state, self.table, thread);
            let alike = |other: &usize| local.is_known() && local::state(&self.state, self.table, *other) == local;
            let group: Vec<usize> = (1..self.state.threads.len()).filter(alike).collect();
            if group.len() > 1 && group.contains(&thread) {
                prints.memory.extend(group.into_iter().map(|t| own_memory(t, local)));
            }
        }
        prints.end_step(false, self.state.joined.0);
    }

    /// Here every thread has its memory to itself.
    fn answer(self) -> (Execution, Option<Outcome>) {
        let (table, threads) = (self.table, self.state.threads.len());
        let memory = (1..threads).map(|t| own_memory(t, local::state(&self.state, table, t))).collect();
        let (execution, _) = self.end(End::Asked, None);
        (Execution { memory, ..execution }, None)
    }

    fn end(self, end: End, outcome: Option<Outcome>) -> (Execution, Option<Outcome>) {
        let pending_of = |t| {
            let op = self.state.pending(self.program, t)?;
            let enabled = self.state.enabled(self.program, t) && !op.is_quiet_exit();
            Some(PendingOp { thread: ThreadId(t as u16), op, enabled })
        };
        let pending = (0..self.state.threads.len()).filter_map(pending_of).collect();
        let footprints = self.footprints;
        (Execution { steps: self.steps, pending, end, dropped: false, footprints, memory: Vec::new() }, outcome)
    }
}

fn own_memory(thread: usize, local: LocalState) -> ThreadMemory {
    ThreadMemory { thread: ThreadId(thread as u16), local, stack: true, settled: false, blocks: Vec::new() }
}

/// What an explorer found.
#[derive(Debug)]
pub struct Explored {
    pub outcomes: Outcomes,
    pub statistics: Statistics,
    /// A livelock was found.
    pub endless: bool,
}

/// Runs a whole search, with `lie` applied to each execution before the explorer sees it. `None` if there are more
/// executions than `limit`.
pub fn explore_with(
    program: &Program,
    mut explorer: impl Explorer,
    limit: u64,
    lie: impl Fn(&mut Execution),
) -> Option<Explored> {
    let mut outcomes = Outcomes::new();
    let mut plan = explorer.first();
    let table = Table::new(program);
    for _ in 0..limit {
        let (mut execution, outcome) = run_with(program, &table, &plan);
        outcomes.extend(outcome);
        lie(&mut execution);
        match explorer.next(&execution) {
            Some(next) => plan = next,
            None => {
                return Some(Explored { outcomes, statistics: explorer.statistics(), endless: explorer.is_endless() });
            }
        }
    }
    None
}

pub fn explore(program: &Program, explorer: impl Explorer, limit: u64) -> Option<Explored> {
    explore_with(program, explorer, limit, |_| {})
}
