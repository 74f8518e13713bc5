//! What the search needs for one new trace, by its length: happens-before, races, the next plan.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use symdpor_abi::object::ObjectId;
use symdpor_bench::micro;
use symdpor_explore::{Explorer, SourceSets};
use symdpor_trace::{End, Execution, Op, OpKind, Step, ThreadId, ThreadSet};

const THREADS: u16 = 6;

/// Main creates the threads, which then take turns at atomics that some of them share.
fn execution(length: usize) -> Execution {
    let created = (1..=THREADS).map(|t| (ThreadId::MAIN, Op { arg: u32::from(t), ..op(OpKind::ThreadCreate, 0) }));
    let turns = (0..length).map(|i| (ThreadId(1 + i as u16 % THREADS), op(OpKind::AtomicRmw, 1 + i as u64 % 4)));
    let enabled: ThreadSet = (0..=THREADS).map(ThreadId).collect();
    let step = |(thread, op)| Step { thread, op, alternatives: 1, alternative: 0, enabled: enabled.clone() };
    Execution {
        steps: created.chain(turns).take(length).map(step).collect(),
        pending: vec![],
        end: End::Complete,
        dropped: false,
        footprints: Default::default(),
        memory: vec![],
    }
}

fn op(kind: OpKind, object: u64) -> Op {
    Op::new(kind, ObjectId(object))
}

fn analysis(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(micro::ANALYSIS);
    group.warm_up_time(micro::WARM_UP).measurement_time(micro::MEASUREMENT);
    for length in micro::LENGTHS {
        let trace = execution(length);
        group.throughput(Throughput::Elements(length as u64));
        group.bench_function(BenchmarkId::from_parameter(length), |bencher| {
            let explorer = || {
                let mut explorer = SourceSets::new();
                explorer.first();
                explorer
            };
            bencher.iter_batched(
                explorer,
                |mut e| (e.next(&trace).expect("there are races"), e),
                BatchSize::SmallInput,
            );
        });
    }
}

criterion_group!(benches, analysis);
criterion_main!(benches);
