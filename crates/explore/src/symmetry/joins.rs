//! Which threads joins tell apart.
//!
//! Consecutive joins of one thread are a *run*: in which order it joins its threads does not matter, which ones it joins does.

use crate::history::History;
use crate::symmetry::bundle::Bundle;
use crate::symmetry::past::Past;
use crate::symmetry::summary::Summary;
use crate::symmetry::tables::Tables;
use symdpor_trace::{Execution, Op, OpKind, PlainAccess, ThreadId, ThreadSet, saved};

/// What the rest of a run of joins came to in an execution that was not cut off before its end. Which threads it joins
/// is decided by the joiner's local state, and by what it reads in between.
pub struct Run {
    targets: ThreadSet,
    /// Its plain accesses between the joins, and whether results were used.
    between: Vec<PlainAccess>,
    results: bool,
}

/// A join of the current execution.
#[derive(Clone, Copy)]
pub struct Join {
    pub position: u32,
    pub joiner: ThreadId,
    pub target: ThreadId,
    /// Whether the joiner's next operation is something else.
    pub closes: bool,
    pub result: Option<u64>,
}

/// Whether an operation is a plain access that was made visible.
fn is_plain(kind: OpKind) -> bool {
    matches!(kind, OpKind::PlainLoad | OpKind::PlainStore)
}

/// Whether the thread's operation after the step at `position` is no join. Plain accesses do not count.
pub fn closes(position: usize, execution: &Execution) -> bool {
    let thread = execution.steps[position].thread;
    let mine = execution.steps[position + 1..].iter().filter(|s| s.thread == thread).map(|s| s.op.kind);
    let pending = execution.pending.iter().filter(|p| p.thread == thread).map(|p| p.op.kind);
    mine.chain(pending).find(|k| !is_plain(*k)) != Some(OpKind::ThreadJoin)
}

impl<const W: usize> Past<W> {
    /// Notes in `after` which threads have been joined by an event that `known` tells of.
    pub fn joined(&self, known: impl Fn(ThreadId, u32) -> bool, after: &mut [u32; W]) {
        for join in self.joins.iter().filter(|j| known(j.joiner, j.position)) {
            if let Some(mine) = after.get_mut(join.target.index()) {
                *mine = (*mine).max(join.position + 1);
            }
        }
    }

    /// The joins of a thread's run that its last join belongs to, the last first, up to and including `position`.
    fn run(&self, joiner: ThreadId, position: u32) -> impl Iterator<Item = &Join> {
        let own = self.joins.iter().rev().filter(move |j| j.joiner == joiner && j.position <= position);
        own.enumerate().take_while(|(i, j)| *i == 0 || !j.closes).map(|(_, j)| j)
    }

    /// What the join at `position`, if it is one, tells apart.
    pub fn joins(
        &mut self,
        position: usize,
        thread: ThreadId,
        results: bool,
        (summary, tables): (&mut Summary, &mut Tables<W>),
        history: &History,
    ) {
        let run: Vec<Join> = self.run(thread, position as u32).copied().collect();
        let Some((last, before)) = run.split_first() else { return };
        if last.closes {
            let targets: ThreadSet = run.iter().map(|j| j.target).collect();
            summary.add_group(&targets);
            self.remember_run(thread, &run, history);
        } else {
            self.accesses_by(thread, position).for_each(|a| summary.add_between(&a, tables));
        }
        for join in before.iter().filter(|j| results && j.result != last.result) {
            summary.add_apart(join.target, last.target);
        }
    }

    /// Adds a visible plain access to what lies between two joins, if it does.
    pub fn plain_in_run(
        &self,
        position: usize,
        thread: ThreadId,
        op: &Op,
        (summary, tables): (&mut Summary, &mut Tables<W>),
    ) {
        if !is_plain(op.kind) {
            return;
        }
        let last = self.joins.iter().rev().find(|j| j.joiner == thread && (j.position as usize) < position);
        if last.is_some_and(|j| !j.closes) {
            let write = op.kind == OpKind::PlainStore;
            let access = PlainAccess { thread, object: op.object, granules: 1, mask: op.mask, write };
            summary.add_between(&access, tables);
        }
    }

    /// Whether a run has visible plain accesses between its joins.
    fn has_plain(run: &[Join], joiner: ThreadId, history: &History) -> bool {
        let (Some(last), Some(first)) = (run.first(), run.last()) else { return false };
        let inside = |p: &&u32| first.position < **p && **p < last.position;
        history.events_of(joiner).iter().filter(inside).count() + 2 > run.len().max(2)
    }

