//! Runs the program under test: one worker process, one shared memory, one plan after the other.
//!
//! [`preflight`] looks at the program's file, [`worker`] starts it with the runtime and runs plans in it, [`decode`]
//! turns the answers into data, [`symbols`] gives numbers the names of the source. The worker is disposable: it may die
//! or overwrite the channel at any time, which costs that execution and nothing else. Nothing here prints.

pub mod accesses;
pub mod bytes;
pub mod channel;
mod cpu;
pub mod debug;
pub mod decode;
mod dwarf;
pub mod error;
pub mod footprints;
mod guess;
pub mod input;
pub mod install;
mod layout;
mod libraries;
mod lines;
mod pace;
pub mod points;
pub mod preflight;
pub mod process;
pub mod symbols;
pub mod views;
mod watchdog;
pub mod worker;

pub use accesses::Particulars;
pub use bytes::Damaged;
pub use decode::{Divergence, RawError, RawPending, Trace, TraceError};
pub use error::{PreflightError, WorkerError};
pub use points::Points;
pub use process::{Death, Launch};
pub use symbols::{Globals, Sites};
pub use worker::{Answer, Request, Settings, Worker};
