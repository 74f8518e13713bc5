//! Temporary: a hash of all plans.
use crate::generate::{Kind, Rng, program};
use crate::local::Table;
use crate::run::run_with;
use crate::compare::number;
use std::hash::{Hash, Hasher};
use symdpor_explore::{Dpor, Rule, SourceSets, Explorer};

fn plans(program: &crate::program::Program, mut explorer: impl Explorer, h: &mut rustc_hash::FxHasher) -> (u64, u64) {
    let mut plan = explorer.first();
    let table = Table::new(program);
    let mut n = 0;
    for _ in 0..300 {
        let (execution, _) = run_with(program, &table, &plan);
        n += 1;
        match explorer.next(&execution) {
            Some(next) => plan = next,
            None => break,
        }
        for c in &plan.choices { (c.thread.0, c.alternative).hash(h); }
        for t in plan.sleep.iter() { t.0.hash(h); }
        (plan.ask, plan.stops_in_vain, plan.kept).hash(h);
    }
    (n, explorer.symmetry().skipped)
}

#[test]
fn sameness() {
    let programs = number("SAME_PROGRAMS", 300);
    for kind in Kind::ALL {
        let mut rng = Rng::new(number("SYMDPOR_SEED", 1));
        let mut h = rustc_hash::FxHasher::default();
        let (mut n, mut s) = (0, 0);
        for _ in 0..programs {
            let p = program(&mut rng, kind);
            let a = plans(&p, SourceSets::with_symmetry(Rule::SOUND), &mut h);
            let b = plans(&p, Dpor::with_symmetry(Rule::SOUND), &mut h);
            n += a.0 + b.0; s += a.1 + b.1;
        }
        println!("{kind:?} {n} {s} {:x}", h.finish());
    }
}
