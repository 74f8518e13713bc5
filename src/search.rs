//! The search: plans from the explorer, executions from the session, until one of them has had enough.

use crate::describe::{Describe, Places, failure_kind};
use crate::failing;
use crate::forecast::{Forecast, Seen};
use crate::message::signal_name;
use crate::session::{Ended, Ran, Session, Unexpected};
use crate::simplify::Simplifier;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use symdpor_abi::channel::Outcome;
use symdpor_explore::{Checked, Explorer, Resume};
use symdpor_report::{Counts, SymmetryCounts};
use symdpor_trace::failure::{Failure, OutputChunk, Signature, Stack, StackRole};
use symdpor_trace::file::{ExecutionOptions, Program, TraceFile};
use symdpor_trace::saved::Reader;
use symdpor_trace::{Choice, End, FailureKind, Plan, Step};
use symdpor_worker::decode::RawError;
use symdpor_worker::{Death, WorkerError};

/// Why the search ended.
pub enum Stop {
    /// Nothing is left to explore.
    Complete,
    FirstError,
    /// A limit, named.
    Limit(String),
    Unsupported(Unsupported),
}

/// What cannot be controlled, and where it was done.
pub struct Unsupported {
    pub message: String,
    pub stack: Option<Stack>,
}

#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error("{0}")]
    NotInstrumented(symdpor_worker::PreflightError),
    #[error("the checkpoint is not of such a search")]
    Foreign,
    #[error(
        "the program does not do what it did when the checkpoint was written (step {0} of {1} differs): are its libraries, environment, input and files the same?"
    )]
    Changed(usize, usize),
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub max_executions: Option<u64>,
    pub time: Option<Duration>,
    pub keep_going: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstOutput {
    /// Let through as it is written.
    Live,
    /// Shown once it is known that the program is instrumented at all.
    Afterwards,
    /// Only kept for reports.
    Kept,
}

/// Hears of what happens during the search.
pub trait Listener {
    /// After each execution, and now and then during a long one.
    fn tick(&mut self, seen: &mut Seen<'_>);
    /// A failure that was not seen before. `first`: in the first execution, whose output has been shown.
    fn failure(&mut self, file: TraceFile, first: bool);
    /// What the program wrote in its first execution, if it was to be shown afterwards.
    fn output(&mut self, chunks: &[OutputChunk]);
    /// Whether the user wants to stop.
    fn interrupted(&self) -> bool;
    /// Between two executions: the search could be put aside here. `last`: it is.
    fn keep(&mut self, _last: bool, _position: &dyn Fn() -> Position) {}
}

/// Where a search is between two executions.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Position {
    /// The explorer's own, as it saves itself.
    explorer: Vec<u8>,
    counts: Counts,
    seen: BTreeSet<Signature>,
    seen_raw: BTreeSet<Vec<u64>>,
    /// Time spent so far.
    time: Duration,
    describing: Duration,
    forecast: Forecast,
}

/// Failures that have been seen.
pub struct Known {
    seen: BTreeSet<Signature>,
    seen_raw: BTreeSet<Vec<u64>>,
}

pub struct Search<'a> {
    pub session: &'a mut Session,
    pub program: &'a Program,
    pub options: ExecutionOptions,
    pub limits: Limits,
    /// Whether the program's file has instrumented code. If not, its libraries may.
    pub instrumented: bool,
    /// What becomes of the first execution's output.
    pub first_output: FirstOutput,
    /// Makes failing schedules simple before they are reported.
    pub simplifier: Option<Simplifier>,
    pub listener: &'a mut dyn Listener,
    pub counts: Counts,
    started: Instant,
    /// Time spent before that, by those that were interrupted.
    earlier: Duration,
    /// Of that, what went into describing suspension points.
    described: Duration,
    pub symmetry: SymmetryCounts,
    pub forecast: Forecast,
    seen: BTreeSet<Signature>,
    seen_raw: BTreeSet<Vec<u64>>,
    endless: bool,
}

