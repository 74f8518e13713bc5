//! Random programs: threads that share code, differ in their prefixes, branch on what they read, lock nested in both
//! orders, wait, join one by one and together, create others, exit early.

use crate::program::*;

/// Xorshift; the same seed gives the same programs everywhere.
#[derive(Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..10 {
            rng.next();
        }
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn byte(&mut self, n: usize) -> u8 {
        self.below(n) as u8
    }

    fn value(&mut self, n: usize) -> i8 {
        self.below(n) as i8
    }

    fn percent(&mut self, p: u64) -> bool {
        self.next() % 100 < p
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// What the programs of a kind are mostly made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Mixed,
    Atomics,
    Locks,
    TryLocks,
    Conditions,
    Creation,
    Ends,
    Once,
    Spins,
    /// Equal threads among them, and plain accesses to what they look at.
    SpinTwins,
    Futexes,
    /// Threads that may run for ever.
    Endless,
    EndlessTwins,
    /// Many threads that do little.
    Crowd,
    /// Two threads that do much.
    Deep,
    /// Threads of which most are alike.
    Twins,
    /// Read-write locks, semaphores, barriers, time limits.
    Shared,
    Semaphores,
    Limits,
    SharedTwins,
    /// Choices, assumptions and atomic sections.
    Authors,
    Queues,
    /// Joins that try.
    Lives,
    /// Cancellation.
    Cancels,
}

impl Kind {
    pub const ALL: [Kind; 24] = [
        Kind::Mixed,
        Kind::Atomics,
        Kind::Locks,
        Kind::TryLocks,
        Kind::Conditions,
        Kind::Creation,
        Kind::Ends,
        Kind::Once,
        Kind::Spins,
        Kind::SpinTwins,
        Kind::Futexes,
        Kind::Endless,
        Kind::EndlessTwins,
        Kind::Crowd,
        Kind::Deep,
        Kind::Twins,
        Kind::Shared,
        Kind::Semaphores,
        Kind::Limits,
        Kind::SharedTwins,
        Kind::Authors,
        Kind::Queues,
        Kind::Lives,
        Kind::Cancels,
    ];

    /// Whether most of its threads are alike.
    fn has_twins(self) -> bool {
        matches!(self, Kind::Twins | Kind::SharedTwins | Kind::SpinTwins | Kind::EndlessTwins)
    }