    /// Notes how a run went, for executions in which it does not come to its end. `run`: the last join first.
    fn remember_run(&mut self, joiner: ThreadId, run: &[Join], history: &History) {
        let plain = Past::<W>::has_plain(run, joiner, history);
        let (mut targets, mut between, mut results) = (ThreadSet::new(), Vec::new(), plain);
        for (i, join) in run.iter().enumerate() {
            targets.insert(join.target);
            results |= join.result.is_some();
            if i > 0 {
                between.extend(self.accesses_by(joiner, join.position as usize));
            }
            let Some(local) = self.locals.before(joiner, join.position) else { continue };
            let known = self.runs.entry(local).or_insert_with(|| Run {
                targets: targets.clone(),
                between: Vec::new(),
                results: false,
            });
            known.targets.retain(|t| targets.contains(t));
            let new: Vec<PlainAccess> = between.iter().filter(|a| !known.between.contains(a)).copied().collect();
            known.between.extend(new);
            known.results |= results;
        }
    }

    /// Whether the thread has made visible plain accesses since the last join of a run.
    fn pending_plain(&self, joiner: ThreadId, run: &[Join], history: &History) -> bool {
        run.first().is_some_and(|j| history.events_of(joiner).last().is_some_and(|&e| e > j.position))
    }

    /// The thread is blocked joining `target` where nothing goes on: threads that have ended are told apart from that one,
    /// except those joined just before it, if nothing but reading has been done meanwhile.
    ///
    /// Those that the run would have joined after it are not told apart either, if that is known.
    ///
    /// What the run has written by then is a part of the state, if this `is_end`. Elsewhere the run goes on.
    pub fn blocked_join(
        &self,
        (thread, target): (ThreadId, ThreadId),
        (ended, is_end): (&ThreadSet, bool),
        (summary, tables): (&mut Summary, &mut Tables<W>),
        history: &History,
    ) {
        let open = |j: &&Join| !j.closes;
        let last = self.joins.iter().rev().find(|j| j.joiner == thread).filter(open).map(|j| j.position);
        let run: Vec<&Join> = last.map_or(Vec::new(), |p| self.run(thread, p).collect());
        let inside = run.iter().flat_map(|j| self.accesses_by(thread, j.position as usize));
        let before: Vec<PlainAccess> = inside.collect();
        let owned: Vec<Join> = run.iter().map(|j| **j).collect();
        let plain = Past::<W>::has_plain(&owned, thread, history) || self.pending_plain(thread, &owned, history);
        let counts = |accesses: &[PlainAccess]| is_end && accesses.iter().any(|a| a.write);
        let joined = !plain && !run.iter().any(|j| j.result.is_some()) && !counts(&before);
        let known = self.locals.before(thread, u32::MAX).and_then(|l| self.runs.get(&l));
        let known = known.filter(|r| !r.results && !counts(&r.between));
        for other in ended.iter() {
            if joined && run.iter().any(|j| j.target == other) {
                before.iter().for_each(|a| summary.add_between(a, tables));
            } else if let Some(known) = known.filter(|r| r.targets.contains(other)) {
                known.between.iter().for_each(|a| summary.add_between(a, tables));
            } else {
                summary.add_apart(target, other);
            }
        }
        // Whoever was joined in this run has ended, and others have not: as long as the run does not join those too, that tells.
        let exists = |t: &ThreadId| *t != thread && history.exists(*t) && !ended.contains(*t);
        for other in (0..history.threads()).map(|t| ThreadId(t as u16)).filter(exists) {
            let follows = other == target || known.is_some_and(|r| r.targets.contains(other));
            if !joined || !follows {
                run.iter().for_each(|j| summary.add_apart(j.target, other));
            }
        }
    }

    /// Whether plain accesses between two joins of a run meet others, of the branch or from before it.
    pub fn between_matters(&mut self, summary: &Summary, tables: &Tables<W>) -> bool {
        if !summary.has_between() {
            return false;
        }
        self.catch_up_with_accesses();
        let conflicts =
            |a: &PlainAccess, b: &PlainAccess| a.thread != b.thread && (a.write || b.write) && a.overlaps(b);
        let suspects: Vec<PlainAccess> =
            summary.between(tables).filter(|between| summary.may_conflict(between)).collect();
        let meets = |(by, bundle, _): (ThreadId, &Bundle, _)| {
            suspects.iter().any(|between| between.thread != by && bundle.conflicts(between))
        };
        if !suspects.is_empty() && summary.accesses(tables).any(meets) {
            return true;
        }
        summary.between(tables).any(|between| {
            let known = self.least.known_by(between.thread);
            self.logs().filter(|(of, _)| *of != between.thread && self.may_conflict(*of, &between)).any(|(of, log)| {
                let mut unknown = log.iter().rev().take_while(|l| l.epoch > self.least.component(known, of));
                unknown.any(|l| conflicts(&between, &l.access))
            })
        })
    }
}

saved!(Run { targets, between, results });
saved!(Join { position, joiner, target, closes, result });
