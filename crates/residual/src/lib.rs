//! Residual code of suspension points: what a frame may still do, so that it can be compared with another's.
//!
//! From the IR digests that the pass leaves in the program (docs/digest.md) come control-flow graphs, and from these,
//! for each point, a 128-bit hash of the code that can still run. Equal hashes mean that the code does the same if the
//! live locals hold the same, in the order of the lists that come with the hashes. It works across functions and
//! modules, without linking the program's code together.
//!
//! This is more than the syntactic equality of "Automatic Discovery of Transition Symmetry in Multithreaded Programs
//! using Dynamic Analysis" (Fig. 3), because optimisers copy code: `behaviour.rs` minimises the graph. Where that takes
//! too much work, the hash is that of the code with locals and labels numbered in the order in which they are met
//! (`canonical.rs`), which is the paper's equality, content-addressed.
//!
//! Plain data in and out: no file, no process, no clock. The digest comes from memory that the program under test can
//! write to, so a damaged one gives no point, and never a panic or an endless loop.
//!
//! Not covered: the contents of what is live (that is the runtime's), and code that was not instrumented.
#![forbid(unsafe_code)]

mod behaviour;
mod canonical;
mod colour;
mod flow;
mod function;
mod hash;
mod library;
mod opcode;
mod operand;
mod reader;
mod residual;
mod section;
mod signature;
mod steps;
mod term;
mod types;
mod uses;

pub use function::ObjectKind;
pub use library::{FunctionEntry, FunctionName, Library, ModuleTables, Point};
pub use reader::Damaged;
pub use residual::{Live, LiveKind, Residual};
