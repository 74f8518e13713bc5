//! The search: given the trace of the last execution, which execution comes next?
//!
//! Everything here is plain data in and out. No process, no file, no clock: the same answers to the same executions,
//! so that the search can be tested on an in-memory machine and repeated exactly.
//!
//! - [`none`]: all interleavings, the reference that the others are held against.
//! - [`dpor`]: dynamic partial order reduction with backtrack sets (Flanagan and Godefroid).
//! - [`source`]: source sets and sleep sets (Abdulla et al.), the default.
//! - [`replay`]: one given execution.
//! - [`determinism`]: wraps any of them and compares each replayed prefix with what was seen before.
//!
//! - [`symmetry`]: for both reductions, which branches are left out because threads are alike.
//!
//! The middle two share [`reduction`], which is made of the search [`tree`] (what is left to explore) and the
//! [`history`] (happens-before and races of the current execution, over the [`objects`] it touches).
#![forbid(unsafe_code)]

mod bits;
mod clock;
pub mod determinism;
pub mod dpor;
pub mod endless;
mod estimate;
pub mod explorer;
mod history;
mod in_vain;
pub mod none;
mod objects;
mod reduction;
pub mod replay;
mod resume;
pub mod source;
pub mod symmetry;
mod tree;

pub use determinism::{Checked, Determinism, Divergence};
pub use dpor::Dpor;
pub use explorer::{Explorer, Statistics};
pub use none::AllInterleavings;
pub use replay::Replay;
pub use resume::Resume;
pub use source::SourceSets;
pub use symmetry::Counters;
pub use symmetry::rule::Rule;
