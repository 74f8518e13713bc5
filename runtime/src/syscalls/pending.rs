//! Signals that have been sent and not been taken: to one thread, or to the process.
//!
//! For the search they are one object, with the threads' masks and the program's handlers ([`ObjectId::SIGNALS`]): sending,
//! waiting for one and changing a mask depend on each other, in programs that can send signals ([`uses::signals`]).

use super::turn;
use crate::races;
use crate::snapshot::is_taken;
use crate::uses;
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind};
use symdpor_abi::outside::What;

const MOST: usize = 64;
/// Signals from here on are queued, however many there are of one.
const FIRST_REAL_TIME: usize = 32;

/// A signal on its way. `target`: a thread, or None for the process.
#[derive(Clone, Copy)]
pub struct Sent {
    pub signal: usize,
    pub target: Option<u16>,
    pub code: i32,
    pub value: u64,
}

impl Sent {
    /// `siginfo_t`: number, error, code, padding, then the sender's process and user, and the value.
    pub fn info(&self) -> [u32; 32] {
        let mut info = [0; 32];
        (info[0], info[2], info[4]) = (self.signal as u32, self.code as u32, super::process::PID as u32);
        (info[6], info[7]) = (self.value as u32, (self.value >> 32) as u32);
        info
    }
}

pub struct Pending {
    sent: [Option<Sent>; MOST],
    count: usize,
}

impl Pending {
    pub const fn new() -> Pending {
        Pending { sent: [None; MOST], count: 0 }
    }

    fn all(&self) -> impl Iterator<Item = &Sent> {
        self.sent[..self.count].iter().flatten()
    }

    /// The signals that a thread can take, as bits.
    pub fn for_thread(&self, thread: u16) -> u64 {
        let mine = self.all().filter(|s| s.target.is_none_or(|t| t == thread));
        mine.fold(0, |bits, s| bits | 1 << (s.signal - 1))
    }

    /// False if there is no room.
    pub fn add(&mut self, sent: Sent) -> bool {
        races::release_merge(self.clock());
        let same = |s: &Sent| s.signal == sent.signal && s.target == sent.target;
        if sent.signal < FIRST_REAL_TIME && self.all().any(same) {
            return true;
        }
        if self.count == MOST {
            return false;
        }
        self.sent[self.count] = Some(sent);
        self.count += 1;
        true
    }

    /// Takes a thread's signal of a set: the lowest, of these one of its own, of these the oldest.
    pub fn take(&mut self, thread: u16, set: u64) -> Option<Sent> {
        let ready = self.for_thread(thread) & set;
        let signal = (ready != 0).then(|| ready.trailing_zeros() as usize + 1)?;
        let is = |s: &Option<Sent>, target| s.is_some_and(|s| s.signal == signal && s.target == target);
        let known = &self.sent[..self.count];
        let at = known.iter().position(|s| is(s, Some(thread))).or_else(|| known.iter().position(|s| is(s, None)))?;
        let taken = self.sent[at];
        self.sent.copy_within(at + 1..self.count, at);
        self.count -= 1;
        races::acquire(self.clock());
        taken
    }

    /// What the race detector knows it by: what was done before a signal was sent happens before its being taken.
    fn clock(&self) -> usize {
        self as *const Pending as usize
    }
}

pub fn op(kind: OpKind, what: What) -> Op {
    turn::op(kind, what, None, (ObjectId::SIGNALS, 0xff), (ObjectId::NONE, 0))
}

/// Something is about to be done to pending signals, masks or handlers.
pub fn change(what: What) {
    if is_taken() && uses::signals() {
        turn::take(op(OpKind::OutsideChange, what));
    }
}

/// The same for one that also depends on whether a thread has ended.
pub fn send_to(thread: u16) {
    if is_taken() {
        let life = (ObjectId::life(thread), 0xff);
        turn::take(turn::op(OpKind::OutsideChange, What::Send, None, (ObjectId::SIGNALS, 0xff), life));
    }
}

/// Somebody is about to look at them.
pub fn look() {
    if is_taken() && uses::signals() {
        turn::take(op(OpKind::OutsideLook, What::Signals));
    }
}
