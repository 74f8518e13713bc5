//! From numbers to names: makes the failure, the events and the threads of a report from the worker's records.

use crate::message;
use crate::naming::{Bytes, LockNames, Naming, is_access, is_nameless};
use crate::session::Ended;
use std::collections::BTreeMap;
use std::mem::take;
use symdpor_abi::channel::{self, ErrorKind, Header, Outcome};
use symdpor_abi::op::{NO_THREAD, Op, OpKind};
use symdpor_trace::failure::{Event, Failure, PlainAccessEvent, Race, RaceAccess, Stack, StackRole, Wait, telling};
use symdpor_trace::{FailureKind, Location, ObjectId, ThreadId, ValueType};
use symdpor_worker::accesses::RawAccess;
use symdpor_worker::decode::{RawError, RawPending, RawStack};
use symdpor_worker::{Globals, Sites, Trace};

pub struct Describe<'a> {
    pub sites: &'a Sites,
    naming: Naming<'a>,
    locks: LockNames,
}

/// The steps of an execution and, if they are known, the stacks its threads had at them.
#[derive(Clone, Copy)]
pub struct Past<'a> {
    pub trace: &'a Trace,
    /// One for each step, or none at all.
    pub stacks: &'a [RawStack],
}

impl Past<'_> {
    /// The last step of which something is true.
    fn last(&self, is: impl Fn(&channel::Step) -> bool) -> Option<usize> {
        (0..self.trace.len()).rev().find(|&i| is(&self.trace.step(i)))
    }

    /// The sites that a step's thread was in, innermost first.
    pub fn sites(&self, step: usize) -> Vec<u32> {
        self.stacks.get(step).map_or_else(|| vec![self.trace.step(step).site], |s| s.frames.clone())
    }
}

/// The kind of failure that an outcome is, if it is one.
pub fn failure_kind(outcome: Outcome, header: &Header) -> Option<FailureKind> {
    match outcome {
        Outcome::Deadlock => Some(FailureKind::Deadlock),
        Outcome::StepLimit => Some(FailureKind::StepLimit),
        Outcome::Exited if header.exit_status != 0 => Some(FailureKind::ExitStatus),
        Outcome::Error => Some(match ErrorKind::from_u32(header.error_kind) {
            Some(ErrorKind::DataRace) => FailureKind::DataRace,
            Some(ErrorKind::Assertion) => FailureKind::Assertion,
            Some(ErrorKind::Memory) => FailureKind::Memory,
            Some(ErrorKind::LockMisuse) => FailureKind::LockMisuse,
            Some(ErrorKind::Livelock) => FailureKind::Livelock,
            Some(ErrorKind::Crash | ErrorKind::None) | None => FailureKind::Crash,
        }),
        _ => None,
    }
}

impl<'a> Describe<'a> {
    pub fn new(sites: &'a Sites, globals: &'a Globals) -> Describe<'a> {
        Describe { sites, naming: Naming { sites, globals }, locks: LockNames::default() }
    }

    /// With one name for each lock of an execution.
    pub fn of_execution(sites: &'a Sites, globals: &'a Globals, past: Past<'_>) -> Describe<'a> {
        let naming = Naming { sites, globals };
        let operations: Vec<(Op, Vec<u32>)> =
            (0..past.trace.len()).map(|i| (past.trace.step(i).op, past.sites(i))).collect();
        let locks = LockNames::new(&naming, operations.iter().map(|(op, frames)| (op, frames.clone())));
        Describe { sites, naming, locks }
    }
}

