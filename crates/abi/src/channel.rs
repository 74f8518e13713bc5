//! The shared memory between controller and worker.
//!
//! The controller makes a memory file of [`SIZE`] bytes (sparse), passes its descriptor's number in the environment
//! variable [`ENV_CHANNEL`], and puts the first plan into it before the program starts. One round trip per execution:
//!
//! 1. The controller writes the plan and then stores `Command::Run` with a new sequence number to `Header::command`.
//! 2. The worker runs the whole execution, writes steps, pending operations, error and output, and then stores the
//!    same sequence number to `Header::answer`.
//!
//! Each side wakes the other with a futex on the word it stored, if the other said that it sleeps.
//! The controller trusts nothing it reads here: the program under test can write to this memory.

use crate::op::Op;

pub const ENV_CHANNEL: &str = "SYMDPOR_CHANNEL";
/// Environment variable with the descriptor of a memory file in which the worker keeps what it has read of a standard input
/// that can be read only once, so that later executions and later workers read the same. The first eight bytes are not 0
/// once the end of the input has been seen; the rest is the input. Without it a worker keeps a log of its own.
pub const ENV_INPUT: &str = "SYMDPOR_INPUT";
pub const INPUT_HEADER: usize = 8;
pub const MAGIC: u64 = u64::from_le_bytes(*b"SYMDCHAN");

/// The header is at offset 0.
pub const PLAN_OFFSET: usize = 64 << 10;
/// Choices in a plan at most (a `u32` each).
pub const PLAN_CAPACITY: usize = 2 << 20;
pub const SLEEP_OFFSET: usize = PLAN_OFFSET + 4 * PLAN_CAPACITY;
/// Threads in a sleep set (a `u32` each).
pub const SLEEP_CAPACITY: usize = crate::MAX_THREADS;
/// The steps of the execution, then nothing. [`Step`] records, each followed by its enabled set.
pub const TRACE_OFFSET: usize = 16 << 20;
pub const TRACE_BYTES: usize = 256 << 20;
/// The [`Pending`] operations at the end of the execution, one per unfinished thread.
pub const PENDING_OFFSET: usize = TRACE_OFFSET + TRACE_BYTES;
pub const PENDING_BYTES: usize = 1 << 20;
/// Message and stacks of an error.
pub const ERROR_OFFSET: usize = PENDING_OFFSET + PENDING_BYTES;
pub const ERROR_BYTES: usize = 4 << 20;
/// What the program wrote to its standard output and error in this execution, oldest first, cut at the capacity:
/// records of `u32` descriptor (1 or 2), `u32` length, bytes, padded to a multiple of 8.
pub const OUTPUT_OFFSET: usize = ERROR_OFFSET + ERROR_BYTES;
pub const OUTPUT_BYTES: usize = 4 << 20;
/// The modules, as they register: see [`ModuleRecord`].
pub const MODULES_OFFSET: usize = OUTPUT_OFFSET + OUTPUT_BYTES;
pub const MODULES_BYTES: usize = 512 << 20;
/// With [`options::STACKS`]: the stack of each step's thread before the step, a [`StackRecord`] each.
pub const STACKS_OFFSET: usize = MODULES_OFFSET + MODULES_BYTES;
pub const STACKS_BYTES: usize = 64 << 20;
/// With [`options::LOCALS`]: what the new steps did and left, see [`crate::local`].
pub const FOOTPRINTS_OFFSET: usize = STACKS_OFFSET + STACKS_BYTES;
pub const FOOTPRINTS_BYTES: usize = 64 << 20;
/// For each site, where its description is in the region after this: a `u32`, in words of eight bytes. 0: not known yet, 1: it
/// cannot be described.
pub const POINTS_OFFSET: usize = FOOTPRINTS_OFFSET + FOOTPRINTS_BYTES;
pub const POINTS_CAPACITY: usize = 1 << 20;
pub const DESCRIPTIONS_OFFSET: usize = POINTS_OFFSET + 4 * POINTS_CAPACITY;
pub const DESCRIPTIONS_BYTES: usize = 16 << 20;
/// Sites whose description was missed, a `u32` each.
pub const WANTED_OFFSET: usize = DESCRIPTIONS_OFFSET + DESCRIPTIONS_BYTES;
pub const WANTED_CAPACITY: usize = 16 << 10;
/// With [`options::ASK`]: the memory of the threads, see [`crate::local`].
pub const MEMORY_OFFSET: usize = WANTED_OFFSET + 4 * WANTED_CAPACITY;
pub const MEMORY_BYTES: usize = 4 << 20;
/// With [`options::ACCESSES`]: the plain accesses, an [`AccessRecord`] each, as many as there is room for.
pub const ACCESSES_OFFSET: usize = MEMORY_OFFSET + MEMORY_BYTES;
pub const ACCESSES_BYTES: usize = 16 << 20;
/// With [`options::ACCESSES`]: the names that threads were given, a [`NameRecord`] each.
pub const NAMES_OFFSET: usize = ACCESSES_OFFSET + ACCESSES_BYTES;
pub const NAMES_BYTES: usize = 64 << 10;
/// With [`options::ACCESSES`]: the heap blocks that were used, a [`BlockRecord`] each.
pub const BLOCKS_OFFSET: usize = NAMES_OFFSET + NAMES_BYTES;
pub const BLOCKS_BYTES: usize = 4 << 20;
pub const SIZE: usize = BLOCKS_OFFSET + BLOCKS_BYTES;

