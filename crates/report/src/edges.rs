//! What makes one step come before another thread's: the arrows of the diagram.
//!
//! For looking at: which order the race detector or the search assumes is decided elsewhere.

use std::collections::BTreeMap;
use symdpor_trace::failure::Event;
use symdpor_trace::file::TraceFile;
use symdpor_trace::{Access, NO_THREAD, ObjectId, Op, OpKind, ThreadId};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Edge {
    /// Indices of steps.
    pub from: usize,
    pub to: usize,
    pub kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Creation and join.
    Thread,
    Lock,
    Signal,
    /// A value that was published with release and read with acquire.
    Value,
    /// A value that was read, and orders nothing.
    Relaxed,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Thread => "thread",
            Kind::Lock => "lock",
            Kind::Signal => "signal",
            Kind::Value => "value",
            Kind::Relaxed => "relaxed",
        }
    }
}

#[derive(Default)]
struct State {
    edges: Vec<Edge>,
    /// By object: the last release and the last atomic write.
    released: BTreeMap<u64, usize>,
    written: BTreeMap<(u64, u8), usize>,
    /// By thread: its last step, and what its next step comes after.
    last: BTreeMap<ThreadId, usize>,
    awaited: BTreeMap<ThreadId, (usize, Kind)>,
    /// Threads that wait, by condition variable.
    waiters: BTreeMap<u64, Vec<ThreadId>>,
}

pub fn edges(file: &TraceFile) -> Vec<Edge> {
    let mut state = State::default();
    for (i, event) in file.events.iter().enumerate() {
        state.step(file, i, event);
    }
    state.edges.retain(|e| file.events[e.from].thread != file.events[e.to].thread);
    state.edges.sort();
    state.edges.dedup();
    state.edges
}

impl State {
    fn step(&mut self, file: &TraceFile, i: usize, event: &Event) {
        if let Some((from, kind)) = self.awaited.remove(&event.thread) {
            self.edges.push(Edge { from, to: i, kind });
        }
        let other = ThreadId(event.arg as u16);
        match event.op {
            OpKind::ThreadCreate if event.arg != NO_THREAD => {
                self.awaited.insert(other, (i, Kind::Thread));
            }
            OpKind::ThreadJoin => {
                if let Some(from) = self.last.get(&other) {
                    self.edges.push(Edge { from: *from, to: i, kind: Kind::Thread });
                }
            }
            OpKind::CondWait => {
                self.waiters.entry(event.id).or_default().push(event.thread);
                self.released.insert(event.id2, i);
            }
            OpKind::CondSignal if event.arg != NO_THREAD => {
                self.awaited.insert(other, (i, Kind::Signal));
                self.waiters.entry(event.id).or_default().retain(|t| *t != other);
            }
            OpKind::CondBroadcast => {
                for waiter in self.waiters.remove(&event.id).unwrap_or_default() {
                    self.awaited.insert(waiter, (i, Kind::Signal));
                }
            }
            OpKind::AtomicLoad | OpKind::AtomicStore | OpKind::AtomicRmw => self.atomic(file, i, event),
            _ => self.lock(i, event),
        }
        self.last.insert(event.thread, i);
    }

    fn atomic(&mut self, file: &TraceFile, i: usize, event: &Event) {
        const RELEASE: [u8; 3] = [3, 4, 5];
        const ACQUIRE: [u8; 4] = [1, 2, 4, 5];
        let key = (event.id, event.mask);
        if event.op != OpKind::AtomicStore
            && let Some(&from) = self.written.get(&key)
        {
            let ordered = RELEASE.contains(&file.events[from].order) && ACQUIRE.contains(&event.order);
            let kind = if ordered { Kind::Value } else { Kind::Relaxed };
            self.edges.push(Edge { from, to: i, kind });
        }
        if event.op != OpKind::AtomicLoad {
            self.written.insert(key, i);
        }
    }

    fn lock(&mut self, i: usize, event: &Event) {
        let mut op = Op::new(event.op, ObjectId(event.id));
        op.arg = event.arg;
        let waited = matches!(op.access(), Some(Access::Acquire | Access::TryAcquire | Access::Read));
        if waited && let Some(from) = self.released.get(&event.id) {
            self.edges.push(Edge { from: *from, to: i, kind: Kind::Lock });
        }
        if op.access() == Some(Access::Release) {
            self.released.insert(event.id, i);
        }
    }
}
