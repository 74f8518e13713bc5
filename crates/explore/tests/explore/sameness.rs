//! Temporary: a hash of all plans.
use crate::compare::number;
use crate::generate::{Kind, Rng, program};
use crate::local::Table;
use crate::run::run_with;
use std::hash::{Hash, Hasher};
use symdpor_explore::{Dpor, Explorer, Rule, SourceSets};

fn plans(
    program: &crate::program::Program,
    mut explorer: impl Explorer,
    total: &mut rustc_hash::FxHasher,
) -> (u64, u64) {
    let mut hasher = rustc_hash::FxHasher::default();
    let h = &mut hasher;
    let mut ended = false;
    let mut plan = explorer.first();
    let table = Table::new(program);
    let mut n = 0;
    while n < 200 {
        let (execution, _) = run_with(program, &table, &plan);
        n += !plan.ask as u64;
        match explorer.next(&execution) {
            Some(next) => plan = next,
            None => {
                ended = true;
                break;
            }
        }
        if plan.ask {
            continue;
        }
        for c in &plan.choices {
            (c.thread.0, c.alternative).hash(h);
        }
        for t in plan.sleep.iter() {
            t.0.hash(h);
        }
        plan.stops_in_vain.hash(h);
    }
    if !ended {
        return (0, 0);
    }
    total.write_u64(hasher.finish());
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
            n += a.0 + b.0;
            s += a.1 + b.1;
        }
        println!("{kind:?} {n} {s} {:x}", h.finish());
    }
}