/// `Header::options`.
pub mod options {
    /// Plain accesses to memory that threads can share are visible operations.
    pub const VISIBLE_ALL: u32 = 1;
    /// Do not look for data races.
    pub const IGNORE_RACES: u32 = 2;
    /// Let output of this execution through to the real descriptors as well as into the channel.
    pub const SHOW_OUTPUT: u32 = 4;
    /// Record the stack of each access to `Header::watch` (to find the earlier access of a data race).
    pub const WATCH: u32 = 8;
    /// The bytes of that granule that count, in the upper eight bits; none stands for all.
    pub const WATCH_MASK_SHIFT: u32 = 24;
    /// Record the stack of each step (to report a failing execution; ordinary ones need none).
    pub const STACKS: u32 = 16;
    /// Leave footprints.
    pub const LOCALS: u32 = 32;
    /// Stop before the last choice of the plan, and tell what memory each thread has to itself.
    pub const ASK: u32 = 64;
    /// Tell the words that local states are made of, before the last choice of the plan.
    pub const EXPLAIN: u32 = 128;
    /// Coming back to a state is an error.
    pub const LIVELOCK: u32 = 256;
    /// Stop where a thread comes round in vain, from the plan's last choice on.
    pub const STOPS_IN_VAIN: u32 = 512;
    /// Numbers that the program asks for are between `Header::nondet_low` and `Header::nondet_high`.
    pub const NONDET: u32 = 1 << 12;
    /// Record plain accesses with their values, and the names of threads (to report a failing execution).
    pub const ACCESSES: u32 = 1 << 16;
    /// A debugger is attached: call the functions that it stops at.
    pub const DEBUGGER: u32 = 1 << 17;
}

/// Words of the sleep set: the thread's number, and bits.
pub mod sleeper {
    /// Its last step was one with which it came round in vain.
    pub const IN_VAIN: u32 = 1 << 31;
    /// The operation that it stands before failed where it was explored.
    pub const FAILED: u32 = 1 << 30;
}

/// `AccessRecord::flags`.
pub mod access_flags {
    pub const WRITES: u16 = 1;
    /// The values are known.
    pub const VALUES: u16 = 2;
    /// It is no write but the end of the block.
    pub const FREES: u16 = 4;
}

/// `Header::waiting`: what either side does for a while before it sleeps.
pub mod waiting {
    pub const NOTHING: u32 = 0;
    /// Two CPUs are usable: the other side is at work.
    pub const SPINS: u32 = 1;
    /// There is one CPU: the other side needs it. Giving it away costs less than sleeping and being woken.
    pub const YIELDS: u32 = 2;
}

/// `Header::command`: the low 8 bits; the sequence number is above them.
pub mod command {
    pub const NONE: u32 = 0;
    pub const RUN: u32 = 1;
    pub const QUIT: u32 = 2;
}

/// How an execution ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Outcome {
    /// The worker has not ended its execution (the value found if it died).
    Running = 0,
    /// The process exited with `Header::exit_status`.
    Exited = 1,
    /// No thread can run, and some have not ended.
    Deadlock = 2,
    /// An error of `Header::error_kind`.
    Error = 3,
    /// Only sleeping threads can run: a redundant execution, cut off.
    SleepBlocked = 4,
    /// The plan named a thread that cannot run: the program did not behave as before.
    Diverged = 5,
    /// The program did something that is not supported; named in the message.
    Unsupported = 6,
    /// More than `Header::max_steps` transitions.
    StepLimit = 7,
    /// More threads than the pool has: run the same plan again (the worker has enlarged its pool).
    Again = 8,
    /// It was asked for the memory of its threads, and stopped there.
    Asked = 9,
    /// The state is one that the execution has been in: before the step `Header::exit_status`.
    Repeated = 10,
    /// An assumption of the program does not hold: the execution does not count. It ran until nothing could go on.
    Dropped = 11,
    /// The same, and it was cut off at once.
    DroppedHere = 12,
    /// A thread has come round in vain: stopped there.
    InVain = 13,
}

