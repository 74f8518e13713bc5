//! What single things cost inside a worker: hooks, switches, putting memory back, the round trip.
//!
//! Each benchmark is a program that does the thing many times in one execution, which is repeated; `micro::ALL` says
//! how many times that is.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use symdpor_bench::micro::{self, Micro, What};
use symdpor_bench::repeat::Repeat;
use symdpor_bench::tools::Tools;
use symdpor_trace::Plan;

fn worker(criterion: &mut Criterion) {
    let tools = Tools::find().expect("the tool is built");
    let mut group = criterion.benchmark_group(micro::WORKER);
    group.warm_up_time(micro::WARM_UP).measurement_time(micro::MEASUREMENT);
    for micro in micro::ALL {
        group.throughput(Throughput::Elements(u64::from(micro.times)));
        group.bench_function(micro.name, |bencher| {
            let mut repeat = Repeat::new(&tools, &micro.source).expect("the program compiles");
            bencher.iter(|| once(micro, &mut repeat));
        });
    }
}

fn once(micro: &Micro, repeat: &mut Repeat) {
    match micro.what {
        What::Execution => drop(repeat.run(&Plan::default())),
        What::Search => assert_eq!(repeat.search(), u64::from(micro.times)),
    }
}

criterion_group!(benches, worker);
criterion_main!(benches);
