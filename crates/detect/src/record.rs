//! One access to a granule, in a word: who, when, which bytes, how.
//!
//! ```text
//! 63          32 31      16 15   8 7     0
//! |    clock    |  thread  | kind | bytes |
//! ```
//!
//! A record without bytes is empty. Two rules keep the set of records of a granule small without losing a race:
//! a record is *covered* by a later one of a kind at least as strong that happens after it, for the bytes they share,
//! because whatever races with the older one then races with the newer one too; and records of one thread, epoch and
//! kind are the same record.

/// How an access is done; a kind is stronger than another if it has all of its bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kind(u64);

impl Kind {
    const WRITES: u64 = 1 << 8;
    const PLAIN: u64 = 1 << 9;
    pub(crate) const READ: Kind = Kind(Kind::PLAIN);
    pub(crate) const WRITE: Kind = Kind(Kind::PLAIN | Kind::WRITES);
    pub(crate) const ATOMIC_READ: Kind = Kind(0);
    pub(crate) const ATOMIC_WRITE: Kind = Kind(Kind::WRITES);

    pub(crate) fn writes(self) -> bool {
        self.0 & Kind::WRITES != 0
    }

    pub(crate) fn is_atomic(self) -> bool {
        self.0 & Kind::PLAIN == 0
    }

    /// Whether two accesses to the same byte conflict: one writes, and one is not atomic.
    pub(crate) fn conflicts(self, other: Kind) -> bool {
        (self.0 | other.0) == Kind::WRITE.0
    }

    fn is_at_most(self, other: Kind) -> bool {
        self.0 & !other.0 == 0
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(crate) struct Record(pub(crate) u64);

const BYTES: u64 = 0xff;
const KIND: u64 = Kind::WRITES | Kind::PLAIN;
/// Set in a word that is no record but names a chain: see [`Record::chain`].
const CHAIN: u64 = 1 << 10;

impl Record {
    pub(crate) const EMPTY: Record = Record(0);

    #[inline]
    pub(crate) fn new(clock: u32, thread: usize, kind: Kind, bytes: u8) -> Record {
        Record((clock as u64) << 32 | (thread as u64) << 16 | kind.0 | bytes as u64)
    }

    /// Names chain number `index`, below 2^24, of the execution that started at clock `base`. No epoch of that
    /// execution equals its base, so a chain never looks like a record of the running thread.
    pub(crate) fn chain(base: u32, index: u32) -> Record {
        Record((base as u64) << 32 | CHAIN | (index as u64 & 0xff) | (index as u64 & 0xff_ff00) << 8)
    }

    /// The chain named, if it is one of the execution that started at `base`.
    pub(crate) fn chain_index(self, base: u32) -> Option<u32> {
        let named = self.0 & CHAIN != 0 && self.clock() == base;
        named.then_some((self.0 & 0xff | self.0 >> 8 & 0xff_ff00) as u32)
    }

    pub(crate) fn clock(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) fn thread(self) -> u16 {
        (self.0 >> 16) as u16
    }

    pub(crate) fn kind(self) -> Kind {
        Kind(self.0 & KIND)
    }

    pub(crate) fn bytes(self) -> u8 {
        self.0 as u8
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 & BYTES == 0
    }

    /// Whether this record makes recording (and checking) `access` pointless: same thread and epoch, all its bytes, a
    /// kind at least as strong. Since that record nobody else can have touched these bytes without racing with it.
    #[inline]
    pub(crate) fn absorbs(self, access: Record) -> bool {
        (self.0 ^ access.0) & (access.0 | !0xffff) == 0
    }

    /// Whether the two differ in their bytes only.
    pub(crate) fn is_twin(self, other: Record) -> bool {
        (self.0 ^ other.0) & !BYTES == 0
    }

    pub(crate) fn with_bytes_of(self, other: Record) -> Record {
        Record(self.0 | other.0 & BYTES)
    }

    pub(crate) fn without_bytes(self, bytes: u8) -> Record {
        let rest = Record(self.0 & !(bytes as u64));
        if rest.is_empty() { Record::EMPTY } else { rest }
    }

    /// What is left of this record when `access` happens after it.
    pub(crate) fn covered_by(self, access: Record) -> Record {
        if self.kind().is_at_most(access.kind()) { self.without_bytes(access.bytes()) } else { self }
    }
}
