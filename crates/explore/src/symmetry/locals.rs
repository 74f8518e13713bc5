//! The local states of the threads in the current execution, what memory they have to themselves, and so who are twins.

use crate::symmetry::exchange::{Exchange, Pair};
use crate::symmetry::past::grow;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use symdpor_abi::local::stack_of;
use symdpor_abi::object::{ObjectId, Region};
use symdpor_trace::{Footprints, LocalState, ThreadId, ThreadMemory, saved};

/// What a thread has been since an event.
#[derive(Clone)]
struct Local {
    position: u32,
    state: LocalState,
    told: Told,
}

/// What a thread had to itself when that was last told, how often it was asked for, and before which event it was told.
///
/// As long as the thread does not move nobody can get an address of its memory who had none. But others can forget one: what
/// is so in a state need not have been so in the states before it.
#[derive(Clone, Default)]
struct Told {
    memory: Option<Rc<ThreadMemory>>,
    asked: u8,
    at: u32,
}

/// That something was told of a thread, and what had been told of it before.
struct Telling {
    thread: ThreadId,
    /// The position of its local state.
    local: u32,
    at: u32,
    before: Told,
}

impl Local {
    fn new(position: usize, state: LocalState) -> Local {
        Local { position: position as u32, state, told: Told::default() }
    }
}

/// Whether two threads are twins.
pub enum Twins {
    No,
    Yes(Exchange),
    /// It has to be known first what memory they have to themselves.
    Ask,
}

/// So many local states are not kept to find two threads that had the same one.
const MANY: usize = 1 << 18;

/// What others know can be forgotten again; but it is not asked for ever: so often for a thread, and more often if that helps.
const QUESTIONS: u8 = 2;
const USELESS: u32 = 8;

#[derive(Default)]
pub struct Locals {
    /// Per thread, in the order of the events that left them.
    threads: Vec<Vec<Local>>,
    /// By which event each was left, and whose it is, in their order.
    left: Vec<(u32, ThreadId)>,
    tellings: Vec<Telling>,
    /// Whether two threads have ever had the same local state, and as long as they have not, who had which.
    twins: bool,
    seen: FxHashMap<LocalState, ThreadId>,
    /// The threads that were asked for again last, and before which event; how often that has shown twins, and how often not.
    asked: Option<(ThreadId, ThreadId, usize)>,
    useful: u32,
    useless: u32,
}

impl Locals {
    /// Adds what the event at `position`, of `thread`, has left.
    pub fn push(&mut self, position: usize, thread: ThreadId, prints: &Footprints) {
        // A thread that has moved is what it was told to be, or unknown.
        self.leave(thread, Local::new(position, LocalState::UNKNOWN));
        for &(thread, local) in prints.locals(position) {
            if !self.twins && local.is_known() {
                let first = *self.seen.entry(local).or_insert(thread);
                self.twins = first != thread || self.seen.len() > MANY;
            }
            self.leave(thread, Local::new(position, local));
        }
        self.told(prints.memory(position), position + 1, false);
    }

    fn leave(&mut self, thread: ThreadId, local: Local) {
        self.left.push((local.position, thread));
        grow(&mut self.threads, thread).push(local);
    }

    /// Takes back the events from position `len` on.
    pub fn truncate(&mut self, len: usize) {
        while let Some((_, thread)) = self.left.pop_if(|(position, _)| *position as usize >= len) {
            self.threads[thread.index()].pop();
        }
        self.untell(len);
    }

    /// Notes what threads have to themselves in the state before `position`. `asked`: because that was asked for.
    fn told(&mut self, memory: &[ThreadMemory], position: usize, asked: bool) {
        for answer in memory {
            let thread = answer.thread;
            let local = self.threads.get_mut(thread.index()).and_then(|l| l.last_mut());
            if let Some(local) = local.filter(|l| l.state.is_known()) {
                let at = position as u32;
                let asked = local.told.asked.saturating_add(asked as u8);
                let told = Told { memory: Some(Rc::new(answer.clone())), asked, at };
                let before = std::mem::replace(&mut local.told, told);
                self.tellings.push(Telling { thread, local: local.position, at, before });
            }
        }
    }

    /// Takes back what was told in states beyond the one before `position`.
    fn untell(&mut self, position: usize) {
        while let Some(telling) = self.tellings.pop_if(|t| t.at as usize > position) {
            let local = self.threads.get_mut(telling.thread.index()).and_then(|l| l.last_mut());
            if let Some(local) = local.filter(|l| l.position == telling.local) {
                // How often it was asked for stays.
                local.told = Told { asked: local.told.asked, ..telling.before };
            }
        }
    }

