//! Visible operations, and which of them depend on each other.
//!
//! Dependence is decided by *access classes*: an operation has up to two objects and a class of access to each. Adding
//! an operation means giving it classes; neither the runtime's scheduler nor the explorers look at anything else.

use crate::object::ObjectId;

/// What a thread does at a visible operation.
///
/// A thread's *pending* operation may turn out differently when it is executed: `AtomicCas` becomes `AtomicRmw` or
/// `AtomicLoad`, `TryLock` becomes `MutexLock` or `TryLockFailed`, `Once` becomes `OnceBegin` or `OnceDone`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum OpKind {
    /// Only ever pending: blocked without an operation of its own (a condition variable's waiter not yet woken).
    Waiting = 0,
    AtomicLoad = 1,
    AtomicStore = 2,
    AtomicRmw = 3,
    /// Only ever pending.
    AtomicCas = 4,
    /// A successful try-lock is this too, with `arg` = [`TRIED`].
    MutexLock = 5,
    /// Only ever pending.
    TryLock = 6,
    TryLockFailed = 7,
    MutexUnlock = 8,
    /// `object`: the condition variable; `object2`: the mutex, released by this. The later re-acquisition is a `MutexLock`.
    CondWait = 9,
    /// `arg`: the thread woken, or `NO_THREAD`. Several waiters make several alternatives.
    CondSignal = 10,
    /// Wakes every thread whose last operation is a `CondWait` on the same object.
    CondBroadcast = 11,
    /// Only ever pending.
    Once = 12,
    OnceBegin = 13,
    OnceEnd = 14,
    OnceDone = 15,
    /// `arg`: the new thread. It runs up to its first visible operation within this transition.
    ThreadCreate = 16,
    /// `arg`: the thread joined. Enabled once that thread has ended.
    ThreadJoin = 17,
    /// The whole process ends: depends on everything, unless it is an [`Op::quiet_exit`]. `arg`: the exit status.
    ProcessExit = 18,
    KeyTable = 19,
    /// Plain accesses, visible only with `--visible all`.
    PlainLoad = 20,
    PlainStore = 21,
    /// Depends on nothing; lets others go first.
    Yield = 22,
    /// Reads from, or moves in, a file that threads share: `object` is its descriptor.
    Input = 23,
    /// A waiter with a time limit gives up: pending, and enabled, from its `CondWait` (with `arg` = [`TIMED`]) until it is woken.
    CondTimeout = 24,
    /// Read-write locks. `arg` = [`TRIED`] as for `MutexLock`.
    RwRead = 25,
    RwWrite = 26,
    /// Only ever pending.
    RwTryRead = 27,
    RwTryWrite = 28,
    RwReadFailed = 29,
    RwWriteFailed = 30,
    RwUnlockRead = 31,
    RwUnlockWrite = 32,
    /// Semaphores: posts and waits are two queues, see [`POSTS`]. `arg` of `SemWait` and `SemTaken`: the value before.
    SemPost = 33,
    SemWait = 34,
    /// Only ever pending.
    SemTry = 35,
    SemTaken = 36,
    SemTryFailed = 37,
    /// `arg`: the value.
    SemValue = 38,
    /// `arg`: 1 if it is the last that was missing. That wakes every thread whose last operation is an arrival there.
    BarrierArrive = 39,
    /// The thread goes on after a barrier. Enabled once all have arrived; depends on nothing.
    BarrierPass = 40,
    /// What is done to files, pipes, sockets and their like, by which of its two objects it reads and which it writes. `arg`:
    /// see [`crate::outside`]. Some wait until there is something to be done.
    OutsideLook = 41,
    /// Reads `object`, changes `object2`.
    OutsideTake = 42,
    /// Changes `object`, reads `object2`.
    OutsidePut = 43,
    /// Changes both.
    OutsideChange = 44,
    /// Joins the waiters of a futex, whose word it has compared; `arg` = [`TIMED`] if its time is limited. `object` of all futex operations: the queue of waiters
    /// ([`ObjectId::futex`]), from which the word follows.
    FutexWait = 45,
    /// Found another value in the word than it expected.
    FutexMismatch = 46,
    /// `arg`: the thread woken, or `NO_THREAD`. More waiters than are to be woken make several alternatives. Only this kind
    /// is ever pending of the three.
    FutexWake = 47,
    /// Wakes every thread whose last operation is a `FutexWait` on the same object.
    FutexWakeAll = 48,
    /// `arg`: the threads woken, as bits.
    FutexWakeSet = 49,
    /// Wakes some and moves others to the queue `object2`. `arg`: those woken, as bits.
    FutexRequeue = 50,
    /// Changes the word of `object2`, then wakes waiters of both. `arg`: those woken, as bits.
    FutexWakeOp = 51,
    /// A waiter's time is up: it leaves the queue.
    FutexTimeout = 52,
    /// A woken waiter goes on.
    FutexWoken = 53,
    /// A whole atomic section: nobody else runs before it ends, so that all it does is one transition. What that touches is
    /// not known beforehand, so it depends on everything that is more than the making and ending of threads.
    AtomicSection = 54,
    /// One of `arg` ways, chosen by the plan. Depends on nothing. `order` is 0 within an atomic section, whose part it is then.
    Choose = 55,
    /// A thread ends, in a program that asks whether threads have ended or cancels them. `object` of this and the next ones:
    /// the thread's life ([`ObjectId::life`]).
    ThreadEnd = 56,
    /// Only ever pending: becomes `ThreadJoin` or `TryJoinFailed`.
    TryJoin = 57,
    TryJoinFailed = 58,
    /// `arg`: the thread that shall be cancelled. `object2`: [`ObjectId::LIVES`].
    ThreadCancel = 59,
    /// Pending from a `CondWait` that can be cancelled, and enabled once the thread shall be, or has been woken. `arg`: the waiter
    /// that gets the signal in its place, or `NO_THREAD`.
    CondCancel = 60,
    /// Looks whether the thread shall be cancelled; or did so instead of an operation on its objects, and is. `arg`: 1 if it is.
    CancelPoint = 61,
    /// A thread arrives at a barrier, and does not care whether it is the last. `arg`: 1 if it is. It goes on with a `BarrierPass` in any
    /// case, so that the order of those who come together makes no difference.
    BarrierMeet = 62,
}

