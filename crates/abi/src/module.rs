//! What the pass puts into each module of the program: descriptor, hook table, sites, functions, shadow frames.
//!
//! The pass emits these as LLVM constants of exactly this layout (64-bit, little endian); `repr(C)` here is the
//! definition. The runtime gets the descriptor through a weak `__symdpor_register(*mut Module)`, called from a
//! constructor of priority 0. Pointers are `usize`, so that this crate needs no unsafe code.

/// First word of every descriptor: "SYMDPOR1" read as little-endian bytes.
pub const MODULE_MAGIC: u64 = u64::from_le_bytes(*b"SYMDPOR1");

/// Name of the function that modules call, if it is there, to announce themselves.
pub const REGISTER_SYMBOL: &str = "__symdpor_register";

/// What the runtime calls its own versions of functions that may be linked into the program.
pub const LINKED_IN_PREFIX: &str = "__symdpor_";

/// ELF section of the descriptors: its presence tells that a file is instrumented. Its content begins with the magic
/// and the protocol version of each descriptor, so that the controller can refuse a program of another version.
pub const MODULE_SECTION: &str = ".symdpor";

/// One per translation unit.
#[repr(C)]
pub struct Module {
    /// [`MODULE_MAGIC`].
    pub magic: u64,
    /// [`crate::PROTOCOL_VERSION`].
    pub version: u32,
    /// Number of sites.
    pub site_count: u32,
    /// `*mut Hooks`, the module's own table.
    pub hooks: usize,
    /// `*mut Site`, `site_count` of them.
    pub sites: usize,
    /// `*const Function`, `function_count` of them.
    pub functions: usize,
    pub function_count: u32,
    /// Length of `strings` in bytes.
    pub strings_len: u32,
    /// NUL-terminated UTF-8 strings, one after the other; offset 0 is the empty string.
    pub strings: usize,
    /// The IR digest (format: docs/digest.md), `digest_len` bytes.
    pub digest: usize,
    pub digest_len: u64,
}

/// A place in the source where a hook is called or a frame may be suspended.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Site {
    /// The site's number in the whole process, given by the runtime when the module registers. 0 in the file.
    pub id: u32,
    pub line: u32,
    pub column: u32,
    /// Offset in the module's strings: the source file, as in the debug info (directory joined with the name).
    pub file: u32,
    /// Index in the module's functions: the function as written (the inlined one, if it was inlined).
    pub function: u32,
    /// Offset in the module's strings: the variable or expression accessed (`counter`, `node->next`), or 0.
    pub name: u32,
    /// A [`SiteKind`].
    pub kind: u32,
    /// For an inlined function: 1 + index in the module's sites of the call it was inlined at; otherwise 0.
    pub inlined_at: u32,
}

/// What happens at a site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum SiteKind {
    Load = 0,
    Store = 1,
    Atomic = 2,
    Call = 3,
    Loop = 4,
    Fence = 5,
    /// A call of `pthread_barrier_wait` whose result is not used.
    Meet = 6,
}

/// A function of the module. Frames point to it; never compare by the function's address (COMDATs).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Function {
    /// Offset in strings: the name in the symbol table.
    pub symbol: u32,
    /// Offset in strings: the name as written, or the symbol again where debug info has none.
    pub name: u32,
    pub file: u32,
    pub line: u32,
    /// Number of slots in its frames.
    pub slots: u32,
    /// Bits of [`function_flags`].
    pub flags: u32,
}

pub mod function_flags {
    /// Contains inline assembly, which is treated as reading and writing its operands only.
    pub const INLINE_ASSEMBLY: u32 = 1;
    /// A coroutine: left alone.
    pub const COROUTINE: u32 = 2;
    /// The whole function was left without hooks (`naked`, `no_sanitize`, ...).
    pub const UNINSTRUMENTED: u32 = 4;
    /// It always returns the same constant.
    pub const RETURNS_CONSTANT: u32 = 8;
    /// It always returns its first argument.
    pub const RETURNS_ARGUMENT: u32 = 16;
}

