//! Signals, as far as a program can see them without any coming from outside.
//!
//! The runtime's own handlers are the only ones the kernel knows. What the program installs, blocks and raises is kept
//! here: a signal that a thread raises is delivered at once, as a call of the program's handler on the raising thread's
//! stack, or ends the execution if nothing handles it. A blocked one stays pending until it is unblocked.
//!
//! Not covered: signals between threads, `ucontext` in handlers, alternate stacks (recorded, never switched to).
//! A thread's mask starts as main's is when it is first asked for.

use super::errno::{EFAULT, EINVAL, EPERM};
use super::kernel::{load, store, store_if_asked};
use super::threads::{self, PerThread};
use super::{Args, state};
use crate::cell::Global;
use crate::snapshot::is_taken;

const SIGNALS: usize = 64;
const SIGKILL: usize = 9;
const SIGSTOP: usize = 19;
const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;

/// The kernel's `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Action {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

const DEFAULT: Action = Action { handler: SIG_DFL, flags: 0, restorer: 0, mask: 0 };

/// The alternate stack, as `sigaltstack` has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Stack {
    address: usize,
    flags: usize,
    len: usize,
}

const SS_DISABLE: usize = 2;

pub struct State {
    pending: u64,
    stack: Stack,
}

impl State {
    pub const fn new() -> State {
        State { pending: 0, stack: Stack { address: 0, flags: SS_DISABLE, len: 0 } }
    }
}

/// What the program wants done with each signal, and what it wanted when the snapshot was taken, of those that changed.
struct Actions {
    now: [Action; SIGNALS + 1],
    saved: [Action; SIGNALS + 1],
    changed: u64,
}

static ACTIONS: Global<Actions> =
    Global::new(Actions { now: [DEFAULT; SIGNALS + 1], saved: [DEFAULT; SIGNALS + 1], changed: 0 });

static MASKS: PerThread<u64> = PerThread::new(0);

const fn bit(signal: usize) -> u64 {
    1 << (signal - 1)
}

pub fn undo() {
    let actions = ACTIONS.get();
    while actions.changed != 0 {
        let signal = actions.changed.trailing_zeros() as usize + 1;
        actions.now[signal] = actions.saved[signal];
        actions.changed &= actions.changed - 1;
    }
}

/// Whether the program has installed a handler for a signal.
pub fn program_handles(signal: i32) -> bool {
    ACTIONS.get().now.get(signal as usize).is_some_and(|action| action.handler > SIG_IGN)
}

pub fn rt_sigaction(_: usize, args: Args) -> isize {
    let [signal, new, old, size, ..] = args;
    if !(1..=SIGNALS).contains(&signal) || size != 8 {
        return EINVAL;
    }
    let before = ACTIONS.get().now[signal];
    if new != 0 {
        if signal == SIGKILL || signal == SIGSTOP {
            return EINVAL;
        }
        let Some(action) = load::<Action>(new) else { return EFAULT };
        set_action(signal, action);
    }
    if store_if_asked(old, before) { 0 } else { EFAULT }
}

fn set_action(signal: usize, action: Action) {
    let actions = ACTIONS.get();
    if is_taken() && actions.changed & bit(signal) == 0 {
        actions.saved[signal] = actions.now[signal];
        actions.changed |= bit(signal);
    }
    actions.now[signal] = action;
}

fn mask() -> u64 {
    MASKS.get(threads::current()).or_else(|| MASKS.get(0)).unwrap_or(0)
}

fn set_mask(mask: u64) {
    MASKS.set(threads::current(), mask & !(bit(SIGKILL) | bit(SIGSTOP)));
}

pub fn rt_sigprocmask(_: usize, args: Args) -> isize {
    const SIG_BLOCK: usize = 0;
    const SIG_UNBLOCK: usize = 1;
    const SIG_SETMASK: usize = 2;
    let [how, new, old, size, ..] = args;
    if size != 8 {
        return EINVAL;
    }
    let before = mask();
    if new != 0 {
        let Some(set) = load::<u64>(new) else { return EFAULT };
        match how {
            SIG_BLOCK => set_mask(before | set),
            SIG_UNBLOCK => set_mask(before & !set),
            SIG_SETMASK => set_mask(set),
            _ => return EINVAL,
        }
    }
    let ok = store_if_asked(old, before);
    deliver_pending();
    if ok { 0 } else { EFAULT }
}

fn deliver_pending() {
    loop {
        let ready = state().signals.pending & !mask();
        if ready == 0 {
            return;
        }
        let signal = ready.trailing_zeros() as usize + 1;
        state().signals.pending &= !bit(signal);
        deliver(signal);
    }
}

pub fn rt_sigpending(_: usize, args: Args) -> isize {
    if store(args[0], state().signals.pending) { 0 } else { EFAULT }
}