    fn segments(self) -> &'static [fn(&mut Generator, &mut Vec<Instr>)] {
        use Generator as G;
        match self {
            Kind::Mixed => &[
                G::atom,
                G::atom,
                G::branch,
                G::branch,
                G::locked,
                G::locked,
                G::plain,
                G::try_locked,
                G::guarded_wait,
                G::notify,
                G::once,
                G::repeat,
                G::exit,
                G::pause,
                G::check,
                G::both_orders,
                G::recursive,
            ],
            Kind::Atomics => &[G::atom, G::atom, G::branch, G::branch, G::branch_plain, G::repeat, G::check],
            Kind::Locks => {
                &[G::atom, G::locked, G::locked, G::both_orders, G::both_orders, G::branch_locks, G::recursive]
            }
            Kind::TryLocks => &[G::atom, G::locked, G::try_locked, G::try_locked, G::both_orders, G::branch],
            Kind::Conditions => {
                &[G::announced_wait, G::atom, G::locked, G::wait, G::guarded_wait, G::notify, G::notify, G::branch]
            }
            Kind::Creation => &[G::atom, G::branch, G::branch_plain, G::locked, G::plain, G::spawn],
            Kind::Ends => &[G::atom, G::branch, G::locked, G::exit, G::check, G::check, G::guarded_wait, G::notify],
            Kind::Crowd => {
                &[G::atom, G::atom, G::atom, G::locked, G::try_locked, G::branch, G::notify, G::wait, G::exit]
            }
            Kind::Deep => Kind::Mixed.segments(),
            Kind::Twins => &[
                G::atom,
                G::atom,
                G::branch,
                G::branch,
                G::branch_plain,
                G::branch_plain,
                G::locked,
                G::locked,
                G::plain,
                G::both_orders,
                G::branch_locks,
                G::guarded_wait,
                G::notify,
                G::spawn,
                G::repeat,
                G::check,
            ],
            Kind::Shared => {
                &[G::atom, G::plain, G::rw_locked, G::rw_locked, G::try_rw, G::barrier, G::tokens, G::branch]
            }
            Kind::Semaphores => {
                &[G::atom, G::plain, G::tokens, G::tokens, G::one_token, G::one_token, G::try_token, G::branch_token]
            }
            Kind::Limits => &[
                G::atom,
                G::branch_plain,
                G::limited_wait,
                G::limited_wait,
                G::notify,
                G::notify,
                G::guarded_wait,
                G::locked,
            ],
            Kind::SharedTwins => &[
                G::atom,
                G::branch,
                G::branch_plain,
                G::rw_locked,
                G::try_rw,
                G::barrier,
                G::tokens,
                G::one_token,
                G::try_token,
                G::branch_token,
                G::limited_wait,
                G::notify,
                G::check,
            ],
            Kind::Endless | Kind::EndlessTwins => &[
                G::atom,
                G::again,
                G::again,
                G::again_locking,
                G::again_locking,
                G::locked,
                G::branch,
                G::branch_plain,
                G::check,
            ],
            Kind::Authors => &[
                G::atom,
                G::choose,
                G::assume,
                G::section,
                G::section,
                G::locked,
                G::branch,
                G::branch_plain,
                G::check,
            ],
            Kind::Futexes => &[
                G::atom,
                G::branch,
                G::locked,
                G::futex_wait,
                G::futex_wait,
                G::futex_wake,
                G::futex_wake,
                G::futex_move,
            ],
            Kind::Queues => &[
                G::queue,
                G::queue,
                G::queue,
                G::queue,
                G::branch_queue,
                G::branch_queue,
                G::plain,
                G::atom,
                G::locked,
                G::check,
            ],
            Kind::Lives => {
                &[G::atom, G::plain, G::branch_plain, G::branch, G::locked, G::try_join, G::try_join, G::spawn_and_try]
            }
            Kind::Cancels => &[
                G::cancel,
                G::cancel,
                G::test_cancel,
                G::wait,
                G::limited_wait,
                G::notify,
                G::one_token,
                G::queue,
                G::try_join,
                G::spawn_and_try,
                G::atom,
                G::plain,
                G::locked,
            ],
            Kind::Once => &[G::atom, G::once, G::once, G::branch, G::locked, G::check],
            Kind::SpinTwins => &[
                G::atom,
                G::atom,
                G::spin,
                G::spin,
                G::spin_locked,
                G::spin_either,
                G::retry,
                G::retry,
                G::branch,
                G::branch_plain,
                G::plain,
                G::locked,
                G::check,
            ],
            Kind::Spins => &[
                G::atom,
                G::atom,
                G::spin,
                G::spin,
                G::spin_locked,
                G::spin_either,
                G::retry,
                G::retry,
                G::branch,
                G::locked,
                G::locked_spin,
                G::both_orders,
            ],
        }
    }
}

struct Generator {
    rng: Rng,
    kind: Kind,
    cells: usize,
    /// Percentage of accesses to a part of a cell, and to two cells.
    partial: u64,
    wide: u64,
    /// Percentage of relaxed accesses, of joins whose result is used, of plain accesses to atomic cells.
    relaxed: u64,
    results: u64,
    raw: u64,
    /// For fences, in programs with relaxed accesses.
    fences: Rng,
    mutexes: usize,
    plains: usize,
    workers: usize,
}