impl Outcome {
    pub fn from_u32(raw: u32) -> Option<Outcome> {
        use Outcome::*;
        const ALL: [Outcome; 14] = [
            Running,
            Exited,
            Deadlock,
            Error,
            SleepBlocked,
            Diverged,
            Unsupported,
            StepLimit,
            Again,
            Asked,
            Repeated,
            Dropped,
            DroppedHere,
            InVain,
        ];
        ALL.get(raw as usize).copied()
    }
}

/// Kinds of error the runtime can find itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum ErrorKind {
    None = 0,
    DataRace = 1,
    Assertion = 2,
    Crash = 3,
    Memory = 4,
    LockMisuse = 5,
    Livelock = 6,
}

impl ErrorKind {
    pub fn from_u32(raw: u32) -> Option<ErrorKind> {
        use ErrorKind::*;
        [None, DataRace, Assertion, Crash, Memory, LockMisuse, Livelock].get(raw as usize).copied()
    }
}

/// Offset 0 of the channel. Words marked *atomic* are read while the other side may write them. Each side spins on a word
/// that shares its cache line (64 bytes) with nothing but what its writer changes just before: neither disturbs the other
/// before it is done, and one line is all that has to move.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Header {
    // Controller to worker, seldom changed.
    pub magic: u64,
    /// [`crate::CHANNEL_VERSION`].
    pub version: u32,
    /// One of [`waiting`].
    pub waiting: u32,
    pub max_steps: u32,
    pub reserved_1: u32,
    /// Seed of what looks random to the program.
    pub seed: u64,
    /// Canonical id of the granule to watch, with [`options::WATCH`].
    pub watch: u64,
    /// With [`options::NONDET`].
    pub nondet_low: i64,
    pub nondet_high: i64,
    pub reserved_2: u64,

    // Controller to worker, what the worker waits for.
    /// *atomic*: command | sequence << 8.
    pub command: u32,
    /// *atomic*: the controller sleeps in a futex on `answer`.
    pub controller_sleeps: u32,
    pub plan_len: u32,
    /// Threads in the sleep set; it holds in the state before the last choice of the plan.
    pub sleep_len: u32,
    /// Bits of [`options`].
    pub options: u32,
    /// One more than the number of choices of this plan that the next one is likely to begin with: the worker may make them before
    /// it comes. 0: nothing is known of it.
    pub head_start: u32,
    pub reserved_3: [u32; 10],

    // Worker to controller, what the controller waits for.
    /// *atomic*: the sequence number of the last command that was carried out.
    pub answer: u32,
    /// *atomic*: the worker sleeps in a futex on `command`.
    pub worker_sleeps: u32,
    /// *atomic*: 1 once the runtime is in charge of the program.
    pub attached: u32,
    /// An [`Outcome`].
    pub outcome: u32,
    /// An [`ErrorKind`].
    pub error_kind: u32,
    pub exit_status: u32,
    /// Signal number of a crash.
    pub signal: u32,
    pub step_count: u32,
    pub pending_count: u32,
    /// Bytes used in the trace region.
    pub trace_len: u32,
    pub thread_count: u32,
    /// Thread that was running at the end.
    pub current_thread: u32,
    /// Bytes used in the error region: see [`ErrorRecord`].
    pub error_len: u32,
    /// Bytes used in the region of footprints.
    pub footprints_len: u32,
    /// How many sites' descriptions were missed.
    pub wanted_len: u32,
    /// Bytes used in the region of memory.
    pub memory_len: u32,

    // Worker to controller, what most executions leave as it is.
    /// Bytes used in the output region.
    pub output_len: u32,
    /// 1 if output was cut.
    pub output_cut: u32,
    /// Bytes used in the region of stacks.
    pub stacks_len: u32,
    /// Bytes used in the modules region, and how many records there are.
    pub modules_len: u32,
    pub modules_count: u32,
    /// How memory is restored: 0 write-protected pages, 1 userfaultfd, 2 fork.
    pub restore_method: u32,
    /// Bytes used in the regions of accesses, of names and of blocks.
    pub accesses_len: u32,
    pub names_len: u32,
    pub blocks_len: u32,
    /// How many other processes the program has talked to.
    pub peers: u32,
    pub reserved_4: [u32; 6],

    // Worker to controller, while it runs.
    /// *atomic*: grows with every step; the controller's watchdog looks at it.
    pub heartbeat: u32,
    pub reserved_5: [u32; 15],
}