impl Describe<'_> {
    pub fn failure(&self, kind: FailureKind, ended: &Ended, error: &RawError, past: Past<'_>) -> Failure {
        let Ended { header, pending, .. } = ended;
        let mut stacks: Vec<Stack> = error.stacks.iter().map(|s| self.stack(s)).collect();
        if let Some(stack) = stacks.iter_mut().find(|s| s.role == StackRole::Error).filter(|_| error.instruction != 0) {
            self.begin_at_instruction(stack, error);
        }
        let race = (kind == FailureKind::DataRace).then(|| self.race(error));
        let thread = match kind {
            FailureKind::Deadlock => None,
            _ => Some(ThreadId(header.current_thread as u16)),
        };
        let frames = stacks.iter().find(|s| s.role == StackRole::Error).map_or(&[][..], |s| &s.frames);
        let location = telling(frames).cloned().or_else(|| self.place(&[error.site]));
        let waits: Vec<Wait> =
            pending.iter().map(|p| self.wait(p, past, waiting(&stacks, p.thread), &waiting_sites(error, p))).collect();
        let blocked = waits.iter().find(|w| !w.enabled).and_then(|w| w.location.clone());
        let location = location.or_else(|| blocked.filter(|_| kind == FailureKind::Deadlock));
        let seen_last = matches!(kind, FailureKind::StepLimit | FailureKind::Livelock | FailureKind::ExitStatus);
        let location = location.or_else(|| self.last_place(header.current_thread, past).filter(|_| seen_last));
        let about = self.about(error, kind);
        let message = message::message(kind, header, error, about.as_deref(), location.is_some());
        Failure { kind, message, thread, location, race, waits, stacks }
    }

    /// Begins the stack of a crash where the instruction is. Without debug information the last hook has to do.
    fn begin_at_instruction(&self, stack: &mut Stack, error: &RawError) {
        let mut exact = self.naming.globals.places(error.instruction);
        for place in &mut exact {
            place.function = self.sites.function(&place.function).unwrap_or_else(|| take(&mut place.function));
        }
        if exact.is_empty() {
            exact = self.sites.frames(error.site);
        }
        // What the function notes of itself is where it last called another one.
        let recorded = error.stacks.iter().find(|s| s.role == channel::StackRole::Error).and_then(|s| s.frames.first());
        let own = recorded.map_or_else(Vec::new, |&site| self.sites.frames(site));
        let is_own = |place: &Location| exact.last().is_some_and(|e| e.function == place.function);
        let replaced = if own.last().is_some_and(is_own) { own.len() } else { 0 };
        stack.frames.splice(..replaced, exact);
    }

    /// The place that says most of those in a stack of sites.
    fn place(&self, sites: &[u32]) -> Option<Location> {
        let frames: Vec<Location> = sites.iter().flat_map(|&s| self.sites.frames(s)).collect();
        telling(&frames).cloned()
    }

    /// A thread that runs on and on is best found where it was seen last, and so is one that left main.
    fn last_place(&self, thread: u32, past: Past<'_>) -> Option<Location> {
        let own = (0..past.trace.len()).rev().filter(|&i| u32::from(past.trace.step(i).thread) == thread);
        own.into_iter().find_map(|i| self.place(&past.sites(i)))
    }

    pub fn stack(&self, raw: &RawStack) -> Stack {
        let role = match raw.role {
            channel::StackRole::Error => StackRole::Error,
            channel::StackRole::Earlier => StackRole::Earlier,
            channel::StackRole::Other => StackRole::Other,
            channel::StackRole::Allocated => StackRole::Allocated,
            channel::StackRole::Freed => StackRole::Freed,
        };
        Stack { thread: raw.thread, role, frames: raw.frames.iter().flat_map(|&f| self.sites.frames(f)).collect() }
    }

    fn race(&self, error: &RawError) -> Race {
        let access = |thread: u32, write: u32, atomic: u32| RaceAccess {
            thread: ThreadId(thread as u16),
            write: error.access_bits & write != 0,
            atomic: error.access_bits & atomic != 0,
        };
        let mask = error.mask as u8;
        let bytes = Bytes { object: error.object, mask, len: mask.count_ones() };
        let (object, _) = self.naming.accessed(bytes, &sites_of(error));
        Race { object, this: access(error.thread, 1, 4), earlier: access(error.other_thread, 2, 8) }
    }

    /// What misused memory or a misused lock is called in the source.
    fn about(&self, error: &RawError, kind: FailureKind) -> Option<String> {
        let frames = sites_of(error);
        let mask = error.mask as u8;
        match kind {
            FailureKind::LockMisuse if error.object != ObjectId::NONE => {
                let op = Op { mask, ..Op::new(OpKind::MutexLock, error.object) };
                Some(self.object(&op, &frames)).filter(|name| !is_nameless(name))
            }
            FailureKind::Memory | FailureKind::LockMisuse => self.naming.as_written(&frames),
            _ => None,
        }
    }

    fn wait(&self, pending: &RawPending, past: Past<'_>, stack: Option<&Stack>, stack_sites: &[u32]) -> Wait {
        let joins = pending.op.kind == OpKind::ThreadJoin && pending.op.arg != NO_THREAD;
        let on_futex = pending.op.kind == OpKind::Waiting && pending.op.object.is_futex();
        Wait {
            thread: pending.thread,
            enabled: pending.enabled,
            op: if on_futex { OpKind::FutexWait } else { pending.op.kind },
            object: self.awaited(pending, past, stack_sites) + &self.value_seen(pending, past),
            joined: joins.then_some(ThreadId(pending.op.arg as u16)),
            location: stack.and_then(|s| telling(&s.frames).cloned()).or_else(|| self.place(&[pending.site])),
            holder: pending.holder,
            held_since: self.held_since(pending, past),
        }
    }

    /// Where the holder of a lock took it. The step's stack says more than the site alone.
    fn held_since(&self, pending: &RawPending, past: Past<'_>) -> Option<Location> {
        let holder = pending.holder?;
        let took = |s: &channel::Step| {
            s.thread == holder.0 && s.op.kind == OpKind::MutexLock && s.op.object == pending.op.object
        };
        let taken = past.last(took).filter(|&i| past.trace.step(i).site == pending.held_since);
        self.place(&taken.map_or_else(|| vec![pending.held_since], |i| past.sites(i)))
    }

    /// What a thread that spins has read, as the report shows it.
    fn value_seen(&self, pending: &RawPending, past: Past<'_>) -> String {
        const VALUES: u32 = 1;
        let op = &pending.op;
        let reads = matches!(op.kind, OpKind::AtomicLoad | OpKind::AtomicCas | OpKind::AtomicRmw) && !pending.enabled;
        let seen = |s: &channel::Step| {
            s.thread == pending.thread.0 && s.op.place() == op.place() && s.flags & VALUES != 0 && reads
        };
        let size = op.mask.count_ones();
        past.last(seen)
            .map(|i| {
                let bytes = Bytes { object: op.object, mask: op.mask, len: size };
                let (_, ty) = self.naming.accessed(bytes, &past.sites(i));
                format!(" = {}", symdpor_report::words::value(past.trace.step(i).new_value, size as u8, &ty))
            })
            .unwrap_or_default()
    }

    /// A waiter that has not been woken has no operation of its own: it waits where it went to sleep.
    fn awaited(&self, pending: &RawPending, past: Past<'_>, stack_sites: &[u32]) -> String {
        let asleep = pending.op.kind == OpKind::Waiting;
        let went = past.last(|s| {
            asleep && s.thread == pending.thread.0 && matches!(s.op.kind, OpKind::CondWait | OpKind::FutexWait)
        });
        went.map_or_else(
            || self.object(&pending.op, stack_sites),
            |i| self.object(&past.trace.step(i).op, &past.sites(i)),
        )
    }

    /// A lock has one name wherever it is used: that of the variable. An access is best named as it is written.
    fn object(&self, op: &Op, frames: &[u32]) -> String {
        if is_outside(op.kind) {
            let (words, descriptor) = symdpor_abi::outside::describe(op.arg);
            return descriptor.map_or_else(|| words.to_owned(), |fd| format!("{words} on descriptor {fd}"));
        }
        let bytes = Bytes { object: op.object, mask: op.mask, len: if is_access(op.kind) { touched(op) } else { 1 } };
        if is_access(op.kind) {
            return self.naming.accessed(bytes, frames).0;
        }
        if self.naming.globals.knows(op.object) {
            return self.naming.globals.describe(op.object, op.mask);
        }
        self.locks.get(op.object).unwrap_or_else(|| self.naming.accessed(bytes, frames).0)
    }

    /// The steps.
    pub fn events(&self, past: Past<'_>, places: &mut Places) -> Vec<Event> {
        let event = |i| self.event(&past.trace.step(i), &past.sites(i), &mut *places);
        (0..past.trace.len()).map(event).collect()
    }

    /// One step of a thread that is in these frames, innermost first.
    pub fn event(&self, step: &channel::Step, frames: &[u32], places: &mut Places) -> Event {
        let op = &step.op;
        let is_wait = op.kind == OpKind::CondWait;
        let bytes = Bytes { object: op.object, mask: op.mask, len: touched(op) };
        let ty = if is_access(op.kind) { self.naming.accessed(bytes, frames).1 } else { ValueType::Unknown };
        Event {
            thread: ThreadId(step.thread),
            op: op.kind,
            order: op.order,
            arg: op.arg,
            size: touched(op) as u8,
            object: self.object(op, frames),
            object2: if is_wait { self.mutex(op) } else { String::new() },
            values: (step.flags & 1 != 0).then_some((step.old_value, step.new_value)),
            alternatives: step.alternatives,
            location: places.number(frames, self.sites),
            id: op.object.0,
            id2: op.object2.0,
            mask: op.mask,
            ty,
        }
    }

    /// The mutex of a wait.
    fn mutex(&self, op: &Op) -> String {
        let described = || self.naming.globals.describe(op.object2, op.mask2);
        self.locks.get(op.object2).unwrap_or_else(described)
    }

    /// One plain access.
    pub fn access(&self, raw: &RawAccess, places: &mut Places) -> PlainAccessEvent {
        let bytes = Bytes { object: raw.object, mask: raw.mask, len: raw.len };
        let (object, ty) = self.naming.accessed(bytes, &[raw.site]);
        PlainAccessEvent {
            step: raw.step,
            thread: raw.thread,
            write: raw.writes,
            frees: raw.frees,
            size: raw.len,
            // What is freed is the block, and not what the pointer is in.
            object: if raw.frees { object.trim_start_matches('*').to_owned() } else { object },
            id: raw.object.0,
            mask: raw.mask,
            values: raw.values,
            location: places.number(&[raw.site], self.sites),
            ty,
        }
    }
}

