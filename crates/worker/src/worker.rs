//! Runs plans in a worker process, one round trip each.
//!
//! The process is started with the first plan already in the channel and replaced when it has gone. Whatever happens
//! to it is an [`Answer`]; only failures of the machinery around it are errors. Nothing here looks at the trace: see
//! [`crate::decode`].

use crate::channel::{Channel, Word};
use crate::cpu;
use crate::error::WorkerError;
use crate::guess::Guess;
use crate::pace::Pace;
use crate::process::{Death, Launch, Process};
use crate::watchdog::{Action, Sight, Watchdog};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use symdpor_abi::channel::{
    self as layout, ErrorKind, Header, Outcome, command, options, pack_choice, sleeper, waiting,
};
use symdpor_trace::{Plan, ThreadId, ThreadSet};

/// Looks at the channel before the controller goes to sleep: some 100 us, at 40 ns for a pause. Where the two CPUs are one
/// core, spinning makes the worker twice as slow: a long execution is better slept through.
const SPINS: u32 = 2_500;
/// How often it gives the CPU away first, if there is only one.
const YIELDS: u32 = 4;
/// How often a sleeping controller looks after the worker.
const GLANCE: Duration = Duration::from_millis(20);
/// How often the worker may ask for the same execution again: its pool of threads doubles each time.
const RERUNS: u32 = 64;
/// How often a plan is tried when the worker dies of it.
const ATTEMPTS: u32 = 2;
/// Sequence numbers have the upper 24 bits of the command word.
const SEQUENCE_MASK: u32 = 0x00ff_ffff;

#[derive(Clone, Debug)]
pub struct Settings {
    pub launch: Launch,
    pub max_steps: u32,
    pub seed: u64,
    /// The range of numbers that the program asks for, if the option is set.
    pub nondet: (i64, i64),
    /// CPU time that one step may take.
    pub step_timeout: Duration,
}

/// One execution to run.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub plan: &'a Plan,
    /// Bits of [`options`].
    pub options: u32,
    /// See [`options::WATCH`].
    pub watch: u64,
}

/// How an execution ended, as far as the process is concerned. There is one at a time, nearly always the large one.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// The runtime says how.
    Done(Outcome, Header),
    /// The process ended without an answer, each time the plan was tried.
    Died(Death),
    /// The process made no step for too long and did not react either; it was killed.
    Stuck,
    /// The caller wanted to stop; the process was killed.
    Stopped,
}

pub struct Worker {
    settings: Settings,
    pace: Pace,
    live: Option<Live>,
    /// An execution that may have been begun before anybody wanted it.
    guess: Guess,
    /// Workers started so far.
    starts: u32,
}

struct Live {
    channel: Channel,
    process: Process,
    sequence: u32,
    /// Ends, or is not to be trusted, after its last answer; only its channel is still of use.
    is_spent: bool,
}

impl Worker {
    /// Starts nothing yet.
    pub fn new(settings: Settings) -> Worker {
        Worker { settings, pace: Pace::new(cpu::two_usable()), live: None, guess: Guess::default(), starts: 0 }
    }

    pub fn starts(&self) -> u32 {
        self.starts
    }

    /// The channel of the last execution, until the next one is run.
    pub fn channel(&self) -> Option<&Channel> {
        self.live.as_ref().map(|l| &l.channel)
    }

    /// The same, to be written to before the next execution; and the number of the worker that it belongs to.
    pub fn channel_mut(&mut self) -> Option<(&mut Channel, u32)> {
        let starts = self.starts;
        self.live.as_mut().map(|l| (&mut l.channel, starts))
    }

    /// Libraries that the program has loaded and that were not compiled with the pass, without those of the system.
    pub fn unseen_libraries(&self) -> Vec<String> {
        self.live.as_ref().map_or(vec![], |l| crate::libraries::unseen(l.process.id() as u32))
    }

    /// Runs one execution to its end. `stop` is asked now and then while it takes long.
    pub fn run(&mut self, request: Request<'_>, stop: &mut dyn FnMut() -> bool) -> Result<Answer, WorkerError> {
        if request.plan.choices.len() > layout::PLAN_CAPACITY {
            return Err(WorkerError::PlanTooLong(request.plan.choices.len()));
        }
        let mut request = request;
        let mut deaths = 0;
        for _ in 0..RERUNS {
            match self.run_once(request, stop)? {
                Answer::Done(Outcome::Again, _) => {}
                Answer::Died(_) if deaths + 1 < ATTEMPTS => {
                    deaths += 1;
                    // It has been shown already.
                    request.options &= !options::SHOW_OUTPUT;
                }
                answer => return Ok(answer),
            }
        }
        Err(WorkerError::TooManyReruns(RERUNS))
    }

