//! What a transition did besides its visible operation, and what it left of its thread: what symmetry is judged by.

use crate::thread::ThreadId;
use symdpor_abi::object::ObjectId;

/// Plain accesses of one transition to neighbouring granules.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PlainAccess {
    pub thread: ThreadId,
    /// The first granule. [`ObjectId::NONE`] stands for memory that is not known: anything.
    pub object: ObjectId,
    /// How many granules.
    pub granules: u32,
    /// The bytes touched if it is one granule; all of them if there are more.
    pub mask: u8,
    pub write: bool,
}

impl PlainAccess {
    /// Whether two accesses touch a byte in common.
    pub fn overlaps(&self, other: &PlainAccess) -> bool {
        if self.object == ObjectId::NONE || other.object == ObjectId::NONE {
            return true;
        }
        let (mine, theirs) = (self.object.0, other.object.0);
        let apart = mine >= theirs + 8 * u64::from(other.granules) || theirs >= mine + 8 * u64::from(self.granules);
        let single = self.granules == 1 && other.granules == 1;
        !apart && (!single || self.mask & other.mask != 0)
    }
}

/// What a thread is about to do and knows, as a hash. Threads with different ones are no twins; with equal ones they may be, see
/// [`ThreadMemory`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LocalState(pub u128);

impl LocalState {
    /// Like no other.
    pub const UNKNOWN: LocalState = LocalState(0);

    pub fn is_known(self) -> bool {
        self != LocalState::UNKNOWN
    }
}

/// What a thread has to itself in a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadMemory {
    pub thread: ThreadId,
    /// Its local state, with the blocks that only it has by their content.
    pub local: LocalState,
    /// Nobody else has an address of its stack and its thread-local variables.
    pub stack: bool,
    /// Only it has all the blocks that its local state leads to: what it has to itself stays as it is until it moves, whatever others forget.
    pub settled: bool,
    /// The live objects on its stack, and the blocks that only it has, in the order in which its local state leads to them: where, and how many bytes.
    pub blocks: Vec<(ObjectId, u64)>,
}

impl ThreadMemory {
    /// Until the thread moves, nothing that others do changes any of it.
    pub fn is_for_good(&self) -> bool {
        self.stack && self.settled
    }
}

/// Of one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Footprint {
    /// Where its accesses and local states end in [`Footprints`]; they begin where those of the step before end.
    pub accesses_end: u32,
    pub locals_end: u32,
    pub blocks_end: u32,
    pub memory_end: u32,
    pub fences_end: u32,
    pub ordered_end: u32,
    /// The thread has asked who it is, or has been told apart from others otherwise.
    pub identified: bool,
    /// For a join whose result is used: the result.
    pub result: Option<u64>,
}

/// A fence between two operations of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fence {
    pub thread: ThreadId,
    /// As of an operation.
    pub order: u8,
    /// No plain access of the same step comes before it, or none after it.
    pub first: bool,
    pub last: bool,
    /// It stands for several, of whatever order.
    pub several: bool,
}

/// Of the steps of an execution from `first` on; those before are as they were.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Footprints {
    pub first: usize,
    pub steps: Vec<Footprint>,
    pub accesses: Vec<PlainAccess>,
    /// The threads that a step has brought to their next operation: its own, and one that it created.
    pub locals: Vec<(ThreadId, LocalState)>,
    /// Heap blocks that were allocated: where, and how many bytes.
    pub blocks: Vec<(ObjectId, u64)>,
    /// What threads that are alike after a step have to themselves then.
    pub memory: Vec<ThreadMemory>,
    pub fences: Vec<Fence>,
    /// Memory whose address was compared, by order, with another's: in whose part of memory it lies, and where.
    pub ordered: Vec<(ThreadId, ObjectId)>,
}

impl Footprints {
    fn index(&self, position: usize) -> Option<usize> {
        position.checked_sub(self.first).filter(|&i| i < self.steps.len())
    }

    pub fn get(&self, position: usize) -> Option<Footprint> {
        self.index(position).map(|i| self.steps[i])
    }

    /// The accesses of the step at `position`.
    pub fn accesses(&self, position: usize) -> &[PlainAccess] {
        let Some(i) = self.index(position) else { return &[] };
        let start = if i == 0 { 0 } else { self.steps[i - 1].accesses_end };
        self.accesses.get(start as usize..self.steps[i].accesses_end as usize).unwrap_or(&[])
    }

    /// The local states that the step at `position` has left.
    pub fn locals(&self, position: usize) -> &[(ThreadId, LocalState)] {
        let Some(i) = self.index(position) else { return &[] };
        let start = if i == 0 { 0 } else { self.steps[i - 1].locals_end };
        self.locals.get(start as usize..self.steps[i].locals_end as usize).unwrap_or(&[])
    }

    /// The blocks that the step at `position` has allocated.
    pub fn blocks(&self, position: usize) -> &[(ObjectId, u64)] {
        let Some(i) = self.index(position) else { return &[] };
        let start = if i == 0 { 0 } else { self.steps[i - 1].blocks_end };
        self.blocks.get(start as usize..self.steps[i].blocks_end as usize).unwrap_or(&[])
    }

    /// What threads that are alike after the step at `position` have to themselves then, as far as it has been told.
    pub fn memory(&self, position: usize) -> &[ThreadMemory] {
        let Some(i) = self.index(position) else { return &[] };
        let start = if i == 0 { 0 } else { self.steps[i - 1].memory_end };
        self.memory.get(start as usize..self.steps[i].memory_end as usize).unwrap_or(&[])
    }

    /// The fences of the step at `position`, in their order.
    pub fn fences(&self, position: usize) -> &[Fence] {
        let Some(i) = self.index(position) else { return &[] };
        let start = if i == 0 { 0 } else { self.steps[i - 1].fences_end };
        self.fences.get(start as usize..self.steps[i].fences_end as usize).unwrap_or(&[])
    }

    /// The memory whose address the step at `position` compared.
    pub fn ordered(&self, position: usize) -> &[(ThreadId, ObjectId)] {
        let Some(i) = self.index(position) else { return &[] };
        let start = if i == 0 { 0 } else { self.steps[i - 1].ordered_end };
        self.ordered.get(start as usize..self.steps[i].ordered_end as usize).unwrap_or(&[])
    }

    pub fn clear(&mut self) {
        self.first = 0;
        self.steps.clear();
        self.accesses.clear();
        self.locals.clear();
        self.blocks.clear();
        self.memory.clear();
        self.fences.clear();
        self.ordered.clear();
    }

    /// Ends a step whose accesses and local states have been added.
    pub fn end_step(&mut self, identified: bool, result: Option<u64>) {
        let (accesses_end, locals_end) = (self.accesses.len() as u32, self.locals.len() as u32);
        let (blocks_end, memory_end) = (self.blocks.len() as u32, self.memory.len() as u32);
        let (fences_end, ordered_end) = (self.fences.len() as u32, self.ordered.len() as u32);
        self.steps.push(Footprint {
            accesses_end,
            locals_end,
            blocks_end,
            memory_end,
            fences_end,
            ordered_end,
            identified,
            result,
        });
    }
}
