//! The functions of libc that the runtime takes over: one-liners into the modules that model them.
//!
//! Nothing in here may call, directly or through libc, what is defined in here.

pub mod c11;
mod cancel;
pub mod children;
pub mod io;
pub mod libcxx;
pub mod limited;
pub mod locks;
pub mod memory;
pub mod outside;
pub mod process;
pub mod random;
pub mod raw;
pub mod refused;
pub mod shared;
mod signals;
pub mod streams;
mod temporary;
pub mod threads;
pub mod time;