    /// Begins an execution that will probably be asked for next. What is asked for decides: if that is another one, this one is
    /// waited for and forgotten. Not done where the two sides take turns on one CPU, or where guesses are often wrong: it would only cost.
    pub fn begin(&mut self, plan: &Plan, options: u32) {
        let fits = plan.choices.len() <= layout::PLAN_CAPACITY && self.pace.way() == waiting::SPINS;
        let Some(live) = self.live.as_mut().filter(|live| !live.is_spent && fits && !self.guess.is_begun()) else {
            return;
        };
        if self.guess.make(plan, options) {
            live.send(Request { plan, options, watch: 0 }, &self.settings, command::RUN, waiting::SPINS);
        }
    }

    /// Waits for what was begun, and forgets it.
    pub fn forget_begun(&mut self, stop: &mut dyn FnMut() -> bool) -> Result<(), WorkerError> {
        if self.guess.forget()
            && let Some(mut live) = self.live.take()
        {
            let answer = live.wait(self.pace.way(), self.settings.step_timeout, stop)?;
            self.put_back(live, &answer);
        }
        Ok(())
    }

    /// Keeps a worker that has answered. Dropping it kills it; the next execution starts another one.
    fn put_back(&mut self, live: Live, answer: &Answer) {
        if let Answer::Done(outcome, header) = answer {
            let is_spent = is_last(*outcome, header);
            self.live = Some(Live { is_spent, ..live });
        }
    }

    fn run_once(&mut self, request: Request<'_>, stop: &mut dyn FnMut() -> bool) -> Result<Answer, WorkerError> {
        let is_begun = self.guess.is_right(&request);
        if !is_begun {
            self.forget_begun(stop)?;
        }
        let mut running = self.live.take().filter(|live| !live.is_spent);
        if let Some(live) = running.as_mut().filter(|_| !is_begun) {
            live.send(request, &self.settings, command::RUN, self.pace.way());
        }
        let is_new = running.is_none();
        let mut live = running.map_or_else(|| self.start(request), Ok)?;
        let start = Instant::now();
        let answer = live.wait(self.pace.way(), self.settings.step_timeout, stop)?;
        // The program's start is no round trip, and would count for hundreds of them.
        if !is_new {
            self.pace.record(start.elapsed());
        }
        self.put_back(live, &answer);
        Ok(answer)
    }

    fn start(&mut self, request: Request<'_>) -> Result<Live, WorkerError> {
        let mut channel = Channel::new(self.pace.way()).map_err(WorkerError::Channel)?;
        write_request(&mut channel, request, &self.settings, self.pace.way());
        let sequence = 1;
        channel.word(Word::Command).store(command::RUN | sequence << 8, Ordering::SeqCst);
        let process = Process::start(&self.settings.launch, channel.descriptor()).map_err(WorkerError::Start)?;
        self.starts += 1;
        Ok(Live { channel, process, sequence, is_spent: false })
    }

    /// Lets the worker end by itself, if it does so at once.
    pub fn quit(&mut self) {
        // One that still runs would not listen.
        let Some(mut live) = self.live.take().filter(|_| !self.guess.forget()) else { return };
        let nothing = Request { plan: &Plan::default(), options: 0, watch: 0 };
        live.send(nothing, &self.settings, command::QUIT, waiting::NOTHING);
        live.process.wait(Duration::from_millis(500));
    }
}

impl Live {
    fn send(&mut self, request: Request<'_>, settings: &Settings, command: u32, way: u32) {
        write_request(&mut self.channel, request, settings, way);
        self.sequence = (self.sequence + 1) & SEQUENCE_MASK;
        self.channel.word(Word::Command).store(command | self.sequence << 8, Ordering::SeqCst);
        self.channel.wake_worker();
    }

    fn has_answered(&self) -> bool {
        self.channel.word(Word::Answer).load(Ordering::Acquire) == self.sequence
    }