impl OpKind {
    pub const ALL: [OpKind; 63] = [
        OpKind::Waiting,
        OpKind::AtomicLoad,
        OpKind::AtomicStore,
        OpKind::AtomicRmw,
        OpKind::AtomicCas,
        OpKind::MutexLock,
        OpKind::TryLock,
        OpKind::TryLockFailed,
        OpKind::MutexUnlock,
        OpKind::CondWait,
        OpKind::CondSignal,
        OpKind::CondBroadcast,
        OpKind::Once,
        OpKind::OnceBegin,
        OpKind::OnceEnd,
        OpKind::OnceDone,
        OpKind::ThreadCreate,
        OpKind::ThreadJoin,
        OpKind::ProcessExit,
        OpKind::KeyTable,
        OpKind::PlainLoad,
        OpKind::PlainStore,
        OpKind::Yield,
        OpKind::Input,
        OpKind::CondTimeout,
        OpKind::RwRead,
        OpKind::RwWrite,
        OpKind::RwTryRead,
        OpKind::RwTryWrite,
        OpKind::RwReadFailed,
        OpKind::RwWriteFailed,
        OpKind::RwUnlockRead,
        OpKind::RwUnlockWrite,
        OpKind::SemPost,
        OpKind::SemWait,
        OpKind::SemTry,
        OpKind::SemTaken,
        OpKind::SemTryFailed,
        OpKind::SemValue,
        OpKind::BarrierArrive,
        OpKind::BarrierPass,
        OpKind::OutsideLook,
        OpKind::OutsideTake,
        OpKind::OutsidePut,
        OpKind::OutsideChange,
        OpKind::FutexWait,
        OpKind::FutexMismatch,
        OpKind::FutexWake,
        OpKind::FutexWakeAll,
        OpKind::FutexWakeSet,
        OpKind::FutexRequeue,
        OpKind::FutexWakeOp,
        OpKind::FutexTimeout,
        OpKind::FutexWoken,
        OpKind::AtomicSection,
        OpKind::Choose,
        OpKind::ThreadEnd,
        OpKind::TryJoin,
        OpKind::TryJoinFailed,
        OpKind::ThreadCancel,
        OpKind::CondCancel,
        OpKind::CancelPoint,
        OpKind::BarrierMeet,
    ];

