//! How long the analysis takes, from every sixteenth execution: a clock costs as much as what it would measure.

use symdpor_trace::saved::{Reader, Saved};

/// Nanoseconds from any fixed point. The explorers have no clock of their own.
pub type Clock = fn() -> u64;

const SAMPLED: u64 = 16;

#[derive(Default)]
pub struct Timer {
    clock: Option<Clock>,
    executions: u64,
    running: bool,
    nanos: u64,
    /// What reading the clock takes.
    cost: u64,
}

impl Timer {
    pub fn set(&mut self, clock: Clock) {
        self.clock = Some(clock);
        let once = |_| {
            let started = clock();
            clock().saturating_sub(started)
        };
        self.cost = (0..64).map(once).min().unwrap_or(0);
    }

    /// Another execution is looked at.
    pub fn next_execution(&mut self) {
        self.running = self.clock.is_some() && self.executions.is_multiple_of(SAMPLED);
        self.executions += 1;
    }

    pub fn start(&self) -> Option<u64> {
        self.clock.filter(|_| self.running).map(|clock| clock())
    }

    pub fn stop(&mut self, started: Option<u64>) {
        if let (Some(started), Some(clock)) = (started, self.clock) {
            self.nanos += clock().saturating_sub(started).saturating_sub(self.cost);
        }
    }

    /// All of it, by extrapolation.
    pub fn nanos(&self) -> u64 {
        let sampled = self.executions.div_ceil(SAMPLED).max(1);
        (u128::from(self.nanos) * u128::from(self.executions) / u128::from(sampled)) as u64
    }
}

impl Timer {
    pub fn save(&self, into: &mut Vec<u8>) {
        let Timer { clock: _, executions, running: _, nanos, cost: _ } = self;
        (*executions, *nanos).save(into);
    }

    /// Goes on with the clock of `self`.
    pub fn load(&self, from: &mut Reader<'_>) -> Option<Timer> {
        let (executions, nanos) = <_>::load(from)?;
        Some(Timer { clock: self.clock, executions, running: false, nanos, cost: self.cost })
    }
}
