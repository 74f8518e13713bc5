//! The exchange of two threads, and of the memory that only they can reach.

use crate::history::History;
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::Op;
use symdpor_trace::{PlainAccess, ThreadId, ThreadSet};

/// Memory of one thread that corresponds to memory of the other: the same content, the same shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    pub one: u64,
    pub other: u64,
    pub bytes: u64,
}

/// Renames one thread to the other and back, with their memory. Applied twice it changes nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchange {
    pub one: ThreadId,
    pub other: ThreadId,
    memory: Vec<Pair>,
    /// All of the memory lies in here. Most objects do not.
    lowest: u64,
    end: u64,
}

impl Exchange {
    pub fn new(one: ThreadId, other: ThreadId, memory: Vec<Pair>) -> Exchange {
        let starts = || memory.iter().flat_map(|p| [(p.one, p.bytes), (p.other, p.bytes)]);
        let lowest = starts().map(|(start, _)| start).min().unwrap_or(0);
        let end = starts().map(|(start, bytes)| start + bytes).max().unwrap_or(0);
        Exchange { one, other, memory, lowest, end }
    }

    fn may_change(&self, object: ObjectId) -> bool {
        self.lowest <= object.0 && object.0 < self.end
    }

    /// Whether an object from one up to another may lie in that memory.
    pub fn may_change_between(&self, lowest: u64, highest: u64) -> bool {
        self.lowest <= highest && lowest < self.end
    }

    /// Whether an object may have another name with the threads exchanged. A quick no.
    #[inline]
    pub fn concerns(&self, object: ObjectId) -> bool {
        self.may_change(object) || object.is_futex()
    }

    pub fn thread(&self, thread: ThreadId) -> ThreadId {
        if thread == self.one {
            self.other
        } else if thread == self.other {
            self.one
        } else {
            thread
        }
    }

    pub fn threads(&self, set: &ThreadSet) -> ThreadSet {
        let mut exchanged = set.clone();
        for (from, to) in [(self.one, self.other), (self.other, self.one)] {
            if set.contains(from) {
                exchanged.insert(to);
            } else {
                exchanged.remove(to);
            }
        }
        exchanged
    }

    pub fn object(&self, object: ObjectId) -> ObjectId {
        if object.is_futex() {
            let (word, mask) = object.futex_word();
            return ObjectId::futex(self.object(word), if mask == 0x0f { 0 } else { 4 });
        }
        let at = object.0;
        if !self.may_change(object) {
            return object;
        }
        for pair in &self.memory {
            for (from, to) in [(pair.one, pair.other), (pair.other, pair.one)] {
                if at.wrapping_sub(from) < pair.bytes {
                    return ObjectId(at - from + to);
                }
            }
        }
        object
    }

    /// Whose memory it is, if it is memory that is exchanged.
    pub fn owner(&self, object: ObjectId) -> Option<ThreadId> {
        if !self.may_change(object) {
            return None;
        }
        let inside = |from: u64, bytes| object.0.wrapping_sub(from) < bytes;
        self.memory.iter().find_map(|pair| {
            let (one, other) = (inside(pair.one, pair.bytes), inside(pair.other, pair.bytes));
            if one { Some(self.one) } else { other.then_some(self.other) }
        })
    }

    /// Whether someone has done something to memory that is exchanged, and now another's own.
    pub fn is_touched_by_others(&self, history: &History) -> bool {
        let mut events = (0..history.len()).filter_map(|p| history.event(p));
        events.any(|(thread, op)| {
            let mut objects = [op.object, op.object2].into_iter();
            objects.any(|o| self.owner(o).is_some_and(|owner| owner != thread))
        })
    }

    pub fn op(&self, op: &Op) -> Op {
        Op { object: self.object(op.object), object2: self.object(op.object2), ..*op }
    }

    pub fn access(&self, access: &PlainAccess) -> PlainAccess {
        PlainAccess { thread: self.thread(access.thread), object: self.object(access.object), ..*access }
    }
}
