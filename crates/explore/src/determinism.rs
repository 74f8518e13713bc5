//! Whether the program does the same again when it is run the same way.
//!
//! Each execution repeats a prefix of an earlier one. If what it does there differs, something that nobody controls decides
//! what the program does, and no claim about "all executions" can be made: the first step that differs is reported and
//! the search ends. The check is a wrapper around any explorer.

use crate::explorer::{Explorer, Guess, Statistics};
use symdpor_trace::{Execution, Op, OpKind, PendingOp, Plan, Step, ThreadId};

/// The first step that was not as before, or not as planned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// Position of the step.
    pub position: usize,
    /// The thread that was to make it.
    pub thread: ThreadId,
    pub difference: Difference,
    /// What the thread did there before, if that is known.
    pub expected: Option<Op>,
    /// What was done there now.
    pub found: Option<Op>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Difference {
    /// The execution ended before.
    Missing,
    /// Another thread made the step.
    Thread,
    /// Other threads were able to run.
    Enabled,
    /// Another operation.
    Operation,
    /// The operation could go another number of ways, or did not go the way it was to.
    Alternatives,
}

/// Remembers the last execution, and compares the next with it as far as both run the same way.
#[derive(Default)]
pub struct Determinism {
    pub(crate) steps: Vec<Step>,
    pub(crate) pending: Vec<PendingOp>,
}

impl Determinism {
    pub fn new() -> Determinism {
        Determinism::default()
    }

    /// Compares with steps that were recorded elsewhere.
    pub fn expecting(steps: Vec<Step>) -> Determinism {
        Determinism { steps, pending: Vec::new() }
    }

    /// Compares an execution that came from `plan` with the one before.
    pub fn check(&mut self, plan: &Plan, execution: &Execution) -> Option<Divergence> {
        if plan.ask {
            return self.compare_prefix(&execution.steps);
        }
        let shared = self.shared(plan);
        let divergence = self
            .compare_prefix(&execution.steps[..execution.steps.len().min(shared)])
            .or_else(|| self.compare_branch(shared, plan, execution))
            .or_else(|| follows(plan, execution, shared.min(execution.steps.len())));
        self.steps.truncate(shared);
        self.steps.extend_from_slice(execution.steps.get(shared..).unwrap_or(&[]));
        self.pending.clone_from(&execution.pending);
        divergence
    }

    /// How many choices of the plan are what the last execution did.
    fn shared(&self, plan: &Plan) -> usize {
        let same = |(c, s): &(&symdpor_trace::Choice, &Step)| c.thread == s.thread && c.alternative == s.alternative;
        plan.choices.iter().zip(&self.steps).take_while(same).count()
    }

    fn compare_prefix(&self, steps: &[Step]) -> Option<Divergence> {
        let position = self.steps.iter().zip(steps).position(|(old, new)| old != new)?;
        let (old, new) = (&self.steps[position], &steps[position]);
        let difference = if old.thread != new.thread {
            Difference::Thread
        } else if old.enabled != new.enabled {
            Difference::Enabled
        } else if old.op != new.op {
            Difference::Operation
        } else {
            Difference::Alternatives
        };
        Some(Divergence { position, thread: old.thread, difference, expected: Some(old.op), found: Some(new.op) })
    }

    /// Where the plan branches off, the state is still the same: the same threads can run, and the thread that runs now
    /// does what it did later or was about to do.
    fn compare_branch(&self, position: usize, plan: &Plan, execution: &Execution) -> Option<Divergence> {
        let (choice, old) = (plan.choices.get(position)?, self.steps.get(position)?);
        let new = execution.steps.get(position)?;
        let expected = self.next_op(choice.thread, position);
        let difference = if new.enabled != old.enabled {
            Difference::Enabled
        } else if new.thread == choice.thread && expected.is_some_and(|op| !may_be_same(&op, &new.op)) {
            Difference::Operation
        } else {
            return None;
        };
        Some(Divergence { position, thread: choice.thread, difference, expected, found: Some(new.op) })
    }

    fn next_op(&self, thread: ThreadId, position: usize) -> Option<Op> {
        let executed = self.steps[position..].iter().find(|s| s.thread == thread).map(|s| s.op);
        executed
            .or_else(|| self.pending.iter().find(|p| p.thread == thread && p.op.kind != OpKind::Waiting).map(|p| p.op))
    }
}

/// Whether an execution did what the plan said, from a position on.
pub(crate) fn follows(plan: &Plan, execution: &Execution, from: usize) -> Option<Divergence> {
    for (position, choice) in plan.choices.iter().enumerate().skip(from) {
        let found = execution.steps.get(position);
        let difference = match found {
            None => Difference::Missing,
            Some(step) if step.thread != choice.thread => Difference::Thread,
            Some(step) if step.alternative != choice.alternative => Difference::Alternatives,
            Some(_) => continue,
        };
        let found = found.map(|s| s.op);
        return Some(Divergence { position, thread: choice.thread, difference, expected: None, found });
    }
    None
}