    /// Whether two threads have ever had the same local state.
    pub fn has_twins(&self) -> bool {
        self.twins
    }

    fn of(&self, thread: ThreadId) -> Option<&Local> {
        self.threads.get(thread.index())?.last().filter(|l| l.state.is_known())
    }

    /// Whether two threads have the same local state: a quick no.
    pub fn may_be_twins(&self, one: ThreadId, other: ThreadId) -> bool {
        matches!((self.of(one), self.of(other)), (Some(a), Some(b)) if a.state == b.state)
    }

    /// Whether two threads had the same local state before the event at `position`.
    pub fn seem_alike(&self, one: ThreadId, other: ThreadId, position: u32) -> bool {
        matches!((self.before(one, position), self.before(other, position)), (Some(a), Some(b)) if a == b)
    }

    /// Whether two threads are twins in the state before `position`.
    pub fn twins(&mut self, one: ThreadId, other: ThreadId, position: usize) -> Twins {
        let answer = self.look(one, other, position);
        let asked = Some((one, other, position));
        let was_asked = self.asked == asked;
        match &answer {
            Twins::Ask => self.asked = asked,
            Twins::Yes(_) => self.useful += was_asked as u32,
            Twins::No => self.useless += was_asked as u32,
        }
        if was_asked {
            self.asked = None;
        }
        answer
    }

    fn look(&self, one: ThreadId, other: ThreadId, position: usize) -> Twins {
        let (Some(a), Some(b)) = (self.of(one), self.of(other)) else { return Twins::No };
        if a.state != b.state {
            return Twins::No;
        }
        let unknown = a.told.memory.is_none() || b.told.memory.is_none();
        if let (Some(a), Some(b)) = (&a.told.memory, &b.told.memory) {
            if let Some(memory) = corresponding(a, b) {
                return Twins::Yes(Exchange::new(one, other, memory));
            }
            if a.is_for_good() && b.is_for_good() {
                return Twins::No;
            }
        }
        let helps = self.useless < USELESS + self.useful;
        let again = |l: &Local| (helps || l.told.asked < QUESTIONS) && (l.told.at as usize) < position;
        if unknown || again(a) && again(b) { Twins::Ask } else { Twins::No }
    }

    /// Takes the answer to a question asked in the state before `position`.
    pub fn remember(&mut self, memory: &[ThreadMemory], position: usize) {
        self.told(memory, position, true);
        // Whoever is not in the answer has no local state after all; main is never asked for.
        let untold = |l: &&mut Local| l.told.memory.is_none();
        for local in self.threads.iter_mut().skip(1).filter_map(|l| l.last_mut()).filter(untold) {
            local.state = LocalState::UNKNOWN;
        }
    }

    /// A thread's local state before its event at `position`.
    pub fn before(&self, thread: ThreadId, position: u32) -> Option<LocalState> {
        let list = self.threads.get(thread.index())?;
        let at = list.partition_point(|l| l.position < position);
        list[..at].last().map(|l| l.state).filter(|l| l.is_known())
    }
}

/// The memory of two threads that corresponds, if each has its own to itself.
fn corresponding(a: &ThreadMemory, b: &ThreadMemory) -> Option<Vec<Pair>> {
    let sizes = |m: &ThreadMemory| m.blocks.iter().map(|b| b.1).collect::<Vec<_>>();
    let alike = a.local.is_known() && a.local == b.local && sizes(a) == sizes(b);
    if !alike || !a.stack || !b.stack {
        return None;
    }
    let stack = |t: ThreadId| ObjectId::new(Region::Stack, stack_of(t.0).0).0;
    let stacks = Pair { one: stack(a.thread), other: stack(b.thread), bytes: stack_of(0).1 };
    let blocks = a.blocks.iter().zip(&b.blocks);
    let pairs = blocks.map(|(a, b)| Pair { one: a.0.0, other: b.0.0, bytes: a.1.div_ceil(8) * 8 });
    // What lies on the stacks besides corresponds by its distance from the end.
    Some(pairs.chain([stacks]).collect())
}

saved!(Local { position, state, told });
saved!(Told { memory, asked, at });
saved!(Telling { thread, local, at, before });
saved!(Locals { threads, left, tellings, twins, seen, asked, useful, useless });
