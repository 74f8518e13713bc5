//! Replay, and the check that a program does the same again.

use crate::counts::{fork_join, lock_once};
use crate::program::{Instr::*, Program, View};
use crate::run::run;
use symdpor_explore::determinism::Difference;
use symdpor_explore::{Checked, Divergence, Explorer, Replay, SourceSets};
use symdpor_trace::*;

fn program() -> Program {
    fork_join(&[
        vec![Store(View::whole(0), 1), Load(0, View::whole(1))],
        vec![Store(View::whole(1), 1), Load(0, View::whole(0))],
    ])
}

/// Explores, with the executions from the second on changed.
fn explore_changed(change: impl Fn(&mut Execution)) -> Option<Divergence> {
    let mut explorer = Checked::new(SourceSets::new());
    let mut next = Some(explorer.first());
    let mut first = true;
    while let Some(plan) = next {
        let (mut execution, _) = run(&program(), &plan);
        if !std::mem::take(&mut first) {
            change(&mut execution);
        }
        next = explorer.next(&execution);
    }
    explorer.divergence().cloned()
}

#[test]
fn a_deterministic_program_passes() {
    assert_eq!(explore_changed(|_| {}), None);
}

#[test]
fn the_first_step_that_differs_is_named() {
    let other = Op::new(OpKind::AtomicStore, ObjectId(99 << 3));
    let divergence = explore_changed(|e| {
        e.steps[1].op = other;
        e.steps[2].op = other;
    });
    let divergence = divergence.expect("a divergence");
    assert_eq!((divergence.position, divergence.difference), (1, Difference::Operation));
    assert_eq!((divergence.thread, divergence.found), (ThreadId(0), Some(other)));
    assert_eq!(divergence.expected.map(|op| op.kind), Some(OpKind::ThreadCreate));
}

#[test]
fn other_enabled_threads_and_other_ways_differ() {
    let enabled = explore_changed(|e| e.steps[1].enabled.clear()).expect("a divergence");
    assert_eq!((enabled.position, enabled.difference), (1, Difference::Enabled));
    let ways = explore_changed(|e| e.steps[0].alternatives = 2).expect("a divergence");
    assert_eq!((ways.position, ways.difference), (0, Difference::Alternatives));
    let missing = explore_changed(|e| e.steps.truncate(1)).expect("a divergence");
    assert_eq!((missing.position, missing.difference), (1, Difference::Missing));
}

/// Where the plan branches off, the thread has to do what it was about to do.
#[test]
fn the_branching_step_is_compared_with_what_was_pending() {
    let mut explorer = Checked::new(SourceSets::new());
    let first = explorer.first();
    let plan = explorer.next(&run(&program(), &first).0).expect("another execution");
    let branch = plan.choices.len() - 1;
    let (mut execution, _) = run(&program(), &plan);
    execution.steps[branch].op.object = ObjectId(99 << 3);
    assert_eq!(explorer.next(&execution), None);
    let divergence = explorer.divergence().expect("a divergence");
    assert_eq!((divergence.position, divergence.difference), (branch, Difference::Operation));
}

#[test]
fn a_replay_runs_once_and_says_whether_it_was_the_same() {
    let program = fork_join(&[lock_once(), lock_once()]);
    let (recorded, _) = run(&program, &Plan::default());
    let mut replay = Replay::of(recorded.steps.clone());
    let (again, _) = run(&program, &replay.first());
    assert_eq!((replay.next(&again), replay.divergence()), (None, None));
    assert_eq!(replay.statistics().executions, 1);

    let mut changed = again.clone();
    changed.steps[3].op.kind = OpKind::Yield;
    let mut replay = Replay::of(recorded.steps.clone());
    assert_eq!(replay.next(&changed), None);
    assert_eq!(replay.divergence().map(|d| d.position), Some(3));

    let choices = recorded.steps.iter().map(|s| Choice { thread: s.thread, alternative: s.alternative }).collect();
    let mut replay = Replay::new(choices);
    changed.steps.truncate(5);
    assert_eq!(replay.next(&changed), None);
    assert_eq!(replay.divergence().map(|d| (d.position, d.difference)), Some((5, Difference::Missing)));
}
