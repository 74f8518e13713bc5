//! What the pass, the runtime and the controller agree on.
//!
//! Three programs are built from this crate's records: the LLVM pass lays out the tables of [`module`] in the program,
//! the runtime reads them and writes the records of [`channel`], the controller reads those. [`op`] is shared because
//! both sides must agree on which operations depend on each other: the runtime wakes sleeping threads by it, the
//! explorer looks for races by it.
//!
//! No dependencies, no std, no unsafe code.
#![no_std]
#![forbid(unsafe_code)]

pub mod author;
pub mod channel;
pub mod local;
pub mod module;
pub mod object;
pub mod op;
pub mod outside;

/// Raised whenever a record that the pass leaves in programs changes its layout or its meaning: they have to be rebuilt then.
pub const PROTOCOL_VERSION: u32 = 7;
/// Raised whenever a record of [`channel`] does. Of no concern to programs: runtime and controller are built together.
pub const CHANNEL_VERSION: u32 = 7;

/// The most threads one execution may create, main included.
pub const MAX_THREADS: usize = 1024;
