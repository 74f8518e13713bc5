//! Who the program is: ids that are the same in every worker, names of threads, limits, and ending.

use super::Args;
use super::errno::{EFAULT, EINVAL, EPERM};
use super::kernel::{Len, Output, bytes_mut, load, pass, real, store, store_if_asked};
use super::names::{name, nr};
use super::refusal::{Reason, refuse};
use super::threads::{self, PerThread};
use crate::snapshot::is_taken;

/// The program's process id, whatever the kernel's is.
pub const PID: isize = 4242;
/// Its parent's.
pub const PARENT: isize = 4241;

/// The running thread's id.
pub fn tid() -> isize {
    PID + threads::current() as isize
}

pub fn gettid(_: usize, _: Args) -> isize {
    if crate::snapshot::is_taken() {
        crate::footprint::identified(crate::sched::current());
    }
    tid()
}

/// `getpgid` and `getsid`: everything is in one group.
pub fn group(_: usize, args: Args) -> isize {
    let process = args[0] as i32 as isize;
    if process == 0 || process == PID { PID } else { EPERM }
}

/// The kernel clears this word when a thread ends; after the snapshot no thread of the kernel's does.
pub fn set_tid_address(call: usize, args: Args) -> isize {
    if !is_taken() {
        real(call, args);
    }
    tid()
}

pub fn set_robust_list(call: usize, args: Args) -> isize {
    if is_taken() { 0 } else { real(call, args) }
}

pub fn exit(_: usize, args: Args) -> isize {
    crate::end::exit_process(args[0] as i32)
}

/// `exit` ends one thread. With only one there is, it ends the process.
pub fn exit_thread(call: usize, args: Args) -> isize {
    if is_taken() {
        crate::end::unsupported(format_args!(
            "the program ends a thread with the system call exit, not by returning or with pthread_exit(), which symdpor \
             cannot control"
        ));
    }
    exit(call, args)
}

/// Length of a thread's name, with the NUL at its end.
pub const NAME_BYTES: usize = 16;
pub type Name = [u8; NAME_BYTES];

static NAMES: PerThread<Name> = PerThread::new([0; NAME_BYTES]);

pub fn set_name(thread: usize, name: Name) {
    if crate::snapshot::is_taken() && thread != threads::current() {
        // It is another than it was, and has not moved.
        crate::footprint::identified(thread as u16);
    }
    NAMES.set(thread, name);
}

