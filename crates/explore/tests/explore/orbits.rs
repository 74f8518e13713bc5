//! Threads that are equal from the start: fewer executions than there are classes up to renaming them.
//!
//! That number is what a search comes to at best that knows these threads to be equal, and nothing of threads that become so
//! later. In single programs there may be more: where threads wait for ever in the end, joins tell apart who does.

use crate::classes::classes;
use crate::compare::number;
use crate::generate::{Kind, Rng, program};
use crate::program::{Instr, Program};
use std::collections::BTreeSet;
use symdpor_explore::{Rule, SourceSets};

type Class = Vec<[u32; 3]>;

/// Threads 1 to `threads` in all orders.
fn permutations(threads: u32) -> Vec<Vec<u32>> {
    let mut all = vec![vec![0]];
    for next in 1..=threads {
        let longer = all.iter().flat_map(|p| {
            (1..=p.len()).map(move |at| {
                let mut q = p.clone();
                q.insert(at, next);
                q
            })
        });
        all = longer.collect();
    }
    all
}

/// The first, in some order, of the classes that a renaming of the threads makes of one. What main does is the same in all.
fn representative(class: &Class, permutations: &[Vec<u32>]) -> Class {
    let thread = |name: u32| name >> 16;
    let ours = |pair: &&[u32; 3]| thread(pair[0]) != 0 && (pair[1] == u32::MAX || thread(pair[1]) != 0);
    let rename =
        |name: u32, p: &[u32]| if name == u32::MAX { name } else { p[thread(name) as usize] << 16 | name & 0xffff };
    let renamed = permutations.iter().map(|p| {
        let mut pairs: Class = class.iter().filter(ours).map(|c| [rename(c[0], p), rename(c[1], p), c[2]]).collect();
        pairs.sort_unstable();
        pairs
    });
    renamed.min().unwrap_or_default()
}

/// Main starts `threads` of the same code and joins them.
fn equal(code: &[Instr], threads: u8) -> Program {
    let create = (1..=threads).map(|i| Instr::Create(i, i - 1));
    let join = (0..threads).map(Instr::Join);
    let mut codes = vec![create.chain(join).collect()];
    codes.extend((0..threads).map(|_| code.to_vec()));
    Program { codes, recursive: 0b100 }
}

struct Compared {
    classes: usize,
    orbits: usize,
    executions: usize,
}

/// None if it is too large, or there is nothing to reduce.
fn compare(code: &[Instr], threads: u8) -> Option<Compared> {
    let program = equal(code, threads);
    let all = classes(&program, SourceSets::new(), 3_000)?.found;
    let executions = classes(&program, SourceSets::with_symmetry(Rule::SOUND), 6_000)?.executions;
    let permutations = permutations(threads as u32);
    let orbits: BTreeSet<Class> = all.iter().map(|c| representative(c, &permutations)).collect();
    let compared = Compared { classes: all.len(), orbits: orbits.len(), executions: executions as usize };
    Some(compared).filter(|c| c.classes > 1)
}

#[test]
fn fewer_than_classes_up_to_renaming() {
    let programs = number("SYMDPOR_PROGRAMS", 1_500) as usize;
    let mut rng = Rng::new(number("SYMDPOR_SEED", 5));
    let kinds = [Kind::Atomics, Kind::Locks, Kind::Mixed, Kind::TryLocks, Kind::Twins, Kind::Semaphores];
    let mut all = Vec::new();
    for kind in kinds.into_iter().cycle() {
        let code = program(&mut rng, kind).codes.swap_remove(1);
        let ends_or_starts =
            |i: &Instr| matches!(i, Instr::Create(..) | Instr::Join(..) | Instr::JoinResult(..) | Instr::Exit(..));
        if !code.iter().any(ends_or_starts) {
            all.extend(compare(&code, 2 + (all.len() % 2) as u8));
        }
        if all.len() == programs {
            break;
        }
    }
    let sum = |of: fn(&Compared) -> usize| all.iter().map(of).sum::<usize>();
    let (classes, orbits, executions) = (sum(|c| c.classes), sum(|c| c.orbits), sum(|c| c.executions));
    let more = all.iter().filter(|c| c.executions > c.orbits).count();
    println!(
        "{programs} programs: {classes} classes, {orbits} up to renaming, {executions} executions; more in {more}"
    );
    assert!(executions * 2 < orbits && more * 25 < programs, "{executions} of {orbits}, more in {more} of {programs}");
}
