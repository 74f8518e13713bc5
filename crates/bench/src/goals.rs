//! What the figures are to reach. The reasons for each goal are in docs/performance.md.

use crate::results::{Measurement, Results};

#[derive(Clone, PartialEq, Debug)]
pub struct Goal {
    pub what: &'static str,
    pub bound: Bound,
    pub found: f64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Goal {
    pub fn is_reached(&self) -> bool {
        match self.bound {
            Bound::AtLeast(least) => self.found >= least,
            Bound::AtMost(most) => self.found <= most,
        }
    }
}

/// Those goals whose figures are there: a quick or partial run has not all of them.
pub fn goals(results: &Results) -> Vec<Goal> {
    let of = Figures(results);
    let goal = |what, bound, found: Option<f64>| found.map(|found| Goal { what, bound, found });
    use Bound::{AtLeast, AtMost};
    let all = [
        goal("9 threads on a mutex: executions per fork", AtLeast(15.0), of.case("mutex", "9", Measurement::per_fork)),
        goal("2 threads, 2 operations: executions per fork", AtLeast(40.0), of.small_per_fork()),
        goal(
            "cost of a transition, 2,000 to 20 of them",
            AtMost(2.0),
            of.ratio(transition_us, ("chain, early", "2000"), ("chain, early", "20")),
        ),
        goal("200 ms of start, to none", AtMost(1.5), of.ratio(wall_us, ("startup ms", "200"), ("mutex", "7"))),
        goal("64 MiB of heap, to none", AtMost(1.5), of.ratio(wall_us, ("heap MiB", "64"), ("mutex", "7"))),
        goal("hook of a plain load, ns", AtMost(15.0), of.micro("hook of a plain load")),
        goal("hook of a plain store, ns", AtMost(15.0), of.micro("hook of a plain store")),
        goal(
            "memory, 362,880 executions to 5,040",
            AtMost(1.1),
            of.ratio(memory_kib, ("mutex", "9"), ("mutex, part", "9")),
        ),
        goal("start to verdict, ms", AtMost(30.0), Some(results.start_to_verdict_ms)),
        goal(
            "cost of a transition, 100 threads to 25",
            AtMost(2.0),
            of.ratio(transition_us, ("threads", "100"), ("threads", "25")),
        ),
    ];
    all.into_iter().flatten().collect()
}

fn wall_us(m: &Measurement) -> f64 {
    m.wall_us
}

fn transition_us(m: &Measurement) -> f64 {
    1e6 / m.transitions_per_s
}

fn memory_kib(m: &Measurement) -> f64 {
    (m.controller_kib + m.worker_kib) as f64
}

struct Figures<'a>(&'a Results);

impl Figures<'_> {
    fn case(&self, program: &str, size: &str, figure: impl Fn(&Measurement) -> f64) -> Option<f64> {
        self.0.measurements.iter().find(|m| m.program == program && m.size == size).map(figure)
    }

    fn ratio(&self, figure: fn(&Measurement) -> f64, of: (&str, &str), to: (&str, &str)) -> Option<f64> {
        Some(self.case(of.0, of.1, figure)? / self.case(to.0, to.1, figure)?)
    }

    fn micro(&self, name: &str) -> Option<f64> {
        self.0.micro.iter().find(|m| m.name == name).map(|m| m.ns)
    }

    /// Forks are those of the smallest program, which is the same as this one but for the number of threads.
    fn small_per_fork(&self) -> Option<f64> {
        let fork_us = self.case("mutex", "6", |m| m.fork_writing_us)?;
        Some(fork_us * 1e3 / self.micro("2 threads, 2 operations each")?)
    }
}
