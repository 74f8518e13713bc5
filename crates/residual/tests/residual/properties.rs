//! Random functions: what does not change the meaning keeps the residual code, a change of one instruction does not,
//! and damaged digests do no harm.

use crate::support::machine::run;
use crate::support::random::{Dice, function, sized_function};
use crate::support::{Arg, Fun, Ins, Layout, op, point_of};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

fn other_layout(fun: &Fun, dice: &mut Dice) -> Layout {
    let mut blocks: Vec<usize> = (0..fun.blocks.len()).collect();
    dice.shuffle(&mut blocks);
    Layout { blocks, unused_arguments: dice.below(3), unused_types: dice.below(3), unused_strings: dice.below(3) }
}

/// The edges of phis in another order.
fn phis_rewritten(fun: &Fun, dice: &mut Dice) -> Fun {
    let mut fun = fun.clone();
    for phi in fun.blocks.iter_mut().flatten().filter(|i| i.opcode == op::PHI) {
        let mut edges: Vec<_> = phi.args.drain(..).zip(phi.incoming.drain(..)).collect();
        dice.shuffle(&mut edges);
        (phi.args, phi.incoming) = edges.into_iter().unzip();
    }
    fun
}

/// Also the operands of commutative operators.
fn rewritten(fun: &Fun, dice: &mut Dice) -> Fun {
    let mut fun = phis_rewritten(fun, dice);
    for ins in fun.blocks.iter_mut().flatten().filter(|_| dice.below(2) == 0) {
        match (ins.opcode, ins.detail) {
            (op::ADD | op::MUL | op::XOR, _) | (op::ICMP, 32 | 33) => {}
            (op::ICMP, 34 | 35 | 38 | 39) => ins.detail += 2,
            (op::ICMP, _) => ins.detail -= 2,
            _ => continue,
        }
        ins.args.swap(0, 1);
    }
    fun
}

/// Operands that look alike to all that follows are taken as they are written, which costs a match in a hundred
/// where they come from different places.
#[test]
fn the_order_of_commutative_operands_hardly_ever_matters() {
    let matches = |seed: &u64| {
        let dice = &mut Dice::new(*seed);
        let fun = function(dice);
        fun.code(&Layout::default()) == rewritten(&fun, dice).code(&Layout::default())
    };
    let matched = (0..5000).filter(matches).count();
    assert!(matched >= 4940, "{matched}");
}