/// A shadow frame, on the real stack of the function it describes. `slots` live values follow the header.
///
/// Entry: `prev = *hooks.top; function = ...; site = null; address = ...; *hooks.top = &frame`. Every way out: `*hooks.top = prev`.
/// At landing pads and after a second return of setjmp: `*hooks.top = &frame`.
#[repr(C)]
pub struct Frame {
    /// `*mut Frame`: the caller's frame, or null.
    pub prev: usize,
    /// `*const Function`.
    pub function: usize,
    /// `*const Site` of the call or visible operation under way: stored before each call.
    pub site: usize,
    /// The function's own address: what a pointer to it holds, so that a call through one is recognised.
    pub address: usize,
    // slots: [u64; function.slots] follow.
}

/// Offset of the first slot of a frame.
pub const FRAME_SLOTS_OFFSET: usize = 32;

/// Kinds of atomic access, as passed to the hooks. `Cas` reports its success afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum AtomicKind {
    Load = 0,
    Store = 1,
    Rmw = 2,
    Cas = 3,
}

/// Bit of a `shape`: the access lies on a cycle of its function's control flow, or the function is called on one in the same module, so
/// that the thread may be spinning there.
pub const ATOMIC_IN_LOOP: u32 = 1 << 23;

/// `shape` argument of the atomic hooks: size in bytes | kind << 8 | order << 16 | failure order << 24, and
/// [`ATOMIC_IN_LOOP`].
/// Orders are C11's: 0 relaxed, 1 consume, 2 acquire, 3 release, 4 acq_rel, 5 seq_cst.
pub const fn atomic_shape(size: u32, kind: AtomicKind, order: u32, failure_order: u32) -> u32 {
    size | (kind as u32) << 8 | order << 16 | failure_order << 24
}

/// The hook table. In the file every function points to a no-op of the module's own and `top` to a dummy, so that the
/// program runs alone; the runtime overwrites the whole table when the module registers.
///
/// All hooks use the C calling convention and preserve what it preserves.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Hooks {
    /// `*mut *mut Frame`: where the running thread's newest shadow frame is linked.
    pub top: usize,
    /// `fn(address, size, *const Site)`, before a plain load of 1, 2, 4, 8 or 16 bytes (or any other size below 256).
    pub load: usize,
    /// `fn(address, size, *const Site)`, before a plain store.
    pub store: usize,
    /// `fn(address, length, *const Site)`, before a range is read (memcpy's source, aggregates).
    pub load_range: usize,
    /// `fn(address, length, *const Site)`, before a range is written.
    pub store_range: usize,
    /// `fn(address, shape, *const Site)`, before an atomic access: a scheduling point.
    pub atomic_before: usize,
    /// `fn(address, shape, success: u32)`, after an atomic store, read-modify-write or compare-exchange.
    pub atomic_after: usize,
    /// `fn(order, *const Site)`, at a thread fence. Not called for `singlethread` fences.
    pub fence: usize,
    /// `fn(*const Site)`, on the back edge of a loop that contains no other hook.
    pub loop_back: usize,
    /// `fn(address, size)`, on entry to a function, for each object on its stack that could be looked at before all of it has been
    /// written: what was on the stack before, the runtime's own data among it, is no state of the thread.
    pub clear: usize,
    /// `fn(address, address)`, before it is asked which of two addresses is the higher one, unless both are of one object. With [`HASHED`]
    /// for the second: before something is computed from the bits of the first.
    pub order: usize,
    /// `*mut u64`: counts calls of code that may not be instrumented, whose effects are not seen. Bit 0 is set before a call
    /// that leaves the module and cleared on entry to an instrumented function: if it is still set at the next such call,
    /// it is counted in the bits above. So the word is 0 as long as only instrumented code ran.
    pub outside: usize,
    /// `fn(what: u32, value: u64) -> u64`, in place of a function by which the program speaks to symdpor: see
    /// [`crate::author`].
    pub author: usize,
}

/// No address of anything.
pub const HASHED: u64 = 1;

/// Number of words of [`Hooks`].
pub const HOOK_WORDS: usize = size_of::<Hooks>() / 8;
