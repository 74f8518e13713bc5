//! Measures what an execution costs: programs of known numbers of executions through `symdpor run`, and single things
//! (a hook, a switch, putting memory back, the analysis of a trace) by repetition.
//!
//! [`cases`] is the set of programs, [`tools`] compiles them, [`search`] runs `symdpor` and [`native`] the same program
//! without it, [`measure`] makes a [`results::Measurement`] of that, [`table`] prints it, with the [`goals`]. [`repeat`] drives a worker for the
//! micro-benchmarks of `benches/`, which are listed in [`micro`]. How the figures come about is described in docs/performance.md.
//!
//! [`table1`] and [`table2`] are another program, `symdpor-tables`: they repeat the [`experiment`] of the [`paper`] that the symmetry
//! reduction comes from.

pub mod cases;
pub mod experiment;
pub mod goals;
pub mod measure;
pub mod micro;
pub mod native;
pub mod paper;
pub mod repeat;
pub mod results;
pub mod search;
pub mod side_by_side;
pub mod table;
pub mod table1;
pub mod table2;
pub mod tools;