impl<'a> Search<'a> {
    pub fn new(
        session: &'a mut Session,
        program: &'a Program,
        options: ExecutionOptions,
        limits: Limits,
        listener: &'a mut dyn Listener,
    ) -> Search<'a> {
        Search {
            session,
            program,
            options,
            limits,
            instrumented: false,
            first_output: FirstOutput::Kept,
            simplifier: None,
            listener,
            counts: Counts::default(),
            started: Instant::now(),
            earlier: Duration::ZERO,
            described: Duration::ZERO,
            symmetry: SymmetryCounts::default(),
            forecast: Forecast::default(),
            seen: BTreeSet::new(),
            seen_raw: BTreeSet::new(),
            endless: false,
        }
    }

    /// The failures that have been seen.
    pub fn known(&self) -> Known {
        Known { seen: self.seen.clone(), seen_raw: self.seen_raw.clone() }
    }

    /// Says nothing of failures that have been seen before.
    pub fn expect(&mut self, known: Known) {
        (self.seen, self.seen_raw) = (known.seen, known.seen_raw);
    }

    /// Time spent, with that of the interrupted searches before.
    pub fn time(&self) -> Duration {
        self.earlier + self.started.elapsed()
    }

    pub fn run(&mut self, explorer: impl Explorer) -> Result<Stop, SearchError> {
        let mut explorer = Checked::new(explorer);
        let plan = explorer.first();
        self.explore(explorer, plan, &|_| None)
    }

    /// The same, and can be put aside.
    pub fn run_kept(&mut self, explorer: impl Resume) -> Result<Stop, SearchError> {
        let mut explorer = Checked::new(explorer);
        let plan = explorer.first();
        self.explore(explorer, plan, &saved)
    }

    /// Goes on where a search with such an explorer was put aside.
    pub fn resume(&mut self, explorer: impl Resume, position: &Position) -> Result<Stop, SearchError> {
        let mut explorer = Checked::new(explorer);
        let mut reader = Reader::new(&position.explorer);
        explorer.load(&mut reader).filter(|()| reader.is_empty()).ok_or(SearchError::Foreign)?;
        self.counts = position.counts;
        self.expect(Known { seen: position.seen.clone(), seen_raw: position.seen_raw.clone() });
        (self.earlier, self.described) = (position.time, position.describing);
        self.forecast = position.forecast.clone();
        self.count_explored(&explorer);
        self.repeat(explorer.last_steps())?;
        if let Some(limit) = self.limit() {
            self.keep(true, &explorer, &saved);
            return Ok(Stop::Limit(limit));
        }
        let plan = explorer.plan().clone();
        self.explore(explorer, plan, &saved)
    }

    /// Runs the last execution again, without counting it: the next ones are compared with it, and whoever has changed
    /// the program or what it reads is told so now.
    fn repeat(&mut self, steps: &[Step]) -> Result<(), SearchError> {
        if steps.is_empty() {
            return Ok(());
        }
        let choices = steps.iter().map(|s| Choice { thread: s.thread, alternative: s.alternative }).collect();
        let plan = Plan { choices, ..Plan::default() };
        let listener = &*self.listener;
        let ran = self.session.run(&plan, false, &mut || listener.interrupted())?;
        let again = match ran {
            Ran::Ended(_) => &self.session.execution().steps[..],
            Ran::Stopped => return Ok(()),
            Ran::Diverged(_) | Ran::Died(_) | Ran::Stuck => &[],
        };
        let same = steps.iter().zip(again).take_while(|(then, now)| then == now).count();
        if same < steps.len() { Err(SearchError::Changed(same + 1, steps.len())) } else { Ok(()) }
    }

    fn keep<E: Explorer>(&mut self, last: bool, explorer: &Checked<E>, save: &impl Fn(&Checked<E>) -> Option<Vec<u8>>) {
        let (counts, seen, seen_raw) = (self.counts, &self.seen, &self.seen_raw);
        let (time, describing) = (self.time(), self.described + self.session.describing());
        let forecast = &self.forecast;
        self.listener.keep(last, &|| Position {
            explorer: save(explorer).unwrap_or_default(),
            counts,
            seen: seen.clone(),
            seen_raw: seen_raw.clone(),
            time,
            describing,
            forecast: forecast.clone(),
        });
    }

    fn explore<E: Explorer>(
        &mut self,
        mut explorer: Checked<E>,
        mut plan: Plan,
        save: &impl Fn(&Checked<E>) -> Option<Vec<u8>>,
    ) -> Result<Stop, SearchError> {
        loop {
            if let Some(stop) = self.run_one(&plan, explorer.depth())? {
                // In the midst of an execution, which will be run again from its beginning.
                if matches!(stop, Stop::Limit(_)) {
                    self.forecast.now(explorer.estimate());
                    self.keep(true, &explorer, save);
                }
                return Ok(stop);
            }
            let next = self.session.next_plan(&mut explorer);
            self.count_explored(&explorer);
            if explorer.is_endless() && !self.endless {
                self.endless = true;
                if let Some(stop) = self.run_endless()? {
                    return Ok(stop);
                }
            }
            let (time, depth) = (self.time(), explorer.depth());
            let (counts, symmetry, forecast) = (&self.counts, &self.symmetry, &mut self.forecast);
            let mut now = || {
                forecast.now(explorer.estimate());
                forecast.clone()
            };
            self.listener.tick(&mut Seen { counts, symmetry, depth, time, forecast: &mut now });
            match next {
                Some(next) => plan = next,
                None => return Ok(explorer.divergence().map_or(Stop::Complete, |d| self.went_another_way(d))),
            }
            let limit = self.limit();
            if limit.is_some() {
                self.forecast.now(explorer.estimate());
            }
            self.keep(limit.is_some(), &explorer, save);
            if let Some(limit) = limit {
                return Ok(Stop::Limit(limit));
            }
        }
    }

    /// The last execution is one of those that never come to an end.
    fn run_endless(&mut self) -> Result<Option<Stop>, SearchError> {
        let ran = self.session.run_endless(&mut || false)?;
        let Ran::Ended(ended) = ran else { return Ok(None) };
        let Some(kind) = failure_kind(ended.outcome, &ended.header) else { return Ok(None) };
        // It was cut off before, and is now run to its end.
        self.counts.executions += 1;
        if let Some(file) = self.failure_file(kind, &ended) {
            self.listener.failure(file, false);
        }
        Ok(Some(Stop::FirstError))
    }

    /// One execution. `depth`: where it branches off.
    fn run_one(&mut self, plan: &Plan, depth: usize) -> Result<Option<Stop>, SearchError> {
        let first = self.counts == Counts::default();
        let deadline = self.deadline();
        let time = self.time();
        let (listener, counts, symmetry) = (&mut *self.listener, &self.counts, &self.symmetry);
        let (forecast, running) = (&self.forecast, Instant::now());
        let mut stop = || {
            let time = time + running.elapsed();
            listener.tick(&mut Seen { counts, symmetry, depth, time, forecast: &mut || forecast.clone() });
            listener.interrupted() || deadline.is_some_and(|d| Instant::now() >= d)
        };
        let live = first && self.first_output == FirstOutput::Live;
        match self.session.run(plan, live, &mut stop)? {
            Ran::Ended(ended) => self.ended(&ended, first),
            Ran::Diverged(unexpected) => Ok(Some(Stop::Unsupported(self.diverged(&unexpected)))),
            Ran::Died(death) => Ok(Some(self.lost(plan, died(death), first))),
            Ran::Stuck => Ok(Some(self.lost(plan, stuck(), first))),
            Ran::Stopped => Ok(Some(Stop::Limit(self.limit().unwrap_or_else(|| "interrupted".to_owned())))),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.limits.time.and_then(|t| self.started.checked_add(t))
    }

    /// The limit that has been reached, if any.
    fn limit(&self) -> Option<String> {
        if self.listener.interrupted() {
            return Some("interrupted".to_owned());
        }
        if let Some(time) = self.limits.time.filter(|t| self.started.elapsed() >= *t) {
            return Some(format!("the time limit of {} s was reached", time.as_secs_f64()));
        }
        let most = self.limits.max_executions.filter(|n| self.counts.executions >= *n)?;
        Some(format!("the limit of {most} execution{} was reached", if most == 1 { "" } else { "s" }))
    }

    fn ended(&mut self, ended: &Ended, first: bool) -> Result<Option<Stop>, SearchError> {
        // What is refused before the program's own code has begun is told by its name, if that code is there.
        let refused_early = self.instrumented && ended.outcome == Outcome::Unsupported;
        if ended.header.modules_count == 0 && !refused_early {
            let path = self.program.arguments.first().unwrap_or(&self.program.path).into();
            return Err(SearchError::NotInstrumented(symdpor_worker::PreflightError::NotInstrumented(path)));
        }
        if first && self.first_output == FirstOutput::Afterwards {
            self.listener.output(&self.session.output(&ended.header));
        }
        self.count(ended);
        if ended.outcome == Outcome::Unsupported {
            return Ok(Some(Stop::Unsupported(self.unsupported(ended))));
        }
        let Some(kind) = failure_kind(ended.outcome, &ended.header) else { return Ok(None) };
        if let Some(file) = self.failure_file(kind, ended) {
            self.listener.failure(file, first);
        }
        Ok((!self.limits.keep_going).then_some(Stop::FirstError))
    }

    /// What the explorer made of the executions: some turn out to be redundant only when it looks at them.
    fn count_explored(&mut self, explorer: &impl Explorer) {
        let statistics = explorer.statistics();
        (self.counts.executions, self.counts.blocked) = (statistics.executions, statistics.blocked);
        self.counts.dropped = statistics.dropped;
        let symmetry = explorer.symmetry();
        if self.forecast.is_due(self.counts.executions + self.counts.blocked) {
            self.forecast.add(explorer.estimate());
        }
        self.symmetry = SymmetryCounts {
            hits: symmetry.skipped,
            told_apart: symmetry.told_apart,
            past_differs: symmetry.past_differs,
            questions: symmetry.asked,
            time: Duration::from_nanos(symmetry.nanos) + self.described + self.session.describing(),
        };
    }

    fn count(&mut self, ended: &Ended) {
        let execution = self.session.execution();
        match execution.end {
            End::Complete | End::Cut if execution.dropped => self.counts.dropped += 1,
            End::SleepBlocked | End::Repeated(_) | End::InVain => self.counts.blocked += 1,
            End::Complete | End::Cut => self.counts.executions += 1,
            End::Asked => return,
        }
        self.counts.transitions += execution.steps.len() as u64;
        self.counts.threads = self.counts.threads.max(u64::from(ended.header.thread_count));
    }

    /// The failing execution as a file, unless such a failure was seen before.
    fn failure_file(&mut self, kind: FailureKind, ended: &Ended) -> Option<TraceFile> {
        let error = self.session.error(&ended.header).ok().flatten().unwrap_or_default();
        if !self.seen_raw.insert(raw_key(kind, ended, &error)) {
            return None;
        }
        let file = failing::file(self.session, self.program, self.options, kind, ended, error);
        if !self.seen.insert(file.failure.signature()) {
            return None;
        }
        let simpler = match &mut self.simplifier {
            Some(simplifier) => simplifier.simplify(self.session, &file),
            None => None,
        };
        Some(simpler.unwrap_or(file))
    }

    /// An execution of which there is no trace: the search cannot go on from it.
    fn lost(&mut self, plan: &Plan, failure: Failure, first: bool) -> Stop {
        self.counts.executions += 1;
        self.listener.failure(self.file_without_steps(plan.choices.clone(), failure), first);
        Stop::FirstError
    }

    fn file_without_steps(&self, choices: Vec<Choice>, failure: Failure) -> TraceFile {
        TraceFile {
            program: self.program.clone(),
            options: self.options,
            choices,
            original: None,
            threads: vec![],
            locations: vec![],
            events: vec![],
            accesses: vec![],
            source: vec![],
            failure,
            output: vec![],
            output_cut: false,
        }
    }

    fn unsupported(&self, ended: &Ended) -> Unsupported {
        let error = self.session.error(&ended.header).ok().flatten().unwrap_or_default();
        let sites = self.session.sites();
        let describe = Describe::new(&sites, self.session.globals());
        let stack = error.stacks.first().map(|s| describe.stack(s));
        let message = if error.message.is_empty() { "something unknown".to_owned() } else { error.message };
        Unsupported { message, stack }
    }

    /// The explorer's own check also knows what threads were about to do.
    fn went_another_way(&self, divergence: &symdpor_explore::Divergence) -> Stop {
        let sites = self.session.sites();
        let describe = Describe::new(&sites, self.session.globals());
        let now =
            (divergence.position < self.session.trace().len()).then(|| self.session.trace().step(divergence.position));
        let (message, stack) = crate::divergence::explain_step(divergence.position, divergence.thread, now, &describe);
        Stop::Unsupported(Unsupported { message, stack })
    }

    fn diverged(&self, unexpected: &Unexpected) -> Unsupported {
        let sites = self.session.sites();
        let describe = Describe::new(&sites, self.session.globals());
        let (message, stack) = crate::divergence::explain(unexpected, &describe);
        Unsupported { message, stack }
    }
}