    fn wait(&mut self, way: u32, timeout: Duration, stop: &mut dyn FnMut() -> bool) -> Result<Answer, WorkerError> {
        let (looks, between): (u32, fn()) = match way {
            waiting::SPINS => (SPINS, std::hint::spin_loop),
            waiting::YIELDS => (YIELDS, std::thread::yield_now),
            _ => (0, || ()),
        };
        for _ in 0..looks {
            if self.has_answered() {
                return Ok(self.answer());
            }
            between();
        }
        self.wait_asleep(timeout, stop)
    }

    fn wait_asleep(&mut self, timeout: Duration, stop: &mut dyn FnMut() -> bool) -> Result<Answer, WorkerError> {
        let start = Instant::now();
        // Made at the first glance only: most executions are over before.
        let mut watchdog: Option<Watchdog> = None;
        loop {
            let seen = self.channel.word(Word::Answer).load(Ordering::Acquire);
            if seen != self.sequence {
                self.channel.sleep_for_answer(seen, GLANCE);
            }
            if self.has_answered() {
                return Ok(self.answer());
            }
            if let Some(death) = self.process.death() {
                return self.died(death);
            }
            if self.is_overwritten(&self.channel.header()) {
                return Ok(Answer::Died(Death::Damaged));
            }
            if stop() {
                return Ok(Answer::Stopped);
            }
            let sight = self.sight(start);
            match watchdog.get_or_insert_with(|| Watchdog::new(timeout, sight)).look(sight) {
                Action::Wait => {}
                Action::Nudge => self.process.signal(libc::SIGPROF),
                Action::Kill if !self.is_attached() => return Err(WorkerError::NoStart(start.elapsed().as_secs())),
                Action::Kill => return Ok(Answer::Stuck),
            }
        }
    }

    fn sight(&self, start: Instant) -> Sight {
        Sight {
            heartbeat: self.channel.word(Word::Heartbeat).load(Ordering::Relaxed),
            elapsed: start.elapsed(),
            cpu: self.process.cpu_time(),
        }
    }

    /// Whether words have changed that the worker never writes: then it may never answer either.
    fn is_overwritten(&self, header: &Header) -> bool {
        header.magic != layout::MAGIC || header.command >> 8 != self.sequence
    }

    fn is_attached(&self) -> bool {
        self.channel.word(Word::Attached).load(Ordering::Relaxed) != 0
    }

    /// It may have answered just before its end.
    fn died(&self, death: Death) -> Result<Answer, WorkerError> {
        if self.has_answered() {
            return Ok(self.answer());
        }
        if !self.is_attached() {
            return Err(WorkerError::NeverAttached(death.to_string()));
        }
        Ok(Answer::Died(death))
    }

    fn answer(&self) -> Answer {
        let header = self.channel.header();
        match Outcome::from_u32(header.outcome) {
            Some(outcome) if outcome != Outcome::Running && !self.is_overwritten(&header) => {
                Answer::Done(outcome, header)
            }
            _ => Answer::Died(Death::Damaged),
        }
    }
}

/// After a crash, or when it was interrupted in the midst of a step, the runtime ends the process.
fn is_last(outcome: Outcome, header: &Header) -> bool {
    let crashed = outcome == Outcome::Error && header.error_kind == ErrorKind::Crash as u32;
    crashed || outcome == Outcome::StepLimit
}

pub(crate) fn write_request(channel: &mut Channel, request: Request<'_>, settings: &Settings, way: u32) {
    let Plan { choices, sleep, failed, in_vain, .. } = request.plan;
    let head_start = request.plan.kept.filter(|_| way == waiting::SPINS).map_or(0, |kept| kept.min(choices.len()) + 1);
    channel.write_words(layout::PLAN_OFFSET, choices.iter().map(|c| pack_choice(c.thread.0, c.alternative)));
    let bit = |set: &ThreadSet, t: ThreadId, bit: u32| if set.contains(t) { bit } else { 0 };
    let bits = |t: ThreadId| bit(in_vain, t, sleeper::IN_VAIN) | bit(failed, t, sleeper::FAILED);
    let word = |t: ThreadId| u32::from(t.0) | bits(t);
    let sleep_len = channel.write_words(layout::SLEEP_OFFSET, sleep.iter().map(word));
    channel.change_header(|header| {
        header.waiting = way;
        header.plan_len = choices.len() as u32;
        header.sleep_len = sleep_len as u32;
        header.options = request.options;
        header.head_start = head_start as u32;
        header.max_steps = settings.max_steps;
        header.seed = settings.seed;
        (header.nondet_low, header.nondet_high) = settings.nondet;
        header.watch = request.watch;
    });
}