/// The work for a point grows like the function, not like its square.
#[test]
fn a_huge_function_is_no_trouble() {
    let dice = &mut Dice::new(1);
    let fun = sized_function(dice, 4000, 25);
    let begin = Instant::now();
    let point = fun.point(&Layout::default(), 0).expect("a point");
    assert!(point.before.live.len() > 1);
    // Some 100,000 instructions; a second would do, but the machine may be busy.
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

/// Block and index of an instruction.
type Place = (usize, usize);

/// Each instruction that can still run, and of each that cannot.
fn split(fun: &Fun) -> (Vec<Place>, Vec<Place>) {
    let point = fun.blocks[0].iter().position(|i| !i.sites.is_empty()).expect("a point");
    let successors = |b: usize| {
        let last = fun.blocks[b].last().expect("a terminator");
        last.args.iter().filter_map(|a| if let Arg::Block(b) = a { Some(*b) } else { None }).collect::<Vec<_>>()
    };
    let mut whole = BTreeSet::new();
    let mut work = successors(0);
    while let Some(block) = work.pop() {
        if whole.insert(block) {
            work.extend(successors(block));
        }
    }
    let places = (0..fun.blocks.len()).flat_map(|b| (0..fun.blocks[b].len()).map(move |i| (b, i)));
    places.partition(|&(b, i)| whole.contains(&b) || (b == 0 && i >= point))
}

/// Changes one instruction so that it means something else.
fn change(fun: &mut Fun, (block, index): Place, dice: &mut Dice) {
    let ins = &mut fun.blocks[block][index];
    let constants: Vec<usize> = (0..ins.args.len()).filter(|&i| matches!(ins.args[i], Arg::Constant(_))).collect();
    match (dice.below(3), ins.opcode) {
        (0, _) if !constants.is_empty() && ins.opcode != op::PHI => {
            ins.args[constants[dice.below(constants.len())]] = Arg::Constant(7);
        }
        (1, op::CALL) => *ins.args.last_mut().expect("a callee") = Arg::Symbol("elsewhere"),
        (_, op::ADD | op::SUB | op::MUL | op::XOR) => {
            ins.opcode = if ins.opcode == op::XOR { op::ADD } else { op::XOR }
        }
        _ => ins.detail ^= 1 << 20,
    }
}

fn has_effect(ins: &Ins) -> bool {
    [op::RET, op::BR, op::STORE, op::ALLOCA, op::CALL, op::ATOMIC_RMW].contains(&ins.opcode)
}

/// For some values of what is live.
fn do_the_same(one: &Fun, other: &Fun, values: u64) -> bool {
    let (live, others) = (one.live(&Layout::default()), other.live(&Layout::default()));
    (0..4).map(|i| values.wrapping_add(i * 7)).all(|v| run(one, &live, v) == run(other, &others, v))
}

/// Changes one instruction in a way that may or may not mean something else: another local, other targets.
fn disturb(fun: &mut Fun, dice: &mut Dice) {
    let block = dice.below(fun.blocks.len());
    let index = dice.below(fun.blocks[block].len());
    let values: Vec<usize> = fun.args.iter().map(|a| a.0).chain(results(fun)).collect();
    let objects: Vec<usize> = fun.objects.iter().map(|o| o.0).collect();
    let ins = &mut fun.blocks[block][index];
    let place = dice.below(ins.args.len());
    match &mut ins.args[place] {
        Arg::Value(id) if objects.contains(id) => *id = objects[dice.below(objects.len())],
        Arg::Value(id) => *id = values[dice.below(values.len())],
        _ => {}
    }
    if ins.opcode == op::BR && ins.args.len() == 3 && dice.below(2) == 0 {
        ins.args.swap(1, 2);
    }
    if ins.opcode == op::ICMP || ins.opcode == op::SUB {
        ins.args.swap(0, 1);
    }
}

fn results(fun: &Fun) -> impl Iterator<Item = usize> {
    fun.blocks.iter().flatten().filter(|i| i.opcode != op::ALLOCA).filter_map(|i| i.result)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_and_order_do_not_matter(seed: u64) {
        let dice = &mut Dice::new(seed);
        let fun = function(dice);
        let code = fun.code(&Layout::default());
        prop_assert_eq!(code, fun.code(&other_layout(&fun, dice)), "another layout");
        let rewritten = phis_rewritten(&fun, dice);
        prop_assert_eq!(code, rewritten.code(&other_layout(&fun, dice)), "{:#?} {:#?}", fun, rewritten);
    }

    #[test]
    fn a_change_of_what_can_run_matters_and_no_other(seed: u64) {
        let dice = &mut Dice::new(seed);
        let fun = function(dice);
        let code = fun.code(&Layout::default());
        let (running, gone) = split(&fun);
        let mut changed = fun.clone();
        let place = running[dice.below(running.len())];
        change(&mut changed, place, dice);
        if code == changed.code(&Layout::default()) {
            // What it computes is not needed.
            prop_assert!(!has_effect(&fun.blocks[place.0][place.1]), "{:#?} {:#?}", fun, changed);
            prop_assert!(do_the_same(&fun, &changed, seed), "{:#?} {:#?}", fun, changed);
        }
        if !gone.is_empty() {
            let mut same = fun.clone();
            change(&mut same, gone[dice.below(gone.len())], dice);
            prop_assert_eq!(code, same.code(&Layout::default()));
        }
    }

    /// Equal code does the same when what is live is the same, in the order of the list.
    #[test]
    fn equal_code_does_the_same(seed: u64, values: u64) {
        let dice = &mut Dice::new(seed);
        let fun = function(dice);
        let mut other = rewritten(&fun, dice);
        (0..dice.below(3)).for_each(|_| disturb(&mut other, dice));
        if fun.code(&Layout::default()) == other.code(&Layout::default()) {
            prop_assert!(do_the_same(&fun, &other, values), "{:#?} {:#?}", fun, other);
        }
    }

    #[test]
    fn live_locals_come_in_the_order_of_the_code(seed: u64) {
        let dice = &mut Dice::new(seed);
        let fun = function(dice);
        prop_assert_eq!(fun.live(&Layout::default()), fun.live(&other_layout(&fun, dice)));
    }

    #[test]
    fn damaged_digests_do_no_harm(seed: u64, damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut: Option<prop::sample::Index>) {
        let mut built = function(&mut Dice::new(seed)).build(&Layout::default());
        for (place, byte) in damage {
            let place = place.index(built.digest.len());
            built.digest[place] = byte;
        }
        if let Some(cut) = cut {
            built.digest.truncate(cut.index(built.digest.len()));
        }
        for site in 0..3 {
            point_of(&built.digest, &built.strings, site);
        }
    }

    #[test]
    fn noise_does_no_harm(mut digest in prop::collection::vec(0u8..16, 0..300), strings: Vec<u8>) {
        digest.insert(0, 2);
        (0..20).for_each(|site| _ = point_of(&digest, &strings, site));
    }
}
