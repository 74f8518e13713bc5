//! A line of progress on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use symdpor_report::{Counts, text::short};

const EVERY: Duration = Duration::from_millis(100);

/// Draws nothing unless standard error is a terminal, and nothing during the first execution, whose output is shown.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    drawn: Instant,
}

impl Progress {
    pub fn new(wanted: bool) -> Progress {
        let target = if wanted && std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target)
            .with_style(ProgressStyle::with_template("{msg}").expect("a constant"));
        Progress { bar, started: Instant::now(), drawn: Instant::now() }
    }

    pub fn tick(&mut self, counts: &Counts, depth: usize) {
        if self.bar.is_hidden() || counts.executions == 0 || self.drawn.elapsed() < EVERY {
            return;
        }
        self.drawn = Instant::now();
        let seconds = self.started.elapsed().as_secs_f64();
        let rate = short((counts.executions + counts.blocked) as f64 / seconds);
        self.bar.set_message(format!("{} executions, {rate}/s, depth {depth}, {seconds:.0} s", counts.executions));
        self.bar.tick();
    }

    /// Takes the line away, so that something else can be printed.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints something above the line.
    pub fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }
}