/// How many bytes an operation touches.
fn touched(op: &Op) -> u32 {
    let second = if op.kind == OpKind::CondWait { 0 } else { op.mask2.count_ones() };
    op.mask.count_ones() + second
}

/// The sites of the thread that made an error, innermost first.
fn sites_of(error: &RawError) -> Vec<u32> {
    let stack = error.stacks.iter().find(|s| s.role == channel::StackRole::Error).map(|s| s.frames.clone());
    let mut frames = stack.unwrap_or_default();
    if error.site != 0 && frames.first() != Some(&error.site) {
        frames.insert(0, error.site);
    }
    frames
}

/// The sites of a thread that is not running, innermost first.
fn waiting_sites(error: &RawError, pending: &RawPending) -> Vec<u32> {
    let roles = [channel::StackRole::Other, channel::StackRole::Error];
    let stack = error.stacks.iter().find(|s| s.thread == pending.thread && roles.contains(&s.role));
    stack.filter(|s| !s.frames.is_empty()).map_or_else(|| vec![pending.site], |s| s.frames.clone())
}

/// Whether an operation is on a file, a pipe, a socket or the like: it is named by what is done.
fn is_outside(kind: OpKind) -> bool {
    matches!(kind, OpKind::OutsideLook | OpKind::OutsideTake | OpKind::OutsidePut | OpKind::OutsideChange)
}

