//! The explorers on an in-memory machine.

mod brute;
mod classes;
mod compare;
mod counts;
mod endless;
mod futex;
mod generate;
mod lives;
mod local;
mod machine;
mod odd;
mod orbits;
mod program;
mod queues;
mod regressions;
mod repeat;
mod resume;
mod run;
mod shared;
mod shrink;
mod speed;
mod symmetry;
mod teeth;