/// A random program of a kind.
pub fn program(rng: &mut Rng, kind: Kind) -> Program {
    let mut g = Generator {
        cells: rng.pick(&[1, 2, 2, 3]),
        partial: rng.pick(&[0, 0, 30, 60]),
        wide: rng.pick(&[0, 0, 0, 20]),
        relaxed: rng.pick(&[0, 0, 50]),
        results: rng.pick(&[0, 0, 0, 60]),
        raw: rng.pick(&[0, 0, 30]),
        fences: Rng::new(rng.clone().below(1 << 30) as u64),
        mutexes: 1 + rng.below(2),
        plains: 1 + rng.below(2),
        workers: match kind {
            Kind::Crowd => rng.pick(&[4, 5, 6]),
            Kind::Deep => 2,
            _ if kind.has_twins() => rng.pick(&[2, 3, 3, 4, 4]),
            _ => rng.pick(&[2, 2, 3, 3, 4]),
        },
        kind,
        rng: rng.clone(),
    };
    let program = g.program();
    *rng = g.rng;
    program
}

impl Generator {
    fn program(&mut self) -> Program {
        let workers = self.workers;
        let shared = self.body();
        let mut codes = vec![Vec::new()];
        for _ in 0..workers {
            let mut code = Vec::new();
            if self.rng.percent(30) {
                self.segment(&mut code);
            }
            let alike = self.rng.percent(if self.kind.has_twins() { 90 } else { 70 });
            code.extend(if alike { shared.clone() } else { self.body() });
            codes.push(code);
        }
        // Code that only other threads start.
        if matches!(self.kind, Kind::Creation | Kind::Twins | Kind::Lives | Kind::Cancels) {
            codes.push(self.body());
        }
        codes[0] = self.main(workers);
        Program { codes, recursive: if self.rng.percent(30) { 0b100 | self.rng.byte(4) } else { 0b100 } }
    }

    fn body(&mut self) -> Vec<Instr> {
        let mut code = Vec::new();
        let segments = match self.kind {
            Kind::Crowd => 1,
            Kind::Deep => 3 + self.rng.below(2),
            _ => 1 + self.rng.below(2),
        };
        for _ in 0..segments {
            self.segment(&mut code);
        }
        code
    }

    fn main(&mut self, workers: usize) -> Vec<Instr> {
        let mut code = Vec::new();
        let between = self.rng.pick(&[0, 0, 30]);
        for worker in 1..=workers as u8 {
            if self.rng.percent(between) {
                self.atom_or_plain(&mut code);
            }
            code.push(Instr::Create(worker, worker - 1));
        }
        if self.rng.percent(25) {
            self.segment(&mut code);
        }
        self.joins(workers, &mut code);
        if self.rng.percent(30) {
            self.segment(&mut code);
        }
        if self.rng.percent(50) {
            code.push(Instr::Exit(0));
        }
        code
    }

