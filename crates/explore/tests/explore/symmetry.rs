//! Symmetry loses nothing: random programs against brute force.

use crate::brute;
use crate::compare::{loses, number};
use crate::generate::{Kind, Rng, program};
use crate::program::Program;
use crate::run::{Explored, Outcome, Outcomes, explore};
use crate::shrink::shrink;
use symdpor_explore::{Checked, Dpor, Rule, SourceSets};

/// Every second program has threads that are alike on purpose.
const KINDS: [Kind; 46] = {
    let mut kinds = [Kind::Twins; 46];
    let (mut i, mut k) = (0, 0);
    while i < Kind::ALL.len() {
        // Twins themselves are not among the others.
        if !matches!(Kind::ALL[i], Kind::Twins) {
            kinds[2 * k] = Kind::ALL[i];
            k += 1;
        }
        i += 1;
    }
    kinds
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    Dpor,
    Source,
}

impl Algorithm {
    pub fn explore(self, program: &Program, rule: Rule, limit: u64) -> Option<Explored> {
        match self {
            Algorithm::Dpor => explore(program, Checked::new(Dpor::with_symmetry(rule)), limit),
            Algorithm::Source => explore(program, Checked::new(SourceSets::with_symmetry(rule)), limit),
        }
    }
}

pub fn anonymous(outcomes: &Outcomes) -> Outcomes {
    outcomes.iter().map(Outcome::anonymous).collect()
}

fn limit() -> u64 {
    number("SYMDPOR_EXECUTIONS", 150)
}

pub fn fails(program: &Program, algorithm: Algorithm, rule: Rule) -> bool {
    let Some(expected) = brute::outcomes(program, 4 * limit() as usize) else { return false };
    let found = algorithm.explore(program, rule, limit());
    found.is_some_and(|found| loses(&anonymous(&expected), &anonymous(&found.outcomes)))
}

fn report(program: &Program, algorithm: Algorithm, rule: Rule) -> ! {
    let small = shrink(program, |p| fails(p, algorithm, rule));
    let expected = anonymous(&brute::outcomes(&small, 100_000).expect("small"));
    let found = anonymous(&algorithm.explore(&small, rule, 100_000).expect("small").outcomes);
    let lost: Vec<_> = expected.difference(&found).collect();
    let invented: Vec<_> = found.difference(&expected).collect();
    panic!("{algorithm:?} with {rule:?} loses {lost:?}\nand invents {invented:?}\nof the program\n{small}");
}

#[test]
fn symmetry_loses_nothing_on_random_programs() {
    let programs = number("SYMDPOR_PROGRAMS", 50_000);
    let mut rng = Rng::new(number("SYMDPOR_SEED", 1));
    let only = std::env::var("SYMDPOR_KIND").ok();
    let kinds = KINDS.into_iter().filter(|k| only.as_ref().is_none_or(|o| *o == format!("{k:?}")));
    let (mut done, mut off, mut on, mut blocked) = (0, 0, 0, 0);
    for kind in kinds.cycle() {
        let program = program(&mut rng, kind);
        let Some(expected) = brute::outcomes(&program, 6 * limit() as usize) else { continue };
        let expected = anonymous(&expected);
        let Some(plain) = explore(&program, SourceSets::new(), 3 * limit()) else { continue };
        for algorithm in [Algorithm::Source, Algorithm::Dpor] {
            let Some(found) = algorithm.explore(&program, Rule::SOUND, 2 * limit()) else { continue };
            if loses(&expected, &anonymous(&found.outcomes)) {
                report(&program, algorithm, Rule::SOUND);
            }
            if algorithm == Algorithm::Source {
                off += plain.statistics.executions;
                on += found.statistics.executions;
                blocked += found.statistics.blocked;
            }
        }
        done += 1;
        if done == programs {
            break;
        }
    }
    println!("{done} programs: {off} executions without symmetry, {on} with, {blocked} blocked");
}

/// How many random programs of some kinds, of so many, lose something under a rule.
fn lost(rule: Rule, kinds: &[Kind], programs: usize) -> usize {
    let mut rng = Rng::new(7);
    let kinds = kinds.iter().cycle().take(programs);
    kinds.filter(|&&kind| fails(&program(&mut rng, kind), Algorithm::Source, rule)).count()
}

