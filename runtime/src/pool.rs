//! Kernel threads that lend their stacks and thread control blocks to the program's threads.
//!
//! A thread of the program runs as a user-space context on the first kernel thread, but on the stack and with the FS base
//! of a *parked* kernel thread of its own: so errno, `thread_local`, `pthread_self` and libc's own per-thread state are
//! real, in code that was never instrumented too. Parked threads sit in a raw system call with all signals blocked and
//! never touch their memory again. Stacks lie at fixed addresses.

use crate::cell::Global;
use crate::dispatch;
use crate::sys::context;
use crate::sys::pages;
use crate::sys::raw::{nr, syscall6};
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};
use symdpor_abi::MAX_THREADS;
use symdpor_abi::local::{STACK_STRIDE, STACKS_BASE};

const STRIDE: usize = STACK_STRIDE as usize;
const GUARD: usize = 1 << 20;
pub const STACK_BYTES: usize = 8 << 20;
const FIRST_SIZE: usize = 8;

/// All stacks, with their guards.
pub const STACKS: Range<usize> = STACKS_BASE as usize..STACKS_BASE as usize + MAX_THREADS * STRIDE;

#[derive(Clone, Copy)]
pub struct Slot {
    pub fs: usize,
    /// The parked thread's stack pointer: the context runs below it.
    pub sp: usize,
    /// Its `pthread_t`.
    pub handle: usize,
}

struct Pool {
    slots: [Slot; MAX_THREADS],
    /// Slots 1 up to this are parked; slot 0 is main's and not used.
    size: usize,
}

static POOL: Global<Pool> = Global::new(Pool { slots: [Slot { fs: 0, sp: 0, handle: 0 }; MAX_THREADS], size: 1 });
static READY: AtomicU32 = AtomicU32::new(0);

/// What belongs to thread `number`, if the pool is that large.
pub fn slot(number: usize) -> Option<Slot> {
    let pool = POOL.get();
    (number < pool.size).then(|| pool.slots[number])
}

/// The thread whose `pthread_t` this is, among created ones.
pub fn number_of(handle: usize) -> Option<usize> {
    let pool = POOL.get();
    (1..pool.size).find(|&n| pool.slots[n].handle == handle)
}

pub fn is_mapped(address: usize) -> bool {
    let offset = address - STACKS.start;
    offset / STRIDE < POOL.get().size && (GUARD..GUARD + STACK_BYTES).contains(&(offset % STRIDE))
}

/// The thread on whose stack an address is.
pub fn number_at(address: usize) -> usize {
    (address - STACKS.start) / STRIDE
}

/// Where the stack of thread `number` begins.
pub fn base(number: usize) -> usize {
    STACKS.start + number * STRIDE + GUARD
}

/// Where it ends.
pub fn top(number: usize) -> usize {
    base(number) + STACK_BYTES
}

/// Whether an address is on the stack of thread `number`.
pub fn on_stack(number: usize, address: usize) -> bool {
    let base = STACKS.start + number * STRIDE + GUARD;
    (base..base + STACK_BYTES).contains(&address)
}

pub fn is_guard(address: usize) -> bool {
    (address - STACKS.start) % STRIDE < GUARD
}

#[repr(C, align(8))]
struct Attributes([u8; 64]);

type Create = extern "C" fn(*mut usize, *const Attributes, extern "C" fn(usize) -> usize, usize) -> i32;

unsafe extern "C" {
    fn dlsym(handle: isize, name: *const core::ffi::c_char) -> *const ();
    fn pthread_attr_init(attributes: *mut Attributes) -> i32;
    fn pthread_attr_setstack(attributes: *mut Attributes, stack: usize, size: usize) -> i32;
}

/// The function that the runtime interposes, as libc has it.
pub fn libc_function(name: &core::ffi::CStr) -> *const () {
    const RTLD_NEXT: isize = -1;
    // SAFETY: a terminated name.
    unsafe { dlsym(RTLD_NEXT, name.as_ptr()) }
}

/// A function of a library that was loaded, by its handle; 0 is none.
pub fn function_of(library: usize, name: &core::ffi::CStr) -> *const () {
    if library == 0 {
        return core::ptr::null();
    }
    // SAFETY: a terminated name, and what the dynamic linker gave as a handle.
    unsafe { dlsym(library as isize, name.as_ptr()) }
}

/// Doubles the pool. False if the system refuses to give more threads.
pub fn grow() -> bool {
    let size = POOL.get().size;
    let wanted = if size == 1 { FIRST_SIZE } else { (size * 2).min(MAX_THREADS) };
    let create = libc_function(c"pthread_create");
    if create.is_null() {
        return false;
    }
    // SAFETY: that is its type.
    let create: Create = unsafe { core::mem::transmute(create) };
    let _pass = dispatch::let_through();
    let _blocked = BlockedSignals::block();
    (size..wanted).all(|number| add(number, create))
}

fn add(number: usize, create: Create) -> bool {
    let stack = STACKS.start + number * STRIDE + GUARD;
    if !pages::map_at(stack, STACK_BYTES) {
        return false;
    }
    let mut attributes = Attributes([0; 64]);
    let mut handle = 0;
    READY.store(0, Ordering::SeqCst);
    // SAFETY: 64 bytes hold libc's record (56), and the stack was just mapped.
    let created = unsafe {
        pthread_attr_init(&mut attributes) == 0
            && pthread_attr_setstack(&mut attributes, stack, STACK_BYTES) == 0
            && create(&mut handle, &attributes, park, number) == 0
    };
    if !created {
        return false;
    }
    while READY.load(Ordering::Acquire) == 0 {
        futex(FUTEX_WAIT, 0);
    }
    POOL.get().slots[number].handle = handle;
    POOL.get().size = number + 1;
    true
}

/// What a parked thread does: tells where it is, and sleeps for ever.
extern "C" fn park(number: usize) -> usize {
    let here = 0usize;
    let slot = &mut POOL.get().slots[number];
    slot.fs = context::fs_base();
    slot.sp = &raw const here as usize - PARKED_FRAMES;
    READY.store(1, Ordering::Release);
    futex(FUTEX_WAKE, 1);
    loop {
        // SAFETY: waits without descriptors and without a timeout: until the process ends.
        unsafe { syscall6(PPOLL, 0, 0, 0, 0, 0, 0) };
    }
}

/// More than the frames below `park`'s local: none of them calls deeper than a raw system call.
const PARKED_FRAMES: usize = 1024;
const PPOLL: usize = 271;
const FUTEX_WAIT: usize = 0;
const FUTEX_WAKE: usize = 1;

fn futex(operation: usize, value: usize) {
    // SAFETY: a static word of our own.
    unsafe { syscall6(nr::FUTEX, READY.as_ptr() as usize, operation, value, 0, 0, 0) };
}

/// All signals blocked for the running kernel thread, and so for those that it creates; as before when dropped.
struct BlockedSignals(u64);

impl BlockedSignals {
    fn block() -> BlockedSignals {
        let (all, mut old) = (u64::MAX, 0u64);
        // SAFETY: eight-byte signal sets, SIG_BLOCK.
        unsafe { syscall6(nr::RT_SIGPROCMASK, 0, &raw const all as usize, &raw mut old as usize, 8, 0, 0) };
        BlockedSignals(old)
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: eight-byte signal set, SIG_SETMASK.
        unsafe { syscall6(nr::RT_SIGPROCMASK, 2, &raw const self.0 as usize, 0, 8, 0, 0) };
    }
}
