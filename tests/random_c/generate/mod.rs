//! Random programs. The same seed gives the same program.

mod shared;
mod spins;

use crate::program::*;

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// What a program is made of: without a style of its own every program would be the same mixture.
struct Style {
    atomics: usize,
    locks: usize,
    waits: usize,
    plain: usize,
    others: usize,
    /// Semaphores, read-write locks, barriers, time limits, spin loops.
    shared: usize,
    /// Loops that wait.
    spins: usize,
    /// Plain accesses outside of locks too.
    careless: bool,
    weak: bool,
}

impl Style {
    fn random(random: &mut Random) -> Style {
        let mut part = |most| random.below(most);
        let (atomics, locks, waits) = (1 + part(5), part(5), if part(3) == 0 { 4 } else { 0 });
        let (plain, others) = (1 + part(2), 1 + part(2));
        let (careless, weak) = (random.one_in(4), random.one_in(2));
        Style {
            atomics,
            locks,
            waits,
            plain: if careless { plain + 3 } else { plain },
            others,
            shared: 0,
            spins: 0,
            careless,
            weak,
        }
    }
}

struct Generator<'a> {
    random: &'a mut Random,
    style: Style,
    code: Vec<Instruction>,
    held: [bool; MUTEXES],
    /// It holds the read-write lock, to read only.
    reads: bool,
    /// Instructions that may still be generated for this thread.
    left: usize,
}

pub fn program(seed: u64) -> Program {
    mixed(seed, 0, 0)
}

/// With loops that wait for what others write, and give way in their turns or not.
pub fn spins(seed: u64) -> Program {
    let mut program = mixed(seed, 0, 8);
    program.twins = seed.is_multiple_of(3).then(|| {
        program.threads[0].retain(|i| !matches!(i, Instruction::Fold(_)));
        Given::Nothing
    });
    program
}

/// With semaphores, read-write locks, barriers, time limits and spin loops. Plain variable 1 is the read-write lock's.
pub fn shared(seed: u64) -> Program {
    let mut program = mixed(seed, 6, 0);
    program.twins = seed.is_multiple_of(2).then(|| {
        program.threads[0].retain(|i| !matches!(i, Instruction::Fold(_)));
        Given::Nothing
    });
    program
}

fn mixed(seed: u64, shared: usize, spins: usize) -> Program {
    let mut random = Random::new(seed);
    let others = 2 + random.below(THREADS - 2);
    let budget = if others == 2 { 6 } else { 3 };
    let mut threads = vec![main(&mut random, others)];
    let style_seed = random.next();
    for _ in 0..others {
        let style = Style { shared, spins, ..Style::random(&mut Random::new(style_seed)) };
        let left = 2 + random.below(budget);
        let held = [false; MUTEXES];
        let mut generator = Generator { random: &mut random, style, code: vec![], held, reads: false, left };
        generator.block(0);
        generator.code.push(Instruction::Return);
        threads.push(generator.code);
    }
    if random.one_in(2) {
        // Threads that share their code.
        threads[2] = threads[1].clone();
    } else if others == 2 && random.one_in(3) {
        nest(&mut random, &mut threads);
    }
    Program { threads, twins: None }
}

/// Threads of which most have the same code, some after a beginning of their own, and a main thread that does not tell them apart
/// except by joining them one by one now and then.
pub fn twins(seed: u64) -> Program {
    let mut program = program(seed);
    let mut random = Random::new(!seed);
    let creates = |code: &Vec<Instruction>| code.iter().any(|i| matches!(i, Instruction::Create(_)));
    let body = program.threads[1].clone();
    if !creates(&body) {
        for code in program.threads[2..].iter_mut().filter(|c| !creates(c)) {
            if !random.one_in(6) {
                code.clone_from(&body);
            }
        }
    }
    for code in &mut program.threads[1..] {
        if random.one_in(4) {
            let (variable, value) = (random.below(ATOMICS), 1);
            let first = Instruction::Add { register: 1, variable, value, order: Order::Strong };
            *code = std::iter::once(first).chain(code.iter().map(|i| i.moved(1))).collect();
        }
    }
    program.threads[0].retain(|i| !matches!(i, Instruction::Fold(_)));
    let given = [Given::Nothing, Given::Number, Given::Block, Given::ThreadLocal];
    program.twins = Some(given[random.below(given.len())]);
    program
}