/// Each part that random programs can tell is needed: without it errors are lost.
#[test]
fn each_part_of_the_rule_is_needed() {
    let sound = Rule::SOUND;
    let without: [(&str, Rule, &[Kind], usize); 9] = [
        ("all of it", Rule::PAPER, &KINDS, 1_000),
        ("plain accesses", Rule { plain: false, ..sound }, &[Kind::Creation, Kind::Endless], 6_000),
        ("third threads", Rule { third: false, ..sound }, &[Kind::Creation, Kind::Atomics], 8_000),
        ("mixed accesses", Rule { mixed: false, ..sound }, &[Kind::Creation, Kind::Atomics], 8_000),
        ("visible operations", Rule { visible: false, ..sound }, &[Kind::Conditions, Kind::Ends], 3_000),
        ("blocked operations", Rule { pending: false, ..sound }, &[Kind::Semaphores], 10_000),
        ("joins", Rule { joins: false, ..sound }, &KINDS, 2_000),
        ("blocked joins", Rule { pending_joins: false, ..sound }, &KINDS, 8_000),
        ("results", Rule { results: false, ..sound }, &[Kind::Atomics, Kind::Mixed], 12_000),
    ];
    let lost = without.map(|(part, rule, kinds, programs)| (part, lost(rule, kinds, programs)));
    println!("{lost:?}");
    assert!(lost.iter().all(|(_, n)| *n > 0), "nothing lost without: {lost:?}");
}

/// Relaxed atomics order the operations and not the plain accesses: what the twin's branch knew of the time before, exchanged,
/// would hide the race.
#[test]
fn what_came_before_is_not_exchanged() {
    use crate::program::{Instr::*, View};
    let relaxed = View { relaxed: true, ..View::whole(1) };
    let rest = [Add(0, View::whole(2), 1), Add(0, relaxed, 1), If(0, 2, 1), PlainLoad(0, 0)];
    let codes = vec![
        vec![Create(1, 0), Create(2, 1), Create(3, 2)],
        [&[PlainStore(0, 2)], &rest[..]].concat(),
        vec![Add(0, relaxed, 1)],
        rest.to_vec(),
    ];
    assert_nothing_lost(codes);
}

fn assert_nothing_lost(codes: Vec<Vec<crate::program::Instr>>) {
    let program = Program { codes, recursive: 0 };
    let expected = anonymous(&brute::outcomes(&program, 100_000).expect("small"));
    for algorithm in [Algorithm::Source, Algorithm::Dpor] {
        let found = anonymous(&algorithm.explore(&program, Rule::SOUND, 100_000).expect("small").outcomes);
        let lost: Vec<_> = expected.difference(&found).collect();
        assert!(lost.is_empty(), "{algorithm:?}: {lost:?}");
    }
}

/// One of two threads that may wait for ever is joined, and the other is not.
#[test]
fn a_join_beyond_what_is_cut_off_tells_apart() {
    use crate::program::{Instr::*, View};
    let rest = [Lock(0), Load(1, View::whole(0)), If(1, 0, 1), Wait(0, 0), Unlock(0)];
    assert_nothing_lost(vec![
        vec![Create(1, 0), StoreReg(View { wide: true, ..View::whole(1) }, 1), Create(2, 1), JoinResult(0, 1)],
        [&[Create(3, 5), Add(0, View::whole(1), 1)], &rest[..]].concat(),
        rest.to_vec(),
        vec![Add(1, View { relaxed: true, ..View::whole(0) }, 1)],
    ]);
}

#[test]
fn one_of_three_is_joined() {
    use crate::program::{Instr::*, View};
    let last = Cas(0, View::whole(1), 0, 2);
    let rest = [Add(1, View::whole(1), 1), If(1, 0, 1), last];
    assert_nothing_lost(vec![
        vec![Create(1, 0), Cas(0, View::whole(0), 0, 2), Create(2, 1), Create(3, 2), Join(2), Exit(0)],
        [&[Cas(0, View::whole(0), 0, 1)], &rest[..]].concat(),
        vec![last],
        rest.to_vec(),
    ]);
}

/// Three threads compete for one post; two of them are alike then, and main joins one of these.
#[test]
fn who_takes_the_only_post() {
    use crate::program::{Instr::*, View};
    let half = |cell| View { from: 2, lanes: 1, ..View::whole(cell) };
    let wide = View { wide: true, ..View::whole(0) };
    let codes = vec![
        vec![Create(1, 1), Create(2, 2), Create(3, 3), JoinResult(3, 1), PlainStore(1, 2), JoinResult(2, 2)],
        vec![Load(0, half(0)), If(0, 1, 1), Post(0), Acquire(0)],
        vec![Acquire(0), Store(View { lanes: 2, ..half(0) }, 2)],
        vec![Add(1, wide, 1), Load(0, half(1)), Acquire(0)],
    ];
    let program = Program { codes, recursive: 0 };
    for algorithm in [Algorithm::Source, Algorithm::Dpor] {
        assert!(!fails(&program, algorithm, Rule::SOUND), "{algorithm:?}");
    }
}

