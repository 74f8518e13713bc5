//! What the analysis costs per execution. Printed, not judged: run with `--nocapture`.

use crate::counts::{fork_join, lock_once};
use crate::run::run;
use std::time::{Duration, Instant};
use symdpor_explore::{Explorer, SourceSets};

#[test]
fn n_threads_on_one_mutex() {
    let largest = crate::compare::number("SYMDPOR_THREADS", 7) as usize;
    for n in 6..=largest {
        let program = fork_join(&vec![lock_once(); n]);
        let mut explorer = SourceSets::new();
        let mut spent = Duration::ZERO;
        let mut next = Some(explorer.first());
        while let Some(plan) = next {
            let (execution, _) = run(&program, &plan);
            let start = Instant::now();
            next = explorer.next(&execution);
            spent += start.elapsed();
        }
        let statistics = explorer.statistics();
        assert_eq!((statistics.executions, statistics.blocked), ((1..=n as u64).product(), 0));
        let each = spent.as_nanos() as u64 / statistics.executions;
        println!("{n} threads: {} executions, {each} ns of analysis each", statistics.executions);
    }
}
