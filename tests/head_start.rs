//! Choices that are made before their plan comes: whatever the hint was and whatever plan comes then, the execution is the same as
//! without.

mod common;

use common::build::{self, With};
use common::tool;
use std::time::Duration;
use symdpor_abi::channel::{Outcome, TRACE_OFFSET, options};
use symdpor_explore::{Checked, Explorer, SourceSets};
use symdpor_trace::{Choice, End, Execution, Plan};
use symdpor_worker::{Answer, Launch, Request, Settings, Trace, Worker, decode};

/// What it does depends on the order, in memory, on the heap, in what it prints, and in how long its executions are.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int order[8], count;
static void *work(void *id) {
    int *own = malloc(64);
    *own = (int)(long)id;
    pthread_mutex_lock(&lock);
    order[count++] = *own;
    printf("%d", *own);
    fflush(stdout);
    int again = count == 1 && *own == 2;
    pthread_mutex_unlock(&lock);
    if (again) {
        pthread_mutex_lock(&lock);
        order[count++] = 9;
        pthread_mutex_unlock(&lock);
    }
    free(own);
    return 0;
}
int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < count; i++) printf(" %d", order[i]);
    puts("");
    return 0;
}
"#;

struct Runner {
    worker: Worker,
}

/// Everything that an execution leaves in the channel.
#[derive(PartialEq, Eq)]
struct Left {
    outcome: u32,
    steps: u32,
    trace: Vec<u8>,
    output: Vec<(u8, Vec<u8>)>,
}

impl Runner {
    fn new() -> Runner {
        let program = tool::scratch("head_start").join("order");
        build::text(PROGRAM, false, &["-O1"], &program, With::Pass).unwrap_or_else(|e| panic!("{e}"));
        let launch = Launch {
            arguments: vec![program.clone().into()],
            program,
            directory: None,
            environment: vec![],
            runtime: tool::directory().join("libsymdpor_rt.so"),
        };
        let step_timeout = Duration::from_secs(10);
        Runner { worker: Worker::new(Settings { launch, max_steps: 1000, seed: 0, nondet: (0, 0), step_timeout }) }
    }

    fn run(&mut self, plan: &Plan, bits: u32) -> (Left, symdpor_abi::channel::Header) {
        let ask = if plan.ask { options::ASK } else { 0 };
        let answer = self.worker.run(Request { plan, options: bits | ask, watch: 0 }, &mut || false);
        let Ok(Answer::Done(outcome, header)) = answer else { panic!("the program should have ended: {answer:?}") };
        let channel = self.worker.channel().expect("it has answered");
        let left = Left {
            outcome: outcome as u32,
            steps: header.step_count,
            trace: channel.bytes(TRACE_OFFSET, header.trace_len as usize),
            output: decode::output(channel, &header).expect("it is in order"),
        };
        (left, header)
    }

    /// The plans of a whole search, each run without a hint.
    fn plans(&mut self) -> Vec<(Plan, Left)> {
        let mut explorer = Checked::new(SourceSets::new());
        let (mut trace, mut plans) = (Trace::default(), Vec::new());
        let mut execution = Execution {
            steps: vec![],
            pending: vec![],
            end: End::Cut,
            dropped: false,
            footprints: Default::default(),
            memory: vec![],
        };
        let mut next = Some(explorer.first());
        while let Some(plan) = next {
            let plan = Plan { kept: None, ..plan };
            let (left, header) = self.run(&plan, 0);
            let same =
                |(c, s): &(&Choice, &symdpor_trace::Step)| (c.thread, c.alternative) == (s.thread, s.alternative);
            let same = plan.choices.iter().zip(&execution.steps).take_while(same).count();
            trace.update(self.worker.channel().expect("it has answered"), &header, same, &mut execution).expect("same");
            execution.end = decode::end_of(Outcome::from_u32(header.outcome).expect("an outcome"));
            next = explorer.next(&execution);
            plans.push((plan, left));
        }
        plans
    }
}

#[test]
fn an_execution_is_the_same_whatever_was_made_before_its_plan_came() {
    let mut runner = Runner::new();
    let plans = runner.plans();
    assert!(plans.len() > 6, "a search of {} executions tells little", plans.len());
    let mut state = 7u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    for round in 0..2000 {
        let (plan, expected) = &plans[random(plans.len())];
        // Often too few, as often too many; and other options now and then.
        let kept = (random(8) != 0).then(|| random(plan.choices.len() + 6));
        let bits = if random(16) == 0 { options::STACKS } else { 0 };
        // One that nobody asked for may have been begun: the right one mostly, so that it is tried again.
        if random(3) != 0 {
            let guess = if random(8) == 0 { &plans[random(plans.len())].0 } else { plan };
            runner.worker.begin(&Plan { kept, ..guess.clone() }, bits);
        }
        if random(6) == 0 && !plan.choices.is_empty() {
            let question = Plan { kept, ask: true, ..plan.clone() };
            let (left, _) = runner.run(&question, bits);
            assert_eq!((left.outcome, left.steps as usize), (Outcome::Asked as u32, plan.choices.len() - 1));
            continue;
        }
        let (left, _) = runner.run(&Plan { kept, ..plan.clone() }, bits);
        assert!(left == *expected, "round {round}, kept {kept:?}: {:?}, not {:?}", left.output, expected.output);
    }
}
