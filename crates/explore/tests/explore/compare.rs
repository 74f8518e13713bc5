//! Every algorithm sees every outcome: random programs against brute force.
//!
//! `SYMDPOR_SEED` and `SYMDPOR_PROGRAMS` choose other programs, and how many; `SYMDPOR_EXECUTIONS` how large they may be,
//! `SYMDPOR_KIND` of which kind they are.

use crate::brute;
use crate::generate::{Kind, Rng, program};
use crate::program::Program;
use crate::run::{Explored, Outcome, Outcomes, explore};
use crate::shrink::shrink;
use symdpor_explore::{AllInterleavings, Checked, Dpor, Explorer, SourceSets, Statistics};

/// Larger programs are left out.
#[derive(Clone, Copy)]
struct Limits {
    states: usize,
    executions: u64,
}

fn limits() -> Limits {
    let executions = number("SYMDPOR_EXECUTIONS", 150);
    Limits { states: 4 * executions as usize, executions }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    None,
    Dpor,
    Source,
}

impl Algorithm {
    pub fn explore(self, program: &Program, limit: u64) -> Option<Explored> {
        match self {
            Algorithm::None => explore_checked(program, AllInterleavings::new(), limit),
            Algorithm::Dpor => explore_checked(program, Dpor::new(), limit),
            Algorithm::Source => explore_checked(program, SourceSets::new(), limit),
        }
    }
}

fn explore_checked(program: &Program, explorer: impl Explorer, limit: u64) -> Option<Explored> {
    let mut checked = Checked::new(explorer);
    let explored = explore(program, &mut checked, limit);
    assert_eq!(checked.divergence(), None, "the machine is deterministic");
    explored
}

/// Whether a search lost something: with a data race, the race; without one, any outcome.
pub fn loses(expected: &Outcomes, found: &Outcomes) -> bool {
    if expected.contains(&Outcome::Race) { !found.contains(&Outcome::Race) } else { expected != found }
}

fn fails(program: &Program, algorithm: Algorithm, limits: Limits) -> bool {
    let Some(expected) = brute::outcomes(program, limits.states) else { return false };
    algorithm.explore(program, limits.executions).is_some_and(|found| loses(&expected, &found.outcomes))
}

fn report(program: &Program, algorithm: Algorithm, limits: Limits) -> ! {
    let small = shrink(program, |p| fails(p, algorithm, limits));
    let expected = brute::outcomes(&small, limits.states).expect("smaller than what was explored");
    let found = algorithm.explore(&small, limits.executions).expect("smaller than what was explored").outcomes;
    let lost: Vec<_> = expected.difference(&found).collect();
    let invented: Vec<_> = found.difference(&expected).collect();
    panic!("{algorithm:?} loses {lost:#?}\nand invents {invented:#?}\nof the program\n{small}");
}

#[derive(Default, Debug)]
struct Totals {
    programs: u64,
    too_big: u64,
    racy: u64,
    /// Programs that all interleavings were run of.
    exhaustive: u64,
    none: Statistics,
    dpor: Statistics,
    source: Statistics,
}

fn add(total: &mut Statistics, one: &Statistics) {
    total.executions += one.executions;
    total.blocked += one.blocked;
    total.transitions += one.transitions;
    total.longest = total.longest.max(one.longest);
}

impl Totals {
    /// Compares on one program; one that is too big for the default algorithm does not count.
    fn compare(&mut self, program: &Program, limits: Limits) {
        self.too_big += 1;
        let Some(expected) = brute::outcomes(program, limits.states) else { return };
        for algorithm in [Algorithm::Source, Algorithm::Dpor, Algorithm::None] {
            match algorithm.explore(program, limits.executions) {
                Some(found) if loses(&expected, &found.outcomes) => report(program, algorithm, limits),
                Some(found) => self.count(algorithm, &found.statistics),
                None if algorithm == Algorithm::Source => return,
                None => {}
            }
        }
        self.too_big -= 1;
        self.programs += 1;
        self.racy += expected.contains(&Outcome::Race) as u64;
    }

    fn count(&mut self, algorithm: Algorithm, statistics: &Statistics) {
        match algorithm {
            Algorithm::None => {
                self.exhaustive += 1;
                add(&mut self.none, statistics);
            }
            Algorithm::Dpor => add(&mut self.dpor, statistics),
            Algorithm::Source => add(&mut self.source, statistics),
        }
    }
}

/// All algorithms see what brute force sees of a program, which is small.
pub fn assert_complete(program: &Program) -> Outcomes {
    let limits = Limits { states: 1_000_000, executions: 100_000 };
    for algorithm in [Algorithm::None, Algorithm::Dpor, Algorithm::Source] {
        if fails(program, algorithm, limits) {
            report(program, algorithm, limits);
        }
    }
    brute::outcomes(program, limits.states).expect("a small program")
}

pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().map_or(default, |v| v.parse().expect("a number"))
}

#[test]
fn algorithms_agree_with_brute_force_on_random_programs() {
    let programs = number("SYMDPOR_PROGRAMS", 21_000);
    let mut rng = Rng::new(number("SYMDPOR_SEED", 1));
    let mut totals = Totals::default();
    let only = std::env::var("SYMDPOR_KIND").ok();
    let kinds = Kind::ALL.into_iter().filter(|k| only.as_ref().is_none_or(|o| *o == format!("{k:?}")));
    for kind in kinds.cycle() {
        totals.compare(&program(&mut rng, kind), limits());
        if totals.programs == programs {
            break;
        }
    }
    println!("{totals:#?}");
}
