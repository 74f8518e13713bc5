//! Traces that no honest program leaves: explorers must cope with whatever a worker sends.
//!
//! Also many threads and long executions, which the machine is too small for.

use crate::generate::Rng;
use symdpor_abi::object::Region;
use symdpor_explore::{AllInterleavings, Checked, Dpor, Explorer, SourceSets};
use symdpor_trace::*;

fn random_op(rng: &mut Rng, threads: usize) -> Op {
    let kind = OpKind::ALL[rng.below(OpKind::ALL.len())];
    let mut op = Op::new(kind, ObjectId::new(Region::Heap, 8 * rng.below(40) as u64));
    op.mask = rng.below(256) as u8;
    op.arg = if rng.below(4) == 0 { u32::MAX - rng.below(3) as u32 } else { rng.below(threads + 3) as u32 };
    if rng.below(5) == 0 {
        (op.object2, op.mask2) = (ObjectId::new(Region::Heap, 8 * rng.below(40) as u64), rng.below(256) as u8);
    }
    // The end of the process in the middle is odd enough now and then.
    if kind == OpKind::ProcessExit && rng.below(20) != 0 { Op::new(OpKind::Yield, ObjectId::NONE) } else { op }
}

/// A random execution that mostly follows the plan.
fn random_execution(rng: &mut Rng, plan: &Plan, length: usize, threads: usize) -> Execution {
    let enabled: ThreadSet = (0..threads as u16).filter(|_| rng.below(3) != 0).map(ThreadId).collect();
    let mut step = |i: usize| {
        let planned = plan.choices.get(i).filter(|_| rng.below(500) != 0);
        let thread = planned.map_or(ThreadId(rng.below(threads) as u16), |c| c.thread);
        let alternative = planned.map_or(0, |c| c.alternative);
        let alternatives = rng.below(3) as u16 * (rng.below(9) == 0) as u16;
        Step { thread, op: random_op(rng, threads), alternatives, alternative, enabled: enabled.clone() }
    };
    let steps = (0..length).map(&mut step).collect();
    let pending_of = |t| PendingOp { thread: ThreadId(t as u16), op: random_op(rng, threads), enabled: t % 2 == 0 };
    let pending = (0..threads).map(pending_of).collect();
    Execution {
        steps,
        pending,
        end: [End::Complete, End::Cut, End::SleepBlocked][rng.below(3)],
        dropped: false,
        footprints: Default::default(),
        memory: Vec::new(),
    }
}

fn feed(mut explorer: impl Explorer, rng: &mut Rng, rounds: usize, length: usize, threads: usize) {
    let mut plan = explorer.first();
    for _ in 0..rounds {
        let length = length / 2 + rng.below(length);
        let execution = random_execution(rng, &plan, length, threads);
        match explorer.next(&execution) {
            Some(next) => plan = next,
            None => break,
        }
    }
    assert!(explorer.statistics().transitions > 0);
}

#[test]
fn garbage_is_survived() {
    let mut rng = Rng::new(3);
    for round in 0..200 {
        let threads = [2, 5, 70, 1024][round % 4];
        feed(Dpor::new(), &mut rng, 20, 30, threads);
        feed(SourceSets::new(), &mut rng, 20, 30, threads);
        feed(Checked::new(SourceSets::new()), &mut rng, 20, 30, threads);
        feed(AllInterleavings::new(), &mut rng, 20, 30, threads);
    }
}

#[test]
fn long_executions_are_survived() {
    let mut rng = Rng::new(4);
    feed(SourceSets::new(), &mut rng, 3, 100_000, 60);
    feed(SourceSets::new(), &mut rng, 2, 10_000, 1024);
    feed(Dpor::new(), &mut rng, 3, 100_000, 60);
}

#[test]
fn empty_executions_end_the_search() {
    let nothing = Execution {
        steps: Vec::new(),
        pending: Vec::new(),
        end: End::Cut,
        dropped: false,
        footprints: Default::default(),
        memory: vec![],
    };
    assert_eq!(SourceSets::new().next(&nothing), None);
    assert_eq!(AllInterleavings::new().next(&nothing), None);
}

/// Runs a plan on threads that do one operation each and never wait, the lowest-numbered first.
fn run_script(script: &[Op], plan: &Plan) -> Execution {
    let mut left: ThreadSet = (0..script.len() as u16).map(ThreadId).collect();
    let mut sleep = ThreadSet::new();
    let mut steps: Vec<Step> = Vec::new();
    while !left.is_empty() {
        if steps.len() + 1 == plan.choices.len().max(1) {
            sleep.clone_from(&plan.sleep);
        }
        let planned = plan.choices.get(steps.len()).map(|c| c.thread);
        let Some(thread) = planned.or_else(|| left.first_outside(&sleep, &ThreadSet::new())) else { break };
        let op = script[thread.index()];
        steps.push(Step { thread, op, alternatives: 1, alternative: 0, enabled: left.clone() });
        left.remove(thread);
        sleep = sleep.iter().filter(|t| !symdpor_abi::op::dependent(&op, &script[t.index()])).collect();
    }
    let pending = left.iter().map(|thread| PendingOp { thread, op: script[thread.index()], enabled: true }).collect();
    Execution {
        steps,
        pending,
        end: if left.is_empty() { End::Complete } else { End::SleepBlocked },
        dropped: false,
        footprints: Default::default(),
        memory: Vec::new(),
    }
}

fn script_count(script: &[Op]) -> (u64, u64) {
    let mut explorer = SourceSets::new();
    let mut plan = explorer.first();
    while let Some(next) = explorer.next(&run_script(script, &plan)) {
        plan = next;
    }
    (explorer.statistics().executions, explorer.statistics().blocked)
}

#[test]
fn hundreds_of_threads_work() {
    let cell = |i: usize| ObjectId::new(Region::Heap, 8 * i as u64 + 8);
    let mut script: Vec<Op> = (0..700).map(|i| Op::new(OpKind::AtomicStore, cell(i))).collect();
    assert_eq!(script_count(&script), (1, 0));
    // Readers of one cell among the others, and one writer above thread 64.
    (0..5).for_each(|i| script[130 * i] = Op::new(OpKind::AtomicLoad, cell(0)));
    script[600] = Op::new(OpKind::AtomicStore, cell(0));
    assert_eq!(script_count(&script), (32, 0));
}
