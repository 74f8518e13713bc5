//! One program under test: runs plans and keeps the last execution.
//!
//! Each execution repeats a prefix of the one before; that it does so is checked here, for every execution.

use std::error::Error;
use std::time::{Duration, Instant};
use symdpor_abi::channel::{Header, Outcome, options};
use symdpor_explore::Explorer;
use symdpor_trace::failure::OutputChunk;
use symdpor_trace::{Choice, End, Execution, ObjectId, Plan};
use symdpor_worker::accesses::{self, Particulars};
use symdpor_worker::decode::{self, RawPending, RawStack};
use symdpor_worker::footprints;
use symdpor_worker::views::{self, ThreadView};
use symdpor_worker::{
    Answer, Damaged, Death, Divergence, Globals, Points, RawError, Request, Settings, Sites, Trace, TraceError, Worker,
    WorkerError,
};

/// How often an execution that came to its end is run again because it met suspension points that were not described
/// yet. One that could not go on without is run again until it can: every time there is one point less.
const DESCRIBED: u32 = 64;

pub struct Session {
    worker: Worker,
    globals: Globals,
    /// Bits of the channel's options for every execution.
    bits: u32,
    trace: Trace,
    execution: Execution,
    pub points: Points,
    /// Time that went into descriptions.
    describing: Duration,
    /// The exit status and the choices of the execution that is run again because it has met something new.
    ended_with: Option<(u32, Vec<Choice>)>,
}

/// What became of a plan.
pub enum Ran {
    /// The execution ended; it is in the session.
    Ended(Box<Ended>),
    /// The program did not repeat what it did before.
    Diverged(Box<Unexpected>),
    Died(Death),
    Stuck,
    /// The caller wanted to stop.
    Stopped,
}

/// The end of an execution.
pub struct Ended {
    pub outcome: Outcome,
    pub header: Header,
    pub pending: Vec<RawPending>,
}

/// What a second look at an execution shows.
pub struct Watched {
    pub outcome: Outcome,
    pub error: Option<RawError>,
    /// One per step, or none at all.
    pub stacks: Vec<RawStack>,
    /// Plain accesses, names, blocks; none if it went another way.
    pub particulars: Particulars,
}

/// Where and how a repeated execution went another way.
pub struct Unexpected {
    pub step: usize,
    /// The operation as it was before, if this step was seen before.
    pub divergence: Option<Divergence>,
    pub message: String,
}

/// The channel's options for a plan. `bits`: those for every execution.
fn options_of(plan: &Plan, bits: u32) -> u32 {
    let ask = if plan.ask { options::ASK } else { 0 };
    let stops = if plan.stops_in_vain { options::STOPS_IN_VAIN } else { 0 };
    bits | ask | stops
}

impl Session {
    pub fn new(settings: Settings, globals: Globals, bits: u32) -> Session {
        let execution = nothing();
        Session {
            worker: Worker::new(settings),
            globals,
            bits,
            trace: Trace::default(),
            execution,
            points: Points::default(),
            describing: Duration::ZERO,
            ended_with: None,
        }
    }

    pub fn describing(&self) -> Duration {
        self.describing
    }

    pub fn execution(&self) -> &Execution {
        &self.execution
    }

    /// What the explorer makes of the last execution. The worker begins with its first guess.
    pub fn next_plan(&mut self, explorer: &mut impl Explorer) -> Option<Plan> {
        let Session { execution, worker, bits, .. } = self;
        let plan = explorer.next_guessed(execution, &mut |plan| worker.begin(plan, options_of(plan, *bits)));
        if plan.is_none() {
            // Nobody waits for it. If that fails there is no worker any more, which nobody needs.
            _ = worker.forget_begun(&mut || false);
        }
        plan
    }

    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    pub fn globals(&self) -> &Globals {
        &self.globals
    }

    /// The choices that lead through the whole of the last execution.
    pub fn choices(&self) -> Vec<Choice> {
        choices(&self.execution)
    }

    pub fn run(&mut self, plan: &Plan, show: bool, stop: &mut dyn FnMut() -> bool) -> Result<Ran, WorkerError> {
        let show = if show { options::SHOW_OUTPUT } else { 0 };
        let request = Request { plan, options: options_of(plan, self.bits) | show, watch: 0 };
        self.ended_with = None;
        match self.answer(request, stop)? {
            Answer::Done(outcome, header) if self.ended_otherwise(outcome, &header) => {
                Ok(Ran::Diverged(Box::new(self.other_status(&header))))
            }
            Answer::Done(outcome, header) => Ok(self.take_over(plan, outcome, header)),
            Answer::Died(death) => Ok(Ran::Died(death)),
            Answer::Stuck => Ok(Ran::Stuck),
            Answer::Stopped => Ok(Ran::Stopped),
        }
    }

    /// Runs the last execution again: coming back to a state is the error that it ends with.
    pub fn run_endless(&mut self, stop: &mut dyn FnMut() -> bool) -> Result<Ran, WorkerError> {
        let plan = Plan { choices: self.choices(), ..Plan::default() };
        self.bits |= options::LIVELOCK;
        self.run(&plan, false, stop)
    }

