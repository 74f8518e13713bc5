//! How much of the search is still to come, and how sure that is.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use symdpor_report::{Counts, SymmetryCounts};

/// So many estimates are looked back at: each is from half as many executions as the next.
const LOOK_BACK: usize = 3;
/// However steady they were, nothing is sure.
const LEAST_FACTOR: f64 = 1.3;

/// Estimates of the number of executions, cut off ones included, as the search went on.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Forecast {
    /// At each doubling.
    past: Vec<f64>,
    now: Option<f64>,
    /// When the next one is to be kept.
    next: u64,
}

/// Of how many executions there will have been in the end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    pub likely: f64,
    pub low: f64,
    pub high: f64,
}

impl Forecast {
    pub fn is_due(&self, executions: u64) -> bool {
        executions >= self.next
    }

    pub fn add(&mut self, estimate: Option<f64>) {
        self.now(estimate);
        self.past.extend(estimate);
        self.next = (2 * self.next).max(16);
    }

    pub fn now(&mut self, estimate: Option<f64>) {
        self.now = estimate;
    }

    /// The range is that of the last few estimates: how much they moved is how much they may move. Never less than has been explored.
    pub fn range(&self, executions: u64) -> Option<Range> {
        let done = executions as f64;
        let likely = self.now?.max(done);
        let last = self.past.iter().rev().take(LOOK_BACK).copied();
        let (low, high) = last.fold((likely, likely), |(low, high), e| (low.min(e), high.max(e)));
        Some(Range { likely, low: low.min(likely / LEAST_FACTOR).max(done), high: high.max(likely * LEAST_FACTOR) })
    }
}

/// What is known of a search under way.
pub struct Seen<'a> {
    pub counts: &'a Counts,
    pub symmetry: &'a SymmetryCounts,
    /// Where the next execution branches off.
    pub depth: usize,
    /// Since the search began, that of interrupted ones included.
    pub time: Duration,
    /// Worked out only when it is asked for.
    pub forecast: &'a mut dyn FnMut() -> Forecast,
}

impl Seen<'_> {
    /// Executions, cut off ones included.
    pub fn executions(&self) -> u64 {
        self.counts.executions + self.counts.blocked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_covers_the_last_estimates_and_what_is_done() {
        let mut forecast = Forecast::default();
        assert_eq!(forecast.range(5), None);
        for estimate in [9000.0, 50.0, 100.0, 400.0] {
            forecast.add(Some(estimate));
        }
        forecast.now(Some(200.0));
        assert_eq!(forecast.range(10), Some(Range { likely: 200.0, low: 50.0, high: 400.0 }));
        assert_eq!(forecast.range(300), Some(Range { likely: 300.0, low: 300.0, high: 400.0 }));
    }

    #[test]
    fn estimates_are_kept_at_each_doubling() {
        let mut forecast = Forecast::default();
        let kept = (1..1000u64)
            .filter(|n| {
                forecast.is_due(*n) && {
                    forecast.add(Some(1.0));
                    true
                }
            })
            .count();
        assert_eq!(kept, 7);
    }
}
