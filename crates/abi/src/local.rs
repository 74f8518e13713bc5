//! Local states: what the controller tells the runtime of suspension points, and what the runtime answers.
//!
//! A thread's local state is a hash over its frames: for each the residual code, which the controller works out from the IR
//! digests, and the values that are live there. The runtime meets a site, asks for its description if there is none yet, and
//! from then on hashes by it.
//!
//! A description is a record of `u64` words: [`Description`], then the items of the live locals before the point, then of those
//! after it. All records of footprints and of memory are words, too; the low byte of the first one is the kind of record.

/// What a suspension point is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Hash of the code from the point on, the operation itself included, and from behind it on.
    pub before: [u64; 2],
    pub after: [u64; 2],
    /// [`name_hash`] of the function that is called, if that is known; else 0.
    pub callee: u64,
    /// 1 + the slot that holds the address of the function that is called, if that is done through a pointer; else 0.
    pub target: u64,
    pub before_count: u32,
    pub after_count: u32,
    /// Bits of [`flags`].
    pub flags: u64,
}

pub const DESCRIPTION_WORDS: usize = size_of::<Description>() / 8;

pub mod flags {
    /// All that is live before the point can be read.
    pub const BEFORE: u64 = 1;
    /// The same behind it.
    pub const AFTER: u64 = 2;
    /// No code that was not instrumented stands between the frame and the thread's pending operation: it is an access, or the
    /// call of a function that symdpor provides.
    pub const DIRECT: u64 = 4;
}

/// A live local: slot | kind << 32 | size << 40.
pub mod item {
    /// In `size` slots from the given one on.
    pub const VALUE: u64 = 0;
    /// `size` bytes at the address in the slot.
    pub const OBJECT: u64 = 1;
    /// The same, if something that is live points to it.
    pub const WEAK: u64 = 2;

    pub const fn pack(slot: u32, kind: u64, size: u64) -> u64 {
        slot as u64 | kind << 32 | size << 40
    }

    pub const fn unpack(raw: u64) -> (usize, u64, usize) {
        (raw as u32 as usize, raw >> 32 & 0xff, (raw >> 40) as usize)
    }

    /// Larger ones are not described.
    pub const MAX_SIZE: u64 = 1 << 20;
}

/// FNV-1a, 64 bits; never 0.
pub const fn name_hash(name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut i = 0;
    while i < name.len() {
        hash = (hash ^ name[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    if hash == 0 { 1 } else { hash }
}

/// Records of footprints, in the order of the steps from the plan's last choice on.
pub mod footprint {
    /// 1 | thread << 8 | mask << 24 | write << 32 | granules << 33; then the object.
    pub const ACCESS: u64 = 1;
    /// 2 | thread << 8; then the hash, the lower half first. Zero: like no other.
    pub const LOCAL: u64 = 2;
    /// 3 | identified << 8 | has a result << 9; then the result. Ends a step.
    pub const END: u64 = 3;
    /// 4; then the object at its beginning and the length in bytes: a heap block that was allocated.
    pub const BLOCK: u64 = 4;
    /// 16 | thread << 8 | order << 24 | first << 32 | last << 33 | several << 34: a fence, and whether no plain access of the step comes
    /// before it, and none after it. Or it stands for several, of whatever order.
    pub const FENCE: u64 = 16;
    /// 17 | thread << 8; then an object: the order of its address and another one has been asked for. The thread is the one whose memory
    /// it lies in, by its creation: main for what is nobody's.
    pub const ORDERED: u64 = 17;
    /// Added to the kinds of [`memory`](super::memory): what threads have to themselves that are alike after the step.
    pub const OF_MEMORY: u64 = 4;
}

/// Records of memory.
pub mod memory {
    /// 1 | thread << 8 | stack << 24 | settled << 25; then the hash, the lower half first: what a thread is now, with the blocks that
    /// only it has by their content, whether nobody else has an address of its stack, and whether it has no address of a block that
    /// others may have too.
    pub const THREAD: u64 = 1;
    /// 2; then the object at its beginning and the length in bytes: a live object on the stack of the thread of
    /// the record before, or a block that only that thread has.
    pub const BLOCK: u64 = 2;
    /// With `options::EXPLAIN`. 3 | thread << 8 | reason << 24; then the site: why a thread is like no other, see [`why`].
    pub const WHY: u64 = 3;
    /// The same. 4 | thread << 8 | before << 24; then the site: the words of a frame follow.
    pub const FRAME: u64 = 4;
    /// The same. 5 | thread << 8 | kind << 24; then the word. Kinds: 0 code, 1 a value, 2 an address in a live object
    /// of the own stack as the object's number and the offset, 4 an address elsewhere on it as an offset, 3 an address in a block of its own as the block's number and the offset.
    pub const WORD: u64 = 5;
}

/// Why a thread is like no other.
pub mod why {
    pub const IDENTIFIED: u64 = 2;
    pub const HOLDS_LOCK: u64 = 3;
    pub const HANDLERS: u64 = 4;
    pub const UNKNOWN: u64 = 5;
    pub const CANNOT_READ: u64 = 6;
    pub const OPAQUE: u64 = 7;
    pub const TOO_DEEP: u64 = 8;
    pub const WAITED_IN_VAIN: u64 = 9;
}

/// Where the stack of a created thread is, as objects: the first, and the length in bytes.
pub const fn stack_of(thread: u16) -> (u64, u64) {
    (STACKS_BASE + thread as u64 * STACK_STRIDE, STACK_STRIDE)
}

pub const STACKS_BASE: u64 = 0x2000_0000_0000;
pub const STACK_STRIDE: u64 = 16 << 20;