    /// Runs an execution; again if it met suspension points that had to be described first.
    fn answer(&mut self, request: Request<'_>, stop: &mut dyn FnMut() -> bool) -> Result<Answer, WorkerError> {
        let mut request = request;
        let mut times = 0;
        loop {
            let answer = self.worker.run(request, stop)?;
            let Answer::Done(outcome, header) = &answer else { return Ok(answer) };
            // What ends in an error need not be compared, and may take long.
            let dropped = matches!(outcome, Outcome::Dropped | Outcome::DroppedHere);
            let redundant =
                matches!(outcome, Outcome::SleepBlocked | Outcome::Asked | Outcome::Repeated | Outcome::InVain);
            let ended = redundant || matches!(outcome, Outcome::Exited | Outcome::Deadlock);
            times += 1;
            let enough = times > DESCRIBED && *outcome != Outcome::Asked;
            if enough || (!ended && !dropped) {
                return Ok(answer);
            }
            let Some((channel, worker)) = self.worker.channel_mut() else { return Ok(answer) };
            let started = Instant::now();
            let described = self.points.describe(channel, header, worker);
            self.describing += started.elapsed();
            match described {
                Ok(true) => {
                    if *outcome == Outcome::Exited && self.ended_with.is_none() {
                        self.ended_with = Some((header.exit_status, self.choices_of(header)));
                    }
                    request.options &= !options::SHOW_OUTPUT;
                }
                Ok(false) => return Ok(answer),
                Err(_) => return Ok(Answer::Died(Death::Damaged)),
            }
        }
    }

    /// Whether an execution that had to be run again has ended with another exit status: the first one must not be forgotten. Beyond
    /// the plan it may have gone another way, since the order in which threads are run depends on which are alike, which was not known at
    /// first: then it was another execution, which the search comes to if it makes a difference.
    fn ended_otherwise(&self, outcome: Outcome, header: &Header) -> bool {
        let Some((status, choices)) = &self.ended_with else { return false };
        outcome == Outcome::Exited && *status != header.exit_status && *choices == self.choices_of(header)
    }

    /// The choices of the answer that is in the channel.
    fn choices_of(&self, header: &Header) -> Vec<Choice> {
        let mut execution = nothing();
        let steps = self.worker.channel().map(|c| Trace::default().update(c, header, 0, &mut execution));
        if !matches!(steps, Some(Ok(()))) {
            return vec![];
        }
        choices(&execution)
    }

    fn other_status(&self, header: &Header) -> Unexpected {
        let (first, second) = (self.ended_with.as_ref().map_or(0, |e| e.0), header.exit_status);
        let message = format!("ended with status {first}, and with {second} when it was repeated");
        Unexpected { step: header.step_count as usize, divergence: None, message }
    }

    fn take_over(&mut self, plan: &Plan, outcome: Outcome, header: Header) -> Ran {
        // Nobody asked. That must not pass for an execution, still less for the last one.
        if outcome == Outcome::Asked && !plan.ask {
            return Ran::Died(Death::Damaged);
        }
        match self.decode(plan, outcome, &header) {
            Ok(pending) if outcome == Outcome::Diverged => Ran::Diverged(Box::new(self.unexpected(&header, pending))),
            Ok(pending) => Ran::Ended(Box::new(Ended { outcome, header, pending })),
            Err(TraceError::Damaged(_)) => Ran::Died(Death::Damaged),
            Err(TraceError::Differs(divergence)) => {
                let (step, message) = (divergence.step, String::new());
                Ran::Diverged(Box::new(Unexpected { step, divergence: Some(*divergence), message }))
            }
        }
    }

    fn decode(&mut self, plan: &Plan, outcome: Outcome, header: &Header) -> Result<Vec<RawPending>, TraceError> {
        if outcome == Outcome::Asked {
            return self.decode_answer(plan, header);
        }
        let same = common_prefix(plan, &self.execution);
        let channel = self.worker.channel().expect("an answered worker has its channel");
        self.trace.update(channel, header, same, &mut self.execution)?;
        let pending = decode::pending(channel, header)?;
        if self.bits & options::LOCALS != 0 {
            let first = plan.choices.len().saturating_sub(1);
            footprints::read(channel, header, first, &mut self.execution.footprints)?;
            self.execution.memory = footprints::read_memory(channel, header)?;
        }
        self.execution.pending.clear();
        self.execution.pending.extend(pending.iter().map(Into::into));
        let steps = self.execution.steps.len();
        self.execution.dropped = matches!(outcome, Outcome::Dropped | Outcome::DroppedHere);
        self.execution.end = match outcome {
            Outcome::Repeated => End::Repeated((header.exit_status as usize).min(steps)),
            _ => decode::end_of(outcome),
        };
        Ok(pending)
    }