/// Thread 1 creates one more, and joins it or not.
fn nest(random: &mut Random, threads: &mut Vec<Vec<Instruction>>) {
    let shifted = threads[1].iter().map(|i| i.moved(1));
    let mut code: Vec<Instruction> = std::iter::once(Instruction::Create(3)).chain(shifted).collect();
    if random.one_in(2) {
        code.insert(code.len() - 1, Instruction::Join(3));
    }
    threads[1] = code;
    let variable = random.below(ATOMICS);
    let add = Instruction::Add { register: 0, variable, value: 2, order: Order::Strong };
    threads.push(vec![add, Instruction::Return]);
}

/// Creates and joins, together, one by one or not at all, and folds the final state.
fn main(random: &mut Random, others: usize) -> Vec<Instruction> {
    let mut code = Vec::new();
    let one_by_one = random.one_in(5);
    for thread in 1..=others {
        code.push(Instruction::Create(thread));
        if one_by_one && thread == 1 {
            join(&mut code, thread);
        }
    }
    if random.one_in(4) {
        let (variable, value) = (random.below(ATOMICS), 1 + random.below(2) as i32);
        code.push(Instruction::Store { variable, register: 0, value, order: Order::Strong });
    }
    let forgotten = random.one_in(6).then(|| 1 + random.below(others));
    let mut order: Vec<usize> = (1..=others).filter(|t| Some(*t) != forgotten && !(one_by_one && *t == 1)).collect();
    if random.one_in(3) {
        order.reverse();
    }
    for thread in order {
        join(&mut code, thread);
        if random.one_in(6) {
            code.push(Instruction::FoldVariable(random.below(ATOMICS)));
        }
    }
    code.extend((0..ATOMICS).map(Instruction::FoldVariable));
    code.push(Instruction::ExitHash);
    code
}

fn join(code: &mut Vec<Instruction>, thread: usize) {
    code.extend([Instruction::Join(thread), Instruction::Fold(thread)]);
}

