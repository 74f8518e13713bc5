//! What went wrong in an execution, in the terms of the program's source.
//!
//! These are the records that reports are made from, right after a run or later from a [trace file](crate::file): all
//! numbers of sites and objects have been turned into names, so that nothing else is needed to show them.

use crate::thread::ThreadId;
use crate::value::ValueType;
use serde::{Deserialize, Serialize};
use symdpor_abi::op::OpKind;

/// A place in the source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Location {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub function: String,
}

impl Location {
    /// Whether it is in a header of the system or of the compiler, and not in what the user wrote.
    pub fn is_system(&self) -> bool {
        let file = self.file.as_str();
        ["/usr/include/", "/usr/lib/", "/usr/local/include/"].iter().any(|p| file.starts_with(p))
            || file.contains("/include/c++/")
    }
}

/// The frame that says most to the user: the innermost one in their own code, or else the innermost one.
pub fn telling(frames: &[Location]) -> Option<&Location> {
    frames.iter().find(|f| !f.is_system() && f.line != 0).or(frames.first())
}

/// The kinds of error, as section 4 of the design and the JSON output name them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum FailureKind {
    Deadlock,
    DataRace,
    Assertion,
    Crash,
    Memory,
    LockMisuse,
    ExitStatus,
    Livelock,
    StepLimit,
}

impl FailureKind {
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Deadlock => "deadlock",
            FailureKind::DataRace => "data-race",
            FailureKind::Assertion => "assertion",
            FailureKind::Crash => "crash",
            FailureKind::Memory => "memory",
            FailureKind::LockMisuse => "lock-misuse",
            FailureKind::ExitStatus => "exit-status",
            FailureKind::Livelock => "livelock",
            FailureKind::StepLimit => "step-limit",
        }
    }
}

/// Why a stack is shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum StackRole {
    /// Where the error happened.
    Error,
    /// The earlier access of a race.
    Earlier,
    /// A thread that had not ended.
    Other,
    Allocated,
    Freed,
}

/// The calls a thread was in, innermost first; inlined functions have frames of their own.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Stack {
    pub thread: ThreadId,
    pub role: StackRole,
    pub frames: Vec<Location>,
}

/// One of the two accesses of a race.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct RaceAccess {
    pub thread: ThreadId,
    pub write: bool,
    pub atomic: bool,
}

/// Two accesses to the same memory that nothing orders.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Race {
    /// The variable, as well as it is known.
    pub object: String,
    pub this: RaceAccess,
    pub earlier: RaceAccess,
}

/// A thread that had not ended when the execution did, and what it was about to do.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Wait {
    pub thread: ThreadId,
    /// Whether it could have gone on.
    pub enabled: bool,
    #[serde(with = "op_kind")]
    pub op: OpKind,
    /// What it waits for: a mutex, a condition variable.
    pub object: String,
    /// For a join, the thread waited for.
    pub joined: Option<ThreadId>,
    pub location: Option<Location>,
    /// Who holds the lock it waits for, and where that thread took it.
    pub holder: Option<ThreadId>,
    pub held_since: Option<Location>,
}

/// An error of the program under test.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
    pub thread: Option<ThreadId>,
    pub location: Option<Location>,
    pub race: Option<Race>,
    pub waits: Vec<Wait>,
    pub stacks: Vec<Stack>,
}

/// What makes two failures the same one: their kind and the places in the source that they name; for an exit status,
/// which has no better place than the end of main, the status too.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Signature {
    pub kind: FailureKind,
    places: Vec<(String, u32)>,
    status: Option<String>,
}

impl Failure {
    /// Threads that do the same at the same place are not told apart, so that one deadlock among equal workers is not
    /// reported once for each pair of them.
    pub fn signature(&self) -> Signature {
        let waits =
            self.waits.iter().filter(|_| self.kind == FailureKind::Deadlock).filter_map(|w| w.location.as_ref());
        let earlier = self.stacks.iter().filter(|s| s.role == StackRole::Earlier).filter_map(|s| s.frames.first());
        let mut places: Vec<(String, u32)> =
            self.location.iter().chain(waits).chain(earlier).map(|l| (l.file.clone(), l.line)).collect();
        places.sort();
        places.dedup();
        let status = (self.kind == FailureKind::ExitStatus).then(|| self.message.clone());
        Signature { kind: self.kind, places, status }
    }