    fn joins(&mut self, workers: usize, code: &mut Vec<Instr>) {
        let (leave_out, between) = (self.rng.pick(&[0, 0, 40, 100]), self.rng.pick(&[0, 0, 40]));
        let mut order: Vec<u8> = (0..workers as u8).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, self.rng.below(i + 1));
        }
        for handle in order {
            if !self.rng.percent(leave_out) {
                let result = self.rng.percent(self.results);
                code.push(if result { Instr::JoinResult(self.rng.byte(REGS), handle) } else { Instr::Join(handle) });
                if self.rng.percent(between) {
                    self.atom_or_plain(code);
                }
            }
        }
    }

    fn segment(&mut self, code: &mut Vec<Instr>) {
        let choices = self.kind.segments();
        choices[self.rng.below(choices.len())](self, code);
    }

    fn view(&mut self) -> View {
        View { relaxed: self.rng.percent(self.relaxed), ..self.ordered_view() }
    }

    fn ordered_view(&mut self) -> View {
        let cell = self.rng.byte(self.cells);
        if self.rng.percent(self.wide) {
            return View { wide: true, ..View::whole(cell) };
        }
        if !self.rng.percent(self.partial) {
            return View::whole(cell);
        }
        let lanes = self.rng.pick(&[1, 2, 2]);
        View { cell, from: self.rng.byte(LANES / lanes as usize) * lanes, lanes, wide: false, relaxed: false }
    }

    fn reg(&mut self) -> u8 {
        self.rng.byte(2)
    }

    fn atom(&mut self, code: &mut Vec<Instr>) {
        let (r, view) = (self.reg(), self.view());
        code.push(match self.rng.below(8) {
            0 | 1 => Instr::Load(r, view),
            2 => Instr::Store(view, 1 + self.rng.value(2)),
            3 => Instr::StoreReg(view, r),
            4 => Instr::Cas(r, view, self.rng.value(2), 1 + self.rng.value(2)),
            _ => Instr::Add(r, view, 1),
        });
    }

    fn queue(&mut self, code: &mut Vec<Instr>) {
        let (r, q) = (self.reg(), self.rng.byte(QUEUES));
        code.push(match self.rng.below(12) {
            0..5 => Instr::Put(q, 1 + self.rng.value(2)),
            5..8 => Instr::Take(r, q),
            8 => Instr::TakeNow(r, q),
            9 => Instr::Close(q),
            _ => Instr::Look(r),
        });
    }

    /// Does something only if a queue had a certain item, or nothing.
    fn branch_queue(&mut self, code: &mut Vec<Instr>) {
        let (r, q) = (self.reg(), self.rng.byte(QUEUES));
        code.push(if self.rng.percent(50) { Instr::Take(r, q) } else { Instr::TakeNow(r, q) });
        code.push(Instr::If(r, self.rng.pick(&[-1, 1, 2]), 1));
        if self.rng.percent(50) { self.queue(code) } else { self.atom(code) }
    }

    fn plain(&mut self, code: &mut Vec<Instr>) {
        self.fence(&[2, 2, 4, 3], code);
        self.unfenced(code);
        self.fence(&[3, 3, 4, 2], code);
    }

    fn fence(&mut self, orders: &[u8], code: &mut Vec<Instr>) {
        if self.relaxed > 0 && self.fences.percent(40) {
            code.push(Instr::Fence(self.fences.pick(orders)));
        }
    }

    fn unfenced(&mut self, code: &mut Vec<Instr>) {
        let var = self.rng.byte(self.plains);
        if self.rng.percent(self.raw) {
            let cell = self.rng.byte(self.cells);
            code.push(if self.rng.percent(60) { Instr::RawLoad(self.reg(), cell) } else { Instr::RawStore(cell, 1) });
            return;
        }
        code.push(if self.rng.percent(50) {
            Instr::PlainLoad(self.reg(), var)
        } else {
            Instr::PlainStore(var, 1 + self.rng.value(2))
        });
    }

    fn atom_or_plain(&mut self, code: &mut Vec<Instr>) {
        if self.rng.percent(70) { self.atom(code) } else { self.plain(code) }
    }

    /// Something that depends on what was read.
    fn guarded(&mut self, code: &mut Vec<Instr>, body: fn(&mut Self, &mut Vec<Instr>)) {
        let (r, view) = (self.reg(), self.view());
        code.push(if self.rng.percent(60) { Instr::Add(r, view, 1) } else { Instr::Load(r, view) });
        let mut inner = Vec::new();
        body(self, &mut inner);
        code.push(Instr::If(r, self.rng.value(3), inner.len() as u8));
        code.extend(inner);
    }

    fn branch(&mut self, code: &mut Vec<Instr>) {
        self.guarded(code, Self::atom);
    }

    fn branch_plain(&mut self, code: &mut Vec<Instr>) {
        self.guarded(code, Self::plain);
    }

    fn branch_locks(&mut self, code: &mut Vec<Instr>) {
        self.guarded(code, Self::both_orders);
    }

    fn spawn(&mut self, code: &mut Vec<Instr>) {
        let handle = 4 + self.rng.byte(2);
        // The last code is nobody's but the spawners'. It may spawn itself, until threads run out.
        code.push(Instr::Create(self.workers as u8 + 1, handle));
        if self.rng.percent(50) {
            self.atom_or_plain(code);
        }
        if self.rng.percent(50) {
            code.push(Instr::Join(handle));
        }
    }

    fn check(&mut self, code: &mut Vec<Instr>) {
        let (r, view) = (self.reg(), self.view());
        code.push(if self.rng.percent(50) { Instr::Add(r, view, 1) } else { Instr::Load(r, view) });
        code.push(Instr::AssertNot(r, self.rng.value(3), self.rng.byte(4)));
    }

    fn locked(&mut self, code: &mut Vec<Instr>) {
        let m = self.rng.byte(self.mutexes);
        code.push(Instr::Lock(m));
        match self.rng.below(6) {
            0 | 1 => self.atom(code),
            2 | 3 => self.plain(code),
            4 => self.branch_plain(code),
            _ => {}
        }
        code.push(Instr::Unlock(m));
    }

    fn any_handle(&mut self) -> u8 {
        self.rng.byte(self.workers)
    }

    fn try_join(&mut self, code: &mut Vec<Instr>) {
        let r = self.reg();
        code.push(Instr::TryJoin(r, self.any_handle()));
        code.push(Instr::If(r, self.rng.value(2), 1));
        self.atom_or_plain(code);
    }

    fn spawn_and_try(&mut self, code: &mut Vec<Instr>) {
        let (r, handle) = (self.reg(), 4 + self.rng.byte(2));
        code.push(Instr::Create(self.workers as u8 + 1, handle));
        code.push(if self.rng.percent(50) { Instr::TryJoin(r, handle) } else { Instr::Cancel(handle) });
        if self.rng.percent(50) {
            code.push(Instr::If(r, self.rng.value(2), 1));
            self.atom_or_plain(code);
        }
    }

    fn cancel(&mut self, code: &mut Vec<Instr>) {
        code.push(match self.rng.below(8) {
            0 => Instr::CancelSelf,
            1 => Instr::CancelState(self.rng.percent(50)),
            _ => Instr::Cancel(self.any_handle()),
        });
    }

    fn test_cancel(&mut self, code: &mut Vec<Instr>) {
        if self.rng.percent(20) {
            code.push(Instr::CancelState(false));
            self.atom(code);
            code.push(Instr::CancelState(true));
        }
        code.push(Instr::TestCancel);
        self.atom_or_plain(code);
    }

    fn both_orders(&mut self, code: &mut Vec<Instr>) {
        let m = self.rng.byte(2);
        code.extend([Instr::Lock(m), Instr::Lock(1 - m)]);
        if self.rng.percent(30) {
            self.atom(code);
        }
        code.extend([Instr::Unlock(1 - m), Instr::Unlock(m)]);
    }

    fn recursive(&mut self, code: &mut Vec<Instr>) {
        code.extend([Instr::Lock(2), if self.rng.percent(70) { Instr::Lock(2) } else { Instr::TryLock(3, 2) }]);
        self.atom_or_plain(code);
        code.extend([Instr::Unlock(2), Instr::Unlock(2)]);
    }

    fn try_locked(&mut self, code: &mut Vec<Instr>) {
        let (r, m) = (self.reg(), self.rng.byte(self.mutexes));
        let mut inner = Vec::new();
        if self.rng.percent(70) {
            self.atom_or_plain(&mut inner);
        }
        inner.push(Instr::Unlock(m));
        code.push(Instr::TryLock(r, m));
        code.push(Instr::If(r, 1, inner.len() as u8));
        code.extend(inner);
        if self.rng.percent(40) {
            // The register may have changed since; that is as good as any other branch.
            code.push(Instr::If(r, 0, 1));
            self.atom(code);
        }
    }

    fn wait(&mut self, code: &mut Vec<Instr>) {
        let (c, m) = (self.rng.byte(CONDS) & self.rng.byte(2), self.rng.byte(self.mutexes));
        code.extend([Instr::Lock(m), Instr::Wait(c, m)]);
        if self.rng.percent(40) {
            self.atom_or_plain(code);
        }
        code.push(Instr::Unlock(m));
    }

    fn guarded_wait(&mut self, code: &mut Vec<Instr>) {
        let (r, m) = (self.reg(), self.rng.byte(self.mutexes));
        let view = View::whole(0);
        code.extend([Instr::Lock(m), Instr::Load(r, view), Instr::If(r, 0, 1), Instr::Wait(0, m), Instr::Unlock(m)]);
    }

    /// Waits, having said so, or only if another has said so: then the order of the waiters is known.
    fn announced_wait(&mut self, code: &mut Vec<Instr>) {
        let (view, m) = (View::whole(0), 0);
        code.push(Instr::Lock(m));
        if self.rng.percent(50) {
            code.push(Instr::Add(3, view, 1));
        } else {
            code.extend([Instr::Load(3, view), Instr::If(3, 1, 1)]);
        }
        code.extend([Instr::Wait(0, m), Instr::Unlock(m)]);
    }

    fn notify(&mut self, code: &mut Vec<Instr>) {
        let (c, m) = (self.rng.byte(CONDS) & self.rng.byte(2), self.rng.byte(self.mutexes));
        let wake = if self.rng.percent(70) { Instr::Signal(c) } else { Instr::Broadcast(c) };
        let locked = self.rng.percent(60);
        if locked {
            code.push(Instr::Lock(m));
        }
        if self.rng.percent(50) {
            code.push(Instr::Add(3, View::whole(0), 1));
        }
        code.push(wake);
        if locked {
            code.push(Instr::Unlock(m));
        }
    }

    fn rw_locked(&mut self, code: &mut Vec<Instr>) {
        let l = self.rng.byte(RW_LOCKS) & self.rng.byte(RW_LOCKS);
        code.push(if self.rng.percent(60) { Instr::ReadLock(l) } else { Instr::WriteLock(l) });
        match self.rng.below(9) {
            0 | 1 => self.plain(code),
            2 => self.atom(code),
            3 => self.branch_plain(code),
            4 | 5 => (0..2).for_each(|_| self.atom_or_plain(code)),
            6 => self.rw_locked(code),
            7 => self.locked(code),
            _ => {}
        }
        code.push(Instr::RwUnlock(l));
    }

    fn try_rw(&mut self, code: &mut Vec<Instr>) {
        let (r, l) = (self.reg(), self.rng.byte(RW_LOCKS) & self.rng.byte(RW_LOCKS));
        let mut inner = Vec::new();
        if self.rng.percent(60) {
            self.plain(&mut inner);
        }
        inner.push(Instr::RwUnlock(l));
        code.push(if self.rng.percent(50) { Instr::TryRead(3, l) } else { Instr::TryWrite(3, l) });
        code.push(Instr::If(3, 1, inner.len() as u8));
        code.extend(inner);
        if self.rng.percent(40) {
            code.push(Instr::If(3, 0, 1));
            code.push(Instr::Add(r, View::whole(0), 1));
        }
    }

    fn tokens(&mut self, code: &mut Vec<Instr>) {
        let s = 1 + self.rng.byte(2);
        code.push(Instr::Acquire(s));
        self.atom_or_plain(code);
        code.push(Instr::Post(s));
    }

    fn one_token(&mut self, code: &mut Vec<Instr>) {
        let s = self.rng.byte(2);
        if self.rng.percent(30) {
            self.atom_or_plain(code);
        }
        code.push(if self.rng.percent(50) { Instr::Post(s) } else { Instr::Acquire(s) });
        if self.rng.percent(30) {
            self.atom_or_plain(code);
        }
    }

    fn try_token(&mut self, code: &mut Vec<Instr>) {
        let (r, s) = (self.reg(), self.rng.byte(3));
        code.push(if self.rng.percent(60) { Instr::TryTake(r, s) } else { Instr::Value(r, s) });
        code.push(Instr::If(r, self.rng.value(2), 1));
        self.atom_or_plain(code);
    }

    fn branch_token(&mut self, code: &mut Vec<Instr>) {
        self.guarded(code, Self::one_token);
    }

    fn barrier(&mut self, code: &mut Vec<Instr>) {
        let (r, b) = (self.reg(), self.rng.byte(2) & self.rng.byte(2));
        if self.rng.percent(40) {
            self.atom_or_plain(code);
        }
        let asks = self.rng.percent(50);
        code.push(if asks { Instr::Barrier(b, r) } else { Instr::Meet(b) });
        if asks && self.rng.percent(70) {
            code.push(Instr::If(r, 1, 1));
        }
        self.atom_or_plain(code);
    }

    fn limited_wait(&mut self, code: &mut Vec<Instr>) {
        let (r, c, m) = (self.reg(), self.rng.byte(CONDS) & self.rng.byte(2), self.rng.byte(self.mutexes));
        code.push(Instr::Lock(m));
        if self.rng.percent(40) {
            code.extend([Instr::Load(r, View::whole(0)), Instr::If(r, 0, 1)]);
        }
        code.extend([Instr::WaitLimit(c, m, r)]);
        if self.rng.percent(60) {
            code.push(Instr::If(r, self.rng.value(2), 1));
            self.atom_or_plain(code);
        }
        code.push(Instr::Unlock(m));
    }

    /// Stores something until something else is there.
    fn again(&mut self, code: &mut Vec<Instr>) {
        let (r, before) = (self.reg(), code.len());
        if self.rng.percent(60) {
            code.push(Instr::Store(self.view(), self.rng.value(3)));
        }
        if self.rng.percent(20) {
            self.plain(code);
        }
        code.push(Instr::Load(r, self.view()));
        code.push(Instr::Again(r, self.rng.value(3), (code.len() - before) as u8));
    }

    /// Takes a lock and tries another, until that succeeds.
    fn again_locking(&mut self, code: &mut Vec<Instr>) {
        let (r, m, before) = (3, self.rng.byte(2), code.len());
        code.push(Instr::Lock(m));
        if self.rng.percent(30) {
            self.plain(code);
        }
        code.extend([Instr::TryLock(r, 1 - m), Instr::If(r, 1, 1), Instr::Unlock(1 - m), Instr::Unlock(m)]);
        code.push(Instr::Again(r, 0, (code.len() - before) as u8));
    }

    fn futex_value(&mut self, code: &mut Vec<Instr>, cell: u8) {
        let view = View { lanes: 2, ..View::whole(cell) };
        code.push(if self.rng.percent(70) { Instr::Store(view, 1) } else { Instr::Store(View::whole(cell), 1) });
    }

    fn futex_wait(&mut self, code: &mut Vec<Instr>) {
        let (r, cell) = (self.reg(), self.rng.byte(2));
        code.push(Instr::FutexWait(r, cell, self.rng.value(2), self.rng.percent(25)));
        if self.rng.percent(50) {
            let mut inner = Vec::new();
            self.atom_or_plain(&mut inner);
            code.push(Instr::If(r, self.rng.value(3), inner.len() as u8));
            code.extend(inner);
        }
    }

    fn futex_wake(&mut self, code: &mut Vec<Instr>) {
        let (r, cell) = (self.reg(), self.rng.byte(2));
        if self.rng.percent(50) {
            self.futex_value(code, cell);
        }
        code.push(Instr::FutexWake(r, cell, self.rng.pick(&[1, 1, 1, 2, 9])));
        if self.rng.percent(20) {
            code.push(Instr::If(r, self.rng.value(3), 1));
            self.atom(code);
        }
    }

    fn futex_move(&mut self, code: &mut Vec<Instr>) {
        let cell = self.rng.byte(2);
        code.push(if self.rng.percent(70) {
            Instr::FutexRequeue(cell, 1 - cell, self.rng.pick(&[1, 1, 9]), self.rng.value(2))
        } else {
            Instr::FutexWakeOp(cell, 1 - cell, self.rng.value(2))
        });
    }

    fn spin(&mut self, code: &mut Vec<Instr>) {
        let (view, value) = (self.view(), 1 + self.rng.value(2));
        if self.rng.percent(25) {
            let var = self.rng.byte(self.plains);
            if self.rng.percent(40) {
                code.push(Instr::PlainLoad(self.reg(), var));
            }
            code.push(Instr::SpinPlain(view, value, var));
        } else {
            code.push(Instr::Spin(view, value));
        }
        if self.rng.percent(50) {
            self.atom_or_plain(code);
        }
    }

    /// Others may wait for the lock for ever.
    fn locked_spin(&mut self, code: &mut Vec<Instr>) {
        let m = self.rng.byte(self.mutexes);
        code.push(Instr::Lock(m));
        self.spin(code);
        code.push(Instr::Unlock(m));
    }

    fn spin_either(&mut self, code: &mut Vec<Instr>) {
        let (one, other) = (self.view(), self.view());
        let value = 1 + self.rng.value(2);
        code.push(if self.rng.percent(25) {
            Instr::SpinEitherPlain(one, other, value, self.rng.byte(self.plains))
        } else {
            Instr::SpinEither(one, other, value)
        });
        self.atom(code);
    }

    fn retry(&mut self, code: &mut Vec<Instr>) {
        let (r, view) = (self.reg(), self.view());
        code.push(Instr::Retry(r, view));
        if self.rng.percent(50) {
            self.atom_or_plain(code);
        }
    }

    fn spin_locked(&mut self, code: &mut Vec<Instr>) {
        let view = View::whole(self.rng.byte(self.cells));
        code.push(Instr::SpinLock(view));
        self.atom_or_plain(code);
        code.push(Instr::Store(view, 0));
    }

    fn once(&mut self, code: &mut Vec<Instr>) {
        let o = self.rng.byte(ONCES);
        let mut inner = Vec::new();
        if self.rng.percent(80) {
            self.atom_or_plain(&mut inner);
        }
        inner.push(Instr::OnceEnd(o));
        code.push(Instr::Once(o, inner.len() as u8));
        code.extend(inner);
        if self.rng.percent(30) {
            self.plain(code);
        }
    }

    fn repeat(&mut self, code: &mut Vec<Instr>) {
        let before = code.len();
        self.atom(code);
        if self.rng.percent(30) {
            code.push(Instr::Yield);
        }
        code.push(Instr::Loop((code.len() - before) as u8, 2));
    }

    fn exit(&mut self, code: &mut Vec<Instr>) {
        if self.rng.percent(70) {
            self.guarded(code, |g, inner| inner.push(Instr::Exit(1 + g.rng.byte(2))));
        } else {
            code.push(Instr::Exit(1));
        }
    }

    fn choose(&mut self, code: &mut Vec<Instr>) {
        let r = self.reg();
        code.push(Instr::Choose(r, 2 + self.rng.byte(2)));
        match self.rng.below(5) {
            0 => code.push(Instr::StoreReg(self.view(), r)),
            // One of the ways is an error, after an access that others may race with.
            1 => {
                let way = self.rng.value(2);
                code.push(Instr::If(r, way, 2));
                self.plain(code);
                code.push(Instr::AssertNot(r, way, self.rng.byte(4)));
            }
            2 => {
                code.push(Instr::If(r, 1, 1));
                self.atom(code);
            }
            3 => {
                code.push(Instr::If(r, 0, 1));
                self.plain(code);
            }
            _ => code.push(Instr::Assume(r, self.rng.value(2))),
        }
    }

    fn assume(&mut self, code: &mut Vec<Instr>) {
        let (r, view) = (self.reg(), self.view());
        code.push(if self.rng.percent(50) { Instr::Add(r, view, 1) } else { Instr::Load(r, view) });
        code.push(Instr::Assume(r, self.rng.value(3)));
        if self.rng.percent(50) {
            self.atom_or_plain(code);
        }
    }

    fn section(&mut self, code: &mut Vec<Instr>) {
        code.push(Instr::AtomicBegin);
        for _ in 0..1 + self.rng.below(3) {
            match self.rng.below(9) {
                0..=3 => self.atom(code),
                4 => self.plain(code),
                5 => self.choose(code),
                6 => self.assume(code),
                7 => self.locked(code),
                _ => self.check(code),
            }
        }
        code.push(Instr::AtomicEnd);
    }

    fn pause(&mut self, code: &mut Vec<Instr>) {
        code.push(Instr::Yield);
    }
}
