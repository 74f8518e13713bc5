//! Signals, as far as a program can see them without any coming from outside.
//!
//! The runtime's own handlers are the only ones the kernel knows. What the program installs, blocks and raises is kept
//! here: a signal that a thread raises is delivered at once, as a call of the program's handler on the raising thread's
//! stack, or ends the execution if nothing handles it. A blocked one stays pending until it is unblocked, or taken by
//! `sigwait` and its like. One to another thread ends the execution, is ignored or stays pending likewise; a handler would have to
//! interrupt that thread anywhere, which is refused. One to the process goes to the thread that sends it if that does not block
//! it.
//!
//! Not covered: `ucontext` in handlers, alternate stacks (recorded, never switched to).

use super::errno::{EAGAIN, EFAULT, EINVAL, EPERM, ESRCH};
use super::kernel::{load, store, store_if_asked};
use super::pending::{self, Pending, Sent};
use super::threads::{self, PerThread};
use super::{Args, state};
use crate::cell::Global;
use crate::set::ThreadBits;
use crate::snapshot::is_taken;
use symdpor_abi::outside::What;

const SIGNALS: usize = 64;
const SIGKILL: usize = 9;
const SIGSTOP: usize = 19;
const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
/// How a signal was sent: by `kill`, `sigqueue`, `pthread_kill`.
const SI_USER: i32 = 0;
pub const SI_QUEUE: i32 = -1;
pub const SI_TKILL: i32 = -6;

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
    pub pending: Pending,
    /// Threads in `sigsuspend` or `pause`.
    suspended: ThreadBits,
    stack: Stack,
}

