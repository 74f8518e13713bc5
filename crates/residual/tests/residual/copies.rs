//! Copies of the same code in one function or in two: peeled, unrolled and rotated loops.

use crate::support::copies::{Round, looped};
use crate::support::machine::run;
use crate::support::random::Dice;
use crate::support::{Fun, Layout};
use proptest::prelude::*;

fn code(fun: &Fun) -> u128 {
    fun.code(&Layout::default())
}

/// Any number of rounds before the loop and in it, and any of them.
fn form(round: &Round, dice: &mut Dice) -> Fun {
    let (peeled, unrolled) = (dice.below(3), dice.below(3) + 1);
    let point = dice.below(peeled + unrolled);
    looped(round, peeled, unrolled, point, dice)
}

fn do_the_same(one: &Fun, other: &Fun, values: u64) -> bool {
    let (live, others) = (one.live(&Layout::default()), other.live(&Layout::default()));
    (0..4).map(|i| values.wrapping_add(i * 7)).all(|v| run(one, &live, v) == run(other, &others, v))
}

/// How many of a hundred pairs are found equal.
fn found(make: impl Fn(&Round, &mut Dice) -> (Fun, Fun)) -> usize {
    let equal = |seed: &u64| {
        let dice = &mut Dice::new(*seed);
        let round = Round::random(dice).with_distinct_variables(dice);
        let (one, other) = make(&round, dice);
        code(&one) == code(&other)
    };
    (0..1000).filter(equal).count() / 10
}

#[test]
fn a_peeled_round_is_the_loop() {
    let one = found(|round, dice| (looped(round, 1, 1, 0, dice), looped(round, 1, 1, 1, dice)));
    let other = found(|round, dice| (looped(round, 2, 1, 0, dice), looped(round, 0, 1, 0, dice)));
    let unrolled = found(|round, dice| (looped(round, 0, 3, 1, dice), looped(round, 0, 1, 0, dice)));
    println!("{one} {other} {unrolled}");
    assert!(one > 80 && other > 80 && unrolled > 80, "{one} {other} {unrolled}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The judge: whatever is found equal does the same.
    #[test]
    fn equal_copies_do_the_same(seed: u64, values: u64) {
        let dice = &mut Dice::new(seed);
        let round = Round::random(dice);
        let mut other = round.clone();
        (0..dice.below(3)).for_each(|_| other.disturb(dice));
        let (one, other) = (form(&round, dice), form(&other, dice));
        if code(&one) == code(&other) {
            prop_assert!(do_the_same(&one, &other, values), "{:#?} {:#?}", one, other);
        }
    }
}
