//! The same again and again in one worker, without the rest of the tool.
//!
//! A search of few executions is over before it can be timed; here it is simply done again, with a new explorer and the
//! same worker. This is the loop of the controller in small: plan, run, compare and decode, analyse.

use crate::cases::Source;
use crate::tools::{Result, Tools};
use std::time::Duration;
use symdpor_abi::channel::{Header, Outcome};
use symdpor_explore::{Checked, Explorer, SourceSets};
use symdpor_trace::{Choice, End, Execution, Plan};
use symdpor_worker::{Answer, Launch, Points, Request, Settings, Trace, Worker, decode, install};

pub struct Repeat {
    worker: Worker,
    points: Points,
    trace: Trace,
    execution: Execution,
}

impl Repeat {
    pub fn new(tools: &Tools, source: &Source) -> Result<Repeat> {
        let program = tools.instrumented(source)?;
        let launch = Launch {
            arguments: vec![program.clone().into()],
            program,
            directory: None,
            environment: vec![],
            runtime: tools.library(install::RUNTIME),
        };
        let settings =
            Settings { launch, max_steps: 1 << 20, seed: 0, nondet: (0, 0), step_timeout: Duration::from_secs(10) };
        let execution = Execution {
            steps: vec![],
            pending: vec![],
            end: End::Cut,
            dropped: false,
            footprints: Default::default(),
            memory: vec![],
        };
        Ok(Repeat { worker: Worker::new(settings), points: Points::default(), trace: Trace::default(), execution })
    }

    /// One execution, which nobody looks at: worker and round trip alone.
    ///
    /// # Panics
    /// If the program does not end as it should.
    pub fn run(&mut self, plan: &Plan) -> (Outcome, Header) {
        let request = Request { plan, options: 0, watch: 0 };
        loop {
            match self.worker.run(request, &mut || false) {
                Ok(Answer::Done(outcome @ (Outcome::Exited | Outcome::SleepBlocked), header)) => {
                    return (outcome, header);
                }
                // It cannot go on before suspension points are described: once, and never again.
                Ok(Answer::Done(Outcome::Asked, header)) if self.describe(&header) => {}
                other => panic!("the program should have ended: {other:?}"),
            }
        }
    }

    fn describe(&mut self, header: &Header) -> bool {
        let channel = self.worker.channel_mut();
        channel.is_some_and(|(channel, worker)| self.points.describe(channel, header, worker).is_ok_and(|new| new))
    }

    /// A whole search: how many executions it took.
    ///
    /// # Panics
    /// If the program does not end as it should, or not twice in the same way.
    pub fn search(&mut self) -> u64 {
        let mut explorer = Checked::new(SourceSets::new());
        let mut next = Some(explorer.first());
        while let Some(plan) = next {
            let (outcome, header) = self.run(&plan);
            self.take_over(&plan, outcome, &header);
            next = explorer.next(&self.execution);
        }
        assert!(explorer.divergence().is_none(), "{:?}", explorer.divergence());
        explorer.statistics().executions
    }

    fn take_over(&mut self, plan: &Plan, outcome: Outcome, header: &Header) {
        let same = |(c, s): &(&Choice, &symdpor_trace::Step)| c.thread == s.thread && c.alternative == s.alternative;
        let same = plan.choices.iter().zip(&self.execution.steps).take_while(same).count();
        let channel = self.worker.channel().expect("an answered worker has its channel");
        self.trace.update(channel, header, same, &mut self.execution).expect("the program repeats itself");
        let pending = decode::pending(channel, header).expect("the answer is in order");
        self.execution.pending.clear();
        self.execution.pending.extend(pending.iter().map(Into::into));
        self.execution.end = decode::end_of(outcome);
    }
}
