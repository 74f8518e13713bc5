//! What is specific to Linux on x86-64: system calls, contexts, the way from a trapped system call to Rust.

pub mod context;
pub mod copy;
pub mod maps;
pub mod pages;
pub mod raw;
pub mod signals;
pub mod trap;

// The precompiled core library refers to a personality routine for unwinding, which never happens here.
core::arch::global_asm!(".hidden rust_eh_personality", ".globl rust_eh_personality", "rust_eh_personality:", "ud2");