    /// An execution that stopped to answer a question is no new one: the last one stays, which it must have repeated so far.
    fn decode_answer(&mut self, plan: &Plan, header: &Header) -> Result<Vec<RawPending>, TraceError> {
        let channel = self.worker.channel().expect("an answered worker has its channel");
        self.trace.check(channel, header, plan.choices.len().saturating_sub(1))?;
        self.execution.memory = footprints::read_memory(channel, header)?;
        self.execution.end = End::Asked;
        Ok(vec![])
    }

    fn unexpected(&self, header: &Header, _pending: Vec<RawPending>) -> Unexpected {
        let message = self.error(header).ok().flatten().map(|e| e.message).unwrap_or_default();
        Unexpected { step: header.step_count as usize, divergence: None, message }
    }

    /// What the threads are in the state that a question is asked in.
    pub fn views(&mut self, plan: &Plan, stop: &mut dyn FnMut() -> bool) -> Result<Vec<ThreadView>, Box<dyn Error>> {
        let request = Request { plan, options: self.bits | options::ASK | options::EXPLAIN, watch: 0 };
        match self.answer(request, stop)? {
            Answer::Done(Outcome::Asked, header) => {
                let channel = self.worker.channel().expect("an answered worker has its channel");
                Ok(views::read(channel, &header)?)
            }
            _ => Err("the program did not repeat itself".into()),
        }
    }

    /// Runs the last execution again to learn what ordinary executions do not keep: where these bytes of `object` were accessed before,
    /// and the stacks of all steps. None if it went another way.
    pub fn watch(&mut self, object: ObjectId, mask: u8, stop: &mut dyn FnMut() -> bool) -> Option<Watched> {
        let plan = Plan { choices: self.choices(), ..Plan::default() };
        let mask = u32::from(mask) << options::WATCH_MASK_SHIFT;
        let watching = options::WATCH | options::STACKS | options::ACCESSES | mask;
        let request = Request { plan: &plan, options: self.bits | watching, watch: object.0 };
        let Ok(Answer::Done(outcome, header)) = self.answer(request, stop) else { return None };
        let stacks = decode::step_stacks(self.worker.channel()?, &header).ok()?;
        let error = self.error(&header).ok().flatten();
        let same = stacks.iter().map(|s| s.thread).eq(self.execution.steps.iter().map(|s| s.thread));
        if !same {
            return Some(Watched { outcome, error, stacks: vec![], particulars: Particulars::default() });
        }
        let particulars = accesses::read(self.worker.channel()?, &header).unwrap_or_default();
        Some(Watched { outcome, error, stacks, particulars })
    }

    /// Runs other executions for a while, and forgets them: the search goes on from the one that it knows.
    pub fn aside<T>(&mut self, trials: impl FnOnce(&mut Session) -> T) -> T {
        let (trace, execution, bits) = (self.trace.clone(), self.execution.clone(), self.bits);
        self.bits &= !options::LOCALS;
        let result = trials(self);
        (self.trace, self.execution, self.bits) = (trace, execution, bits);
        result
    }

    /// The error region of the last answer.
    pub fn error(&self, header: &Header) -> Result<Option<RawError>, Damaged> {
        self.worker.channel().map_or(Ok(None), |c| decode::error(c, header))
    }

    /// The program's sites as they are known now.
    pub fn sites(&self) -> Sites {
        let channel = self.worker.channel();
        channel.and_then(|c| Sites::read(c, &c.header()).ok()).unwrap_or_default()
    }

    /// How the worker puts memory back between executions, as the header has it.
    /// How many other processes the program has talked to.
    pub fn peers(&self) -> u32 {
        self.worker.channel().map_or(0, |c| c.header().peers)
    }

    pub fn restore_method(&self) -> Option<u32> {
        self.worker.channel().map(|c| c.header().restore_method)
    }

    /// Libraries of the program of whose code nothing is seen.
    pub fn unseen_libraries(&self) -> Vec<String> {
        self.worker.unseen_libraries()
    }

    /// What the program wrote in the last execution.
    pub fn output(&self, header: &Header) -> Vec<OutputChunk> {
        let chunks = self.worker.channel().and_then(|c| decode::output(c, header).ok()).unwrap_or_default();
        chunks.into_iter().map(|(descriptor, bytes)| OutputChunk { descriptor, bytes }).collect()
    }

    pub fn quit(&mut self) {
        self.worker.quit();
    }
}

/// No execution yet.
fn nothing() -> Execution {
    Execution {
        steps: vec![],
        pending: vec![],
        end: End::Cut,
        dropped: false,
        footprints: Default::default(),
        memory: vec![],
    }
}

fn choices(execution: &Execution) -> Vec<Choice> {
    execution.steps.iter().map(|s| Choice { thread: s.thread, alternative: s.alternative }).collect()
}

/// How many steps of the last execution the plan begins with.
fn common_prefix(plan: &Plan, last: &Execution) -> usize {
    let same = |(c, s): &(&Choice, &symdpor_trace::Step)| c.thread == s.thread && c.alternative == s.alternative;
    plan.choices.iter().zip(&last.steps).take_while(same).count()
}
