//! What the partial order reductions have in common: find the races of each execution, and see to it that each is run
//! the other way round as well.
//!
//! Only the steps after the branching point are looked at. An operation's races are found when it is executed, and at
//! the end of the execution for those operations that were not:
//!
//! - A blocked operation (a lock that is held) is looked at as if it were executed, at sleep-blocked ends too.
//! - What ends the execution, be it the end of the process or an error, keeps all others from going on. So every thread
//!   that could have run in its place is to be explored from that state.
//! - A sleeping thread's operation has been explored elsewhere, with its races.
//!
//! A thread that comes round to where it was, having changed nothing, might as well have waited: with sleep sets such a turn is
//! looked at and not followed, as if the thread could not run (`in_vain`).
//!
//! With symmetry, a branch may be left out because its twin's has been explored (`symmetry`): a twin in the same node,
//! or one that sleeps there. In the second case the execution may have gone past the node already, since it was the worker that
//! chose the thread: then the rest of it is not looked at.

use crate::endless::{Inquiry, Verdict};
use crate::explorer::{Explorer, Guess, Statistics};
use crate::history::{History, Race};
use crate::symmetry::rule::Rule;
use crate::symmetry::timer::Clock;
use crate::symmetry::{Answer, Counters, Ends, Skip, Symmetry};
use crate::tree::{Node, Tree};
use symdpor_trace::{Choice, End, Execution, Op, OpKind, PendingOp, Plan, ThreadId, ThreadSet};

/// How an algorithm has a race reversed.
pub trait Strategy: Default {
    const SLEEP_SETS: bool;

    /// Adds to the node before the race's earlier event what it takes to run the later operation first.
    fn reverse(&mut self, node: &mut Node, race: &Race);
}

/// A search that reverses races.
pub struct Reduction<S> {
    pub(crate) strategy: S,
    pub(crate) tree: Tree,
    pub(crate) history: History,
    pub(crate) symmetry: Option<Symmetry>,
    pub(crate) races: Vec<Race>,
    pub(crate) mirrored: Vec<(usize, ThreadId)>,
    pub(crate) sleepers: Vec<(ThreadId, usize)>,
    pub(crate) statistics: Statistics,
    /// What is to be gone on with once a question has been answered.
    pub(crate) waiting: Option<Waiting>,
    /// Whether a state is one of a livelock, and where to go on when that is known.
    pub(crate) inquiry: Option<(Inquiry, Option<Plan>)>,
    pub(crate) suspects: Vec<Vec<Choice>>,
    pub(crate) endless: bool,
}

/// Where a question was asked.
pub(crate) enum Waiting {
    /// When another way of the last node's operation was to be taken, or another branch.
    Way,
    Branch,
    /// In the midst of an execution, at a new node.
    Opened(Box<Execution>),
    /// No question: whether those who can only come round in vain do so for ever, in the last node, or at the end of an execution.
    InVain,
    InVainAtEnd,
}

impl<S: Strategy> Default for Reduction<S> {
    fn default() -> Self {
        Reduction {
            strategy: S::default(),
            tree: Tree::new(S::SLEEP_SETS),
            history: History::default(),
            symmetry: None,
            races: Vec::new(),
            mirrored: Vec::new(),
            sleepers: Vec::new(),
            statistics: Statistics::default(),
            waiting: None,
            inquiry: None,
            suspects: Vec::new(),
            endless: false,
        }
    }
}

/// Whether a branch is left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leave {
    No,
    Out,
    Ask,
}

/// Where to go on in the deepest node.
enum Again {
    Way,
    Thread,
}

/// The position of the last event: what goes on within an atomic section belongs to the section's.
fn last_event(execution: &Execution) -> usize {
    execution.steps.iter().rposition(|s| !s.op.is_inside_section()).unwrap_or(0)
}

/// How far an execution was looked at.
enum Analysed {
    ToItsEnd,
    /// Up to this state, from which another thread is to be run.
    UpTo,
    /// Up to this state, from which nothing is to be run.
    Blocked,
    /// Not at all yet: a question has to be answered first.
    Asking(Plan),
}

impl<S: Strategy> Reduction<S> {
    pub fn new() -> Self {
        Reduction::default()
    }

    /// Measures how long symmetry takes.
    pub fn timed(mut self, clock: Clock) -> Self {
        if let Some(symmetry) = &mut self.symmetry {
            symmetry.timer.set(clock);
        }
        self
    }