pub fn sigaltstack(_: usize, args: Args) -> isize {
    const KNOWN_FLAGS: usize = SS_DISABLE | 1 | 1 << 31;
    let before = state().signals.stack;
    if args[0] != 0 {
        let Some(new) = load::<Stack>(args[0]) else { return EFAULT };
        if new.flags & 0xffff_ffff & !KNOWN_FLAGS != 0 {
            return EINVAL;
        }
        state().signals.stack = new;
    }
    if store_if_asked(args[1], before) { 0 } else { EFAULT }
}

/// The running thread sends itself a signal.
pub fn raise(signal: usize) -> isize {
    if signal == 0 {
        return 0;
    }
    if signal > SIGNALS {
        return EINVAL;
    }
    if mask() & bit(signal) != 0 && !is_ignored(signal) {
        state().signals.pending |= bit(signal);
        return 0;
    }
    deliver(signal);
    0
}

fn is_ignored(signal: usize) -> bool {
    let handler = ACTIONS.get().now[signal].handler;
    handler == SIG_IGN || (handler == SIG_DFL && ignored_by_default(signal))
}

/// SIGCHLD, SIGCONT, SIGURG, SIGWINCH.
fn ignored_by_default(signal: usize) -> bool {
    matches!(signal, 17 | 18 | 23 | 28)
}

/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
fn stops_by_default(signal: usize) -> bool {
    matches!(signal, 19..=22)
}

fn deliver(signal: usize) {
    let action = ACTIONS.get().now[signal];
    if is_ignored(signal) {
        return;
    }
    if action.handler != SIG_DFL {
        return call_handler(signal, action);
    }
    if stops_by_default(signal) {
        crate::end::unsupported(format_args!("the program stops itself with signal {signal}, which is not supported"));
    }
    crate::end::raised(signal as i32)
}

/// Calls the program's handler, with the mask that it asked for.
fn call_handler(signal: usize, action: Action) {
    const SA_NODEFER: usize = 0x4000_0000;
    const SA_RESETHAND: usize = 0x8000_0000;
    const SI_USER: u32 = 0;
    if action.flags & SA_RESETHAND != 0 {
        set_action(signal, DEFAULT);
    }
    let before = mask();
    let own = if action.flags & SA_NODEFER != 0 { 0 } else { bit(signal) };
    set_mask(before | action.mask | own);
    // siginfo: signal, errno, code, padding, then the sender's pid and uid.
    let mut info = [0u32; 32];
    info[0] = signal as u32;
    info[2] = SI_USER;
    info[4] = super::process::PID as u32;
    let context = [0u64; 128];
    // SAFETY: the address is what the program installed as the handler of this signal; a handler that takes one argument
    // ignores the other two.
    unsafe {
        let handler: extern "C" fn(i32, *const u32, *const u64) = core::mem::transmute(action.handler);
        handler(signal as i32, info.as_ptr(), context.as_ptr());
    }
    set_mask(before);
    deliver_pending();
}

/// `kill`: only to itself.
pub fn kill(_: usize, args: Args) -> isize {
    let (process, signal) = (args[0] as i32 as isize, args[1]);
    if process == super::process::PID || process == 0 {
        return raise(signal);
    }
    refuse_target("kill", process)
}

/// `tgkill(process, thread, signal)` and `tkill(thread, signal)`.
pub fn tgkill(_: usize, args: Args) -> isize {
    let (process, thread, signal) = (args[0] as i32 as isize, args[1] as i32 as isize, args[2]);
    if process != super::process::PID { refuse_target("tgkill", process) } else { to_thread("tgkill", thread, signal) }
}

pub fn tkill(_: usize, args: Args) -> isize {
    to_thread("tkill", args[0] as i32 as isize, args[1])
}

/// libc knows its threads by the ids of the kernel threads whose stacks they have: a number that is none of ours is what
/// libc's `raise` has found for the running thread. (Other threads are reached by `pthread_kill`, which is interposed.)
fn to_thread(call: &str, thread: isize, signal: usize) -> isize {
    let is_own_number =
        (super::process::PID..super::process::PID + symdpor_abi::MAX_THREADS as isize).contains(&thread);
    if is_own_number && thread != super::process::tid() && signal != 0 {
        refuse_target(call, thread);
    }
    if thread <= 0 { EINVAL } else { raise(signal) }
}

fn refuse_target(call: &str, target: isize) -> ! {
    crate::end::unsupported(format_args!(
        "the program calls {call}() to send a signal to {target}; only signals that a thread sends itself are supported"
    ))
}

/// Other processes cannot be signalled; asking whether they exist is answered as for one that belongs to somebody else.
pub fn rt_sigqueueinfo(_: usize, args: Args) -> isize {
    let (process, signal) = (args[0] as i32 as isize, args[1]);
    match signal {
        _ if process == super::process::PID => raise(signal),
        0 => EPERM,
        _ => refuse_target("sigqueue", process),
    }
}
