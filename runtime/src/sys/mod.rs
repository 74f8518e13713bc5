//! What is specific to Linux on x86-64: system calls, contexts, the way from a trapped system call to Rust.

pub mod context;
pub mod maps;
pub mod pages;
pub mod raw;
pub mod signals;
pub mod trap;
