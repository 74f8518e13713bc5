//! Makes a failing schedule simple: fewer switches between threads, then fewer steps, and still the same error at the same
//! place.
//!
//! The schedule is taken as blocks of steps of one thread. Variants are run until none of them is simpler: the beginning of
//! the schedule with the rest left to the default rule, which switches only where it must; two blocks of one thread brought
//! together; a thread stopped earlier. What is found need not be the simplest there is. The variants and their order depend
//! on nothing but the schedule; only a program that is very slow meets the limit of time.

use crate::describe::failure_kind;
use crate::failing;
use crate::session::{Ran, Session};
use std::time::{Duration, Instant};
use symdpor_trace::{Choice, FailureKind, Plan, TraceFile};

/// Executions that one failure is worth.
const TRIALS: u32 = 400;
/// Time for one failure, and for all of a run.
const TIME: Duration = Duration::from_secs(2);
const TIME_IN_ALL: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct Simplifier {
    spent: Duration,
}

impl Simplifier {
    /// A simpler execution with the same failure, if one is found. The session's last execution stays what it is.
    pub fn simplify(&mut self, session: &mut Session, found: &TraceFile) -> Option<TraceFile> {
        // A step without end takes its time in each trial.
        if found.failure.kind == FailureKind::StepLimit || found.choices.len() < 2 {
            return None;
        }
        let started = Instant::now();
        let time = TIME.min(TIME_IN_ALL.saturating_sub(self.spent));
        let simpler = session.aside(|session| {
            let mut trials = Trials { session, found, left: TRIALS, deadline: started + time };
            trials.search()
        });
        self.spent += started.elapsed();
        simpler.map(|file| TraceFile { original: Some(found.choices.clone()), ..file })
    }
}

struct Trials<'a> {
    session: &'a mut Session,
    found: &'a TraceFile,
    left: u32,
    deadline: Instant,
}

impl Trials<'_> {
    fn search(&mut self) -> Option<TraceFile> {
        let mut best: Option<TraceFile> = None;
        loop {
            let choices = best.as_ref().map_or(&self.found.choices, |b| &b.choices).clone();
            let better = variants(&choices).find_map(|variant| self.try_out(&variant, weight(&choices)));
            match better {
                Some(file) => best = Some(file),
                None => return best,
            }
        }
    }

    /// The execution that a plan leads to, if it is lighter and fails in the same way.
    fn try_out(&mut self, choices: &[Choice], limit: (usize, usize)) -> Option<TraceFile> {
        if self.left == 0 || Instant::now() >= self.deadline {
            return None;
        }
        self.left -= 1;
        let (kind, deadline) = (self.found.failure.kind, self.deadline);
        let plan = Plan { choices: choices.to_vec(), ..Plan::default() };
        let ran = self.session.run(&plan, false, &mut || Instant::now() >= deadline);
        let Ok(Ran::Ended(ended)) = ran else { return None };
        if failure_kind(ended.outcome, &ended.header) != Some(kind) || weight(&self.session.choices()) >= limit {
            return None;
        }
        let error = self.session.error(&ended.header).ok().flatten().unwrap_or_default();
        let file = failing::file(self.session, &self.found.program, self.found.options, kind, &ended, error);
        self.is_same(&file).then_some(file)
    }

    fn is_same(&self, file: &TraceFile) -> bool {
        let object = |f: &TraceFile| f.failure.race.as_ref().map(|r| r.object.clone());
        file.failure.signature() == self.found.failure.signature() && object(file) == object(self.found)
    }
}

/// Switches between threads, then steps.
fn weight(choices: &[Choice]) -> (usize, usize) {
    (choices.windows(2).filter(|w| w[0].thread != w[1].thread).count(), choices.len())
}

fn blocks(choices: &[Choice]) -> Vec<&[Choice]> {
    choices.chunk_by(|a, b| a.thread == b.thread).collect()
}

/// The variants of a schedule, those first that would make it most simple.
fn variants(choices: &[Choice]) -> impl Iterator<Item = Vec<Choice>> + '_ {
    let blocks = blocks(choices);
    let count = blocks.len();
    let prefixes = (0..count).map({
        let blocks = blocks.clone();
        move |n| blocks[..n].concat()
    });
    let pairs = {
        let blocks = blocks.clone();
        move |i: usize| (i + 1..count).find(|&j| blocks[j][0].thread == blocks[i][0].thread).map(|j| (i, j))
    };
    let together = (0..count).filter_map(pairs).flat_map({
        let blocks = blocks.clone();
        move |(i, j)| {
            let between = blocks[i + 1..j].concat();
            let sooner = [&blocks[..=i].concat(), blocks[j], &between, &blocks[j + 1..].concat()].concat();
            let later = [&blocks[..i].concat(), &between, blocks[i], &blocks[j..].concat()].concat();
            [sooner, later]
        }
    });
    let stopped = (0..count).rev().map(move |i| {
        let thread = blocks[i][0].thread;
        let rest = blocks[i..].iter().flat_map(|b| b.iter()).filter(|c| c.thread != thread).copied();
        blocks[..i].iter().flat_map(|b| b.iter()).copied().chain(rest).collect()
    });
    prefixes.chain(together).chain(stopped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use symdpor_trace::ThreadId;

    fn schedule(threads: &[u16]) -> Vec<Choice> {
        threads.iter().map(|&t| Choice { thread: ThreadId(t), alternative: 0 }).collect()
    }

    #[test]
    fn switches_weigh_more_than_steps() {
        assert!(weight(&schedule(&[0, 0, 0, 1, 1, 1])) < weight(&schedule(&[0, 1, 0])));
        assert!(weight(&schedule(&[0, 1])) < weight(&schedule(&[0, 0, 1])));
    }

    #[test]
    fn variants_keep_the_order_of_each_thread() {
        let all: Vec<Vec<Choice>> = variants(&schedule(&[0, 1, 2, 1])).collect();
        let expected: [&[u16]; 10] =
            [&[], &[0], &[0, 1], &[0, 1, 2], &[0, 1, 1, 2], &[0, 2, 1, 1], &[0, 1, 2], &[0, 1, 1], &[0, 2], &[1, 2, 1]];
        assert_eq!(all, expected.map(schedule));
    }
}
