//! What a program can say to symdpor by calling functions of certain names: those of `symdpor.h`, and those of the SV-COMP
//! benchmarks. The pass turns such calls into `Hooks::author`, the runtime does what is asked.

/// The first argument of the hook; the second is the function's own first argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Author {
    /// Any number below the argument.
    Choose = 0,
    /// Drops the execution if the argument is 0.
    Assume = 1,
    AtomicBegin = 2,
    AtomicEnd = 3,
    Yield = 4,
    /// The argument is the running thread's name.
    ThreadName = 5,
    /// The program says that this must not be reached.
    Error = 6,
    /// A number of a type: see [`NONDET`]. The argument is the index there.
    Nondet = 7,
}

impl Author {
    pub fn from_u32(raw: u32) -> Option<Author> {
        use Author::*;
        [Choose, Assume, AtomicBegin, AtomicEnd, Yield, ThreadName, Error, Nondet].get(raw as usize).copied()
    }
}

/// The functions of `symdpor.h`. Their bodies there do nothing.
pub const HEADER: [(&str, Author); 6] = [
    ("symdpor_choose", Author::Choose),
    ("symdpor_assume", Author::Assume),
    ("symdpor_atomic_begin", Author::AtomicBegin),
    ("symdpor_atomic_end", Author::AtomicEnd),
    ("symdpor_yield", Author::Yield),
    ("symdpor_thread_name", Author::ThreadName),
];

/// The names of SV-COMP, without those that ask for a number.
pub const SV_COMP: [(&str, Author); 6] = [
    ("__VERIFIER_assume", Author::Assume),
    ("assume_abort_if_not", Author::Assume),
    ("__VERIFIER_atomic_begin", Author::AtomicBegin),
    ("__VERIFIER_atomic_end", Author::AtomicEnd),
    ("reach_error", Author::Error),
    ("__VERIFIER_error", Author::Error),
];

/// The bodies of functions whose names begin like this are atomic sections.
pub const ATOMIC_PREFIX: &str = "__VERIFIER_atomic_";

pub const NONDET_PREFIX: &str = "__VERIFIER_nondet_";

/// The types that a number can be asked for: name, bits, whether it is signed. Without bits: no number.
pub const NONDET: [(&str, u32, bool); 26] = [
    ("bool", 1, false),
    ("_Bool", 1, false),
    ("char", 8, true),
    ("schar", 8, true),
    ("uchar", 8, false),
    ("short", 16, true),
    ("ushort", 16, false),
    ("int", 32, true),
    ("uint", 32, false),
    ("unsigned", 32, false),
    ("unsigned_int", 32, false),
    ("long", 64, true),
    ("ulong", 64, false),
    ("longlong", 64, true),
    ("ulonglong", 64, false),
    ("size_t", 64, false),
    ("u8", 8, false),
    ("u16", 16, false),
    ("u32", 32, false),
    ("loff_t", 64, true),
    ("unsigned_char", 8, false),
    ("unsigned_long", 64, false),
    ("float", 32, true),
    ("double", 64, true),
    ("pointer", 0, false),
    ("pchar", 0, false),
];
