//! Whether each thread's own memory, its stack, its thread-locals and the blocks that only it should have, is known to nobody
//! else: a search through all writable memory for words that point there.
//!
//! Instrumented frames are searched precisely, by what is live in them: a loop that starts threads leaves the address of the
//! last one's argument behind. Everything else is searched word by word, so that a number that looks like an address makes
//! a thread's memory look known. That loses reduction, and nothing else.

use crate::channel::{self, Writer};
use crate::exec;
use crate::footprint;
use crate::keys;
use crate::local::{self, Sink};
use crate::names;
use crate::pool;
use crate::snapshot;
use crate::tls;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::channel::{MEMORY_BYTES, MEMORY_OFFSET};
use symdpor_abi::local::memory;
use symdpor_detect::heap::Heap;

const MAX_OWNED: usize = 4096;

/// A block and the thread that should be the only one to have it.
#[derive(Clone, Copy)]
struct Owned {
    start: usize,
    end: usize,
    thread: u16,
}

/// Collected anew for each question. Too large for a stack.
struct Search {
    owned: [Owned; MAX_OWNED],
    count: usize,
    /// Threads whose stack, or one of whose blocks, somebody else knows.
    stack_known: [bool; MAX_THREADS],
    blocks_known: [bool; MAX_THREADS],
    /// Whose memory is being searched.
    searching: u16,
}

const NOBODY: u16 = u16::MAX;

static SEARCH: crate::cell::Global<Search> = crate::cell::Global::new(Search {
    owned: [Owned { start: 0, end: 0, thread: 0 }; MAX_OWNED],
    count: 0,
    stack_known: [false; MAX_THREADS],
    blocks_known: [false; MAX_THREADS],
    searching: NOBODY,
});

/// Tells of all threads that have come to an operation.
pub fn tell() {
    let exec = exec::get();
    let search = SEARCH.get();
    let threads = 1..exec.thread_count;
    search.count = 0;
    search.stack_known[..exec.thread_count as usize].fill(false);
    search.blocks_known[..exec.thread_count as usize].fill(false);
    for number in threads.clone() {
        let blocks = footprint::blocks(number);
        blocks.list[..blocks.count].iter().for_each(|&(base, size)| search.own(base, size, number));
    }
    let count = search.count;
    search.owned[..count].sort_unstable_by_key(|o| o.start);
    search.everything();
    let mut writer = Writer::new(MEMORY_OFFSET, MEMORY_BYTES);
    for number in threads {
        search.write(number, &mut writer);
    }
    channel::header().memory_len = writer.used() as u32;
}

impl Search {
    fn own(&mut self, base: usize, size: usize, thread: u16) {
        if self.count == MAX_OWNED {
            self.blocks_known[thread as usize] = true;
            return;
        }
        self.owned[self.count] = Owned { start: base, end: base + size.max(1), thread };
        self.count += 1;
    }

    fn write(&self, number: u16, writer: &mut Writer) {
        let (exact, shape) = footprint::hash(number);
        let stack = !self.stack_known[number as usize] as u64;
        let blocks = !self.blocks_known[number as usize] as u64;
        let first = memory::THREAD | (number as u64) << 8 | stack << 24 | blocks << 25;
        writer.record(&[first, exact[0], exact[1], shape[0], shape[1]]);
        let blocks = footprint::blocks(number);
        for &(base, size) in &blocks.list[..blocks.count] {
            writer.record(&[memory::BLOCK, names::object(base).0, size as u64]);
        }
    }

    fn everything(&mut self) {
        let (exec, own) = (exec::get(), exec::range());
        snapshot::for_each_region(|start, end| {
            let skip = start == own.start || pool::STACKS.contains(&start) || names::main_stack().contains(&start);
            if !skip && !Heap::contains(start) {
                self.range(start, end, NOBODY);
            }
        });
        let mut arenas = [(0, 0); MAX_THREADS];
        exec.heap.used(&mut arenas);
        for &(start, end) in arenas.iter().filter(|a| a.0 < a.1) {
            self.heap(start, end);
        }
        for number in 0..exec.thread_count {
            if exec.threads[number as usize].is_alive() {
                self.thread(number);
            }
        }
    }

    /// An arena: blocks that have an owner are that owner's.
    fn heap(&mut self, start: usize, end: usize) {
        let mut at = start;
        let mut index = self.owned[..self.count].partition_point(|o| o.start < start);
        while index < self.count && self.owned[index].start < end {
            let Owned { start: block, end: block_end, thread } = self.owned[index];
            self.range(at, block.max(at), NOBODY);
            self.range(block.max(at), block_end, thread);
            at = at.max(block_end);
            index += 1;
        }
        self.range(at, end, NOBODY);
    }

    fn thread(&mut self, number: u16) {
        self.searching = number;
        let thread = &exec::get().threads[number as usize];
        keys::for_each(number, |_, value| self.word(value as u64));
        if number != 0 {
            tls::for_each(thread.fs, |address, len| local::for_each_word(address, len, |word| self.word(word)));
        }
        if local::frames(number, self).is_err() {
            self.searching = number;
            let end =
                if number == 0 { names::main_stack().end } else { pool::slot(number as usize).map_or(0, |s| s.sp) };
            let sp = if number == exec::get().current { here() } else { thread.sp };
            if sp < end {
                local::for_each_word(sp & !7, end - (sp & !7), |word| self.word(word));
            }
        }
    }

    fn range(&mut self, start: usize, end: usize, whose: u16) {
        self.searching = whose;
        if start < end {
            local::for_each_word(start & !7, end - (start & !7), |word| self.word(word));
        }
    }

    fn is_on_stack(&self, number: usize, address: usize) -> bool {
        let Some(slot) = pool::slot(number) else { return false };
        let mut found = pool::on_stack(number, address) && address < slot.sp;
        tls::for_each(slot.fs, |start, len| found |= (start..start + len).contains(&address));
        found
    }
}

#[inline(never)]
fn here() -> usize {
    let here = 0usize;
    &raw const here as usize
}

impl Sink for Search {
    fn code(&mut self, _: u64) {}

    #[inline]
    fn word(&mut self, word: u64) {
        let address = word as usize;
        if pool::STACKS.contains(&address) {
            let number = (address - pool::STACKS.start) / symdpor_abi::local::STACK_STRIDE as usize;
            if number != self.searching as usize && self.is_on_stack(number, address) {
                self.stack_known[number % MAX_THREADS] = true;
            }
        } else if Heap::contains(address) {
            let list = &self.owned[..self.count];
            let end = list.partition_point(|o| o.start <= address);
            // The same block may have several owners, next to each other.
            for owned in list[..end].iter().rev().take_while(|o| address < o.end) {
                if owned.thread != self.searching {
                    self.blocks_known[owned.thread as usize] = true;
                }
            }
        }
    }
}
