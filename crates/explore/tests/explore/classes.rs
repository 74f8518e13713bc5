//! Source sets with sleep sets run one execution per class of equivalent executions: not fewer, and not more.
//!
//! The classes are counted independently, from all interleavings.

use crate::compare::number;
use crate::generate::{Kind, Rng, program};
use crate::program::{Instr, Program, View};
use crate::run::{has_turn_in_vain, run};
use crate::shrink::shrink;
use std::collections::BTreeSet;
use symdpor_abi::op::dependent;
use symdpor_explore::{AllInterleavings, Explorer, SourceSets};
use symdpor_trace::{End, Execution, Op, OpKind, Step};

/// The order of each pair of dependent steps, which is what equivalent executions have in common.
fn class(execution: &Execution) -> Vec<[u32; 3]> {
    let steps = &execution.steps;
    let name = |i: usize| {
        let nth = steps[..i].iter().filter(|s| s.thread == steps[i].thread).count() as u32;
        (steps[i].thread.0 as u32) << 16 | nth
    };
    let mut pairs = Vec::new();
    for j in 0..steps.len() {
        pairs.push([name(j), u32::MAX, steps[j].alternative as u32]);
        let before = (0..j).filter(|&i| ordered(steps, i, j));
        pairs.extend(before.map(|i| [name(i), name(j), 0]));
    }
    pairs.sort_unstable();
    pairs
}

/// Whether the order of two steps matters. Of two who come to a barrier and do not ask who was the last it does if they do not come
/// together: if it opens once the first has come.
fn ordered(steps: &[Step], i: usize, j: usize) -> bool {
    let barrier = steps[i].op.object;
    let meets = |s: &Step| s.op.kind == OpKind::BarrierMeet && s.op.object == barrier;
    if meets(&steps[i]) && meets(&steps[j]) {
        return steps[i..j].iter().any(|s| s.op.object == barrier && s.op.opens_barrier());
    }
    dependent(&steps[i].op, &steps[j].op)
}

type Class = Vec<[u32; 3]>;

/// The classes of the executions that ran to an end, and how many executions that were.
pub struct Classes {
    pub found: BTreeSet<Class>,
    /// Those of executions with turns in vain. Whether a turn of several looks is in vain is not the same for all of a class: a
    /// write of what the first looked at may come between the looks, or after both.
    in_vain: BTreeSet<Class>,
    pub executions: u64,
}

pub fn classes(program: &Program, mut explorer: impl Explorer, limit: u64) -> Option<Classes> {
    let (mut found, mut in_vain) = (BTreeSet::new(), BTreeSet::new());
    let mut plan = explorer.first();
    for _ in 0..limit {
        let (execution, _) = run(program, &plan);
        match execution.end {
            // What others would have done next to an error is no part of its class.
            End::Cut => return None,
            // Without its turns in vain an execution is another, which is to be found as well.
            End::Complete if has_turn_in_vain(program, &execution) => drop(in_vain.insert(class(&execution))),
            End::Complete => drop(found.insert(class(&execution))),
            End::Asked | End::SleepBlocked | End::Repeated(_) | End::InVain => {}
        }
        match explorer.next(&execution) {
            Some(next) => plan = next,
            None => return Some(Classes { found, in_vain, executions: explorer.statistics().executions }),
        }
    }
    None
}

/// Some operations turn out differently, and wake sleepers before it is known how: then a class may be run twice. Those that can
/// only succeed or fail do not (`Plan::failed`).
fn is_plain(program: &Program) -> bool {
    let undecided = |i: &Instr| {
        matches!(i, Instr::FutexWait(..) | Instr::FutexWake(..) | Instr::FutexRequeue(..) | Instr::Again(..))
    };
    let spins = |i: &Instr| i.spins_on() != [None, None];
    !program.codes.iter().flatten().any(|i| undecided(i) || spins(i))
}