/// Whether two operations may be the same pending operation, executed in different states.
fn may_be_same(a: &Op, b: &Op) -> bool {
    // A waiter on a futex may be moved to another.
    let moves = |op: &Op| matches!(op.kind, OpKind::FutexTimeout | OpKind::FutexWoken);
    if moves(a) && moves(b) {
        return true;
    }
    // One that can be cancelled may turn out as that, or as what it was going to be.
    if a.may_be_cancelled() && a.order == b.order {
        return true;
    }
    // Whether a semaphore lets the thread through decides what it touches.
    let mask = |op: &Op| if family(op.kind) & TAKE != 0 { 0xff } else { op.mask };
    let place = |op: &Op| (op.object, mask(op), op.object2, op.mask2);
    // A waiter with a time limit gives up, or was woken and is about to take its mutex again.
    let gives_up = |x: &Op, y: &Op| x.kind == OpKind::CondTimeout && y.kind == OpKind::MutexLock;
    family(a.kind) & family(b.kind) != 0 && place(a) == place(b) || gives_up(a, b) || gives_up(b, a)
}

const TAKE: u64 = 1 << OpKind::SemTry as u64;

/// The pending operations that may become this one, as a bit set.
fn family(kind: OpKind) -> u64 {
    const CAS: u64 = 1 << OpKind::AtomicCas as u64;
    const TRY: u64 = 1 << OpKind::TryLock as u64;
    const ONCE: u64 = 1 << OpKind::Once as u64;
    const TRY_READ: u64 = 1 << OpKind::RwTryRead as u64;
    const TRY_WRITE: u64 = 1 << OpKind::RwTryWrite as u64;
    const FUTEX_WAIT: u64 = 1 << OpKind::FutexWait as u64;
    const FUTEX_REQUEUE: u64 = 1 << OpKind::FutexRequeue as u64;
    const FUTEX_WAKE: u64 = 1 << OpKind::FutexWake as u64;
    const TRY_JOIN: u64 = 1 << OpKind::TryJoin as u64;
    let own = 1 << kind as u64;
    match kind {
        OpKind::AtomicLoad | OpKind::AtomicRmw => own | CAS,
        OpKind::MutexLock | OpKind::TryLockFailed => own | TRY,
        OpKind::ThreadJoin | OpKind::TryJoinFailed => own | TRY_JOIN,
        OpKind::OnceBegin | OpKind::OnceDone => own | ONCE,
        OpKind::RwRead | OpKind::RwReadFailed => own | TRY_READ,
        OpKind::RwWrite | OpKind::RwWriteFailed => own | TRY_WRITE,
        OpKind::SemTaken | OpKind::SemTryFailed => own | TAKE,
        OpKind::FutexMismatch => own | FUTEX_WAIT | FUTEX_REQUEUE,
        OpKind::FutexWakeAll | OpKind::FutexWakeSet => own | FUTEX_WAKE,
        _ => own,
    }
}

/// An explorer whose executions are checked. At the first divergence the search ends.
pub struct Checked<E> {
    pub(crate) inner: E,
    pub(crate) plan: Plan,
    pub(crate) determinism: Determinism,
    pub(crate) divergence: Option<Divergence>,
}

impl<E: Explorer> Checked<E> {
    pub fn new(inner: E) -> Checked<E> {
        Checked { inner, plan: Plan::default(), determinism: Determinism::new(), divergence: None }
    }

    pub fn divergence(&self) -> Option<&Divergence> {
        self.divergence.as_ref()
    }

    pub fn inner(&self) -> &E {
        &self.inner
    }
}

impl<E: Explorer> Explorer for Checked<E> {
    fn first(&mut self) -> Plan {
        self.plan = self.inner.first();
        self.plan.clone()
    }

    fn next(&mut self, last: &Execution) -> Option<Plan> {
        self.next_guessed(last, &mut |_| ())
    }

    fn next_guessed(&mut self, last: &Execution, guess: Guess<'_>) -> Option<Plan> {
        self.divergence = self.determinism.check(&self.plan, last);
        if self.divergence.is_some() {
            return None;
        }
        let plan = self.inner.next_guessed(last, guess)?;
        self.plan.clone_from(&plan);
        Some(plan)
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    fn symmetry(&self) -> crate::symmetry::Counters {
        self.inner.symmetry()
    }

    fn estimate(&self) -> Option<f64> {
        self.inner.estimate()
    }

    fn depth(&self) -> usize {
        self.inner.depth()
    }

    fn is_endless(&self) -> bool {
        self.inner.is_endless()
    }
}
