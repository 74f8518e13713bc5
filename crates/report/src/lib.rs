//! Reports: sinks for the same data, plain functions from records to text.
//!
//! [`text`] is what people read on a terminal, [`json`] what scripts read. Neither sees a worker or a file: a failure is
//! shown from a [`symdpor_trace::TraceFile`], whether it was just made or read back.
#![forbid(unsafe_code)]

mod conclusion;
mod edges;
mod facts;
pub mod gdb;
pub mod html;
mod interleaving;
pub mod job;
pub mod json;
pub mod junit;
pub mod paint;
pub mod place;
mod repeats;
mod rows;
pub mod sarif;
mod stacks;
pub mod summary;
pub mod text;
mod threads;
pub mod words;
mod wrap;

pub use job::{Job, Outcome};
pub use paint::Paint;
pub use summary::{Counts, ErrorEntry, Estimate, Summary, SymmetryCounts, Verdict};
pub use text::TextOptions;
