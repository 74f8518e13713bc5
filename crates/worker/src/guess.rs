//! An execution that is begun because it will probably be asked for next.
//!
//! A wrong guess costs the time that it runs, a right one saves that of the controller's analysis. So guesses are acted on as long as most of
//! them have been right lately; they are compared with what is asked for in any case.

use crate::worker::Request;
use symdpor_trace::Plan;

/// What a right guess adds to the trust in the next one, and what a wrong one takes away.
const RIGHT: i32 = 1;
const WRONG: i32 = 3;
const TRUST: std::ops::RangeInclusive<i32> = -12..=12;

#[derive(Default)]
pub struct Guess {
    last: Option<Last>,
    trust: i32,
}

struct Last {
    plan: Plan,
    options: u32,
    /// Whether it has been begun.
    is_begun: bool,
}

impl Guess {
    /// Notes a guess. Whether it is to be begun.
    pub fn make(&mut self, plan: &Plan, options: u32) -> bool {
        let is_begun = self.trust >= 0;
        self.last = Some(Last { plan: plan.clone(), options, is_begun });
        is_begun
    }

    pub fn is_begun(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.is_begun)
    }

    /// Whether what has been begun is what is asked for. If so it is none any more.
    pub fn is_right(&mut self, request: &Request<'_>) -> bool {
        let Some(last) = &self.last else { return false };
        let same = request.watch == 0 && last.options == request.options && last.plan.asks_the_same(request.plan);
        let change = if same { RIGHT } else { -WRONG };
        self.trust = (self.trust + change).clamp(*TRUST.start(), *TRUST.end());
        let is_begun = last.is_begun;
        if same || !is_begun {
            self.last = None;
        }
        same && is_begun
    }

    /// Whether something had been begun.
    pub fn forget(&mut self) -> bool {
        self.last.take().is_some_and(|last| last.is_begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use symdpor_trace::{Choice, ThreadId};

    fn plan(thread: u16) -> Plan {
        Plan { choices: vec![Choice { thread: ThreadId(thread), alternative: 0 }], ..Plan::default() }
    }

    fn ask(guess: &mut Guess, thread: u16, options: u32) -> bool {
        guess.is_right(&Request { plan: &plan(thread), options, watch: 0 })
    }

    #[test]
    fn what_was_begun_is_taken_if_it_is_asked_for() {
        let mut guess = Guess::default();
        assert!(guess.make(&plan(1), 4));
        assert!(guess.is_begun() && ask(&mut guess, 1, 4));
        assert!(!guess.is_begun() && !guess.forget());
        assert!(guess.make(&plan(1), 4));
        assert!(!ask(&mut guess, 1, 5), "with other options");
        assert!(guess.is_begun() && guess.forget());
    }

    #[test]
    fn wrong_guesses_are_not_acted_on_until_they_are_right_again() {
        let mut guess = Guess::default();
        for _ in 0..10 {
            guess.make(&plan(1), 0);
            assert!(!ask(&mut guess, 2, 0));
            guess.forget();
        }
        let begun = (0..20).map(|_| {
            let begun = guess.make(&plan(1), 0);
            assert_eq!(ask(&mut guess, 1, 0), begun);
            begun
        });
        let begun: Vec<bool> = begun.collect();
        assert!(!begun[0] && begun[19] && begun.is_sorted());
    }
}