    /// Leaves out branches by symmetry.
    pub fn with_symmetry(rule: Rule) -> Self {
        Reduction { symmetry: Some(Symmetry::new(rule)), ..Reduction::default() }
    }

    fn analyse(&mut self, execution: &Execution) -> Analysed {
        match self.tree.first_new(&execution.steps) {
            Some(first_new) => self.analyse_from(first_new, false, execution),
            None => Analysed::ToItsEnd,
        }
    }

    /// `again`: the first step's node is there already, and what was asked there has been answered.
    fn analyse_from(&mut self, first: usize, again: bool, execution: &Execution) -> Analysed {
        for (position, step) in execution.steps.iter().enumerate().skip(first) {
            let answered = again && position == first;
            let opened = position == self.tree.depth() || answered;
            let fruitful = !opened && self.tree.is_fruitful(position);
            if !answered {
                self.tree.push(position, step);
            }
            if execution.end == End::InVain && position + 1 == execution.steps.len() {
                self.tree.in_vain(position, fruitful);
            }
            if opened && let Some(symmetry) = &mut self.symmetry {
                symmetry.open(position);
                match self.may_skip(position, step.thread, true) {
                    Leave::No => {}
                    Leave::Out => return self.elsewhere(position, execution),
                    Leave::Ask => {
                        self.waiting = Some(Waiting::Opened(Box::new(execution.clone())));
                        return Analysed::Asking(self.tree.question(position, step.thread));
                    }
                }
            }
            if let Some(symmetry) = &mut self.symmetry {
                let started = symmetry.timer.start();
                symmetry.push(position, execution);
                symmetry.timer.stop(started);
            }
            let enabled = |at: usize, t| self.tree.was_enabled(at, t);
            self.history.push(step.thread, &step.op, &enabled, &mut self.races);
            self.reverse_races();
        }
        for pending in &execution.pending {
            self.analyse_pending(pending, execution);
            self.reverse_races();
        }
        if execution.end == End::Cut {
            self.tree.cut(last_event(execution));
        }
        self.tree.ended(execution.end);
        if execution.end == End::SleepBlocked {
            self.suspect(&execution.steps);
        }
        self.end(execution, execution.steps.len());
        Analysed::ToItsEnd
    }

    fn analyse_pending(&mut self, pending: &PendingOp, execution: &Execution) {
        if matches!(execution.end, End::SleepBlocked | End::InVain) && pending.enabled {
            return;
        }
        let ends = |step: &&symdpor_trace::Step| execution.end == End::Cut || step.op.is_global();
        let last = last_event(execution);
        match execution.steps.get(last).filter(ends) {
            // The thread of the last event itself may have come to an operation that is blocked, where an end that is an error is a
            // livelock: that one is looked at like any other.
            Some(step) if step.thread != pending.thread && step.enabled.contains(pending.thread) => {
                self.races.push(Race {
                    earlier: last,
                    thread: pending.thread,
                    initials: ThreadSet::from_iter([pending.thread]),
                    first: pending.thread,
                })
            }
            _ => {
                let enabled = |at: usize, t| self.tree.was_enabled(at, t);
                self.history.races(pending.thread, &pending.op, &enabled, &mut self.races);
            }
        }
    }

    /// The thread that the worker chose in a new node is the twin of one that sleeps there: looks for another.
    fn elsewhere(&mut self, position: usize, execution: &Execution) -> Analysed {
        self.tree.begin_anew(position);
        while let Some(thread) = self.tree.awake(position) {
            self.tree.take(position, thread);
            if self.may_skip(position, thread, true) != Leave::Out {
                return Analysed::UpTo;
            }
        }
        for (thread, op) in self.pending_at(position, execution) {
            let enabled = |at: usize, t| self.tree.was_enabled(at, t);
            self.history.races(thread, &op, &enabled, &mut self.races);
            self.reverse_races();
        }
        self.end(execution, position);
        if self.tree.is_all_in_vain(position) {
            self.waiting = Some(Waiting::InVain);
            return Analysed::Asking(self.tree.awakened(position));
        }
        self.suspect(&execution.steps[..position]);
        if let Some(symmetry) = &mut self.symmetry {
            symmetry.finish_blocked(position);
        }
        self.tree.pop();
        Analysed::Blocked
    }

