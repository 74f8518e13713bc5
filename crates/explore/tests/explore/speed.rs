//! What the analysis costs per execution. Printed, not judged: run with `--nocapture`.

use crate::compare::number;
use crate::counts::{fork_join, lock_once};
use crate::run::run;
use std::time::{Duration, Instant};
use symdpor_explore::{Explorer, SourceSets};
use symdpor_trace::Execution;

fn executions(threads: usize) -> Vec<Execution> {
    let program = fork_join(&vec![lock_once(); threads]);
    let mut explorer = SourceSets::new();
    let mut next = Some(explorer.first());
    let mut all = Vec::new();
    while let Some(plan) = next {
        all.push(run(&program, &plan).0);
        next = all.last().and_then(|e| explorer.next(e));
    }
    all
}

/// The same search again, from the recorded executions: the analysis alone.
fn analyse(executions: &[Execution]) -> Duration {
    let mut explorer = SourceSets::new();
    explorer.first();
    let start = Instant::now();
    let plans = executions.iter().filter(|e| explorer.next(e).is_some()).count();
    assert_eq!(plans + 1, executions.len());
    start.elapsed()
}

#[test]
fn n_threads_on_one_mutex() {
    for n in 5..=number("SYMDPOR_THREADS", 7) as usize {
        let all = executions(n);
        assert_eq!(all.len(), (1..=n).product());
        let best = (0..20).map(|_| analyse(&all)).min().unwrap_or_default();
        println!("{n} threads: {} executions, {} ns of analysis each", all.len(), best.as_nanos() / all.len() as u128);
    }
}