const _: () = assert!(core::mem::offset_of!(Header, command) == 64);
const _: () = assert!(core::mem::offset_of!(Header, answer) == 128);
const _: () = assert!(core::mem::offset_of!(Header, output_len) == 192);
const _: () = assert!(core::mem::offset_of!(Header, heartbeat) == 256);
const _: () = assert!(size_of::<Header>() == 320);

/// One executed transition. Followed by `enabled_words` words: the set of threads enabled *before* it, bit t of word
/// t / 64 for thread t.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    pub thread: u16,
    pub enabled_words: u16,
    /// How many ways this operation could have gone (whom a signal wakes), at least 1, and which one it went.
    pub alternatives: u16,
    pub alternative: u16,
    /// `Site::id`, or 0.
    pub site: u32,
    /// Bit 0: a value was recorded.
    pub flags: u32,
    pub op: Op,
    /// Up to eight bytes before and after the operation, for reports.
    pub old_value: u64,
    pub new_value: u64,
}

/// An operation a thread was about to do when the execution ended.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    pub thread: u16,
    /// Whether it could have been done.
    pub enabled: u16,
    pub site: u32,
    pub op: Op,
    /// For a blocked lock: the thread that holds it, or `NO_THREAD`.
    pub holder: u32,
    /// `Site::id` where the holder took it, or 0.
    pub held_since: u32,
}

/// Beginning of the error region. `message_len` bytes of UTF-8 follow, padded to 8; then `stack_count` stacks.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ErrorRecord {
    /// The thread the error happened in.
    pub thread: u32,
    /// `Site::id` of the offending operation, or 0.
    pub site: u32,
    /// For data races and memory errors: the canonical id of the granule and the bytes of it.
    pub object: u64,
    pub mask: u32,
    /// For data races: thread of the earlier access, and whether each access writes (bit 0: this, bit 1: the earlier) or is
    /// atomic (bit 2: this, bit 3: the earlier).
    pub other_thread: u32,
    pub access_bits: u32,
    pub message_len: u32,
    pub stack_count: u32,
    /// Address of a crash, raw.
    pub reserved: u32,
    pub address: u64,
    /// Of a crash in the program's own code: how far the instruction is from where the program is loaded. 0 if it is not known.
    pub instruction: u64,
}

/// A stack: `frame_count` site ids (`u32`) follow, innermost first, padded to 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StackRecord {
    pub thread: u32,
    /// A [`StackRole`].
    pub role: u32,
    pub frame_count: u32,
    pub reserved: u32,
}

/// A plain access.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessRecord {
    /// How many steps had begun: it is part of the last of them.
    pub step: u32,
    pub thread: u16,
    /// Bits of [`access_flags`].
    pub flags: u16,
    /// `Site::id`, or 0.
    pub site: u32,
    pub len: u32,
    /// Canonical id of the first granule, and the bytes of it.
    pub object: u64,
    pub mask: u32,
    pub reserved: u32,
    pub old_value: u64,
    pub new_value: u64,
}

/// The name that a thread was given, ending in a NUL.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NameRecord {
    pub thread: u32,
    pub reserved: u32,
    pub name: [u8; 16],
}

/// A block of the heap.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRecord {
    pub base: u64,
    pub size: u64,
    /// `Site::id` of its allocation, or 0.
    pub site: u32,
    pub thread: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum StackRole {
    /// Where the error happened.
    Error = 0,
    /// The earlier access of a race (found by a second run with `options::WATCH`).
    Earlier = 1,
    /// A thread that was blocked or had not ended.
    Other = 2,
    /// Where a block was allocated.
    Allocated = 3,
    /// Where a block was freed.
    Freed = 4,
}

/// A registered module in the modules region: this header, then the sites, functions, strings and digest, each copied
/// from the program and padded to 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ModuleRecord {
    /// Length of the whole record in bytes.
    pub len: u32,
    /// Id of the module's first site; ids are consecutive.
    pub first_site: u32,
    pub site_count: u32,
    pub function_count: u32,
    pub strings_len: u32,
    pub digest_len: u32,
}

/// A choice of a plan: thread | alternative << 16.
pub const fn pack_choice(thread: u16, alternative: u16) -> u32 {
    thread as u32 | (alternative as u32) << 16
}

pub const fn unpack_choice(raw: u32) -> (u16, u16) {
    (raw as u16, (raw >> 16) as u16)
}