    /// The blocked operations in the state before the step at `position`.
    fn pending_at(&self, position: usize, execution: &Execution) -> Vec<(ThreadId, Op)> {
        let (rest, at_end) = (&execution.steps[position..], position == execution.steps.len());
        let mut seen = ThreadSet::new();
        let mut pending: Vec<(ThreadId, Op)> = Vec::new();
        let later = rest.iter().map(|s| (s.thread, s.op));
        for (thread, op) in later.chain(execution.pending.iter().map(|p| (p.thread, p.op))) {
            let enabled = rest.first().is_some_and(|s| s.enabled.contains(thread));
            if seen.insert(thread) && !enabled && self.exists(thread) && !self.history.is_waiting(thread) {
                pending.push((thread, op));
            }
        }
        if at_end {
            let redundant = matches!(execution.end, End::SleepBlocked | End::InVain);
            let skip = |p: &&PendingOp| !redundant || !p.enabled;
            return execution.pending.iter().filter(skip).map(|p| (p.thread, p.op)).collect();
        }
        pending
    }

    fn exists(&self, thread: ThreadId) -> bool {
        thread == ThreadId::MAIN || self.history.exists(thread)
    }

    /// Tells symmetry that an execution is looked at up to the state before `position`.
    fn end(&mut self, execution: &Execution, position: usize) {
        if self.symmetry.is_none() {
            return;
        }
        let pending = self.pending_at(position, execution);
        let alive: ThreadSet = execution.steps[position..]
            .iter()
            .map(|s| s.thread)
            .chain(execution.pending.iter().map(|p| p.thread))
            .collect();
        let ended = (0..self.history.threads())
            .map(|t| ThreadId(t as u16))
            .filter(|t| self.exists(*t) && !alive.contains(*t))
            .collect();
        if let Some(symmetry) = &mut self.symmetry {
            let started = symmetry.timer.start();
            let in_vain =
                position.checked_sub(1).filter(|_| execution.end == End::InVain && position == execution.steps.len());
            let goes_on = position < execution.steps.len() || execution.end == End::SleepBlocked;
            let ends = if goes_on { Ends::Elsewhere } else { in_vain.map_or(Ends::Here, Ends::InVain) };
            symmetry.end(&pending, &ended, ends, &mut self.history);
            if let (End::Repeated(since), true) = (execution.end, position == execution.steps.len()) {
                symmetry.comes_back_to(since);
            }
            symmetry.timer.stop(started);
        }
    }

    fn reverse_races(&mut self) {
        for race in self.races.drain(..) {
            self.strategy.reverse(self.tree.node_mut(race.earlier), &race);
        }
    }

    /// Leaves out the branch of a thread if it may be.
    fn may_skip(&mut self, position: usize, thread: ThreadId, opened: bool) -> Leave {
        let Some(symmetry) = &mut self.symmetry else { return Leave::No };
        self.sleepers.clear();
        self.tree.inherited(position, &mut self.sleepers);
        let started = symmetry.timer.start();
        let answer = symmetry.may_skip(position, thread, &self.sleepers, &mut self.history);
        symmetry.timer.stop(started);
        let skip = match answer {
            Answer::Skip(skip) => skip,
            Answer::No => return Leave::No,
            Answer::Ask => return Leave::Ask,
        };
        if opened {
            symmetry.count_cut();
        }
        self.skip(position, thread, &skip);
        Leave::Out
    }

    fn skip(&mut self, position: usize, thread: ThreadId, skip: &Skip) {
        let enabled = |at: usize, t| self.tree.was_enabled(at, t);
        self.history.races(thread, &skip.op, &enabled, &mut self.races);
        self.reverse_races();
        if let Some(symmetry) = &mut self.symmetry {
            let started = symmetry.timer.start();
            let settled = |at: usize, t| self.tree.is_required(at, t);
            symmetry.mirrored_races(position, skip, &mut self.history, &settled, &mut self.mirrored);
            symmetry.add_skipped(position, skip, &mut self.history);
            symmetry.timer.stop(started);
        }
        for (earlier, thread) in self.mirrored.drain(..) {
            self.tree.require(earlier, thread);
        }
        self.tree.leave_out(position, (thread, skip.exchange.one), skip.op, skip.since != position);
    }

    /// Takes the next branch: another way of the deepest node's operation, then another of its threads, then the node
    /// above. `None` when nothing is left.
    ///
    /// `again`: the deepest node has been looked at, and what was asked there has been answered.
    fn branch(&mut self, again: Option<Again>) -> Option<Plan> {
        let mut again = again;
        while let Some(position) = self.tree.depth().checked_sub(1) {
            let plan = match again.take() {
                Some(Again::Way) => self.next_way_or_thread(position, false),
                Some(Again::Thread) => self.next_thread(position),
                None => self.next_choice(position),
            };
            if plan.is_some() {
                return plan;
            }
            if let Some(symmetry) = &mut self.symmetry {
                symmetry.finish_node(position, self.tree.is_fruitful(position));
            }
            self.tree.pop();
        }
        None
    }

