//! The paper's table 2: what looking for symmetry costs, as a share of the search, and what it adds to one execution.
//!
//! The first comes from a search with symmetry up to its end or the limit. The second from searches with and without it that stop
//! after the same number of executions, in turns, of which the best of some counts: what is paid once, the program's start and
//! the building of the tables, is taken off by the difference to a search of a tenth of that number, as in [`crate::measure`].
//! It is CPU time, and all of this is to run on one CPU (`scripts/bench` sees to that): there it is what the work takes, while on
//! two it is mostly the spinning of controller and worker. The two do not run the same executions, only equally many of the
//! same program.

use crate::experiment::{Mode, Outcome, Program, REDUCTIONS, Selection, Stop, run};
use crate::goals::{Bound, Goal};
use crate::paper::{self, Overhead};
use crate::side_by_side::{Lines, side_by_side};
use crate::table::figure;
use crate::tools::{Result, Tools};
use serde::Serialize;
use std::path::Path;

/// Executions that are enough to tell what one costs.
const ENOUGH: u64 = 20_000;
/// So are those of so many seconds.
const ENOUGH_S: f64 = 4.0;
/// With fewer the clock does not tell.
const TOO_FEW: u64 = 200;

#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Row {
    pub program: &'static str,
    pub threads: u32,
    pub reduction: &'static str,
    /// The search with symmetry.
    pub on: Outcome,
    /// Of one execution, if there were enough to measure.
    pub cost: Option<Cost>,
    /// The paper's figures for its program of this kind and size.
    pub paper: Option<&'static Overhead>,
}

/// CPU time of one execution, in microseconds.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    pub executions: u64,
    pub off_us: f64,
    pub on_us: f64,
}

impl Cost {
    fn dearer_percent(&self) -> f64 {
        (self.on_us / self.off_us - 1.0) * 100.0
    }
}

impl Row {
    fn analysis_s(&self) -> Option<f64> {
        self.on.symmetry.mode.as_ref().and(self.on.symmetry.time_s)
    }

    fn share_percent(&self) -> Option<f64> {
        self.analysis_s().map(|s| s / self.on.time_s * 100.0)
    }
}

pub fn measure(tools: &Tools, selection: &Selection, repeat: u32) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (program, threads) in selection.cases() {
        let binary = program.build(tools, threads)?;
        for reduction in REDUCTIONS {
            eprintln!("{} {threads} {reduction}", program.name);
            let search = Repeated { tools, program, binary: &binary, reduction, repeat };
            let mode = Mode { reduction, symmetry: true };
            let on = run(tools, program, &binary, mode, Stop::Seconds(selection.limit_s))?;
            let cost = search.cost(enough(&on))?;
            let paper = paper::overhead_of(program.paper, threads);
            rows.push(Row { program: program.name, threads, reduction, on, cost, paper });
        }
    }
    Ok(rows)
}

/// How many executions are enough.
fn enough(on: &Outcome) -> u64 {
    let in_time = on.executions as f64 / on.time_s.max(1e-9) * ENOUGH_S;
    on.executions.min(ENOUGH).min((in_time as u64).max(TOO_FEW))
}

/// Searches that are repeated.
struct Repeated<'a> {
    tools: &'a Tools,
    program: &'a Program,
    binary: &'a Path,
    reduction: &'static str,
    repeat: u32,
}

impl Repeated<'_> {
    fn cost(&self, executions: u64) -> Result<Option<Cost>> {
        if executions < TOO_FEW {
            return Ok(None);
        }
        let beginnings = self.both(executions / 10)?;
        let wholes = self.both(executions)?;
        let [off_us, on_us] = [0, 1].map(|i| per_run_us(&beginnings[i], &wholes[i]));
        Ok(Some(Cost { executions, off_us, on_us }))
    }

    /// The best without and the best with symmetry, run in turns: whatever else the machine does, it does to both.
    fn both(&self, executions: u64) -> Result<[Outcome; 2]> {
        let once = |symmetry| {
            let mode = Mode { reduction: self.reduction, symmetry };
            run(self.tools, self.program, self.binary, mode, Stop::Executions(executions))
        };
        let mut best = [once(false)?, once(true)?];
        for _ in 1..self.repeat {
            for (best, next) in best.iter_mut().zip([once(false)?, once(true)?]) {
                if next.cpu_s < best.cpu_s {
                    *best = next;
                }
            }
        }
        Ok(best)
    }
}

fn per_run_us(beginning: &Outcome, whole: &Outcome) -> f64 {
    let runs = whole.runs().saturating_sub(beginning.runs()).max(1) as f64;
    (whole.cpu_s - beginning.cpu_s).max(1e-9) * 1e6 / runs
}

const HEAD: &str = "
                                 time, s      of it                          one execution, us
program   thr             runs   total analysis     %    asked skipped refused    off     on  dearer
";

const NOTES: &str = "
Threads include main (the paper does not say whether its figures do). Runs: executions with those
that were cut off as redundant. >: given up. The rows `paper` are its table 2, the analysis its
columns `Probing` and `Residual + Bijection` together; it gives 15 to 40% as the price of one
execution of pfscan. Ours is CPU time on one CPU, after as many executions without as with symmetry.
";

pub fn render(rows: &[Row]) -> String {
    let lines = rows.iter().map(|row| Lines {
        program: row.program,
        threads: row.threads,
        ours: ours(row),
        paper: row.paper.map(theirs),
    });
    side_by_side(HEAD, &lines.collect::<Vec<_>>(), NOTES, &goals(rows))
}