/// Two of four have room. Of those that are alike main joins one, and then one that never ends.
#[test]
fn whoever_is_joined_before_the_end_is_told_apart() {
    use crate::program::Instr::*;
    let mut codes =
        vec![vec![Create(1, 0), Create(2, 1), Create(3, 2), Create(4, 3), Join(2), PlainStore(0, 2), Join(1)]];
    codes.extend([vec![Put(0, 1)], vec![Put(0, 1), Put(0, 1)], vec![Put(0, 1)], vec![Put(0, 1)]]);
    assert_nothing_lost(codes);
}

/// Two threads that wait for ever are alike only after one of them has read: what it waits for, it would have met before that.
#[test]
fn what_is_blocked_at_the_end_counts() {
    use crate::program::{Instr::*, View};
    let codes = vec![
        vec![StoreReg(View::whole(0), 1), Create(1, 0), Create(2, 1), Create(3, 2)],
        vec![Acquire(1), Add(0, View::whole(0), 1)],
        vec![Load(0, View::whole(0)), If(0, 2, 1), Acquire(1)],
        vec![Add(0, View::whole(0), 1)],
    ];
    assert_nothing_lost(codes.clone());
    let program = Program { codes, recursive: 0 };
    assert!(fails(&program, Algorithm::Source, Rule { pending: false, ..Rule::SOUND }));
}

/// One spins for ever; of the others, which are alike, main joins one. The state in which it ends is reached only beyond a turn in vain
/// that comes after a twin was left out.
#[test]
fn a_turn_in_vain_after_a_twin() {
    use crate::program::{Instr::*, View};
    let rest = [Lock(1), Add(0, View::whole(1), 1), If(0, 1, 1), PlainLoad(1, 0), Unlock(1)];
    assert_nothing_lost(vec![
        vec![Create(1, 0), Create(2, 1), Create(3, 2), Create(4, 3), Join(3), Exit(0)],
        rest.to_vec(),
        vec![Spin(View::whole(0), 2)],
        [&[Add(0, View::whole(0), 1)], &rest[..]].concat(),
        rest.to_vec(),
    ]);
}

/// Who lets the spinning thread go is one of two that are alike, and what it does then conflicts with what the other did before.
#[test]
fn a_twin_lets_a_spinning_thread_go() {
    use crate::program::{Instr::*, View};
    let (flag, count) = (View::whole(1), View::whole(2));
    assert_nothing_lost(vec![
        vec![Create(1, 0), Create(2, 2), Spin(flag, 1), StoreReg(count, 1)],
        vec![Add(0, count, 1), Store(flag, 1)],
        vec![Store(flag, 1)],
    ]);
}

/// A plain store to what a thread spins on, which is ordered before all that lets the thread go, races with an earlier look only.
#[test]
fn a_plain_access_to_what_is_spun_on() {
    use crate::program::{Instr::*, View};
    let codes = vec![
        vec![Create(1, 0), Create(2, 1), Create(3, 2)],
        vec![Spin(View::whole(0), 1)],
        vec![Add(0, View::whole(2), 1), RawStore(0, 0), Store(View::whole(1), 1)],
        vec![Spin(View::whole(1), 1), Store(View::whole(0), 1)],
    ];
    let program = Program { codes, recursive: 0 };
    for algorithm in [Algorithm::Source, Algorithm::Dpor] {
        assert!(!fails(&program, algorithm, Rule::SOUND), "{algorithm:?} loses the race");
    }
}

/// Who ends the process with an error keeps all others from going on, in a branch that was left out too.
#[test]
fn an_end_with_an_error_in_a_branch_that_is_left_out() {
    use crate::program::{Instr::*, View};
    assert_nothing_lost(vec![
        vec![Create(1, 0), Create(2, 1), Create(3, 2)],
        vec![Add(0, View::whole(0), 1), Add(0, View::whole(1), 1), If(0, 1, 0)],
        vec![Add(0, View::whole(1), 1), If(0, 1, 0)],
        vec![Add(0, View::whole(1), 1), If(0, 1, 1), Exit(1)],
    ]);
}