    pub fn stack(&self, role: StackRole) -> Option<&Stack> {
        self.stacks.iter().find(|s| s.role == role)
    }
}

/// One step of the execution, for the list of what led to the error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Event {
    pub thread: ThreadId,
    #[serde(with = "op_kind")]
    pub op: OpKind,
    /// C11 memory order of atomic operations.
    pub order: u8,
    /// The thread created, joined or woken; the status of an exit.
    pub arg: u32,
    /// Bytes touched, for accesses to memory.
    pub size: u8,
    pub object: String,
    /// The mutex of a wait on a condition variable.
    pub object2: String,
    /// Value before and after.
    pub values: Option<(u64, u64)>,
    /// How many ways it could have gone.
    pub alternatives: u16,
    /// 1 + index into the file's locations, or 0.
    pub location: u32,
    /// What `object` and `object2` are, whatever they are called: equal numbers are the same memory. 0 for none.
    pub id: u64,
    pub id2: u64,
    /// The bytes of the first that are touched.
    pub mask: u8,
    /// How the values are read.
    pub ty: ValueType,
}

/// A plain access within a step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlainAccessEvent {
    /// How many steps had begun.
    pub step: u32,
    pub thread: ThreadId,
    pub write: bool,
    /// A write that frees the block.
    pub frees: bool,
    /// Bytes touched.
    pub size: u32,
    pub object: String,
    /// The first granule and the bytes of it.
    pub id: u64,
    pub mask: u8,
    /// Value before and after.
    pub values: Option<(u64, u64)>,
    /// 1 + index into the file's locations, or 0.
    pub location: u32,
    /// How the values are read.
    pub ty: ValueType,
}

/// What the program wrote.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OutputChunk {
    /// 1 or 2.
    pub descriptor: u8,
    pub bytes: Vec<u8>,
}

/// Operation kinds are written as their number, which the protocol between runtime and controller fixes.
mod op_kind {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use symdpor_abi::op::OpKind;

    pub fn serialize<S: Serializer>(kind: &OpKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*kind as u8)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OpKind, D::Error> {
        let raw = u8::deserialize(deserializer)?;
        OpKind::from_u8(raw).ok_or_else(|| D::Error::custom("no such operation"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: u32) -> Option<Location> {
        Some(Location { file: "a.c".into(), line, ..Location::default() })
    }

    fn wait(thread: u16, line: u32) -> Wait {
        Wait {
            thread: ThreadId(thread),
            enabled: false,
            op: OpKind::MutexLock,
            object: "m".into(),
            joined: None,
            location: place(line),
            holder: None,
            held_since: None,
        }
    }

    fn deadlock(waits: Vec<Wait>) -> Failure {
        Failure {
            kind: FailureKind::Deadlock,
            message: String::new(),
            thread: None,
            location: None,
            race: None,
            waits,
            stacks: vec![],
        }
    }

    #[test]
    fn a_deadlock_is_known_by_its_places_not_by_its_threads() {
        let a = deadlock(vec![wait(1, 10), wait(2, 20)]);
        let b = deadlock(vec![wait(2, 10), wait(5, 20), wait(7, 20)]);
        let c = deadlock(vec![wait(1, 10), wait(2, 21)]);
        assert_eq!(a.signature(), b.signature());
        assert_ne!(a.signature(), c.signature());
    }

    #[test]
    fn the_kind_is_part_of_the_signature() {
        let mut a = deadlock(vec![]);
        a.location = place(3);
        let b = Failure { kind: FailureKind::Livelock, ..a.clone() };
        assert_ne!(a.signature(), b.signature());
    }
}
