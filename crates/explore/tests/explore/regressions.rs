//! Programs that some version of some algorithm lost outcomes of.

use crate::compare::assert_complete;
use crate::counts::fork_join;
use crate::program::{Instr::*, Program, View};
use crate::run::Outcome;

const X: View = View::whole(0);
const Y: View = View::whole(1);

fn halves(cell: u8) -> [View; 2] {
    [0, 2].map(|from| View { cell, from, lanes: 2, wide: false, relaxed: false })
}

/// The exchange fails once the upper half is written, and is then a read; the read of the lower half depends on it still.
#[test]
fn a_failed_exchange_and_a_read_of_half_of_it() {
    let [low, high] = halves(0);
    let main = vec![Create(1, 0), Create(2, 1), Cas(0, X, 0, 1)];
    let codes = vec![main, vec![Once(1, 1), Store(high, 1)], vec![Load(1, low)]];
    assert_complete(&Program { codes, recursive: 0 });
}

/// The same with sixteen bytes.
#[test]
fn a_failed_wide_exchange_and_a_read_of_half_of_it() {
    let main = vec![Create(1, 0), Create(2, 1), Cas(0, View { wide: true, ..X }, 0, 1)];
    let codes = vec![main, vec![Lock(1), Add(1, Y, 1)], vec![Load(1, X)]];
    assert_complete(&Program { codes, recursive: 0 });
}

/// A backtrack point that names a thread which sleeps there by inheritance is not enough.
#[test]
fn the_thread_to_add_is_asleep() {
    let tail = [Lock(0), Add(0, X, 1), Unlock(0)];
    let workers = [
        [vec![Store(Y, 2)], tail.to_vec()].concat(),
        vec![Store(X, 2), Add(0, Y, 1)],
        [vec![Add(0, Y, 1)], tail.to_vec()].concat(),
    ];
    assert_complete(&fork_join(&workers));
}

/// The writer comes before one reader and after the other. Where the writer sleeps, that is still to be explored.
#[test]
fn a_writer_between_two_readers() {
    let main = vec![Create(1, 0), Create(2, 2), WriteLock(0)];
    let codes = vec![main, vec![Load(0, X), ReadLock(0)], vec![ReadLock(0), RwUnlock(0)]];
    assert_complete(&Program { codes, recursive: 0 });
}

/// One looks at a semaphore before another takes from it, and a third one afterwards.
#[test]
fn a_wait_between_two_looks() {
    let main = vec![Create(1, 0), Create(2, 1), Acquire(1)];
    let codes = vec![main, vec![Add(1, Y, 1), Value(1, 1)], vec![Value(1, 1)]];
    assert_complete(&Program { codes, recursive: 0 });
}

/// The same of those who come to a barrier and do not ask who was the last. Then it makes no difference who comes first of those who come together.
#[test]
fn a_barrier_for_two_of_four_who_do_not_ask() {
    let low = View { from: 1, lanes: 1, ..Y };
    let main = vec![Create(1, 0), Create(2, 1), Create(3, 2), Join(1), Meet(0)];
    let second = vec![Meet(0), Add(0, low, 1)];
    let codes = vec![main, vec![Add(1, Y, 1), Meet(0)], second.clone(), second];
    assert_complete(&Program { codes, recursive: 0 });
    let mixed = [vec![Barrier(0, 0), Add(1, X, 1)], vec![Meet(0), Load(1, X)], vec![Meet(0)], vec![Meet(1)]];
    assert_complete(&fork_join(&mixed));
}

/// A third thread decides whether another's access happens at all.
#[test]
fn a_third_thread() {
    let workers =
        [vec![PlainLoad(1, 0), Add(0, X, 1)], vec![Add(0, X, 1)], vec![Add(0, X, 1), If(0, 1, 1), PlainStore(0, 1)]];
    assert!(assert_complete(&fork_join(&workers)).contains(&Outcome::Race));
}