    pub fn from_u8(raw: u8) -> Option<OpKind> {
        OpKind::ALL.get(raw as usize).copied()
    }
}

/// `Op::arg` where a thread is meant and there is none.
pub const NO_THREAD: u32 = u32::MAX;

/// `Op::arg` of an operation that could have turned out otherwise: a `MutexLock` that was a successful try-lock (0 for a lock
/// that would have waited), an `AtomicLoad` that was a failed compare-and-exchange (0 for a load). The explorers need it:
/// the try-lock could also have gone before the unlock that came before it, and failed; for the other see [`dependent`].
pub const TRIED: u32 = 1;

/// `Op::arg` of a `CondWait` or `FutexWait` with a time limit.
pub const TIMED: u32 = 1;

/// The same of a `CondWait` that can be cancelled; besides.
pub const MAY_BE_CANCELLED: u32 = 2;

/// `Op::order` of an operation that has no memory order and looks at a thread's life as well: whether its own thread shall be
/// cancelled, or (the highest) that of any. The other bits are the thread's place in [`ObjectId::life`].
const LOOKS_AT_LIFE: u8 = 0x80;

/// `Op::mask` of an exit that waits until no other thread can go on. (Summaries of branches keep neither `order` nor `arg`.)
const QUIET: u8 = 0;

/// `Op::mask` of semaphore operations. A semaphore is two queues: the posts in their order and the waits in theirs. The k-th
/// wait needs the (k - initial value)-th post and nothing else of the posts, so that a post and a wait that are neighbours
/// can be exchanged unless the one enables the other: what posts touch is apart from what waits touch. Looking at the
/// value touches both.
pub const POSTS: u8 = 0x0f;
pub const WAITS: u8 = 0xf0;

/// One visible operation: what it does, to which objects. Says nothing of who does it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
pub struct Op {
    pub kind: OpKind,
    /// The bytes of `object` that are touched; `0xff` for synchronisation objects.
    pub mask: u8,
    /// The same for `object2`.
    pub mask2: u8,
    /// C11 memory order of atomic operations, as in `<stdatomic.h>`: 0 relaxed to 5 sequentially consistent.
    pub order: u8,
    /// See [`OpKind`].
    pub arg: u32,
    pub object: ObjectId,
    /// A second object, or `ObjectId::NONE`: the mutex of a `CondWait`, the upper half of a 16-byte atomic.
    pub object2: ObjectId,
}

/// How an operation touches one of its objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Read,
    Write,
    /// Takes something that others may hold; disabled while it is held.
    Acquire,
    Release,
    /// Sees whether it is held, never blocked.
    Observe,
    /// Will acquire or observe, or has acquired without the will to wait; never blocked.
    TryAcquire,
    /// The same for what several may hold at a time (readers), which keeps out those who acquire it alone.
    SharedAcquire,
    SharedRelease,
    TryShared,
}

impl Op {
    pub const fn new(kind: OpKind, object: ObjectId) -> Op {
        Op { kind, mask: 0xff, mask2: 0, order: 5, arg: 0, object, object2: ObjectId::NONE }
    }

    /// The same operation of a thread that may be cancelled there: whether it is depends on its life.
    pub const fn cancellable(self, thread: u16) -> Op {
        Op { order: LOOKS_AT_LIFE | ObjectId::life_place(thread), ..self }
    }

    /// The same operation, which wakes threads that may be cancelled.
    pub const fn wakes_cancellable(self) -> Op {
        Op { order: LOOKS_AT_LIFE | ObjectId::ALL_LIVES, ..self }
    }

    /// The process ends with status 0, once no other thread can go on. Whatever the others may run into they may run into before the
    /// process ends, so that to end it earlier shows nothing that this does not show; and when nobody else can go on it keeps
    /// nobody from anything: it depends on nothing.
    pub const fn quiet_exit() -> Op {
        Op { mask: QUIET, ..Op::new(OpKind::ProcessExit, ObjectId::NONE) }
    }

