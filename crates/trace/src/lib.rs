//! Executions as plain data: threads, operations, steps, plans.
//!
//! The explorers read [`Execution`]s and answer with [`Plan`]s; neither side knows how an execution comes about.
#![forbid(unsafe_code)]

pub mod execution;
pub mod failure;
pub mod file;
pub mod footprint;
pub mod plan;
pub mod saved;
pub mod thread;
pub mod value;

pub use execution::{End, Execution, PendingOp, Step};
pub use failure::{Failure, FailureKind, Location};
pub use file::TraceFile;
pub use footprint::{Fence, Footprint, Footprints, LocalState, PlainAccess, ThreadMemory};
pub use plan::{Choice, Plan};
pub use symdpor_abi::object::ObjectId;
pub use symdpor_abi::op::{Access, NO_THREAD, Op, OpKind, TRIED};
pub use thread::{ThreadId, ThreadSet};
pub use value::ValueType;
