//! What memory is called in a report.
//!
//! A global variable, or part of one, has the name that debug information gives it. Other memory is called as the source
//! writes it where it is used. Inside of the C++ library that says nothing (`*this`, `*__mem`): there it is the object
//! whose function the program's own code called.

use std::collections::{BTreeMap, BTreeSet};
use symdpor_abi::object::{ObjectId, Region};
use symdpor_abi::op::{Op, OpKind};
use symdpor_trace::ValueType;
use symdpor_worker::{Globals, Sites};

pub struct Naming<'a> {
    pub sites: &'a Sites,
    pub globals: &'a Globals,
}

/// Part of an object.
#[derive(Clone, Copy)]
pub struct Bytes {
    pub object: ObjectId,
    pub mask: u8,
    pub len: u32,
}

/// How the names of memory begin that has none of its own.
const NAMELESS: [&str; 6] = ["heap+0x", "stack+0x", "main's stack-", "memory at 0x", "program+0x", "library+0x"];

impl Naming<'_> {
    /// The name of what is accessed by a thread in these frames, innermost first, and how its value is read.
    pub fn accessed(&self, bytes: Bytes, frames: &[u32]) -> (String, ValueType) {
        let written = frames.first().map_or_else(String::new, |&site| self.sites.code(site));
        let ty = ValueType::parse(&written, bytes.len);
        if let Some(part) = self.globals.part(bytes.object, bytes.mask, u64::from(bytes.len)) {
            let declared = ValueType::parse(&part.code, bytes.len);
            return (part.name, if declared == ValueType::Unknown { ty } else { declared });
        }
        let name = self.as_written(frames).unwrap_or_else(|| self.globals.describe(bytes.object, bytes.mask));
        (name, ty)
    }

    /// As the program's own code calls it.
    pub fn as_written(&self, frames: &[u32]) -> Option<String> {
        let innermost = *frames.first()?;
        let is_library = self.sites.location(innermost).is_some_and(|l| l.is_system());
        let name = self.sites.name(innermost);
        if !is_library || name.as_deref().is_some_and(|n| !is_internal(n)) {
            return name;
        }
        if self.sites.location(innermost).is_some_and(|l| counts_references(&l.file)) {
            return Some("a reference count".to_owned());
        }
        let own = frames.iter().find(|&&site| self.sites.frames(site).iter().any(|l| !l.is_system() && l.line != 0))?;
        self.sites.name(*own).filter(|n| !n.trim_start_matches('*').starts_with('_'))
    }
}

/// Whether a name only says where in memory something is.
pub fn is_nameless(name: &str) -> bool {
    NAMELESS.iter().any(|n| name.starts_with(n))
}

fn counts_references(file: &str) -> bool {
    file.ends_with("ext/atomicity.h") || file.ends_with("bits/shared_ptr_base.h")
}

/// Whether a name is one of the implementation's own, and not the user's.
fn is_internal(name: &str) -> bool {
    let base = name.trim_start_matches('*');
    let end = base.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(base.len());
    base.starts_with('_') || &base[..end] == "this"
}

/// Locks and their like have one name each, wherever they are used, and no two have the same.
#[derive(Default)]
pub struct LockNames {
    names: BTreeMap<u64, String>,
}

impl LockNames {
    /// From the operations of an execution, in order, with the frames in which they were made.
    pub fn new<'a>(naming: &Naming<'_>, operations: impl Iterator<Item = (&'a Op, Vec<u32>)>) -> LockNames {
        let mut lock_names = LockNames::default();
        let mut taken = BTreeSet::new();
        for (op, frames) in operations {
            let is_memory = !matches!(op.object.region(), Region::None | Region::Special | Region::Module);
            if !is_memory || is_access(op.kind) || lock_names.names.contains_key(&op.object.0) {
                continue;
            }
            if let Some(name) = naming.as_written(&frames) {
                let name = distinct(&name, &taken);
                taken.insert(name.clone());
                lock_names.names.insert(op.object.0, name);
            }
        }
        lock_names
    }

    pub fn get(&self, object: ObjectId) -> Option<String> {
        self.names.get(&object.0).cloned()
    }
}

/// Whether an operation reads or writes a variable, and not a lock or its like.
pub fn is_access(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::AtomicLoad
            | OpKind::AtomicStore
            | OpKind::AtomicRmw
            | OpKind::AtomicCas
            | OpKind::PlainLoad
            | OpKind::PlainStore
    )
}

/// `from->lock` may be another lock in each thread: then the second one is `from->lock #2`.
fn distinct(name: &str, taken: &BTreeSet<String>) -> String {
    let candidates = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name} #{n}")));
    candidates.into_iter().find(|c| !taken.contains(c)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_implementation() {
        assert!(is_internal("*this") && is_internal("this->_M_i") && is_internal("*__mem") && is_internal("this->x"));
        assert!(!is_internal("thistle") && !is_internal("queue->head") && !is_internal("*p"));
    }

    #[test]
    fn no_two_locks_have_one_name() {
        let mut taken = BTreeSet::from(["m".to_owned()]);
        assert_eq!(distinct("n", &taken), "n");
        assert_eq!(distinct("m", &taken), "m #2");
        taken.insert("m #2".to_owned());
        assert_eq!(distinct("m", &taken), "m #3");
    }
}
