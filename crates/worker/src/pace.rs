//! Whether to spin or to sleep while the other side works, decided by measuring.
//!
//! On two idle CPUs spinning is ten times faster than sleeping; on a machine that has other things to do it is slower,
//! because the other side waits for the CPU that is spun on. Nothing tells in advance which one it is, and it changes
//! during a run. So both are timed: a short trial of the other way now and then, at growing intervals as long as the
//! same way wins. A trial is over as soon as it has taken longer than all of it would have the usual way.

use std::time::Duration;

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
    /// False if there is only one CPU: then there is nothing to measure.
    measures: bool,
    /// The way that won last.
    spins: bool,
    trying: bool,
    current: Tally,
    other: Tally,
    interval: u32,
}

impl Pace {
    pub fn new(two_cpus: bool) -> Pace {
        let (current, other) = (Tally::default(), Tally::default());
        Pace { measures: two_cpus, spins: two_cpus, trying: false, current, other, interval: SHORTEST }
    }

    /// How to wait in the next round trip.
    pub fn spins(&self) -> bool {
        self.spins != self.trying
    }

    /// A round trip was made.
    pub fn record(&mut self, time: Duration) {
        if !self.measures {
            return;
        }
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
            self.spins = !self.spins;
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
            let spins = pace.spins();
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
    fn one_cpu_never_spins() {
        assert_eq!(spinning(&mut Pace::new(false), 10_000, 1, 100), 0);
    }
}
