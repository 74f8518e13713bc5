//! The figures as text that fits a terminal of 80 columns.

use crate::goals::{Bound, Goal, goals};
use crate::results::{Measurement, Micro, Results};
use std::fmt::Write;

const HEAD: &str = "
                           per execution  million    peak MiB one execution is
program      size    runs  wall us   CPU us trans/s   ctl  work 1/n fork n x own
";

pub fn render(results: &Results) -> String {
    let mut out = String::new();
    let [before, after] = results.machine.load;
    let cpus = results.machine.cpus;
    _ = writeln!(out, "{cpus} usable CPUs, load {before:.1} before and {after:.1} after");
    out.push_str(HEAD);
    for m in &results.measurements {
        _ = writeln!(out, "{}", row(m));
    }
    _ = writeln!(out, "\n{:34} {:>12}", "start to verdict, one execution", time(results.start_to_verdict_ms * 1e6));
    for m in &results.micro {
        _ = writeln!(out, "{:34} {:>12}", m.name, time(m.ns));
    }
    out.push('\n');
    for goal in goals(results) {
        _ = writeln!(out, "{}", line(&goal));
    }
    out
}

pub fn line(goal: &Goal) -> String {
    let (word, bound) = match goal.bound {
        Bound::AtLeast(least) => ("at least", least),
        Bound::AtMost(most) => ("at most", most),
    };
    let verdict = if goal.is_reached() { "reached" } else { "NOT REACHED" };
    format!("{:45} {word:>8} {bound:4} {} {verdict}", goal.what, figure(goal.found, 8))
}

fn row(m: &Measurement) -> String {
    format!(
        "{:12} {:>4} {:>7} {} {} {} {} {} {} {:>7}",
        m.program,
        m.size,
        m.executions + m.blocked,
        figure(m.wall_us, 8),
        figure(m.cpu_us, 8),
        figure(m.transitions_per_s / 1e6, 7),
        figure(m.controller_kib as f64 / 1024.0, 5),
        figure(m.worker_kib as f64 / 1024.0, 5),
        figure(m.per_fork(), 8),
        m.slowdown().map_or("-".to_owned(), |s| figure(s, 0)),
    )
}

/// Three digits that matter.
pub fn figure(value: f64, width: usize) -> String {
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:width$.decimals$}")
}

fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{} ns", figure(ns, 0)),
        ns if ns < 1e6 => format!("{} us", figure(ns / 1e3, 0)),
        ns => format!("{} ms", figure(ns / 1e6, 0)),
    }
}

/// Ratios to an earlier run: what is below 1 has become better.
pub fn compare(now: &Results, before: &Results) -> String {
    let mut out = String::from("new / old (below 1: better)\n");
    if now.machine.cpus != before.machine.cpus {
        _ = writeln!(out, "NOT COMPARABLE: {} usable CPUs now, {} then", now.machine.cpus, before.machine.cpus);
    }
    _ = writeln!(out, "program      size  executed    wall     CPU  in forks     ctl    work");
    for m in &now.measurements {
        if let Some(old) = before.measurements.iter().find(|o| o.is_same_case(m)) {
            _ = writeln!(out, "{}", ratios(m, old));
        }
    }
    let ms =
        |r: &Results| Micro { name: "start to verdict, one execution".to_owned(), ns: r.start_to_verdict_ms * 1e6 };
    let old: Vec<Micro> = std::iter::once(ms(before)).chain(before.micro.iter().cloned()).collect();
    for m in std::iter::once(&ms(now)).chain(&now.micro) {
        if let Some(old) = old.iter().find(|o| o.name == m.name) {
            _ = writeln!(out, "{:34} {:7.2}", m.name, m.ns / old.ns);
        }
    }
    out
}

fn ratios(m: &Measurement, old: &Measurement) -> String {
    let runs = |m: &Measurement| (m.executions + m.blocked) as f64;
    format!(
        "{:12} {:>4} {:9.2} {:7.2} {:7.2} {:9.2} {:7.2} {:7.2}",
        m.program,
        m.size,
        runs(m) / runs(old),
        m.wall_us / old.wall_us,
        m.cpu_us / old.cpu_us,
        old.per_fork() / m.per_fork(),
        m.controller_kib as f64 / old.controller_kib as f64,
        m.worker_kib as f64 / old.worker_kib as f64,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases;
    use crate::results::{Machine, VERSION};

    fn results(wall_us: f64) -> Results {
        let one = |case: &cases::Case| Measurement {
            program: case.program.to_owned(),
            size: case.size.to_owned(),
            executions: 362_880,
            blocked: 188_454,
            transitions: 1 << 30,
            wall_us,
            cpu_us: 2.0 * wall_us,
            transitions_per_s: 12.3e6,
            start_ms: 12.0,
            controller_kib: 9_000,
            worker_kib: 130_000,
            fork_us: 100.0,
            fork_writing_us: 200.0,
            own_us: Some(0.2),
        };
        let micro = crate::micro::ALL.iter().map(|m| Micro { name: m.name.to_owned(), ns: 1234.5 }).collect();
        let machine = Machine { cpus: 2, load: [0.1, 1.9], quick: false };
        let measurements = cases::ALL.iter().map(one).collect();
        Results { version: VERSION, machine, start_to_verdict_ms: 12.0, measurements, micro }
    }

    #[test]
    fn tables_fit_a_terminal() {
        let slow = results(123_456.0);
        for text in [render(&results(1.5)), render(&slow), compare(&slow, &results(1.5))] {
            let widest = text.lines().map(|l| l.chars().count()).max();
            assert!(widest <= Some(80), "{widest:?}\n{text}");
        }
    }

    #[test]
    fn a_row_says_what_was_measured() {
        assert_eq!(
            row(&results(10.0).measurements[0]).split_whitespace().collect::<Vec<_>>(),
            ["mutex", "6", "551334", "10.0", "20.0", "12.3", "8.79", "127", "20.0", "50.0"]
        );
    }

    #[test]
    fn twice_as_fast_is_one_half() {
        let text = compare(&results(5.0), &results(10.0));
        let line = text.lines().find(|l| l.starts_with("mutex ")).unwrap();
        assert_eq!(
            line.split_whitespace().skip(2).collect::<Vec<_>>(),
            ["1.00", "0.50", "0.50", "0.50", "1.00", "1.00"]
        );
        assert!(!text.contains("NOT COMPARABLE"));
    }

    #[test]
    fn goals_are_judged() {
        // All programs alike: those that are to be no slower than others are not, but 1.2 us is too long for a hook.
        let found = goals(&results(5.0));
        let missed = |g: &&Goal| !g.is_reached();
        assert_eq!(found.len(), 10);
        let missed: Vec<_> = found.iter().filter(missed).map(|g| g.what).collect();
        assert_eq!(missed, ["hook of a plain load, ns", "hook of a plain store, ns"]);
        let slow = goals(&results(20.0));
        assert!(!slow[0].is_reached() && slow[0].found == 10.0, "{slow:?}");
    }

    #[test]
    fn times_have_units() {
        assert_eq!([time(3.21), time(14_000.0), time(30e6)], ["3.21 ns", "14.0 us", "30.0 ms"]);
    }
}
