//! The side table: chains of records of those granules that have more than fit into their cell.
//!
//! Several readers, threads using different bytes, unordered atomics. Chains belong to one execution; the table is
//! emptied at the start of the next by forgetting how much of it was used.

use crate::pages::Pages;
use crate::record::Record;

const NODE_RECORDS: usize = 3;
const CHUNK_NODES: u32 = 4096;
/// Node numbers have 24 bits; 0 is no node.
const MAX_NODES: u32 = 1 << 24;
const CHUNKS: usize = (MAX_NODES / CHUNK_NODES) as usize;

#[derive(Clone, Copy)]
#[repr(C)]
struct Node {
    records: [Record; NODE_RECORDS],
    next: u32,
    reserved: u32,
}

pub(crate) struct Chains {
    chunks: *mut *mut Node,
    /// The lowest number that is not in use.
    unused: u32,
    /// Nodes given back in this execution.
    free: u32,
}

impl Chains {
    pub(crate) const fn new() -> Chains {
        Chains { chunks: core::ptr::null_mut(), unused: 1, free: 0 }
    }

    pub(crate) fn init(&mut self, pages: &mut Pages) -> bool {
        self.chunks = pages.take(CHUNKS);
        !self.chunks.is_null()
    }

    pub(crate) fn begin_execution(&mut self) {
        self.unused = 1;
        self.free = 0;
    }

    #[cfg(test)]
    pub(crate) fn used(&self) -> u32 {
        self.unused
    }

    /// `index` comes from `allocate` of this execution.
    fn node(&self, index: u32) -> *mut Node {
        // SAFETY: an allocated node's chunk exists, and there are CHUNKS slots for 24-bit numbers.
        unsafe { (*self.chunks.add((index / CHUNK_NODES) as usize)).add((index % CHUNK_NODES) as usize) }
    }

    fn allocate(&mut self, pages: &mut Pages, node: Node) -> Option<u32> {
        let index = if self.free != 0 { self.free } else { self.fresh(pages)? };
        let place = self.node(index);
        // SAFETY: a valid node; the free list is linked through `next`.
        unsafe {
            if index == self.free {
                self.free = (*place).next;
            }
            *place = node;
        }
        Some(index)
    }

    fn fresh(&mut self, pages: &mut Pages) -> Option<u32> {
        let index = self.unused;
        if index >= MAX_NODES {
            pages.give_up();
            return None;
        }
        // SAFETY: one of CHUNKS slots.
        unsafe {
            let slot = self.chunks.add((index / CHUNK_NODES) as usize);
            if (*slot).is_null() {
                *slot = pages.take(CHUNK_NODES as usize);
            }
            if (*slot).is_null() {
                return None;
            }
        }
        self.unused += 1;
        Some(index)
    }

    /// A new chain of two records.
    pub(crate) fn start(&mut self, pages: &mut Pages, a: Record, b: Record) -> Option<u32> {
        self.allocate(pages, Node { records: [a, b, Record::EMPTY], next: 0, reserved: 0 })
    }

    /// Adds a record to the chain and gives its (new) head. None if there is no memory.
    pub(crate) fn push(&mut self, pages: &mut Pages, head: u32, record: Record) -> Option<u32> {
        let mut index = head;
        while index != 0 {
            let node = self.node(index);
            // SAFETY: a valid node, used by nobody else.
            let node = unsafe { &mut *node };
            if let Some(place) = node.records.iter_mut().find(|r| r.is_empty()) {
                *place = record;
                return Some(head);
            }
            index = node.next;
        }
        self.allocate(pages, Node { records: [record, Record::EMPTY, Record::EMPTY], next: head, reserved: 0 })
    }

    pub(crate) fn visit(&self, head: u32, mut look: impl FnMut(Record)) {
        let mut index = head;
        while index != 0 {
            // SAFETY: a valid node.
            let node = unsafe { &*self.node(index) };
            node.records.into_iter().for_each(&mut look);
            index = node.next;
        }
    }

    /// Replaces each record by what `change` makes of it. False if none is left.
    pub(crate) fn update(&mut self, head: u32, mut change: impl FnMut(Record) -> Record) -> bool {
        let (mut index, mut any) = (head, false);
        while index != 0 {
            // SAFETY: a valid node, used by nobody else.
            let node = unsafe { &mut *self.node(index) };
            for record in node.records.iter_mut().filter(|r| !r.is_empty()) {
                *record = change(*record);
                any |= !record.is_empty();
            }
            index = node.next;
        }
        any
    }

    /// Gives back all nodes of a chain.
    pub(crate) fn release(&mut self, head: u32) {
        let mut index = head;
        while index != 0 {
            // SAFETY: a valid node, used by nobody else.
            let node = unsafe { &mut *self.node(index) };
            let next = node.next;
            node.next = self.free;
            self.free = index;
            index = next;
        }
    }
}