    /// The same operation, which does not wait for others any more.
    pub const fn loud(self) -> Op {
        Op { mask: 0xff, ..self }
    }

    #[inline]
    pub const fn is_quiet_exit(&self) -> bool {
        matches!(self.kind, OpKind::ProcessExit) && self.mask == QUIET
    }

    #[inline]
    const fn looks_at_life(&self) -> bool {
        self.order & LOOKS_AT_LIFE != 0
    }

    /// Whether its thread may be cancelled instead.
    #[inline]
    pub const fn may_be_cancelled(&self) -> bool {
        self.looks_at_life() && self.order & !LOOKS_AT_LIFE != ObjectId::ALL_LIVES
    }

    #[inline]
    fn life(&self) -> Option<(ObjectId, u8, Access)> {
        let life = ObjectId::life_at(self.order & !LOOKS_AT_LIFE);
        self.looks_at_life().then_some((life, 0xff, Access::Read))
    }

    /// The class of access to `object`, if it has one.
    #[inline]
    pub const fn access(&self) -> Option<Access> {
        Some(match self.kind {
            OpKind::AtomicLoad | OpKind::PlainLoad | OpKind::OnceDone => Access::Read,
            // Who comes after the last one is with others. Which of those before it came first is all the same.
            OpKind::BarrierMeet if self.arg == 0 => Access::Read,
            OpKind::BarrierMeet => Access::Write,
            OpKind::OutsideLook | OpKind::OutsideTake => Access::Read,
            OpKind::OutsidePut | OpKind::OutsideChange => Access::Write,
            // Another that woke nobody may as well come before it. Whoever wanted to wait, even in vain, may not: what made it
            // fail does not depend on this.
            OpKind::FutexWake if self.arg == NO_THREAD => Access::Read,
            OpKind::FutexWait
            | OpKind::FutexMismatch
            | OpKind::FutexWake
            | OpKind::FutexWakeAll
            | OpKind::FutexWakeSet
            | OpKind::FutexRequeue
            | OpKind::FutexWakeOp
            | OpKind::FutexTimeout => Access::Write,
            OpKind::AtomicStore
            | OpKind::AtomicRmw
            | OpKind::AtomicCas
            | OpKind::PlainStore
            | OpKind::CondWait
            | OpKind::CondSignal
            | OpKind::CondBroadcast
            | OpKind::ThreadCreate
            | OpKind::KeyTable
            | OpKind::Input
            | OpKind::CondTimeout
            | OpKind::SemPost
            | OpKind::BarrierArrive
            // It sees readers too, so it is no mere observation: those do not depend on readers.
            | OpKind::RwWriteFailed => Access::Write,
            OpKind::MutexLock | OpKind::RwWrite if self.arg == TRIED => Access::TryAcquire,
            OpKind::MutexLock | OpKind::Once | OpKind::OnceBegin | OpKind::RwWrite | OpKind::SemWait => Access::Acquire,
            OpKind::MutexUnlock | OpKind::OnceEnd | OpKind::RwUnlockWrite => Access::Release,
            OpKind::TryLock | OpKind::RwTryWrite | OpKind::SemTry | OpKind::SemTaken => Access::TryAcquire,
            OpKind::TryLockFailed | OpKind::RwReadFailed | OpKind::SemTryFailed | OpKind::SemValue => Access::Observe,
            OpKind::RwRead if self.arg == TRIED => Access::TryShared,
            OpKind::RwRead => Access::SharedAcquire,
            OpKind::RwTryRead => Access::TryShared,
            OpKind::RwUnlockRead => Access::SharedRelease,
            OpKind::ThreadEnd | OpKind::ThreadCancel | OpKind::CondCancel => Access::Write,
            OpKind::TryJoin | OpKind::TryJoinFailed => Access::Read,
            // A join that tries, or can be cancelled, names the life of the thread.
            OpKind::ThreadJoin | OpKind::CancelPoint if self.object.0 != 0 => Access::Read,
            OpKind::Waiting
            | OpKind::ThreadJoin
            | OpKind::CancelPoint
            | OpKind::ProcessExit
            | OpKind::Yield
            | OpKind::BarrierPass
            | OpKind::FutexWoken
            | OpKind::AtomicSection
            | OpKind::Choose => return None,
        })
    }