/// The name that a thread was given, as words.
pub fn name_words(thread: usize) -> [u64; 2] {
    let name = given_name(thread).unwrap_or_default();
    let (low, high) = name.split_at(NAME_BYTES / 2);
    [low, high].map(|half| half.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
}

/// A thread's name; one that has none has main's, and main the program's.
pub fn get_name(thread: usize) -> Name {
    NAMES.get(thread).or_else(|| NAMES.get(0)).unwrap_or_else(program_name)
}

/// The name that a thread was given, if it was.
pub fn given_name(thread: usize) -> Option<Name> {
    NAMES.get(thread)
}

fn program_name() -> Name {
    let mut name = [0; NAME_BYTES];
    real(nr::prctl, [PR_GET_NAME, name.as_mut_ptr() as usize, 0, 0, 0, 0]);
    name
}

const PR_GET_NAME: usize = 16;

pub fn prctl(call: usize, args: Args) -> isize {
    const PR_SET_PDEATHSIG: usize = 1;
    const PR_GET_DUMPABLE: usize = 3;
    const PR_SET_DUMPABLE: usize = 4;
    const PR_SET_NAME: usize = 15;
    const PR_CAPBSET_READ: usize = 23;
    const PR_SET_TIMERSLACK: usize = 29;
    const PR_SET_PTRACER: usize = 0x59616d61;
    const PR_SET_NO_NEW_PRIVS: usize = 38;
    const PR_GET_NO_NEW_PRIVS: usize = 39;
    const PR_SET_VMA: usize = 0x53564d41;
    match args[0] {
        PR_SET_NAME => prctl_set_name(args[1]),
        PR_GET_NAME => written(store(args[1], get_name(threads::current()))),
        PR_GET_DUMPABLE | PR_CAPBSET_READ | PR_GET_NO_NEW_PRIVS => real(call, args),
        // Without effect on what the program does.
        PR_SET_PDEATHSIG | PR_SET_DUMPABLE | PR_SET_TIMERSLACK | PR_SET_PTRACER | PR_SET_NO_NEW_PRIVS | PR_SET_VMA => 0,
        option => crate::end::unsupported(format_args!(
            "the program calls prctl() with option {option}, which symdpor cannot control yet"
        )),
    }
}

fn prctl_set_name(address: usize) -> isize {
    let Some(path) = super::kernel::path(address) else { return EFAULT };
    let mut name = [0; NAME_BYTES];
    let len = path.len().min(NAME_BYTES - 1);
    name[..len].copy_from_slice(&path[..len]);
    set_name(threads::current(), name);
    0
}

fn written(ok: bool) -> isize {
    if ok { 0 } else { EFAULT }
}

/// The FS base belongs to the scheduler, which switches it; the rest is asked for only.
pub fn arch_prctl(call: usize, args: Args) -> isize {
    const ARCH_SET_GS: usize = 0x1001;
    const ARCH_SET_FS: usize = 0x1002;
    match args[0] {
        ARCH_SET_GS | ARCH_SET_FS => refuse(call, args, Reason::Interferes),
        _ => pass(call, args, &[Output { argument: 1, len: Len::Bytes(8) }]),
    }
}

/// Limits can be read. Setting one is accepted and ignored: they would hit the runtime as much as the program.
pub fn limits(call: usize, args: Args) -> isize {
    match call {
        nr::getrlimit => pass(call, args, &[Output { argument: 1, len: Len::Bytes(16) }]),
        nr::setrlimit => 0,
        _ => pass(call, [0, args[1], 0, args[3], 0, 0], &[Output { argument: 3, len: Len::Bytes(16) }]),
    }
}

/// Memory and load of the machine change all the time: only what does not is told.
pub fn sysinfo(call: usize, args: Args) -> isize {
    const WORDS: usize = 14;
    let Some(_) = bytes_mut(args[0], WORDS * 8) else { return EFAULT };
    let result = real(call, args);
    let Some(mut info) = load::<[u64; WORDS]>(args[0]) else { return EFAULT };
    // uptime, three loads, total, free, shared, buffers, total swap, free swap, processes, ...
    let total = info[4];
    info[0] = 1_000;
    info[1..4].fill(0);
    info[5] = total / 2;
    info[6..8].fill(0);
    info[9] = info[8];
    info[10] = info[10] & !0xffff | 1;
    store(args[0], info);
    result
}

/// Which processors may be used, of the process whatever thread is meant.
pub fn affinity(call: usize, args: Args) -> isize {
    pass(call, [0, args[1], args[2], 0, 0, 0], &[Output { argument: 2, len: Len::Argument(1) }])
}

/// `sched_getparam`: the ordinary policy has priority 0.
pub fn priority_parameter(_: usize, args: Args) -> isize {
    written(store(args[1], 0i32))
}

/// `getcpu`: everything runs on processor 0.
pub fn getcpu(_: usize, args: Args) -> isize {
    written(store_if_asked(args[0], 0u32) && store_if_asked(args[1], 0u32))
}

/// `personality`: can be asked for, not set.
pub fn personality(call: usize, args: Args) -> isize {
    const ASK: u32 = 0xffff_ffff;
    if args[0] as u32 == ASK || !is_taken() { real(call, args) } else { refuse(call, args, Reason::Interferes) }
}

/// `membarrier`: threads are interleaved one at a time, so there is nothing to be ordered.
pub fn membarrier(call: usize, args: Args) -> isize {
    const QUERY: usize = 0;
    if args[0] == QUERY { real(call, args) } else { 0 }
}

/// `alarm(0)` and taking a timer down do nothing; a timer that would fire cannot be controlled.
pub fn timer(call: usize, args: Args) -> isize {
    let sets = match call {
        nr::alarm => args[0] != 0,
        nr::setitimer => args[1] != 0 && load::<[u64; 4]>(args[1]).is_none_or(|t| t[2..] != [0, 0]),
        _ => return EINVAL,
    };
    if sets {
        refuse(call, args, Reason::Signal);
    }
    if call == nr::setitimer && !store_if_asked(args[2], [0u64; 4]) { EFAULT } else { 0 }
}

pub fn getitimer(_: usize, args: Args) -> isize {
    written(store(args[1], [0u64; 4]))
}

/// A call that makes a process, by the name that the program used.
pub fn clone(call: usize, args: Args) -> isize {
    const CLONE_THREAD: usize = 0x1_0000;
    let flags = match call {
        nr::clone => args[0],
        nr::clone3 => load::<u64>(args[0]).unwrap_or(0) as usize,
        _ => 0,
    };
    if flags & CLONE_THREAD == 0 {
        refuse(call, args, Reason::Process);
    }
    crate::end::unsupported(format_args!(
        "the program makes a thread with {}(), not with pthread_create, which symdpor cannot control",
        name(call)
    ))
}
