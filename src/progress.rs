//! How far the search is: a line on a terminal, a line now and then in a log.

use crate::forecast::Seen;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use symdpor_report::text::short;

const EVERY: Duration = Duration::from_millis(100);
/// The first line of a log, and how much later the next one is each time, at most.
const FIRST_LOGGED: Duration = Duration::from_secs(10);
const MOST_BETWEEN: Duration = Duration::from_secs(600);

/// Draws nothing during the first execution, whose output is shown.
pub struct Progress {
    bar: ProgressBar,
    /// There is no terminal: lines are printed instead.
    logs: bool,
    started: Instant,
    drawn: Instant,
    next_logged: Duration,
}

impl Progress {
    pub fn new(wanted: bool) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let target = if wanted && terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target)
            .with_style(ProgressStyle::with_template("{msg}").expect("a constant"));
        let logs = wanted && !terminal;
        Progress { bar, logs, started: Instant::now(), drawn: Instant::now(), next_logged: FIRST_LOGGED }
    }

    /// `errors`: how many have been found.
    pub fn tick(&mut self, seen: &mut Seen<'_>, errors: usize) {
        let hidden = self.bar.is_hidden() && !self.logs;
        if hidden || seen.counts.executions == 0 || self.drawn.elapsed() < EVERY {
            return;
        }
        self.drawn = Instant::now();
        if !self.logs {
            let columns = console::Term::stderr().size_checked().map_or(80, |(_, columns)| columns.into());
            self.bar.set_message(fitting(parts(seen, errors), columns));
        } else if self.started.elapsed() >= self.next_logged {
            self.next_logged = next_after(self.next_logged);
            crate::console::Console::Stderr.print(&format!("symdpor: {}\n", parts(seen, errors).join(", ")));
        }
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

/// After 10 s, 20 s, 40 s, ..., and later every ten minutes.
fn next_after(logged: Duration) -> Duration {
    logged + logged.min(MOST_BETWEEN)
}

/// As much as fits into a line: what matters least is at the end.
fn fitting(mut parts: Vec<String>, columns: usize) -> String {
    while parts.len() > 1 && parts.join(", ").len() >= columns {
        parts.pop();
    }
    parts.join(", ")
}

/// What there is to say, most important first.
fn parts(seen: &mut Seen<'_>, errors: usize) -> Vec<String> {
    let (done, seconds) = (seen.executions(), seen.time.as_secs_f64());
    let rate = done as f64 / seconds.max(1e-3);
    let mut parts = vec![format!("{} executions", seen.counts.executions)];
    if errors > 0 {
        parts.push(format!("{errors} error{}", if errors == 1 { "" } else { "s" }));
    }
    if let Some(range) = (seen.forecast)().range(done) {
        let percent = 100.0 * done as f64 / range.likely;
        let percent = if percent < 1.0 { "<1".to_owned() } else { format!("{percent:.0}") };
        let total = format!("{percent}% of about {}", short(range.likely));
        parts.push(format!("{total} ({} to {})", short(range.low), short(range.high)));
        let left = Duration::from_secs_f64(((range.likely - done as f64) / rate.max(1e-3)).min(1e12));
        parts.push(format!("{} gone, {} to go", brief(seen.time), brief(left)));
    } else {
        parts.push(format!("{} gone", brief(seen.time)));
    }
    parts.push(format!("{}/s", short(rate)));
    let share = |part: u64| 100 * part / (done + seen.symmetry.hits).max(1);
    parts.push(format!(
        "cut off: {}% by sleep sets, {}% by symmetry",
        share(seen.counts.blocked),
        share(seen.symmetry.hits)
    ));
    parts.push(format!("depth {}", seen.depth));
    parts
}

/// `59s`, `4m`, `3h 20m`, `12d`.
fn brief(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..172_800 => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
        172_800..31_536_000 => format!("{}d", seconds / 86_400),
        _ => "years".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::Forecast;
    use symdpor_report::{Counts, SymmetryCounts};

    #[test]
    fn the_line_says_how_far_it_is() {
        let counts = Counts { executions: 900, blocked: 100, transitions: 9000, threads: 3, dropped: 0 };
        let symmetry = SymmetryCounts { hits: 1000, ..Default::default() };
        let mut now = || {
            let mut forecast = Forecast::default();
            forecast.now(Some(10_000.0));
            forecast
        };
        let time = Duration::from_secs(10);
        let mut seen = Seen { counts: &counts, symmetry: &symmetry, depth: 7, time, forecast: &mut now };
        let parts = parts(&mut seen, 1);
        assert_eq!(
            parts.join(", "),
            "900 executions, 1 error, 10% of about 10k (7.7k to 13k), 10s gone, 1m 30s to go, 100/s, \
             cut off: 5% by sleep sets, 50% by symmetry, depth 7"
        );
        assert_eq!(fitting(parts.clone(), 60), "900 executions, 1 error, 10% of about 10k (7.7k to 13k)");
        assert_eq!(fitting(parts, 10), "900 executions");
    }

    #[test]
    fn a_log_gets_fewer_and_fewer_lines() {
        let times: Vec<u64> =
            std::iter::successors(Some(FIRST_LOGGED), |t| Some(next_after(*t))).map(|t| t.as_secs()).take(9).collect();
        assert_eq!(times, [10, 20, 40, 80, 160, 320, 640, 1240, 1840]);
    }
}