    /// Goes on in the deepest node, of whose threads one has been dealt with.
    pub(crate) fn branch_on(&mut self) -> Option<Plan> {
        self.branch(Some(Again::Thread))
    }

    /// Goes on after an execution.
    pub(crate) fn branch_from_end(&mut self) -> Option<Plan> {
        self.branch(None)
    }

    fn next_choice(&mut self, position: usize) -> Option<Plan> {
        let (thread, op) = self.tree.current(position);
        if let (Some(symmetry), Some(op)) = (&mut self.symmetry, op) {
            self.history.truncate(position + 1);
            let started = symmetry.timer.start();
            symmetry.truncate(position + 1);
            symmetry.absorb(position, thread, &op, &self.history);
            symmetry.truncate(position);
            symmetry.timer.stop(started);
        }
        self.history.truncate(position);
        self.next_way_or_thread(position, true)
    }

    fn next_way_or_thread(&mut self, position: usize, advance: bool) -> Option<Plan> {
        let (thread, op) = self.tree.current(position);
        let way = self.next_way(position, advance, thread, op);
        if way.is_some() {
            return way;
        }
        self.tree.finish_branch(position);
        if let (Some(symmetry), Some(op)) = (&mut self.symmetry, op) {
            symmetry.finish_branch(position, thread, op);
        }
        self.next_thread(position)
    }

    /// Another way for the operation of the last node's current branch. `advance`: not the one that it is at.
    fn next_way(&mut self, position: usize, advance: bool, thread: ThreadId, op: Option<Op>) -> Option<Plan> {
        let mut advance = advance;
        loop {
            if std::mem::replace(&mut advance, true) && !self.tree.next_alternative(position) {
                return None;
            }
            match op.map_or(Leave::No, |op| self.may_skip_way(position, thread, op)) {
                Leave::Out => {}
                Leave::No => return Some(self.tree.plan()),
                Leave::Ask => {
                    self.waiting = Some(Waiting::Way);
                    return Some(self.tree.question(position, thread));
                }
            }
        }
    }

    /// Leaves out the way that the last node's operation is at if it may be.
    fn may_skip_way(&mut self, position: usize, thread: ThreadId, op: Op) -> Leave {
        let Some(symmetry) = &mut self.symmetry else { return Leave::No };
        let way = self.tree.alternative(position) as usize;
        let waiters = self.history.waiters(op.object);
        // Threads that wait for other bits of a futex, or were moved to it from another, are not among the ways.
        let one_way_each = match op.kind {
            OpKind::CondSignal => true,
            OpKind::FutexWake => {
                !self.history.has_moved() && waiters.len() == self.tree.alternatives(position) as usize
            }
            _ => false,
        };
        let Some(&woken) = waiters.get(way).filter(|_| one_way_each) else {
            return Leave::No;
        };
        let started = symmetry.timer.start();
        let answer = symmetry.may_skip_way(position, woken, (thread, op), &mut self.history);
        if let Answer::Skip(skip) = &answer {
            let settled = |at: usize, t| self.tree.is_required(at, t);
            symmetry.mirrored_races(position, skip, &mut self.history, &settled, &mut self.mirrored);
            symmetry.add_skipped_way(position, skip, &mut self.history);
            for (earlier, thread) in self.mirrored.drain(..) {
                self.tree.require(earlier, thread);
            }
        }
        symmetry.timer.stop(started);
        match answer {
            Answer::Skip(_) => Leave::Out,
            Answer::No => Leave::No,
            Answer::Ask => Leave::Ask,
        }
    }

    fn next_thread(&mut self, position: usize) -> Option<Plan> {
        while let Some(thread) = self.tree.candidate(position).or_else(|| self.instead_of_in_vain(position)) {
            match self.may_skip(position, thread, false) {
                Leave::Out => {}
                Leave::No => {
                    self.tree.take(position, thread);
                    return Some(self.tree.plan());
                }
                Leave::Ask => {
                    self.waiting = Some(Waiting::Branch);
                    return Some(self.tree.question(position, thread));
                }
            }
        }
        self.nothing_but_in_vain(position)
    }