/// Of several reads that a write conflicts with, not only the last one counts.
#[test]
fn not_only_the_last_conflict() {
    let one = vec![Add(0, Y, 1), If(0, 1, 1), Store(X, 1)];
    let main =
        vec![Create(1, 1), Create(2, 2), Load(0, X), Create(3, 0), Join(0), Join(1), Join(2), AssertNot(0, 1, 0)];
    let codes = vec![main, one.clone(), vec![Load(1, X), Add(1, Y, 1)], one];
    let outcomes = assert_complete(&Program { codes, recursive: 0 });
    assert!(outcomes.iter().any(|o| matches!(o, Outcome::Assertion(..))));
}

/// A lock that is pending while only sleeping threads can run competes with its holder all the same.
#[test]
fn two_locks_in_both_orders() {
    let both = |m: u8| vec![Lock(m), Lock(1 - m), Add(0, X, 1), Unlock(1 - m), Unlock(m)];
    let outcomes = assert_complete(&fork_join(&[both(0), both(1), both(0)]));
    assert!(outcomes.iter().any(|o| matches!(o, Outcome::Deadlock(..))));
}

/// The process ends while others run: before, between and after what they do.
#[test]
fn the_end_of_the_process_at_any_time() {
    let main = vec![Create(1, 0), Create(2, 1), Exit(3)];
    let codes = vec![main, vec![Store(X, 1), Lock(0), Store(X, 2)], vec![Lock(0), Store(Y, 1), Unlock(0)]];
    let outcomes = assert_complete(&Program { codes, recursive: 0 });
    assert!(outcomes.iter().all(|o| matches!(o, Outcome::Exit(3, _))));
    assert!(outcomes.len() > 5);
}

/// An error in one thread must not hide those of others.
#[test]
fn errors_in_several_threads() {
    let fails = |number: u8| vec![Load(0, X), AssertNot(0, 0, number)];
    let outcomes = assert_complete(&fork_join(&[fails(1), fails(2), [vec![Load(1, Y)], fails(3)].concat()]));
    assert_eq!(outcomes.len(), 3);
}

/// A livelock at whose end a thread waits for a lock, to which it came with the last step: who holds the lock could have come second.
#[test]
fn a_livelock_after_a_step_that_leads_to_a_lock() {
    let x = View::whole(0);
    assert_complete(&Program {
        codes: vec![vec![Create(1, 0), Create(2, 1)], vec![Lock(1), Spin(x, 2)], vec![Lock(0), Lock(1)]],
        recursive: 0,
    });
}

/// A thread that waits looks at two things in turn, and at a plain variable after the first. That one is written once the thread has gone on, by who
/// has come before a third: in an execution where the thread stands before its second look for ever there is no race.
#[test]
fn a_plain_access_in_the_midst_of_a_turn() {
    let gone = View { relaxed: true, ..View::whole(2) };
    let outcomes = assert_complete(&Program {
        codes: vec![
            vec![Create(1, 0), Create(2, 1), Create(3, 2)],
            vec![SpinEitherPlain(X, Y, 1, 0), Store(gone, 1)],
            vec![Store(X, 1), Spin(gone, 1), Load(0, View::whole(3)), If(0, 0, 1), PlainStore(0, 1)],
            vec![Store(View::whole(3), 1)],
        ],
        recursive: 0,
    });
    assert!(outcomes.contains(&Outcome::Race));
}

/// One way of a choice ends in an error, the other does not: what others do next to the first is to be seen all the same.
#[test]
fn an_error_in_one_of_two_ways() {
    let main = vec![Create(1, 0), Choose(0, 2), If(0, 0, 2), PlainLoad(1, 0), AssertNot(1, 0, 1)];
    let outcomes = assert_complete(&Program { codes: vec![main, vec![Yield, PlainStore(0, 5)]], recursive: 0 });
    assert!(outcomes.contains(&Outcome::Race));
}

/// Of four that come to a barrier for two, one comes only after another has gone on.
#[test]
fn a_barrier_for_two_of_four() {
    let low = View { from: 1, lanes: 1, ..Y };
    let main = vec![Create(1, 0), Create(2, 1), Create(3, 2), Join(1), Barrier(0, 1)];
    let second = vec![Barrier(0, 1), Add(0, low, 1)];
    let codes = vec![main, vec![Add(1, Y, 1), Barrier(0, 1)], second.clone(), second];
    assert_complete(&Program { codes, recursive: 0 });
}
