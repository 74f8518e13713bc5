//! The state of one execution: everything of the runtime that is restored together with the program's memory.
//!
//! It fills pages of its own, which the snapshot manages as it does the program's.

use crate::cell::Global;
use crate::interpose::streams::{self, Stream};
use crate::keys::Keys;
use crate::limits::Limits;
use crate::named_semaphores::NamedSemaphores;
use crate::set::ThreadBits;
use crate::spin::Spins;
use crate::syscalls;
use crate::thread::{Life, Thread};
use core::mem::MaybeUninit;
use symdpor_abi::MAX_THREADS;
use symdpor_detect::heap::Heap;

#[repr(C, align(4096))]
pub struct Exec {
    /// The running thread's newest shadow frame: what `Hooks::top` of every module points to.
    pub top: usize,
    /// Calls of code that may not be instrumented: what `Hooks::outside` of every module points to.
    pub outside: u64,
    /// Threads whose last operations only read: see `spin`.
    pub idle_threads: u16,
    /// Waiters have been moved from one futex to another.
    pub futex_moved: bool,
    pub current: u16,
    pub thread_count: u16,
    /// How deep the running thread is in atomic sections.
    pub section: u16,
    /// Threads that stand before an operation.
    pub pending: ThreadBits,
    /// Those of them that may be blocked; the others can go on for sure.
    pub conditional: ThreadBits,
    /// The sleep set.
    pub asleep: ThreadBits,
    /// Those of it whose operation is known to fail.
    pub failing: ThreadBits,
    /// Those of it that came round in vain, if there are any; and who of them has been woken by a plain access, and goes next. See `vain`.
    pub in_vain: ThreadBits,
    pub any_in_vain: bool,
    pub go_next: ThreadBits,
    /// Threads that wait to end the process until no other can go on, if there are any, and the step before which the first of them came to
    /// that. See `sched::let_exit`.
    pub exits: ThreadBits,
    pub any_exits: bool,
    pub exits_since: u32,
    /// How often the running thread has given way in the step under way.
    pub gave_way: u8,
    /// Hooks called since the last visible operation.
    pub quiet_hooks: u32,
    /// Where the last hook was called: a crash of instrumented code is there.
    pub last_site: usize,
    /// 1 + the address of the last atomic access.
    pub last_atomic: usize,
    /// How often something has changed, counted once a thread has waited in vain: see `limits`.
    pub changes: u64,
    pub heap: Heap,
    pub syscalls: syscalls::State,
    pub keys: Keys,
    pub semaphores: NamedSemaphores,
    /// State of libc's that is nowhere else: see `library::Hidden`.
    pub hidden: [usize; 8],
    /// Streams that the program locks.
    pub streams: [Stream; streams::MOST],
    /// The threads begin on a page of their own: the first sixteen fill one, which is all that is put back in small programs.
    page: [Page; 0],
    pub threads: [Thread; MAX_THREADS],
    /// On pages of their own again: what most programs never write to.
    behind: [Page; 0],
    pub spins: Spins,
    pub limits: Limits,
    /// The locales that threads have chosen for themselves, or 0.
    pub locales: [usize; MAX_THREADS],
    /// The functions (`*const Function`) that threads were started with, or 1 if that is not known; 0 before their first operation.
    pub bottoms: [usize; MAX_THREADS],
    /// Hashes of what the calls under way have copied of memory, or 0.
    pub copied: [u64; MAX_THREADS],
}

#[repr(C, align(4096))]
struct Page;

/// Zero until [`init`], so that it costs no space in the file; a zeroed [`Thread`] is an unborn one.
pub static EXEC: Global<MaybeUninit<Exec>> = Global::new(MaybeUninit::zeroed());

/// Makes the state of a process that has only its main thread.
pub fn init() {
    let exec = EXEC.as_ptr() as *mut Exec;
    // SAFETY: the memory is ours and zeroed, which is valid for every field but those written here.
    unsafe {
        (&raw mut (*exec).heap).write(Heap::new(crate::snapshot::commit));
        (&raw mut (*exec).syscalls).write(syscalls::State::new());
        (*exec).thread_count = 1;
        (*exec).threads[0].life = Life::Alive;
        (*exec).threads[0].fs = crate::sys::context::fs_base();
    }
}

#[allow(clippy::mut_from_ref)]
#[inline(always)]
pub fn get() -> &'static mut Exec {
    // SAFETY: initialised before anything else runs; see `Global` for the rule on references.
    unsafe { &mut *(EXEC.as_ptr() as *mut Exec) }
}

/// The running thread.
#[inline(always)]
pub fn me() -> &'static mut Thread {
    let exec = get();
    &mut exec.threads[exec.current as usize % MAX_THREADS]
}

/// The pages that hold it.
pub fn range() -> core::ops::Range<usize> {
    let start = EXEC.as_ptr() as usize;
    start..start + size_of::<Exec>()
}
