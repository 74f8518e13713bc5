//! Names of memory objects that are the same in every execution and in every process.
//!
//! Addresses are not: address space randomisation moves the program, its libraries and main's stack from one worker to
//! the next. So a trace names memory by region and offset. An [`ObjectId`] names one *granule*, eight aligned bytes;
//! which of the eight bytes an operation touches is the operation's byte mask.

/// A granule of memory, or something that is not memory at all (the table of threads, the process).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct ObjectId(pub u64);

/// Where an object lives: the top four bits of its id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Region {
    /// No object.
    None = 0,
    /// A loaded module: its number in the order of loading, and the offset from its load address.
    Module = 1,
    /// The runtime's heap, which has a fixed address.
    Heap = 2,
    /// The stack or thread-locals of a created thread, which have a fixed address.
    Stack = 3,
    /// Main's stack, as the distance down from its top.
    MainStack = 4,
    /// Not memory: see the constants of [`ObjectId`].
    Special = 5,
    /// Any other mapping, by address.
    Mapping = 6,
}

const REGION_SHIFT: u32 = 60;
/// Marks the queue of waiters of a futex in memory of that region.
const FUTEX: u64 = 1 << 63;
/// Of the two words of a granule, the upper one.
const UPPER: u64 = 4;
const MODULE_SHIFT: u32 = 44;
const PAYLOAD: u64 = (1 << REGION_SHIFT) - 1;

impl ObjectId {
    /// No object.
    pub const NONE: ObjectId = ObjectId(0);
    /// The table of threads: numbers are given in the order of creation, so creations depend on each other.
    pub const THREADS: ObjectId = ObjectId((Region::Special as u64) << REGION_SHIFT | 8);
    /// The table of thread-specific keys.
    pub const KEYS: ObjectId = ObjectId((Region::Special as u64) << REGION_SHIFT | 16);

    /// The offset of an open file, by a descriptor of it.
    pub const fn descriptor(fd: u32) -> ObjectId {
        ObjectId::new(Region::Special, 1 << 32 | (fd as u64) << 3)
    }

    /// One of eight channels (pipes, sockets and their like): each is a byte of the granule, so that an operation can name
    /// several.
    pub const fn channels(group: u32) -> ObjectId {
        ObjectId::new(Region::Special, 2 << 32 | (group as u64) << 3)
    }

    pub const fn is_channels(self) -> bool {
        self.0 | 24 == ObjectId::channels(3).0
    }

    /// Pending signals, what threads block and what handles them. Waited for as channels are.
    pub const SIGNALS: ObjectId = ObjectId::channels(2);

    /// Whether a thread has ended, and shall be cancelled. Of many threads some share one.
    pub const fn life(thread: u16) -> ObjectId {
        ObjectId::life_at(ObjectId::life_place(thread))
    }

    pub(crate) const ALL_LIVES: u8 = 63;

    pub(crate) const fn life_place(thread: u16) -> u8 {
        (thread % ObjectId::ALL_LIVES as u16) as u8
    }

    pub(crate) const fn life_at(place: u8) -> ObjectId {
        ObjectId::new(Region::Special, 3 << 32 | (place as u64) << 3)
    }

    /// That some thread shall be cancelled.
    pub const LIVES: ObjectId = ObjectId::life_at(ObjectId::ALL_LIVES);

    /// A file, an entry of a directory, an open file's offset: something with a name of many bits.
    pub const fn hashed(hash: u64) -> ObjectId {
        ObjectId::new(Region::Special, 1 << 59 | (hash << 3 & ((1 << 59) - 1)))
    }

    pub const fn new(region: Region, payload: u64) -> ObjectId {
        ObjectId((region as u64) << REGION_SHIFT | (payload & PAYLOAD))
    }

    pub const fn module(index: u16, offset: u64) -> ObjectId {
        ObjectId::new(Region::Module, (index as u64) << MODULE_SHIFT | (offset & ((1 << MODULE_SHIFT) - 1)))
    }

    /// The queue of those who wait on the futex whose word is in the granule, at the offset.
    pub const fn futex(granule: ObjectId, offset: usize) -> ObjectId {
        ObjectId(granule.0 | FUTEX | (offset as u64 & UPPER))
    }

    pub const fn is_futex(self) -> bool {
        self.0 & FUTEX != 0
    }

    /// The granule and the bytes of the word of a futex.
    pub const fn futex_word(self) -> (ObjectId, u8) {
        (self.memory(), if self.0 & UPPER != 0 { 0xf0 } else { 0x0f })
    }

    /// The granule that belongs to it: its own, unless it is the queue of a futex.
    pub const fn memory(self) -> ObjectId {
        if self.is_futex() { ObjectId(self.0 & !(FUTEX | UPPER)) } else { self }
    }

    pub const fn region(self) -> Region {
        match self.0 >> REGION_SHIFT & 7 {
            1 => Region::Module,
            2 => Region::Heap,
            3 => Region::Stack,
            4 => Region::MainStack,
            5 => Region::Special,
            6 => Region::Mapping,
            _ => Region::None,
        }
    }

    pub const fn payload(self) -> u64 {
        self.0 & PAYLOAD
    }

    /// Module number and offset of an object in [`Region::Module`].
    pub const fn module_offset(self) -> (u16, u64) {
        ((self.payload() >> MODULE_SHIFT) as u16, self.0 & ((1 << MODULE_SHIFT) - 1))
    }
}