fn ours(row: &Row) -> String {
    let symmetry = &row.on.symmetry;
    let count = |n: Option<u64>| symmetry.mode.as_ref().and(n).map_or("-".to_owned(), |n| n.to_string());
    let share = row.share_percent().map_or("-".to_owned(), |p| figure(p, 0));
    let mark = if row.on.complete { "" } else { ">" };
    let (off, on, dearer) = match row.cost {
        None => ("-".to_owned(), "-".to_owned(), "-".to_owned()),
        Some(c) => (figure(c.off_us, 0), figure(c.on_us, 0), percent(c.dearer_percent())),
    };
    columns(&[
        row.reduction,
        &format!("{mark}{}", row.on.runs()),
        &format!("{mark}{}", figure(row.on.time_s, 0)),
        &row.analysis_s().map_or("-".to_owned(), |s| format!("{s:.3}")),
        &share,
        &count(symmetry.asked),
        &count(symmetry.skipped),
        &count(symmetry.refused),
        &off,
        &on,
        &dearer,
    ])
}

fn percent(value: f64) -> String {
    if value < 100.0 { format!("{value:+.1}%") } else { format!("{value:+.0}%") }
}

fn theirs(row: &Overhead) -> String {
    let analysis_s = row.probing_s + row.bijection_s;
    columns(&[
        "paper",
        &row.executions.to_string(),
        &figure(row.total_s, 0),
        &format!("{analysis_s:.3}"),
        &figure(analysis_s / row.total_s * 100.0, 0),
        &row.asked.to_string(),
        &row.skipped.to_string(),
        "-",
        "-",
        "-",
        "-",
    ])
}

fn columns(cells: &[&str; 11]) -> String {
    let [who, runs, total, analysis, share, asked, skipped, refused, off, on, dearer] = cells;
    let search = format!("{who:6} {runs:>9} {total:>7} {analysis:>8} {share:>5} {asked:>8} {skipped:>7} {refused:>7}");
    format!("{search} {off:>6} {on:>6} {dearer:>7}")
}

/// The worst of all rows that could be measured.
fn goals(rows: &[Row]) -> Vec<Goal> {
    let worst = |figures: Vec<f64>| figures.into_iter().reduce(f64::max);
    let share = worst(rows.iter().filter_map(Row::share_percent).collect());
    let dearer = worst(
        rows.iter().filter_map(|r| r.cost.filter(|_| r.analysis_s().is_some())).map(|c| c.dearer_percent()).collect(),
    );
    let goal = |what, most, found: Option<f64>| found.map(|found| Goal { what, bound: Bound::AtMost(most), found });
    let all = [goal("analysis, % of the search", 2.0, share), goal("one execution dearer by, %", 15.0, dearer)];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Symmetry;

    fn outcome(runs: u64, time_s: f64, symmetry: Symmetry) -> Outcome {
        let verdict = "ok".to_owned();
        Outcome {
            complete: false,
            verdict,
            time_s,
            cpu_s: time_s,
            executions: runs,
            blocked: 0,
            transitions: 9 * runs,
            symmetry,
        }
    }

    fn counted(time_s: f64) -> Symmetry {
        let many = Some(1_234_567);
        Symmetry {
            mode: Some("on".to_owned()),
            skipped: many,
            asked: many,
            refused: many,
            scans: many,
            time_s: Some(time_s),
        }
    }

    fn row(symmetry: Symmetry, cost: Option<Cost>) -> Row {
        let on = outcome(34_567_890, 100.0, symmetry);
        Row { program: "pfscan_bug", threads: 5, reduction: "source", on, cost, paper: paper::overhead_of("pfscan", 5) }
    }

    #[test]
    fn the_table_fits_a_hundred_columns() {
        let cost = Cost { executions: ENOUGH, off_us: 1000.0, on_us: 12_345.6 };
        let text = render(&[row(counted(1.0), Some(cost)), row(Symmetry::default(), None)]);
        let widest = text.lines().map(|l| l.chars().count()).max();
        assert!(widest <= Some(100), "{widest:?}\n{text}");
    }

    #[test]
    fn what_is_missing_is_a_dash() {
        let found = ours(&row(Symmetry { time_s: Some(0.0), ..Symmetry::default() }, None));
        assert_eq!(found.split_whitespace().skip(3).collect::<Vec<_>>(), ["-"; 8]);
        assert!(goals(&[row(Symmetry::default(), Some(Cost { executions: 1, off_us: 1.0, on_us: 9.0 }))]).is_empty());
    }

    #[test]
    fn shares_and_prices_are_judged_by_the_worst() {
        let cost = |on_us| Some(Cost { executions: ENOUGH, off_us: 10.0, on_us });
        let found = goals(&[row(counted(1.0), cost(11.0)), row(counted(3.0), cost(10.5))]);
        assert_eq!(
            found.iter().map(|g| (g.found.round(), g.is_reached())).collect::<Vec<_>>(),
            [(3.0, false), (10.0, true)]
        );
    }

    #[test]
    fn long_executions_are_not_repeated_for_ever() {
        let none = Symmetry::default;
        assert_eq!(enough(&outcome(1_000_000, 10.0, none())), ENOUGH);
        assert_eq!(enough(&outcome(50_000, 100.0, none())), 2_000);
        assert_eq!(enough(&outcome(5_000, 1000.0, none())), TOO_FEW);
        assert_eq!(enough(&outcome(50, 1000.0, none())), 50);
    }

    #[test]
    fn the_beginning_is_taken_off() {
        let (beginning, whole) = (outcome(100, 0.5, Symmetry::default()), outcome(1_100, 1.5, Symmetry::default()));
        assert!((per_run_us(&beginning, &whole) - 1000.0).abs() < 1e-6);
    }
}
