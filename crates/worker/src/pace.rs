//! Whether to spin or to sleep while the other side works, decided by measuring.
//!
//! On two idle CPUs spinning is ten times faster than sleeping; on a machine that has other things to do it is slower,
//! because the other side waits for the CPU that is spun on. Nothing tells in advance which one it is, and it changes
//! during a run. So both are timed: a short trial of the other way now and then, at growing intervals as long as the
//! same way wins. A trial is over as soon as it has taken longer than all of it would have the usual way.
//!
//! On one CPU the other side can only run if it is given the CPU: then the choice is between giving it away and sleeping. The first is faster
//! by a sixth, unless others want that CPU too.

use std::time::Duration;
use symdpor_abi::channel::waiting;

const TRIAL: u32 = 32;
const SHORTEST: u32 = 512;
const LONGEST: u32 = 65_536;

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    rounds: u32,
    time: Duration,
}

impl Tally {
    fn mean(&self) -> Duration {
        self.time / self.rounds.max(1)
    }
}

/// Counts round trips of both ways.
#[derive(Debug)]
pub struct Pace {
    /// What there is besides sleeping: spinning, or giving the CPU away if there is only one.
    awake: u32,
    /// Whether that won last.
    is_awake: bool,
    trying: bool,
    current: Tally,
    other: Tally,
    interval: u32,
}

impl Pace {
    pub fn new(two_cpus: bool) -> Pace {
        let (current, other) = (Tally::default(), Tally::default());
        let awake = if two_cpus { waiting::SPINS } else { waiting::YIELDS };
        Pace { awake, is_awake: true, trying: false, current, other, interval: SHORTEST }
    }

    /// How to wait in the next round trip: one of [`waiting`].
    pub fn way(&self) -> u32 {
        if self.is_awake != self.trying { self.awake } else { waiting::NOTHING }
    }

    /// A round trip was made.
    pub fn record(&mut self, time: Duration) {
        let tally = if self.trying { &mut self.other } else { &mut self.current };
        tally.rounds += 1;
        tally.time += time;
        if self.trying && (self.other.rounds >= TRIAL || self.other.time > self.current.mean() * TRIAL) {
            self.decide();
        } else if !self.trying && self.current.rounds >= self.interval {
            self.trying = true;
            self.other = Tally::default();
        }
    }

    fn decide(&mut self) {
        if self.other.mean() < self.current.mean() {
            self.is_awake = !self.is_awake;
            self.interval = SHORTEST;
        } else {
            self.interval = (self.interval * 2).min(LONGEST);
        }
        self.trying = false;
        self.current = Tally::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `rounds` round trips spin when each way costs so many microseconds.
    fn spinning(pace: &mut Pace, rounds: u32, spin: u64, sleep: u64) -> u32 {
        let mut count = 0;
        for _ in 0..rounds {
            let spins = pace.way() != waiting::NOTHING;
            count += u32::from(spins);
            pace.record(Duration::from_micros(if spins { spin } else { sleep }));
        }
        count
    }

    #[test]
    fn the_faster_way_is_used_nearly_always() {
        assert!(spinning(&mut Pace::new(true), 100_000, 5, 50) > 99_000);
        assert!(spinning(&mut Pace::new(true), 100_000, 50, 5) < 1_500);
    }

    #[test]
    fn it_notices_when_the_machine_changes() {
        let mut pace = Pace::new(true);
        spinning(&mut pace, 100_000, 5, 50);
        spinning(&mut pace, 70_000, 50, 5);
        assert!(spinning(&mut pace, 10_000, 50, 5) < 1_000);
    }

    #[test]
    fn one_cpu_is_never_spun_on() {
        for (awake, asleep) in [(5, 50), (50, 5)] {
            let mut pace = Pace::new(false);
            for _ in 0..10_000 {
                assert_ne!(pace.way(), waiting::SPINS);
                spinning(&mut pace, 1, awake, asleep);
            }
        }
    }
}