/// Where a thread that is not running was.
fn waiting(stacks: &[Stack], thread: ThreadId) -> Option<&Stack> {
    stacks
        .iter()
        .find(|s| s.thread == thread && matches!(s.role, StackRole::Other | StackRole::Error) && !s.frames.is_empty())
}

/// The places of events, each kept once.
#[derive(Default)]
pub struct Places {
    pub locations: Vec<Location>,
    numbers: BTreeMap<Location, u32>,
    /// By the sites of a stack, which are many times the same.
    known: BTreeMap<Vec<u32>, u32>,
}

impl Places {
    /// 1 + the index of the frame that says most, or 0.
    fn number(&mut self, sites: &[u32], table: &Sites) -> u32 {
        if let Some(number) = self.known.get(sites) {
            return *number;
        }
        let frames: Vec<Location> = sites.iter().flat_map(|&s| table.frames(s)).collect();
        let number = telling(&frames).map_or(0, |l| self.number_of(l));
        self.known.insert(sites.to_vec(), number);
        number
    }

    pub fn number_of(&mut self, location: &Location) -> u32 {
        if let Some(number) = self.numbers.get(location) {
            return *number;
        }
        self.locations.push(location.clone());
        let number = self.locations.len() as u32;
        self.numbers.insert(location.clone(), number);
        number
    }
}