    /// The class of access to `object2`, if there is one.
    #[inline]
    pub const fn access2(&self) -> Option<Access> {
        if self.object2.0 == 0 {
            return None;
        }
        match self.kind {
            OpKind::CondWait => Some(Access::Release),
            OpKind::OutsideTake => Some(Access::Write),
            OpKind::OutsidePut => Some(Access::Read),
            _ => self.access(),
        }
    }

    /// The word of a futex that is compared or changed.
    #[inline]
    pub const fn futex_word(&self) -> Option<(ObjectId, u8, Access)> {
        let (queue, access) = match self.kind {
            OpKind::FutexWait | OpKind::FutexMismatch | OpKind::FutexRequeue => (self.object, Access::Read),
            OpKind::FutexWakeOp => (self.object2, Access::Write),
            _ => return None,
        };
        let (word, mask) = queue.futex_word();
        Some((word, mask, access))
    }

    /// The objects touched, each with its byte mask and class of access.
    #[inline]
    pub fn accesses(&self) -> impl Iterator<Item = (ObjectId, u8, Access)> {
        let first = self.access().map(|a| (self.object, self.mask, a));
        let second = self.access2().map(|a| (self.object2, self.mask2, a));
        [first, second, self.futex_word(), self.life()].into_iter().flatten()
    }

    /// The same, if it is no more than one object.
    #[inline]
    pub const fn only_access(&self) -> Option<(ObjectId, u8, Access)> {
        if self.object2.0 != 0 || self.looks_at_life() || self.futex_word().is_some() {
            return None;
        }
        match self.access() {
            Some(access) => Some((self.object, self.mask, access)),
            None => None,
        }
    }

    /// Whether it is the arrival at a barrier that all others there have waited for.
    #[inline]
    pub const fn opens_barrier(&self) -> bool {
        matches!(self.kind, OpKind::BarrierArrive | OpKind::BarrierMeet) && self.arg != 0
    }

    /// Whether this is a read only because it failed to be a write.
    #[inline]
    pub const fn is_failed_exchange(&self) -> bool {
        matches!(self.kind, OpKind::AtomicLoad) && self.arg == TRIED
    }

    /// What a pending operation turns out to be if it fails. Whoever waits for nothing else depends on less than it might.
    pub const fn failed(self) -> Op {
        let (kind, arg) = match self.kind {
            OpKind::AtomicCas => (OpKind::AtomicLoad, TRIED),
            OpKind::TryLock => (OpKind::TryLockFailed, 0),
            // Another has been there before.
            OpKind::Once => (OpKind::OnceDone, 0),
            OpKind::SemTry => (OpKind::SemTryFailed, 0),
            _ => return self,
        };
        Op { kind, arg, ..self }
    }

    /// Whether the operation could have turned out otherwise, and has failed: see [`Op::failed`].
    #[inline]
    pub const fn has_failed(&self) -> bool {
        let failed = matches!(self.kind, OpKind::TryLockFailed | OpKind::OnceDone | OpKind::SemTryFailed);
        failed || self.is_failed_exchange()
    }

    /// The bytes touched.
    pub fn place(&self) -> (ObjectId, u8, ObjectId, u8) {
        (self.object, self.mask, self.object2, if self.object2.0 == 0 { 0 } else { self.mask2 })
    }

    /// Whether the two have an object in common at all. A quick no: most pairs of operations have none.
    #[inline]
    const fn may_touch_same(&self, other: &Op) -> bool {
        let (a, b) = (self.object2.0, other.object2.0);
        if self.futex_word().is_some() || other.futex_word().is_some() {
            return true;
        }
        if self.looks_at_life() || other.looks_at_life() {
            return true;
        }
        self.object.0 == other.object.0 || (a != 0 && (a == other.object.0 || a == b)) || (b != 0 && b == self.object.0)
    }