/// A wait takes what it waits for, or only looks at it and is cancelled. Somebody who looks at the same thing wakes a sleeping thread
/// that waits for it, since its wait depends on that look; the cancellation does not, so that its class may be run twice:
///
/// - The wait could not go on, and cancellation was all there was. As with other operations that turn out differently, the worker
///   wakes by the pending one, before it is known how.
/// - Both were possible, and are two ways of one step. Threads sleep, not ways: it is woken for the one and goes the other again.
///
/// Whether that may be what happens: somebody else looks at what a cancelled thread waited for.
fn is_woken_for_nothing(execution: &Execution) -> bool {
    let mut cancelled = execution.steps.iter().filter(|s| s.op.kind == OpKind::CancelPoint && s.op.access().is_some());
    cancelled.any(|cancelled| {
        let wait = Op { kind: OpKind::OutsideChange, ..cancelled.op };
        let mut others = execution.steps.iter().filter(|s| s.thread != cancelled.thread);
        others.any(|s| dependent(&s.op, &wait) && !dependent(&s.op, &cancelled.op))
    })
}

/// Whether there is more than one execution per class for a reason that is not known.
fn repeats(program: &Program, classes: usize, executions: u64) -> bool {
    if !is_plain(program) || executions == classes as u64 {
        return false;
    }
    let (mut explorer, mut known) = (SourceSets::new(), false);
    let mut next = Some(explorer.first());
    while let Some(plan) = next {
        let (execution, _) = run(program, &plan);
        known |= is_woken_for_nothing(&execution);
        next = explorer.next(&execution);
    }
    executions < classes as u64 || !known
}

fn wrong(program: &Program, limit: u64) -> Option<bool> {
    let all = classes(program, AllInterleavings::new(), limit)?;
    let reduced = classes(program, SourceSets::new(), limit)?;
    let mut lost = all.found.difference(&reduced.found).filter(|c| !all.in_vain.contains(*c));
    let mut invented = reduced.found.difference(&all.found).filter(|c| !all.in_vain.contains(*c));
    let differ = lost.next().is_some() || invented.next().is_some();
    // How often a loop goes round is part of a class and of no outcome.
    Some(!program.has_loops() && differ || repeats(program, all.found.len(), reduced.executions))
}

fn assert_repeats(codes: Vec<Vec<Instr>>, number: usize, executions: u64) {
    let program = Program { codes, recursive: 0 };
    let all = classes(&program, AllInterleavings::new(), 2_500).expect("a small program");
    let reduced = classes(&program, SourceSets::new(), 2_500).expect("a small program");
    assert_eq!((all.found.len(), reduced.executions), (number, executions));
    assert_eq!(all.found, reduced.found);
    assert!(!repeats(&program, number, executions));
}

/// The wait comes before the look or after it, or is cancelled: that one is run on either side of the look.
#[test]
fn a_wait_that_may_be_cancelled_is_woken_for_one_of_its_ways() {
    let main = vec![Instr::Create(1, 0), Instr::CancelSelf, Instr::Acquire(1)];
    assert_repeats(vec![main, vec![Instr::Value(0, 1)]], 3, 4);
}

/// Nobody ever posts: all that the waits can do is to be cancelled.
#[test]
fn a_wait_in_vain_that_is_cancelled_is_woken_for_nothing() {
    let wait = Instr::Acquire(0);
    let main = vec![Instr::Create(1, 0), Instr::Create(2, 1), Instr::Create(3, 2), Instr::Cancel(2)];
    assert_repeats(vec![main, vec![wait], vec![wait], vec![Instr::Cancel(1), wait]], 2, 4);
}

/// Who spins looks at one thing, which is written then, and at another: that look could as well have come before the write, and have
/// made the turn one in vain.
#[test]
fn a_turn_in_vain_in_some_executions_of_a_class() {
    let (one, other) = (View::whole(0), View::whole(1));
    let codes =
        vec![vec![Instr::Create(1, 0), Instr::Add(0, one, 1), Instr::Exit(0)], vec![Instr::SpinEither(one, other, 1)]];
    assert_eq!(wrong(&Program { codes, recursive: 0 }, 250), Some(false));
}

#[test]
fn source_sets_run_each_class_once() {
    let programs = number("SYMDPOR_PROGRAMS", 21_000) / 15;
    let mut rng = Rng::new(number("SYMDPOR_SEED", 1) ^ 0x5eed);
    let mut compared = 0;
    while compared < programs {
        for kind in Kind::ALL {
            let program = program(&mut rng, kind);
            let Some(bad) = wrong(&program, 250) else { continue };
            compared += 1;
            if bad {
                let small = shrink(&program, |p| wrong(p, 250) == Some(true));
                panic!("not one execution per class:\n{small}");
            }
        }
    }
}
