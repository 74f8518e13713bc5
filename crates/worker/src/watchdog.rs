//! Decides when a worker that makes no step any more is stuck.
//!
//! What counts is CPU time, so that a busy machine or a stopped worker raises no alarm; but a worker that neither
//! computes nor answers for several times as long is stuck as well. The start of the program, up to its first step, is
//! given more time, because all of its sequential part runs there.

use std::time::Duration;

/// Patience with a worker that sleeps, and with one that has made no step yet, in units of the time for one step.
const SLACK: u32 = 6;
/// How long a worker may take to react to being asked.
const REACTION: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    Wait,
    /// Ask the runtime to end the execution and to say where it was.
    Nudge,
    Kill,
}

/// What is seen of a worker at some time.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    pub heartbeat: u32,
    /// Since the controller began to wait.
    pub elapsed: Duration,
    /// CPU time the worker has used in all.
    pub cpu: Duration,
}

pub struct Watchdog {
    limit: Duration,
    since: Sight,
    nudged: Option<Duration>,
}

impl Watchdog {
    pub fn new(limit: Duration, start: Sight) -> Watchdog {
        Watchdog { limit, since: start, nudged: None }
    }

    pub fn look(&mut self, now: Sight) -> Action {
        if let Some(nudged) = self.nudged {
            return if now.elapsed.saturating_sub(nudged) >= REACTION { Action::Kill } else { Action::Wait };
        }
        if now.heartbeat != self.since.heartbeat {
            self.since = now;
            return Action::Wait;
        }
        if !self.is_over(now) {
            return Action::Wait;
        }
        self.nudged = Some(now.elapsed);
        Action::Nudge
    }

    fn is_over(&self, now: Sight) -> bool {
        let cpu_limit = if now.heartbeat == 0 { self.limit * SLACK } else { self.limit };
        let asleep = now.elapsed.saturating_sub(self.since.elapsed);
        now.cpu.saturating_sub(self.since.cpu) >= cpu_limit || asleep >= self.limit * SLACK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(heartbeat: u32, elapsed: u64, cpu: u64) -> Sight {
        Sight { heartbeat, elapsed: Duration::from_secs(elapsed), cpu: Duration::from_secs(cpu) }
    }

    fn watchdog() -> Watchdog {
        Watchdog::new(Duration::from_secs(10), sight(5, 0, 0))
    }

    #[test]
    fn steps_keep_it_quiet() {
        let mut dog = watchdog();
        for second in 1..100 {
            assert_eq!(dog.look(sight(5 + second as u32, second, second)), Action::Wait);
        }
    }

    #[test]
    fn computing_without_a_step_is_nudged_then_killed() {
        let mut dog = watchdog();
        assert_eq!(dog.look(sight(5, 9, 9)), Action::Wait);
        assert_eq!(dog.look(sight(5, 11, 10)), Action::Nudge);
        assert_eq!(dog.look(sight(5, 11, 10)), Action::Wait);
        assert_eq!(dog.look(sight(6, 12, 11)), Action::Kill);
    }

    #[test]
    fn a_worker_without_cpu_gets_more_time_but_not_for_ever() {
        let mut dog = watchdog();
        assert_eq!(dog.look(sight(5, 30, 1)), Action::Wait);
        assert_eq!(dog.look(sight(5, 60, 1)), Action::Nudge);
    }

    #[test]
    fn the_start_of_the_program_may_be_long() {
        let mut dog = Watchdog::new(Duration::from_secs(10), sight(0, 0, 0));
        assert_eq!(dog.look(sight(0, 50, 50)), Action::Wait);
        assert_eq!(dog.look(sight(1, 55, 55)), Action::Wait);
        assert_eq!(dog.look(sight(1, 65, 65)), Action::Nudge);
    }
}
