//! The explorers on an in-memory machine.

mod brute;
mod classes;
mod compare;
mod counts;
mod generate;
mod local;
mod machine;
mod odd;
mod program;
mod regressions;
mod repeat;
mod resume;
mod run;
mod shrink;
mod speed;
mod symmetry;
mod teeth;