impl Generator<'_> {
    fn block(&mut self, depth: usize) {
        let length = 1 + self.random.below(3);
        for _ in 0..length {
            if self.left > 0 {
                self.left -= 1;
                self.statement(depth);
            }
        }
    }

    fn statement(&mut self, depth: usize) {
        let Style { atomics, locks, waits, plain, others, shared, spins, .. } = self.style;
        let mut which = self.random.below(atomics + locks + waits + plain + others + shared + spins);
        if which < shared {
            return self.shared(depth);
        }
        which -= shared;
        if which < spins {
            return self.spinning(depth);
        }
        which -= spins;
        if which < atomics {
            return self.atomic(depth);
        }
        which -= atomics;
        if which < locks {
            return self.locked(depth);
        }
        which -= locks;
        if which < waits {
            return self.waiting();
        }
        which -= waits;
        if which < plain { self.plain() } else { self.other(depth) }
    }

    fn order(&mut self) -> Order {
        match (self.style.weak, self.random.below(3)) {
            (true, 0) => Order::Relaxed,
            (true, 1) => Order::Weak,
            _ => Order::Strong,
        }
    }

    fn register(&mut self) -> usize {
        self.random.below(REGISTERS)
    }

    fn small(&mut self) -> i32 {
        self.random.below(3) as i32
    }

    fn atomic(&mut self, depth: usize) {
        let (register, variable, order) = (self.register(), self.random.below(ATOMICS), self.order());
        let value = 1 + self.small();
        let instruction = match self.random.below(6) {
            0 | 1 => Instruction::Load { register, variable, order },
            2 | 3 => Instruction::Store { variable, register, value, order },
            4 => Instruction::Add { register, variable, value, order },
            _ => Instruction::CompareExchange { register, variable, expected: value - 1, new: value },
        };
        self.code.push(instruction);
        if matches!(instruction, Instruction::Load { .. } | Instruction::CompareExchange { .. }) && depth < 2 {
            self.judge(register, depth);
        }
    }

    /// Does something with a value that was read: asserts, branches, both or nothing.
    fn judge(&mut self, register: usize, depth: usize) {
        if self.random.one_in(2) {
            let forbidden = 1 + self.random.below(2) as i32;
            self.code.push(Instruction::Assert { register, forbidden });
        }
        if self.left == 0 || self.random.one_in(2) {
            return;
        }
        let value = self.small();
        let at = self.code.len();
        self.code.push(Instruction::Jump(0));
        self.block(depth + 1);
        self.code[at] = Instruction::JumpUnless { register, value, target: self.code.len() };
    }

    fn locked(&mut self, depth: usize) {
        let mutex = if self.style.shared > 0 { 0 } else { self.random.below(MUTEXES) };
        // Taking a lock that is held is a deadlock of its own; some of those are enough.
        if depth >= 2 || (self.held[mutex] && !self.random.one_in(4)) {
            return self.atomic(depth);
        }
        let at = self.code.len();
        let tried = self.random.one_in(4);
        self.code.push(Instruction::Lock(mutex));
        let before = std::mem::replace(&mut self.held[mutex], true);
        self.plain();
        self.block(depth + 1);
        self.held[mutex] = before;
        if !before && !self.random.one_in(30) {
            self.code.push(Instruction::Unlock(mutex));
        }
        if tried {
            self.code[at] = Instruction::TryLock { mutex, if_taken: self.code.len() };
        }
    }

    /// Around the condition variable: waiting for plain variable 0 or without looking, waking with or without the lock.
    fn waiting(&mut self) {
        if self.held[0] {
            return self.plain();
        }
        match self.random.below(5) {
            0 | 1 => self.wait_for_plain(),
            2 => self.code.extend([Instruction::Lock(0), Instruction::Wait, Instruction::Unlock(0)]),
            3 => self.code.push(if self.random.one_in(2) { Instruction::Signal } else { Instruction::Broadcast }),
            _ => {
                let wake = if self.random.one_in(2) { Instruction::Signal } else { Instruction::Broadcast };
                let set = Instruction::PlainStore { variable: 0, value: 1 };
                self.code.extend([Instruction::Lock(0), set, wake, Instruction::Unlock(0)]);
            }
        }
    }

    fn wait_for_plain(&mut self) {
        self.code.push(Instruction::Lock(0));
        let again = self.code.len();
        self.code.push(Instruction::PlainLoad { register: 0, variable: 0 });
        self.code.push(Instruction::JumpUnless { register: 0, value: 0, target: again + 4 });
        self.code.extend([Instruction::Wait, Instruction::Jump(again), Instruction::Unlock(0)]);
    }

    /// A plain access: variable 0 under lock 0 and 1 under lock 1, unless the style is careless.
    fn plain(&mut self) {
        let variable = self.random.below(PLAIN);
        if !self.held[variable] && !self.style.careless {
            return;
        }
        let instruction = if self.random.one_in(2) || (self.reads && variable == 1) {
            Instruction::PlainLoad { register: self.register(), variable }
        } else {
            Instruction::PlainStore { variable, value: self.small() }
        };
        self.code.push(instruction);
    }

    fn other(&mut self, depth: usize) {
        match self.random.below(8) {
            0..=2 => {
                let (register, forbidden) = (self.register(), 1 + self.small());
                self.code.push(Instruction::Assert { register, forbidden });
            }
            3 if depth > 0 => {
                let status = 100 + self.small();
                self.code.push(Instruction::Exit(status));
            }
            4 if depth > 0 => self.code.push(Instruction::Return),
            5 if self.style.weak => self.code.push(Instruction::Fence),
            _ => self.atomic(depth),
        }
    }
}
