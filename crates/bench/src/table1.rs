//! The paper's table 1: searches with symmetry against searches without, with `dpor`, the paper's reduction, and with `source`.

use crate::experiment::{Mode, Outcome, REDUCTIONS, Selection, Stop, run};
use crate::goals::{Bound, Goal};
use crate::paper::{self, Compared, Figures};
use crate::side_by_side::{Lines, side_by_side};
use crate::tools::{Result, Tools};
use serde::Serialize;

/// A program in one size with one reduction.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Row {
    pub program: &'static str,
    pub threads: u32,
    pub reduction: &'static str,
    pub off: Outcome,
    pub on: Outcome,
    /// The paper's figures for its program of this kind and size.
    pub paper: Option<&'static Compared>,
}

impl Row {
    /// How many times fewer runs with symmetry. At least that many if the search without it was not finished.
    fn fewer(&self) -> Option<f64> {
        self.on.complete.then(|| self.off.runs() as f64 / self.on.runs().max(1) as f64)
    }
}

pub fn measure(tools: &Tools, selection: &Selection) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (program, threads) in selection.cases() {
        let binary = program.build(tools, threads)?;
        for reduction in REDUCTIONS {
            eprintln!("{} {threads} {reduction}", program.name);
            let search =
                |symmetry| run(tools, program, &binary, Mode { reduction, symmetry }, Stop::Seconds(selection.limit_s));
            let (off, on) = (search(false)?, search(true)?);
            let paper = paper::compared(program.paper, threads);
            rows.push(Row { program: program.name, threads, reduction, off, on, paper });
        }
    }
    Ok(rows)
}

const HEAD: &str = "
                           time, s            executions               transitions      times
program   thr           off       on        off         on          off           on    fewer
";

const NOTES: &str = "
Threads include main (the paper does not say whether its figures do). Executions include those that
were cut off as redundant. >: given up at that point, the limit of time being reached. The rows
`paper` are its DPOR and SYMDPOR on the original programs, where every access to shared memory is a
transition.
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
    let bound = |outcome: &Outcome| if outcome.complete { "" } else { ">" };
    let fewer = row.fewer().map_or("-".to_owned(), |f| format!("{}{f:.1}", bound(&row.off)));
    let cells = |outcome: &Outcome| {
        let mark = bound(outcome);
        [
            format!("{mark}{}", seconds(outcome.time_s)),
            format!("{mark}{}", outcome.runs()),
            format!("{mark}{}", outcome.transitions),
        ]
    };
    columns(row.reduction, &cells(&row.off), &cells(&row.on), &fewer)
}

fn theirs(row: &Compared) -> String {
    let cells = |figures: Option<Figures>| match figures {
        Some(f) => [seconds(f.time_s), f.executions.to_string(), f.transitions.to_string()],
        None => [format!(">{}", seconds(paper::GIVEN_UP)), "-".to_owned(), "-".to_owned()],
    };
    let ratio = |dpor: Figures| dpor.executions as f64 / row.symmetry.executions as f64;
    let fewer = row.dpor.map_or("-".to_owned(), |dpor| format!("{:.1}", ratio(dpor)));
    columns("paper", &cells(row.dpor), &cells(Some(row.symmetry)), &fewer)
}

fn columns(who: &str, off: &[String; 3], on: &[String; 3], fewer: &str) -> String {
    let ([t0, e0, s0], [t1, e1, s1]) = (off, on);
    format!("{who:6} {t0:>8} {t1:>8} {e0:>10} {e1:>10} {s0:>12} {s1:>12} {fewer:>8}")
}

fn seconds(time_s: f64) -> String {
    let decimals = if time_s < 10.0 { 2 } else { usize::from(time_s < 100.0) };
    format!("{time_s:.decimals$}")
}

/// What the default search, source sets with symmetry, is to reach against `dpor` without.
fn goals(rows: &[Row]) -> Vec<Goal> {
    let wanted = [
        ("pfscan", "pfscan, 4 threads: times fewer than dpor"),
        ("aget_list", "aget_list, 4 threads: times fewer than dpor"),
    ];
    let row = |program: &str, reduction: &str| {
        rows.iter().find(|r| (r.program, r.threads, r.reduction) == (program, 4, reduction))
    };
    let fewer = |program: &str| {
        let (off, on) = (&row(program, "dpor")?.off, &row(program, "source")?.on);
        on.complete.then(|| off.runs() as f64 / on.runs().max(1) as f64)
    };
    let goal = |(program, what)| Some(Goal { what, bound: Bound::AtLeast(100.0), found: fewer(program)? });
    wanted.into_iter().filter_map(goal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(complete: bool, executions: u64) -> Outcome {
        Outcome {
            complete,
            verdict: if complete { "ok" } else { "incomplete" }.to_owned(),
            time_s: 86_399.9,
            cpu_s: 1.0,
            executions,
            blocked: executions / 3,
            transitions: executions * 20,
            symmetry: Default::default(),
        }
    }

    fn row(program: &'static str, reduction: &'static str, off: Outcome, on: Outcome) -> Row {
        Row { program, threads: 4, reduction, off, on, paper: paper::compared("pfscan", 4) }
    }

    #[test]
    fn the_table_fits_a_hundred_columns_however_long_it_took() {
        let many = || outcome(false, 300_000_000);
        let text =
            render(&[row("pfscan_bug", "source", many(), outcome(true, 3)), row("aget", "dpor", many(), many())]);
        let widest = text.lines().map(|l| l.chars().count()).max();
        assert!(widest <= Some(100), "{widest:?}\n{text}");
    }

    #[test]
    fn a_search_that_was_given_up_is_a_bound() {
        let given_up = row("pfscan", "dpor", outcome(false, 30_000), outcome(true, 30));
        let words = |r: &Row| ours(r).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let found = words(&given_up);
        assert_eq!(found, ["dpor", ">86400", "86400", ">40000", "40", ">600000", "600", ">1000.0"]);
        let useless = row("pfscan", "dpor", outcome(true, 30), outcome(false, 30));
        assert_eq!(words(&useless).last().map(String::as_str), Some("-"));
    }

    #[test]
    fn the_paper_comes_once_below_each_program_and_size() {
        let one = |program, reduction| row(program, reduction, outcome(true, 9), outcome(true, 3));
        let text = render(&[one("pfscan", "dpor"), one("pfscan", "source"), one("aget_list", "dpor")]);
        assert_eq!(text.matches("4184546").count(), 2);
        assert_eq!(text.matches("588.5").count(), 2);
        let lines: Vec<_> = text.lines().skip(3).take(3).map(|l| l.split_whitespace().next().unwrap()).collect();
        assert_eq!(lines, ["pfscan", "source", "paper"]);
    }

    #[test]
    fn the_default_search_is_compared_with_dpor() {
        let both = |program, off, on| {
            let bad = outcome(true, 300);
            [row(program, "dpor", outcome(true, off), bad.clone()), row(program, "source", bad, outcome(true, on))]
        };
        let rows = [both("pfscan", 30_000, 30), both("aget_list", 3_000, 300)].concat();
        let reached: Vec<bool> = goals(&rows).iter().map(Goal::is_reached).collect();
        assert_eq!(reached, [true, false]);
    }
}
