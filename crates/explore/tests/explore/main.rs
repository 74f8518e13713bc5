//! The explorers on an in-memory machine.

mod brute;
mod classes;
mod compare;
mod counts;
mod generate;
mod machine;
mod program;
mod run;
mod shrink;
mod teeth;
