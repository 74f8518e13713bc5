//! The explorers on an in-memory machine.

mod brute;
mod compare;
mod generate;
mod machine;
mod program;
mod run;
mod shrink;
