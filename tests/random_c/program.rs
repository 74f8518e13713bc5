//! Small concurrent programs as data: flat code per thread, the same for the interpreter and for the C that is made of it.

/// Shared variables and threads of every program.
pub const ATOMICS: usize = 3;
pub const PLAIN: usize = 2;
pub const MUTEXES: usize = 2;
pub const THREADS: usize = 4;
pub const REGISTERS: usize = 2;

pub const WAYS_TO_GIVE_WAY: [&str; 5] = [
    "sched_yield();",
    "usleep(10);",
    "{ struct timespec t = {0, 100}; nanosleep(&t, NULL); }",
    "__builtin_ia32_pause();",
    "give_way();",
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    Relaxed,
    /// Acquire for loads, release for stores.
    Weak,
    Strong,
}

/// One instruction. Targets of jumps are indices into the same thread's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instruction {
    /// register = atomic variable
    Load {
        register: usize,
        variable: usize,
        order: Order,
    },
    /// atomic variable = register + value
    Store {
        variable: usize,
        register: usize,
        value: i32,
        order: Order,
    },
    /// register = old value of the atomic variable, which is increased
    Add {
        register: usize,
        variable: usize,
        value: i32,
        order: Order,
    },
    /// Acquires and releases.
    Fence,
    /// Lets others go first, in one of [`WAYS_TO_GIVE_WAY`].
    GiveWay(usize),
    /// register = whether the atomic variable was `expected` and is `new` now
    CompareExchange {
        register: usize,
        variable: usize,
        expected: i32,
        new: i32,
    },
    /// Adds to the atomic variable if that is what the register says; register = whether it was
    CompareAdd {
        register: usize,
        variable: usize,
        value: i32,
    },
    /// What a thread keeps for the next instruction = atomic variable
    LoadKept {
        variable: usize,
        order: Order,
        besides: Besides,
    },
    /// Adds to the atomic variable if that is what is kept; if not keeps what it is and tries again. The register gets what was kept,
    /// and the other one what is kept besides.
    AddToKept {
        register: usize,
        variable: usize,
        value: i32,
        besides: Besides,
    },
    Lock(usize),
    Unlock(usize),
    TryLock {
        mutex: usize,
        if_taken: usize,
    },
    /// The same within a time limit that may pass whenever the mutex is held.
    LockWithin {
        mutex: usize,
        if_late: usize,
    },
    /// Waits on the one condition variable with mutex 0, which the thread holds.
    Wait,
    /// The same; the register says whether the time has passed first.
    WaitWithin {
        register: usize,
    },
    Signal,
    Broadcast,
    /// Puts one into the semaphore, and takes one.
    Post,
    Take,
    TryTake {
        if_none: usize,
    },
    TakeWithin {
        if_late: usize,
    },
    /// The one read-write lock.
    ReadLock,
    WriteLock,
    TryReadLock {
        if_taken: usize,
    },
    TryWriteLock {
        if_taken: usize,
    },
    RwUnlock,
    /// Waits until two have come.
    Barrier,
    PlainLoad {
        register: usize,
        variable: usize,
    },
    PlainStore {
        variable: usize,
        value: i32,
    },
    JumpUnless {
        register: usize,
        value: i32,
        target: usize,
    },
    Jump(usize),
    /// The register must not have this value.
    Assert {
        register: usize,
        forbidden: i32,
    },
    Create(usize),
    Join(usize),
    /// Adds what a joined thread computed to the hash.
    Fold(usize),
    /// Adds an atomic variable to the hash.
    FoldVariable(usize),
    /// Ends the process with that status.
    Exit(i32),
    /// Ends the process with a status made from the hash.
    ExitHash,
    /// Ends the thread.
    Return,
}

/// What a thread keeps besides what it has found, in a loop that exchanges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Besides {
    Nothing,
    /// How often it failed.
    Failures,
    /// Whether it did.
    Failed,
    /// What it found the first time, or before the last failure.
    First,
    Previous,
}

impl Besides {
    pub const ALL: [Besides; 5] =
        [Besides::Nothing, Besides::Failures, Besides::Failed, Besides::First, Besides::Previous];
}

impl Instruction {
    /// Whether a thread stops before it for the scheduler.
    pub fn is_visible(self) -> bool {
        !matches!(
            self,
            Instruction::Fence
                | Instruction::GiveWay(_)
                | Instruction::PlainLoad { .. }
                | Instruction::PlainStore { .. }
                | Instruction::JumpUnless { .. }
                | Instruction::Jump(_)
                | Instruction::Assert { .. }
                | Instruction::Fold(_)
                | Instruction::Return
        )
    }
}

impl Instruction {
    /// The same instruction in code that begins `by` instructions later.
    pub fn moved(self, by: usize) -> Instruction {
        match self {
            Instruction::TryLock { mutex, if_taken } => Instruction::TryLock { mutex, if_taken: if_taken + by },
            Instruction::LockWithin { mutex, if_late } => Instruction::LockWithin { mutex, if_late: if_late + by },
            Instruction::TryTake { if_none } => Instruction::TryTake { if_none: if_none + by },
            Instruction::TakeWithin { if_late } => Instruction::TakeWithin { if_late: if_late + by },
            Instruction::TryReadLock { if_taken } => Instruction::TryReadLock { if_taken: if_taken + by },
            Instruction::TryWriteLock { if_taken } => Instruction::TryWriteLock { if_taken: if_taken + by },
            Instruction::JumpUnless { register, value, target } => {
                Instruction::JumpUnless { register, value, target: target + by }
            }
            Instruction::Jump(target) => Instruction::Jump(target + by),
            other => other,
        }
    }
}

/// Code by thread; main is 0 and creates the others. Code ends with `Return`, main's with `ExitHash`.
#[derive(Clone, Debug)]
pub struct Program {
    pub threads: Vec<Vec<Instruction>>,
    /// Nothing tells which thread is which: no results, and the threads may be alike. What they are given does not matter.
    pub twins: Option<Given>,
}

/// What threads that may be alike get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Given {
    Nothing,
    /// A number of their own, which they forget before their first operation.
    Number,
    /// A heap block of equal content each.
    Block,
    /// A thread-local variable of equal content each.
    ThreadLocal,
}

impl Program {
    /// The outcome without knowing which of several threads with the same code came to it.
    pub fn anonymous(&self, outcome: Outcome) -> Outcome {
        match (outcome, self.twins) {
            // Threads with different beginnings share their ends.
            (Outcome::Assertion(thread, at), Some(_)) => Outcome::Assertion(0, self.threads[thread].len() - at),
            _ => outcome,
        }
    }
}

/// What a thread hands to its joiner.
pub fn result(registers: [i32; REGISTERS]) -> u32 {
    (registers[0] as u32).wrapping_mul(7).wrapping_add((registers[1] as u32).wrapping_mul(13))
}

pub fn fold(hash: u32, value: u32) -> u32 {
    hash.wrapping_mul(5).wrapping_add(value)
}

/// Never 0, so that every end of a program is an error with a status of its own.
pub fn status(hash: u32) -> i32 {
    1 + (hash % 97) as i32
}

/// How an execution can end, as far as the tests compare it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    Status(i32),
    /// No thread can go on, or those that can come to nothing for ever.
    Deadlock,
    /// The assertion at this thread and instruction.
    Assertion(usize, usize),
    Race,
}