    /// Whether it may have to wait for what others do, and its objects do not tell for what: it is on pipes, sockets or the
    /// like, or can be cancelled.
    #[inline]
    pub const fn is_on_channels(&self) -> bool {
        if self.may_be_cancelled() {
            return true;
        }
        let kinds =
            matches!(self.kind, OpKind::OutsideLook | OpKind::OutsideTake | OpKind::OutsidePut | OpKind::OutsideChange);
        kinds && self.object.is_channels()
    }

    /// Whether the operation depends on every other, whatever its objects.
    #[inline]
    pub const fn is_global(&self) -> bool {
        matches!(self.kind, OpKind::AtomicSection) || matches!(self.kind, OpKind::ProcessExit) && !self.is_quiet_exit()
    }

    /// Whether a global operation does not concern this one. An atomic section neither makes threads nor waits for them, and
    /// cannot see that others do or what they choose.
    const fn is_beyond(&self, global: &Op) -> bool {
        match self.kind {
            OpKind::Waiting => true,
            OpKind::ProcessExit => self.is_quiet_exit(),
            OpKind::Choose | OpKind::Yield | OpKind::ThreadJoin | OpKind::ThreadCreate => {
                matches!(global.kind, OpKind::AtomicSection)
            }
            _ => false,
        }
    }

    /// Whether this goes on within an atomic section that an earlier step began: it is no event of its own.
    #[inline]
    pub const fn is_inside_section(&self) -> bool {
        matches!(self.kind, OpKind::Choose) && self.order == 0
    }
}

impl Access {
    /// Whether two accesses to the same bytes, in either order, may give different results.
    pub const fn conflicts(self, other: Access) -> bool {
        self.changes() || other.changes()
    }

    /// Whether others of its kind can tell that it was there. Readers cannot tell of readers, nor failed tries of each other.
    #[inline]
    pub const fn changes(self) -> bool {
        !matches!(
            self,
            Access::Read | Access::Observe | Access::SharedAcquire | Access::SharedRelease | Access::TryShared
        )
    }

    /// Whether `self`, executed, and `other`, executed later by another thread, could have been enabled side by side.
    /// A release and a blocking acquire of the same object never are: the acquire waits for the release. Nor are a
    /// release and a read: what is both released and read is a `once`, whose callers wait for its end.
    pub const fn may_be_coenabled(self, other: Access) -> bool {
        use Access::{Acquire, Read, Release, SharedAcquire, SharedRelease};
        !matches!(
            (self, other),
            (Release, Acquire | Read | SharedAcquire)
                | (Acquire, Release | SharedRelease)
                | (SharedRelease, Acquire)
                | (SharedAcquire, Release)
        )
    }
}

/// Whether the order of two operations of different threads may matter.
///
/// A failed compare-and-exchange is a read, and yet depends on reads of other bytes than its own (of half of them, say). A
/// write to bytes that only one of the two touches can make it succeed, and then it is a write that the read depends on;
/// but that write and the read do not depend on each other, so nothing else would show that their order matters.
#[inline]
pub fn dependent(a: &Op, b: &Op) -> bool {
    if a.is_global() || b.is_global() {
        return !a.is_beyond(b) && !b.is_beyond(a);
    }
    a.may_touch_same(b) && meet(a, b)
}

/// The same of two that may have an object in common.
fn meet(a: &Op, b: &Op) -> bool {
    let undecided = (a.is_failed_exchange() || b.is_failed_exchange()) && a.place() != b.place();
    a.accesses().any(|(oa, ma, ca)| {
        b.accesses().any(|(ob, mb, cb)| oa == ob && ma & mb != 0 && (undecided || ca.conflicts(cb)))
    })
}

/// Whether `a`, executed, and a later `b` of another thread that depends on it can be exchanged: some conflicting pair
/// of their accesses may be enabled side by side.
pub fn reversible(a: &Op, b: &Op) -> bool {
    if a.is_global() || b.is_global() {
        return dependent(a, b);
    }
    let side_by_side = |(oa, ma, ca): (ObjectId, u8, Access), (ob, mb, cb): (ObjectId, u8, Access)| {
        oa == ob && ma & mb != 0 && ca.may_be_coenabled(cb)
    };
    dependent(a, b) && a.accesses().any(|x| b.accesses().any(|y| side_by_side(x, y)))
}
