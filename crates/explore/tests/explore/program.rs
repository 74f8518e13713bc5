//! Small programs for the in-memory machine.

/// Atomic cells of four lanes each; a lane is two bytes.
pub const CELLS: usize = 4;
pub const LANES: usize = 4;
pub const PLAIN: usize = 3;
pub const MUTEXES: usize = 3;
pub const CONDS: usize = 2;
pub const ONCES: usize = 2;
pub const RW_LOCKS: usize = 2;
/// A semaphore's first value is its number.
pub const SEMAPHORES: usize = 3;
/// The first barrier is for two threads, the second for three.
pub const BARRIERS: usize = 2;
pub const QUEUES: usize = 2;
pub const REGS: usize = 4;
pub const HANDLES: usize = 8;
/// Threads at most; creating more fails.
pub const THREADS: usize = 9;

/// Some lanes of a cell, or of a cell and the next one (16 bytes).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct View {
    pub cell: u8,
    pub from: u8,
    pub lanes: u8,
    pub wide: bool,
    /// Neither acquires nor releases.
    pub relaxed: bool,
}

impl View {
    pub const fn lane(number: u8) -> View {
        View { cell: number / LANES as u8, from: number % LANES as u8, lanes: 1, wide: false, relaxed: false }
    }

    pub const fn whole(cell: u8) -> View {
        View { cell, from: 0, lanes: LANES as u8, wide: false, relaxed: false }
    }

    /// The lanes touched, as (cell, lane).
    pub fn places(self) -> impl Iterator<Item = (usize, usize)> {
        let first = (self.from..self.from + self.lanes).map(move |l| (self.cell as usize, l as usize));
        let second = (0..if self.wide { LANES } else { 0 }).map(move |l| (self.cell as usize + 1, l));
        first.chain(second)
    }

    pub fn mask(self) -> u8 {
        (self.from..self.from + self.lanes).fold(0, |mask, lane| mask | 0b11 << (2 * lane))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Instr {
    /// Atomic, sequentially consistent. A register gets a digest of all lanes read.
    Load(u8, View),
    Store(View, i8),
    /// Stores a register plus one.
    StoreReg(View, u8),
    /// Adds to every lane; the register gets the old value.
    Add(u8, View, i8),
    /// If the digest is the first value, stores the second. The register says whether it was.
    Cas(u8, View, i8, i8),
    /// Loads until the digest is the value. A thread that has read all it looks at in vain is blocked until some of that is
    /// written, as in the real runtime.
    Spin(View, i8),
    /// Loads the one and the other in turn until one is the value.
    SpinEither(View, View, i8),
    /// Loads until the digest is the value, and looks at a plain variable in each turn.
    SpinPlain(View, i8, u8),
    /// Loads the one and the other in turn, and looks at a plain variable after the one.
    SpinEitherPlain(View, View, i8, u8),
    /// Tries to exchange 0 for 1 until that succeeds.
    SpinLock(View),
    /// Loads, and adds one if it is still what was loaded, until that succeeds. The register gets what was loaded.
    Retry(u8, View),
    /// Invisible.
    PlainLoad(u8, u8),
    PlainStore(u8, i8),
    /// Plain accesses to an atomic cell.
    RawLoad(u8, u8),
    RawStore(u8, i8),
    /// Invisible. Of this order: 2 acquires, 3 releases, 4 does both.
    Fence(u8),
    Lock(u8),
    /// The register says whether it succeeded.
    TryLock(u8, u8),
    Unlock(u8),
    /// Condition variable, mutex.
    Wait(u8, u8),
    /// The same with a time limit; the register says whether it passed.
    WaitLimit(u8, u8, u8),
    Signal(u8),
    Broadcast(u8),
    ReadLock(u8),
    WriteLock(u8),
    /// The register says whether it succeeded.
    TryRead(u8, u8),
    TryWrite(u8, u8),
    RwUnlock(u8),
    Post(u8),
    Acquire(u8),
    /// The register says whether it succeeded.
    TryTake(u8, u8),
    /// The register gets the value.
    Value(u8, u8),
    /// The register says whether the thread was the last.
    Barrier(u8, u8),
    /// The same, without asking.
    Meet(u8),
    /// Runs the given number of instructions once, which end with `OnceEnd`; all others skip them.
    Once(u8, u8),
    OnceEnd(u8),
    /// Starts a code in a new thread; its number goes to a handle.
    Create(u8, u8),
    Join(u8),
    /// The register gets the first register of the thread joined.
    JoinResult(u8, u8),
    Exit(u8),
    /// Waits if the lower half of a cell is the value, perhaps with a time limit. The register says what became of it: 0 woken,
    /// 1 another value, 2 time is up.
    FutexWait(u8, u8, i8, bool),
    /// Wakes so many; the register gets how many there were.
    FutexWake(u8, u8, u8),
    /// If the first one's word is the value, wakes one waiter and moves so many to the second.
    FutexRequeue(u8, u8, u8, i8),
    /// Sets the second one's word, wakes one waiter of the first, and one of the second if its word was 0.
    FutexWakeOp(u8, u8, i8),
    Yield,
    /// The register gets any value below the number.
    Choose(u8, u8),
    /// Executions in which the register has another value do not count.
    Assume(u8, i8),
    /// Nobody else runs up to the `AtomicEnd`.
    AtomicBegin,
    AtomicEnd,
    /// If the register has the value: the next n instructions; else skips them.
    If(u8, i8, u8),
    /// Ends the thread.
    End,
    /// Runs the n instructions before it so many times in all.
    Loop(u8, u8),
    /// Goes back over the n instructions before it for as long as the register has the value.
    Again(u8, i8, u8),
    /// Fails, with this number, if the register has the value.
    AssertNot(u8, i8, u8),
    /// Queue, value. Waits while there is no room.
    Put(u8, i8),
    /// Register, queue. Waits while there is nothing.
    Take(u8, u8),
    /// The same without waiting.
    TakeNow(u8, u8),
    Close(u8),
    /// The register says which queues have something. Waits until one has.
    Look(u8),
    /// The register says whether the thread had ended.
    TryJoin(u8, u8),
    /// Asks a thread to end, where it can be cancelled.
    Cancel(u8),
    CancelSelf,
    /// Ends the thread if it shall be cancelled.
    TestCancel,
    /// From here on the thread can be cancelled, or not.
    CancelState(bool),
}

impl Instr {
    /// What a spinning thread looks at.
    pub fn spins_on(self) -> [Option<View>; 2] {
        match self {
            Instr::Spin(view, _) | Instr::SpinPlain(view, ..) | Instr::SpinLock(view) => [Some(view), None],
            Instr::Retry(_, view) => [Some(view), Some(view)],
            Instr::SpinEither(one, other, _) | Instr::SpinEitherPlain(one, other, ..) => [Some(one), Some(other)],
            _ => [None, None],
        }
    }
}

impl Program {
    /// Whether it may run for ever.
    pub fn has_loops(&self) -> bool {
        self.codes.iter().flatten().any(|i| matches!(i, Instr::Again(..)))
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Main is the first.
    pub codes: Vec<Vec<Instr>>,
    /// Which mutexes are recursive, as bits.
    pub recursive: u8,
}

impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "recursive mutexes: {:03b}", self.recursive)?;
        for (i, code) in self.codes.iter().enumerate() {
            writeln!(f, "code {i}:")?;
            for instr in code {
                writeln!(f, "    {instr:?}")?;
            }
        }
        Ok(())
    }
}
