//! Waiting for signals: `sigwait` and its like, `sigsuspend`, `pause`.
//!
//! Whoever waits for signals that it does not block, as POSIX wants them to be, is refused: whether the handler runs or the wait
//! ends is up to the system.

use super::errno::{EAGAIN, EFAULT, EINTR, EINVAL};
use super::kernel::{load, store_if_asked};
use super::pending::{self, Sent};
use super::signals::{self, bit};
use super::{Args, state, time, turn};
use crate::end;
use crate::sched::current;
use crate::uses;
use symdpor_abi::op::OpKind;
use symdpor_abi::outside::What;

/// SIGKILL, SIGSTOP, and those that libc keeps to itself.
const NOT_FOR_WAITING: u64 = bit(9) | bit(19) | bit(32) | bit(33);

fn waits_for(set: u64) -> impl Fn() -> bool {
    let me = current();
    move || state().signals.pending.for_thread(me) & set != 0
}

/// `rt_sigtimedwait(set, info, timeout, size)`.
pub fn rt_sigtimedwait(_: usize, args: Args) -> isize {
    let [set, info, timeout, size, ..] = args;
    if size != 8 {
        return EINVAL;
    }
    let Some(set) = load::<u64>(set) else { return EFAULT };
    let set = set & !NOT_FOR_WAITING;
    if set & !signals::mask() != 0 && uses::signals() {
        end::unsupported(format_args!(
            "the program waits for signals (sigwait or its like) that the thread does not block, which is undefined"
        ));
    }
    let limit = time::duration_at(timeout);
    let op = pending::op(OpKind::OutsideChange, What::Wait);
    let ready = waits_for(set);
    turn::take_when(op, if limit.is_none() { Some(&ready) } else { None });
    let Some(sent) = state().signals.pending.take(current(), set) else {
        time::advance(limit.unwrap_or(0));
        turn::found_nothing();
        return EAGAIN;
    };
    turn::found();
    if store_if_asked(info, sent.info()) { sent.signal as isize } else { EFAULT }
}

/// `rt_sigsuspend(set, size)`.
pub fn rt_sigsuspend(_: usize, args: Args) -> isize {
    match load::<u64>(args[0]) {
        Some(set) if args[1] == 8 => suspend(set),
        Some(_) => EINVAL,
        None => EFAULT,
    }
}

pub fn pause(_: usize, _: Args) -> isize {
    suspend(signals::mask())
}

/// Waits with another mask until a handler has run.
fn suspend(mask: u64) -> isize {
    // From here on signals that it does not block wait for this thread to take them.
    pending::change(What::Mask);
    let before = signals::mask();
    signals::set_mask(mask);
    signals::set_suspended(true);
    loop {
        let ready = waits_for(!signals::mask());
        turn::take_when(pending::op(OpKind::OutsideChange, What::Wait), Some(&ready));
        let Some(sent) = state().signals.pending.take(current(), !signals::mask()) else { continue };
        if !signals::is_ignored(sent.signal) {
            signals::set_suspended(false);
            run(sent, before);
            return EINTR;
        }
    }
}

fn run(sent: Sent, before: u64) {
    signals::deliver(sent);
    signals::set_mask(before);
    signals::deliver_pending();
}