fn saved(explorer: &impl Resume) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    explorer.save(&mut bytes);
    Some(bytes)
}

/// Cheap to compare, so that the same failure in a hundred thousand executions costs little.
fn raw_key(kind: FailureKind, ended: &Ended, error: &RawError) -> Vec<u64> {
    let mut key = vec![kind as u64, u64::from(error.site), error.object.0, u64::from(ended.header.exit_status)];
    key.extend([u64::from(error.access_bits) << 32 | u64::from(error.mask), error.instruction]);
    if kind == FailureKind::DataRace {
        key.push(u64::from(error.thread) << 32 | u64::from(error.other_thread));
    }
    key.extend(error.stacks.iter().flat_map(|s| &s.frames).map(|f| u64::from(*f)));
    if kind == FailureKind::Deadlock {
        key.extend(ended.pending.iter().map(|p| u64::from(p.site) << 32 | u64::from(p.thread.0)));
    }
    key
}

fn died(death: Death) -> Failure {
    let message = match death {
        Death::Signaled(signal) => format!("the process was killed by {} and left no trace", signal_name(signal)),
        // The runtime's own word for a fault while it described another one.
        Death::Exited(70) => {
            "the program crashed, and memory that is needed to say more is gone: it took it away (munmap, \
                              mprotect) or wrote to it through a wild pointer"
                .to_owned()
        }
        Death::Exited(status) => format!("the process ended with status {status} behind the runtime's back"),
        Death::Damaged => "the program overwrote symdpor's memory (a write through a wild pointer?)".to_owned(),
    };
    bare(FailureKind::Crash, message)
}

fn stuck() -> Failure {
    bare(FailureKind::StepLimit, "one step ran very long and could not be interrupted".to_owned())
}

fn bare(kind: FailureKind, message: String) -> Failure {
    Failure { kind, message, thread: None, location: None, race: None, waits: vec![], stacks: vec![] }
}

/// Where in the source a step happened, for messages.
pub fn place_of(describe: &Describe<'_>, step: &symdpor_abi::channel::Step) -> (String, Option<Stack>) {
    let event = describe.event(step, &[step.site], &mut Places::default());
    let frames = describe.sites.frames(step.site);
    let stack = Stack { thread: event.thread, role: StackRole::Error, frames };
    let stack = Some(stack).filter(|s| !s.frames.is_empty());
    (symdpor_report::text::step(&event, stack.as_ref().and_then(|s| s.frames.first())), stack)
}