    /// What the next plan will probably be: twins that were explored are left out. Whether they may be takes longer to say; without symmetry it
    /// takes no time.
    fn foresee(&self) -> Option<Plan> {
        let symmetry = self.symmetry.as_ref()?;
        self.tree.foreseen(&|position, one, other| symmetry.seem_alike(one, other, position))
    }

    fn analysed(&mut self, analysed: Analysed, execution: &Execution) -> Option<Plan> {
        if !matches!(analysed, Analysed::Asking(_)) {
            self.tree.count();
        }
        match analysed {
            Analysed::ToItsEnd => {
                self.statistics.count(execution);
                self.ends_in_vain(execution).or_else(|| self.branch(None))
            }
            Analysed::UpTo => {
                self.statistics.count_cut(execution);
                Some(self.tree.plan())
            }
            Analysed::Blocked => {
                self.statistics.count_cut(execution);
                self.branch(None)
            }
            Analysed::Asking(plan) => Some(plan),
        }
    }
}

impl<S: Strategy> Reduction<S> {
    /// Where only sleeping threads are left, below a state that they came back to, they may do so for ever.
    fn suspect(&mut self, steps: &[symdpor_trace::Step]) {
        if self.tree.has_repeated() && !self.endless {
            let way = steps.iter().map(|s| Choice { thread: s.thread, alternative: s.alternative });
            self.suspects.push(way.collect());
        }
    }

    pub(crate) fn suspect_at(&mut self, position: usize) {
        if self.tree.has_repeated() && !self.endless {
            self.suspects.push(self.tree.way_to(position));
        }
    }

    /// Goes on with the search, unless there is a state that may be one of a livelock.
    fn inquire(&mut self, plan: Option<Plan>) -> Option<Plan> {
        self.suspects.extend(self.tree.take_endless());
        let Some(way) = self.suspects.pop().filter(|_| !self.endless) else { return plan };
        let inquiry = Inquiry::new(way);
        let first = inquiry.first();
        self.inquiry = Some((inquiry, plan));
        Some(first)
    }

    fn search(&mut self, last: &Execution, guess: Guess<'_>) -> Option<Plan> {
        if let Some(symmetry) = &mut self.symmetry {
            symmetry.timer.next_execution();
            let started = symmetry.timer.start();
            symmetry.sweep(self.tree.depth());
            symmetry.timer.stop(started);
        }
        let Some(waiting) = self.waiting.take() else {
            let analysed = self.analyse(last);
            if matches!(analysed, Analysed::ToItsEnd | Analysed::Blocked) {
                self.foresee().iter().for_each(guess);
            }
            return self.analysed(analysed, last);
        };
        let position = self.tree.depth().saturating_sub(1);
        if let (Some(symmetry), End::Asked) = (&mut self.symmetry, last.end) {
            symmetry.remember(&last.memory, position);
        }
        match waiting {
            Waiting::InVain | Waiting::InVainAtEnd => self.tried_in_vain(&waiting, last),
            Waiting::Way => self.branch(Some(Again::Way)),
            Waiting::Branch => self.branch(Some(Again::Thread)),
            Waiting::Opened(execution) => {
                let analysed = self.analyse_from(position, true, &execution);
                self.analysed(analysed, &execution)
            }
        }
    }
}

impl<S: Strategy> Explorer for Reduction<S> {
    fn first(&mut self) -> Plan {
        Plan { stops_in_vain: S::SLEEP_SETS, kept: Some(0), ..Plan::default() }
    }

    fn next(&mut self, last: &Execution) -> Option<Plan> {
        self.next_guessed(last, &mut |_| ())
    }

    fn next_guessed(&mut self, last: &Execution, guess: Guess<'_>) -> Option<Plan> {
        let Some((mut inquiry, plan)) = self.inquiry.take() else {
            let plan = self.search(last, guess);
            return self.inquire(plan);
        };
        match inquiry.next(last) {
            Verdict::Open(next) => {
                self.inquiry = Some((inquiry, plan));
                return Some(next);
            }
            Verdict::Endless => self.endless = true,
            Verdict::Ends => {}
        }
        self.inquire(plan)
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn symmetry(&self) -> Counters {
        self.symmetry.as_ref().map_or(Counters::default(), Symmetry::counters)
    }

    fn is_endless(&self) -> bool {
        self.endless
    }

    fn estimate(&self) -> Option<f64> {
        Some(self.tree.estimate())
    }

    fn depth(&self) -> usize {
        self.tree.depth()
    }
}
