//! Of how many threads it is kept what is known of them.
//!
//! What is known of each thread is kept in arrays: few of a processor's registers for a few threads, several hundred bytes for hundreds.
//! So there is one analysis for few threads and others for more, and a search goes on with a wider one when it meets a thread that has no place in
//! the one that it has. Before that no event of such a thread has been seen, so that nothing is lost.

use super::left_out::Notes;
use super::rule::Rule;
use super::timer::Timer;
use super::{Analysis, Answer, Counters, Ends, Skip};
use crate::history::{History, Settled, named_thread};
use symdpor_trace::saved::{Reader, Saved};
use symdpor_trace::{Execution, Op, OpKind, ThreadId, ThreadMemory, ThreadSet};

/// Transition symmetry, for as many threads as there are.
pub struct Symmetry {
    analysis: Width,
    pub timer: Timer,
}

enum Width {
    Few(Box<Analysis<FEW>>),
    Several(Box<Analysis<SEVERAL>>),
    Many(Box<Analysis<MANY>>),
    Crowd(Box<Analysis<CROWD>>),
}

const FEW: usize = 4;
const SEVERAL: usize = 8;
const MANY: usize = 32;
/// Of threads beyond these nothing is known, which is safe.
const CROWD: usize = 256;

/// Does something with the analysis, however wide it is.
macro_rules! with {
    ($width:expr, $analysis:ident => $what:expr) => {
        match $width {
            Width::Few($analysis) => $what,
            Width::Several($analysis) => $what,
            Width::Many($analysis) => $what,
            Width::Crowd($analysis) => $what,
        }
    };
}

impl Width {
    /// The same with more room.
    fn widened(self) -> Width {
        match self {
            Width::Few(analysis) => Width::Several(Box::new(analysis.widened())),
            Width::Several(analysis) => Width::Many(Box::new(analysis.widened())),
            Width::Many(analysis) => Width::Crowd(Box::new(analysis.widened())),
            Width::Crowd(analysis) => Width::Crowd(analysis),
        }
    }

    fn load(rule: Rule, from: &mut Reader<'_>) -> Option<Width> {
        Some(match usize::load(from)? {
            FEW => Width::Few(Box::new(Analysis::load(rule, from)?)),
            SEVERAL => Width::Several(Box::new(Analysis::load(rule, from)?)),
            MANY => Width::Many(Box::new(Analysis::load(rule, from)?)),
            CROWD => Width::Crowd(Box::new(Analysis::load(rule, from)?)),
            _ => return None,
        })
    }
}

impl Symmetry {
    pub fn new(rule: Rule) -> Symmetry {
        Symmetry { analysis: Width::Few(Box::new(Analysis::new(rule))), timer: Timer::default() }
    }

    pub fn counters(&self) -> Counters {
        Counters { nanos: self.timer.nanos(), ..with!(&self.analysis, a => a.counters) }
    }

    /// An execution is cut off.
    pub fn count_cut(&mut self) {
        with!(&mut self.analysis, a => a.counters.cut += 1);
    }

    /// Adds the step at `position` of an execution.
    pub fn push(&mut self, position: usize, execution: &Execution) {
        let step = &execution.steps[position];
        let created = named_thread(&step.op).filter(|_| step.op.kind == OpKind::ThreadCreate);
        self.make_room(created.map_or(step.thread, |child| child.max(step.thread)));
        with!(&mut self.analysis, a => a.push(position, execution));
    }

    fn make_room(&mut self, thread: ThreadId) {
        let needed = (thread.index() + 1).min(CROWD);
        while with!(&self.analysis, a => a.threads()) < needed {
            let narrow = std::mem::replace(&mut self.analysis, Width::Few(Box::new(Analysis::new(Rule::SOUND))));
            self.analysis = narrow.widened();
        }
    }

    /// Whether two threads had the same local state before the event at `position`: perhaps they were twins.
    pub fn seem_alike(&self, one: ThreadId, other: ThreadId, position: usize) -> bool {
        with!(&self.analysis, a => a.past.locals.seem_alike(one, other, position as u32))
    }

    /// `depth`: how many nodes the current execution has.
    pub fn save(&self, depth: usize, into: &mut Vec<u8>) {
        with!(&self.analysis, a => {
            a.threads().save(into);
            a.save(depth, into);
        });
        self.timer.save(into);
    }

    /// The clock is that of `self`, and so is the rule.
    pub fn load(&self, from: &mut Reader<'_>) -> Option<Symmetry> {
        let rule = with!(&self.analysis, a => a.rule);
        Some(Symmetry { analysis: Width::load(rule, from)?, timer: self.timer.load(from)? })
    }
}

impl Symmetry {
    pub fn mirrored_races(
        &self,
        position: usize,
        skip: &Skip,
        history: &mut History,
        settled: &Settled<'_>,
        races: &mut Vec<(usize, ThreadId)>,
    ) {
        with!(&self.analysis, a => a.mirrored_races(position, skip, history, settled, races));
    }
}

/// What is passed on.
macro_rules! passed_on {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        impl Symmetry {
            $(pub fn $name(&mut self, $($arg: $type),*) $(-> $result)? {
                with!(&mut self.analysis, a => a.$name($($arg),*))
            })*
        }
    };
}

passed_on! {
    fn open(position: usize);
    fn truncate(len: usize);
    fn end(pending: &[(ThreadId, Op)], ended: &ThreadSet, ends: Ends, history: &mut History);
    fn absorb(position: usize, thread: ThreadId, op: &Op, history: &History);
    fn sweep(depth: usize);
    fn is_incomplete();
    fn comes_back_to(position: usize);
    fn is_partial_at(position: usize);
    fn may_skip_way(position: usize, thread: ThreadId, signal: (ThreadId, Op), history: &mut History) -> Answer;
    fn finish_branch(position: usize, thread: ThreadId, op: Op);
    fn finish_node(position: usize, fruitful: bool);
    fn finish_blocked(position: usize);
    fn remember(memory: &[ThreadMemory], position: usize);
    fn may_skip(position: usize, thread: ThreadId, sleepers: &[(ThreadId, usize)], history: &mut History) -> Answer;
    fn add_skipped_way(position: usize, skip: &Skip, history: &mut History);
    fn add_skipped(position: usize, skip: &Skip, history: &mut History);
}

impl<const W: usize> Analysis<W> {
    /// Of how many threads it keeps what is known of them.
    fn threads(&self) -> usize {
        W
    }

    /// The same with room for more threads.
    fn widened<const V: usize>(self) -> Analysis<V> {
        let Analysis { rule, past, nodes, carry, tables, notes: _, spare, counters } = self;
        let (past, tables, notes) = (past.widened(), tables.widened(), Notes::default());
        Analysis { rule, past, nodes, carry, tables, notes, spare, counters }
    }
}