impl State {
    pub const fn new() -> State {
        State {
            pending: Pending::new(),
            suspended: ThreadBits::EMPTY,
            stack: Stack { address: 0, flags: SS_DISABLE, len: 0 },
        }
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

pub const fn bit(signal: usize) -> u64 {
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
        pending::change(What::Mask);
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

pub fn mask() -> u64 {
    mask_of(threads::current())
}

pub fn mask_of(thread: usize) -> u64 {
    MASKS.get(thread).or_else(|| MASKS.at_start()).unwrap_or(0)
}

pub fn set_mask(mask: u64) {
    MASKS.set(threads::current(), mask & !(bit(SIGKILL) | bit(SIGSTOP)));
}

/// A thread begins with the mask of its creator.
pub fn inherit(creator: u16, child: u16) {
    let mask = mask_of(creator as usize);
    if mask != MASKS.at_start().unwrap_or(0) {
        MASKS.set(child as usize, mask);
    }
}

pub fn set_suspended(is: bool) {
    let (suspended, me) = (&mut state().signals.suspended, threads::current() as u16);
    if is { suspended.insert(me) } else { suspended.remove(me) }
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
        pending::change(What::Mask);
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

pub fn deliver_pending() {
    while let Some(sent) = state().signals.pending.take(threads::current() as u16, !mask()) {
        deliver(sent);
    }
}

pub fn rt_sigpending(_: usize, args: Args) -> isize {
    pending::look();
    let pending = state().signals.pending.for_thread(threads::current() as u16) & mask();
    if store(args[0], pending) { 0 } else { EFAULT }
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
    let me = threads::current() as u16;
    deliver_or_keep(Sent { signal, target: Some(me), code: SI_TKILL, value: 0 })
}

/// To the running thread, or to the process, of which the running thread is one that may take it.
fn deliver_or_keep(sent: Sent) -> isize {
    if mask() & bit(sent.signal) != 0 {
        return keep(sent);
    }
    deliver(sent);
    0
}

/// A blocked signal is kept even if it is ignored now: that may be another by the time it is taken.
fn keep(sent: Sent) -> isize {
    if state().signals.pending.add(sent) { 0 } else { EAGAIN }
}

/// Sends a signal to another thread.
fn send(target: u16, sent: Sent) -> isize {
    expect(sent.signal);
    pending::send_to(target);
    if !crate::exec::get().threads[target as usize].is_alive() {
        return 0;
    }
    if mask_of(target as usize) & bit(sent.signal) != 0 || state().signals.suspended.contains(target) {
        return keep(sent);
    }
    act_on_another(sent.signal, target);
    0
}

/// What a signal does to a thread that is not the running one and does not block it.
fn act_on_another(signal: usize, target: u16) {
    let handled = ACTIONS.get().now[signal].handler > SIG_IGN;
    if handled && !is_ignored(signal) {
        crate::end::unsupported(format_args!(
            "the program sends signal {signal} to thread {target}, which does not block it and has a handler for it; only \
             handlers that run when a thread raises the signal itself, or waits for it, are supported"
        ));
    }
    act_by_default(signal);
}

/// Signals to others have to be expected: see `uses`.
fn expect(signal: usize) {
    if is_taken() && !crate::uses::signals() {
        crate::end::unsupported(format_args!(
            "the program sends signal {signal} to another thread by a system call of its own, which symdpor cannot control"
        ));
    }
}

/// Sends a signal to the process. The running thread takes it, or else one that waits for it or unblocks it.
fn send_to_process(sent: Sent) -> isize {
    pending::change(What::Send);
    let me = threads::current();
    let exec = crate::exec::get();
    let open = |n: &u16| {
        *n as usize != me && exec.threads[*n as usize].is_alive() && mask_of(*n as usize) & bit(sent.signal) == 0
    };
    let suspended = |n: &u16| state().signals.suspended.contains(*n);
    let other = (0..exec.thread_count).find(|n| open(n) && !suspended(n));
    match other {
        Some(other) if mask() & bit(sent.signal) != 0 && is_taken() => {
            expect(sent.signal);
            act_on_another(sent.signal, other);
            0
        }
        _ => deliver_or_keep(sent),
    }
}

pub fn is_ignored(signal: usize) -> bool {
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

/// The running thread takes a signal.
pub fn deliver(sent: Sent) {
    let action = ACTIONS.get().now[sent.signal];
    if is_ignored(sent.signal) {
        return;
    }
    if action.handler != SIG_DFL {
        return call_handler(sent, action);
    }
    act_by_default(sent.signal)
}

fn act_by_default(signal: usize) {
    if is_ignored(signal) {
        return;
    }
    if stops_by_default(signal) {
        crate::end::unsupported(format_args!("the program stops itself with signal {signal}, which is not supported"));
    }
    crate::end::raised(signal as i32)
}

/// Calls the program's handler, with the mask that it asked for.
fn call_handler(sent: Sent, action: Action) {
    const SA_NODEFER: usize = 0x4000_0000;
    const SA_RESETHAND: usize = 0x8000_0000;
    let signal = sent.signal;
    if action.flags & SA_RESETHAND != 0 {
        set_action(signal, DEFAULT);
    }
    let before = mask();
    let own = if action.flags & SA_NODEFER != 0 { 0 } else { bit(signal) };
    set_mask(before | action.mask | own);
    let info = sent.info();
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
    if process == super::process::PID || process == -super::process::PID || process == 0 {
        return to_process(signal, SI_USER, 0);
    }
    refuse_target("kill", process)
}

/// `tgkill(process, thread, signal)` and `tkill(thread, signal)`.
pub fn tgkill(_: usize, args: Args) -> isize {
    let (process, thread, signal) = (args[0] as i32 as isize, args[1] as i32 as isize, args[2]);
    if process != super::process::PID { refuse_target("tgkill", process) } else { to_thread(thread, signal) }
}

pub fn tkill(_: usize, args: Args) -> isize {
    to_thread(args[0] as i32 as isize, args[1])
}

/// libc knows its threads by the ids of the kernel threads whose stacks they have: a number that is none of ours is what
/// libc's `raise` has found for the running thread. (Other threads are reached by `pthread_kill`, which is interposed.)
fn to_thread(thread: isize, signal: usize) -> isize {
    // The one by which libc makes all threads change their user or group.
    const SIGSETXID: usize = 33;
    if signal == SIGSETXID {
        crate::end::unsupported(format_args!(
            "the program changes its user or group after its first thread was created, which symdpor cannot undo"
        ));
    }
    let number = thread - super::process::PID;
    let is_own_number = (0..symdpor_abi::MAX_THREADS as isize).contains(&number);
    if is_own_number && thread != super::process::tid() {
        return to_number(number as u16, signal, SI_TKILL, 0);
    }
    if thread <= 0 { EINVAL } else { raise(signal) }
}

fn to_process(signal: usize, code: i32, value: u64) -> isize {
    match signal {
        0 => 0,
        1..=SIGNALS => send_to_process(Sent { signal, target: None, code, value }),
        _ => EINVAL,
    }
}

/// To one of the program's threads; 0 asks whether it is there.
pub fn to_number(thread: u16, signal: usize, code: i32, value: u64) -> isize {
    if thread >= crate::exec::get().thread_count {
        return ESRCH;
    }
    match signal {
        0 => 0,
        1..=SIGNALS if thread as usize == threads::current() => {
            deliver_or_keep(Sent { signal, target: Some(thread), code, value })
        }
        1..=SIGNALS => send(thread, Sent { signal, target: Some(thread), code, value }),
        _ => EINVAL,
    }
}

fn refuse_target(call: &str, target: isize) -> ! {
    crate::end::unsupported(format_args!(
        "the program calls {call}() to send a signal to {target}; only signals within the program are supported"
    ))
}

/// Other processes cannot be signalled; asking whether they exist is answered as for one that belongs to somebody else.
pub fn rt_sigqueueinfo(_: usize, args: Args) -> isize {
    let (process, signal) = (args[0] as i32 as isize, args[1]);
    match signal {
        _ if process == super::process::PID => to_process(signal, SI_QUEUE, value_at(args[2])),
        0 => EPERM,
        _ => refuse_target("sigqueue", process),
    }
}

/// The value in a `siginfo_t`.
fn value_at(info: usize) -> u64 {
    load::<[u64; 4]>(info).map_or(0, |words| words[3])
}

/// `rt_tgsigqueueinfo(process, thread, signal, info)`.
pub fn rt_tgsigqueueinfo(_: usize, args: Args) -> isize {
    let (process, number) = (args[0] as i32 as isize, args[1] as i32 as isize - super::process::PID);
    if process != super::process::PID || number < 0 {
        refuse_target("pthread_sigqueue", process);
    }
    to_number(number as u16, args[2], SI_QUEUE, value_at(args[3]))
}
