//! The comparison with brute force can fail: explorers that are told less than the truth lose outcomes.
//!
//! Each lie stands for a mistake in the analysis that would have the same effect.

use crate::brute;
use crate::compare::loses;
use crate::counts::fork_join;
use crate::generate::{Kind, Rng, program};
use crate::program::{Instr::*, Program, View};
use crate::run::explore_with;
use symdpor_explore::{Dpor, Explorer, SourceSets};
use symdpor_trace::{Execution, ObjectId, Op, OpKind};

fn each_op(execution: &mut Execution, change: impl Fn(&mut Op)) {
    execution
        .steps
        .iter_mut()
        .map(|s| &mut s.op)
        .chain(execution.pending.iter_mut().map(|p| &mut p.op))
        .for_each(change);
}

/// The number of the first random program of a kind, among so many, that loses an outcome.
fn first_lost<E: Explorer>(kind: Kind, explorer: fn() -> E, lie: fn(&mut Execution), programs: usize) -> Option<usize> {
    let mut rng = Rng::new(7);
    (0..programs).find(|_| {
        let program = program(&mut rng, kind);
        let found = || explore_with(&program, explorer(), 400, lie);
        brute::outcomes(&program, 600).is_some_and(|e| found().is_some_and(|f| loses(&e, &f.outcomes)))
    })
}

fn assert_bites(kind: Kind, lie: fn(&mut Execution)) {
    let (dpor, source) = (first_lost(kind, Dpor::new, lie, 1000), first_lost(kind, SourceSets::new, lie, 1000));
    assert!(dpor.is_some() && source.is_some(), "first lost of kind {kind:?}: dpor {dpor:?}, source {source:?}");
}

#[test]
fn the_truth_loses_nothing() {
    for kind in Kind::ALL {
        assert_eq!(first_lost(kind, Dpor::new, |_| {}, 100), None);
        assert_eq!(first_lost(kind, SourceSets::new, |_| {}, 100), None);
    }
}

#[test]
fn pending_operations_at_the_end_matter() {
    assert_bites(Kind::Locks, |e| e.pending.clear());
}

#[test]
fn threads_that_an_end_keeps_from_running_matter() {
    assert_bites(Kind::Ends, |e| e.pending.retain(|p| !p.enabled));
}

#[test]
fn failed_try_locks_matter() {
    assert_bites(Kind::TryLocks, |e| {
        each_op(e, |op| {
            if op.kind == OpKind::TryLockFailed {
                op.kind = OpKind::Yield;
            }
        });
    });
}

#[test]
fn a_try_lock_is_no_lock() {
    assert_bites(Kind::TryLocks, |e| each_op(e, |op| op.arg = 0));
}

/// Random programs show this in one of 20,000.
#[test]
fn a_failed_exchange_is_no_load() {
    let half = |from| View { cell: 0, from, lanes: 2, wide: false, relaxed: false };
    let main = vec![Create(1, 0), Create(2, 1), Cas(0, View::whole(0), 0, 1)];
    let codes = vec![main, vec![Lock(1), Store(half(2), 1)], vec![Load(1, half(0))]];
    let program = Program { codes, recursive: 0 };
    assert_bites_here(&program, |e| each_op(e, |op| op.arg = if op.kind == OpKind::AtomicLoad { 0 } else { op.arg }));
}

fn assert_bites_here(program: &Program, lie: fn(&mut Execution)) {
    let expected = brute::outcomes(program, 100_000).expect("few states");
    let found = |lie: fn(&mut Execution)| explore_with(program, SourceSets::new(), 10_000, lie).expect("few").outcomes;
    assert_eq!(found(|_| {}), expected);
    assert!(loses(&expected, &found(lie)));
}

/// The second waits only if the first does so already, so that the other order of waiting cannot make up for the choice.
#[test]
fn whom_a_signal_wakes_matters() {
    let x = View::whole(0);
    let program = fork_join(&[
        vec![Lock(0), Store(x, 1), Wait(0, 0), Unlock(0)],
        vec![Lock(0), Load(0, x), If(0, 1, 1), Wait(0, 0), Unlock(0)],
        vec![Lock(0), Signal(0), Unlock(0)],
    ]);
    assert_bites_here(&program, |e| e.steps.iter_mut().for_each(|s| s.alternatives = 1));
}

#[test]
fn waiting_is_an_operation_on_the_condition_variable() {
    assert_bites(Kind::Conditions, |e| {
        each_op(e, |op| {
            if op.kind == OpKind::CondWait {
                *op = Op::new(OpKind::MutexUnlock, op.object2);
            }
        });
    });
}

#[test]
fn read_modify_write_is_a_write() {
    assert_bites(Kind::Atomics, |e| {
        each_op(e, |op| {
            if op.kind == OpKind::AtomicRmw {
                op.kind = OpKind::AtomicLoad;
            }
        });
    });
}

#[test]
fn both_halves_of_a_wide_access_matter() {
    assert_bites(Kind::Atomics, |e| each_op(e, |op| op.object2 = ObjectId::NONE));
}

#[test]
fn the_end_of_the_process_depends_on_everything() {
    assert_bites(Kind::Ends, |e| {
        each_op(e, |op| {
            if op.kind == OpKind::ProcessExit {
                op.kind = OpKind::Yield;
            }
        });
    });
}

/// A wait in vain only read; what it read may change by itself, and then it waits.
#[test]
fn waiting_on_a_futex_in_vain_is_an_operation_on_its_queue() {
    assert_bites(Kind::Futexes, |e| {
        each_op(e, |op| {
            if matches!(op.kind, OpKind::FutexWait | OpKind::FutexMismatch) {
                let (word, mask) = op.object.futex_word();
                *op = Op { mask, ..Op::new(OpKind::AtomicLoad, word) };
            }
        });
    });
}

#[test]
fn waiting_on_a_futex_reads_its_word() {
    assert_bites(Kind::Futexes, |e| {
        each_op(e, |op| {
            if matches!(op.kind, OpKind::FutexWait | OpKind::FutexMismatch) {
                op.kind = OpKind::FutexWake;
            }
        });
    });
}

#[test]
fn joins_that_fail_matter() {
    assert_bites(Kind::Lives, |e| {
        each_op(e, |op| {
            if op.kind == OpKind::TryJoinFailed {
                op.kind = OpKind::Yield;
            }
        });
    });
}

#[test]
fn where_a_thread_can_be_cancelled_matters() {
    assert_bites(Kind::Cancels, |e| each_op(e, |op| op.order = if op.may_be_cancelled() { 5 } else { op.order }));
}

#[test]
fn that_a_thread_is_cancelled_matters() {
    assert_bites(Kind::Cancels, |e| {
        each_op(e, |op| {
            if op.kind == OpKind::ThreadCancel {
                op.kind = OpKind::Yield;
            }
        });
    });
}
