//! Vector clocks over positions in the trace, in one flat vector.
//!
//! Component `t` of an event's clock is one more than the position of the last event of thread `t` that happens before
//! it, or 0. An event's *own* component is not stored: it is the event itself. So an event that learns nothing new
//! shares the clock of its thread's event before it, and a thread running alone costs no memory.

use symdpor_trace::ThreadId;

/// A clock in the [`ClockStore`].
#[derive(Clone, Copy, Default, Debug)]
pub struct Clock {
    start: usize,
    len: u32,
}

/// The clocks of all events, in the order of the events.
#[derive(Default)]
pub struct ClockStore {
    words: Vec<u32>,
}

impl ClockStore {
    pub fn len(&self) -> usize {
        self.words.len()
    }

    pub fn truncate(&mut self, len: usize) {
        self.words.truncate(len);
    }

    pub fn get(&self, clock: Clock) -> &[u32] {
        &self.words[clock.start..clock.start + clock.len as usize]
    }

    fn push(&mut self, words: &[u32]) -> Clock {
        let clock = Clock { start: self.words.len(), len: words.len() as u32 };
        self.words.extend_from_slice(words);
        clock
    }
}

/// The causal past of a thread's next operation, while it is being put together. Reused from one event to the next.
#[derive(Default)]
pub struct Past {
    thread: Option<ThreadId>,
    words: Vec<u32>,
    base: Clock,
    grown: bool,
    reach: u32,
}

impl Past {
    /// Starts from the past of the thread's last event.
    pub fn start(&mut self, thread: ThreadId, store: &ClockStore, base: Clock, reach: u32) {
        self.thread = Some(thread);
        self.words.clear();
        self.words.extend_from_slice(store.get(base));
        self.base = base;
        self.grown = false;
        self.reach = reach;
    }

    /// A copy, in the memory that there is.
    pub fn become_like(&mut self, other: &Past) {
        let Past { thread, words, base, grown, reach } = self;
        words.clone_from(&other.words);
        (*thread, *base, *grown, *reach) = (other.thread, other.base, other.grown, other.reach);
    }

    /// Whether an event is in the past. All earlier events of the thread itself are.
    pub fn covers(&self, event: u32, of: ThreadId) -> bool {
        self.thread == Some(of) || self.component(of) > event
    }

    /// One more than the position of the last event of another thread that is in the past, or 0.
    pub fn component(&self, of: ThreadId) -> u32 {
        self.words.get(of.index()).copied().unwrap_or(0)
    }

    /// The threads of which something may be in the past.
    pub fn threads(&self) -> impl Iterator<Item = ThreadId> + use<> {
        (0..self.words.len()).map(|t| ThreadId(t as u16))
    }

    /// One more than the last position in the past that belongs to another thread, or 0.
    pub fn reach(&self) -> u32 {
        self.reach
    }

    /// Adds an event and its past.
    pub fn join(&mut self, event: u32, of: ThreadId, clock: &[u32]) {
        if self.covers(event, of) {
            return;
        }
        let needed = clock.len().max(of.index() + 1);
        if self.words.len() < needed {
            self.words.resize(needed, 0);
        }
        for (mine, theirs) in self.words.iter_mut().zip(clock) {
            *mine = (*mine).max(*theirs);
        }
        self.words[of.index()] = event + 1;
        self.reach = self.reach.max(event + 1);
        self.grown = true;
    }

    /// Adds what a thread that was woken by an event comes after. The event may be its own.
    pub fn join_woken(&mut self, event: u32, of: ThreadId, clock: &[u32]) {
        if self.thread != Some(of) {
            return self.join(event, of, clock);
        }
        for (t, &theirs) in clock.iter().enumerate() {
            let t = ThreadId(t as u16);
            if t != of && theirs > self.component(t) {
                self.join(theirs - 1, t, &[]);
            }
        }
    }

    /// The clock of an event with this past.
    pub fn store(&self, store: &mut ClockStore) -> Clock {
        if self.grown { store.push(&self.words) } else { self.base }
    }
}
