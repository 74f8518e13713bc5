//! Whether each thread's own memory, its stack, its thread-locals and the blocks that only it should have, is known to nobody
//! else: a search through all writable memory for words that point there.
//!
//! Instrumented frames are searched precisely, by what is live in them: a loop that starts threads leaves the address of the
//! last one's argument behind. Everything else is searched word by word, so that a number that looks like an address makes
//! a thread's memory look known. That loses reduction, and nothing else.

use crate::alike;
use crate::channel::{self, Writer};
use crate::exec;
use crate::footprint::{self, Lanes};
use crate::keys;
use crate::local::{self, Sink};
use crate::names;
use crate::pool;
use crate::set::ThreadBits;
use crate::snapshot;
use crate::stack;
use crate::sys::pages::PAGE;
use crate::tls;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::channel::{MEMORY_BYTES, MEMORY_OFFSET, options};
use symdpor_abi::local::memory;
use symdpor_detect::heap::Heap;

const MAX_OWNED: usize = 4096;
/// Of one thread. Further blocks stand for themselves.
const MAX_BLOCKS: usize = 64;
const MAX_BYTES: usize = 64 << 10;

/// A block that a thread's local state leads to: perhaps nobody else has it.
#[derive(Clone, Copy)]
struct Owned {
    start: usize,
    size: usize,
    thread: u16,
    /// Somebody else knows it.
    known: bool,
    /// And what is in it has been searched as everybody's.
    opened: bool,
}

impl Owned {
    fn end(&self) -> usize {
        self.start + self.size.max(1)
    }
}

/// Collected anew for each question. Too large for a stack.
struct Search {
    owned: [Owned; MAX_OWNED],
    count: usize,
    /// Threads whose stack somebody else knows.
    stack_known: [bool; MAX_THREADS],
    /// Whose memory is being searched.
    searching: u16,
    /// Whether there was any address that could be of interest.
    found: bool,
}

const NOBODY: u16 = u16::MAX;

static SEARCH: crate::cell::Global<Search> = crate::cell::Global::new(Search {
    owned: [Owned { start: 0, size: 0, thread: 0, known: false, opened: false }; MAX_OWNED],
    count: 0,
    stack_known: [false; MAX_THREADS],
    searching: NOBODY,
    found: false,
});

/// Tells of all threads that have come to an operation.
pub fn tell() {
    let exec = exec::get();
    let mut writer = Writer::new(MEMORY_OFFSET, MEMORY_BYTES);
    let mut record = |words: &[u64]| _ = writer.bytes(words.as_ptr() as usize, size_of_val(words));
    search(|number| exec.pending.contains(number), channel::says(options::EXPLAIN), &mut record);
    channel::header().memory_len = writer.used() as u32;
}

/// Tells of some threads that have, among the footprints.
pub fn tell_of(threads: &ThreadBits) {
    search(|number| threads.contains(number), false, &mut alike::record);
}

fn search(wanted: impl Fn(u16) -> bool, explain: bool, record: &mut dyn FnMut(&[u64])) {
    let threads = exec::get().thread_count;
    let search = SEARCH.get();
    search.count = 0;
    search.stack_known[..threads as usize].fill(false);
    (1..threads).filter(|&n| wanted(n)).for_each(|number| search.gather(number));
    let count = search.count;
    search.owned[..count].sort_unstable_by_key(|o| o.start);
    search.everything();
    search.open_known();
    (1..threads).filter(|&n| wanted(n)).for_each(|number| search.write(number, explain, record));
}

/// Collects the heap blocks that words lead to.
struct Gather<'a> {
    search: &'a mut Search,
    number: u16,
    first: usize,
    bytes: usize,
}

impl Sink for Gather<'_> {
    fn code(&mut self, _: u64) {}

    fn word(&mut self, word: u64) {
        let (address, search) = (word as usize, &mut *self.search);
        if pool::on_stack(self.number as usize, address) {
            // What it points to is live, and may lead on.
            local::layout().find(address);
            return;
        }
        let mine = &search.owned[self.first..search.count];
        if !Heap::contains(address) || mine.iter().any(|o| (o.start..o.end()).contains(&address)) {
            return;
        }
        let Some(block) = exec::get().heap.live_block(address) else { return };
        let full = search.count == MAX_OWNED || mine.len() == MAX_BLOCKS || self.bytes + block.size > MAX_BYTES;
        if !full {
            let owned = Owned { start: block.base, size: block.size, thread: self.number, known: false, opened: false };
            search.owned[search.count] = owned;
            search.count += 1;
            self.bytes += block.size;
        }
    }
}

/// Hashes a local state in which the blocks that only the thread has are known by their content and shape.
struct Informed<'a> {
    search: &'a Search,
    number: u16,
    lanes: Lanes,
    blocks: [(usize, usize); MAX_BLOCKS],
    count: usize,
    /// It has an address of a block that is not its own, or not known to be.
    shares: bool,
    /// Where to put the words, if they are asked for.
    record: &'a mut dyn FnMut(&[u64]),
    explain: bool,
    site: u32,
}

impl Informed<'_> {
    fn contents(&mut self) {
        self.frame(0, false);
        // Corresponding objects are renamed granule by granule.
        local::layout().objects().iter().for_each(|(start, _)| self.code((start & 7) as u64));
        let (mut next, mut object) = (0, local::layout().objects().len());
        while next < self.count {
            let (start, size) = self.blocks[next];
            self.code(size as u64);
            local::for_each_word(start, size, |word| self.word(word));
            next += 1;
            local::reached(&mut object, self);
        }
    }

    /// The number of the block in the order of meeting them, and the offset there.
    fn block(&mut self, address: usize) -> Option<(usize, usize)> {
        let met = self.blocks[..self.count].iter().position(|&(start, size)| address.wrapping_sub(start) < size.max(1));
        if let Some(index) = met {
            return Some((index, address - self.blocks[index].0));
        }
        let own = self.search.at(address).find(|o| o.thread == self.number && !o.known)?;
        if self.count == MAX_BLOCKS {
            return None;
        }
        self.blocks[self.count] = (own.start, own.size);
        self.count += 1;
        Some((self.count - 1, address - own.start))
    }
}

impl Informed<'_> {
    fn add(&mut self, kind: u64, word: u64) {
        self.lanes.add(kind << 56 ^ word);
        if self.explain {
            (self.record)(&[memory::WORD | (self.number as u64) << 8 | kind << 24, word]);
        }
    }
}

impl Sink for Informed<'_> {
    fn code(&mut self, word: u64) {
        self.add(0, word);
    }

    fn frame(&mut self, site: u32, before: bool) {
        if site != 0 {
            self.site = site;
        }
        if self.explain {
            (self.record)(&[memory::FRAME | (self.number as u64) << 8 | (before as u64) << 24, site as u64]);
        }
    }

    fn word(&mut self, word: u64) {
        let address = word as usize;
        if pool::on_stack(self.number as usize, address) {
            match local::layout().find(address) {
                Some((index, offset)) => self.add(2, (index as u64) << 32 | offset as u64),
                None => self.add(4, (address - pool::base(self.number as usize)) as u64),
            }
        } else if !Heap::contains(address) {
            self.add(1, word);
        } else if let Some((index, offset)) = self.block(address) {
            self.add(3, (index as u64) << 32 | offset as u64);
        } else {
            self.shares = true;
            self.add(1, word);
        }
    }
}

impl Search {
    /// Finds the blocks that a thread may have to itself.
    fn gather(&mut self, number: u16) {
        let first = self.count;
        let mut gather = Gather { search: self, number, first, bytes: 0 };
        if local::walk(number, &mut gather).is_err() {
            gather.search.count = first;
            return;
        }
        let (mut next, mut object) = (first, local::layout().objects().len());
        while next < gather.search.count {
            let Owned { start, size, .. } = gather.search.owned[next];
            local::for_each_word(start, size, |word| gather.word(word));
            next += 1;
            local::reached(&mut object, &mut gather);
        }
    }

    /// The records of the block that an address is in, one per thread.
    fn at(&self, address: usize) -> impl Iterator<Item = &Owned> {
        let list = &self.owned[..self.count];
        let end = list.partition_point(|o| o.start <= address);
        list[..end].iter().rev().take_while(move |o| address < o.end())
    }

    fn write(&self, number: u16, explain: bool, record: &mut dyn FnMut(&[u64])) {
        let stack = !self.stack_known[number as usize] as u64;
        if local::is_at_plain_access(number) {
            if let Some([low, high]) = footprint::chained(number) {
                record(&[memory::THREAD | (number as u64) << 8 | stack << 24, low, high]);
            }
            return;
        }
        let mut informed = Informed {
            search: self,
            number,
            lanes: Lanes::new(),
            blocks: [(0, 0); MAX_BLOCKS],
            count: 0,
            shares: false,
            record: &mut *record,
            explain,
            site: 0,
        };
        let walked = local::walk(number, &mut informed);
        let site = match informed.site {
            // It has not been looked at its frames at all.
            0 => stack::site_id(exec::get().threads[number as usize].pending_site),
            site => site,
        } as u64;
        if let Err(why) = walked {
            if explain {
                record(&[memory::WHY | (number as u64) << 8 | (why as u64) << 24, site]);
            }
            return;
        }
        informed.contents();
        let ([low, high], settled) = (informed.lanes.finish(), !informed.shares as u64);
        let (blocks, count) = (informed.blocks, informed.count);
        record(&[memory::THREAD | (number as u64) << 8 | stack << 24 | settled << 25, low, high]);
        for &(start, size) in local::layout().objects().iter().chain(&blocks[..count]) {
            record(&[memory::BLOCK, names::object(start).0, size as u64]);
        }
    }

    /// What lies in a block that others know, others know too.
    fn open_known(&mut self) {
        while let Some(i) = self.owned[..self.count].iter().position(|o| o.known && !o.opened) {
            self.owned[i].opened = true;
            let (start, end) = (self.owned[i].start, self.owned[i].end());
            self.range(start, end, NOBODY);
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
        for number in 0..exec.thread_count {
            let (start, end) = exec.heap.used(number as usize);
            if start < end {
                self.heap(start, end);
            }
        }
        for number in 0..exec.thread_count {
            if exec.threads[number as usize].is_alive() {
                self.thread(number);
            }
        }
    }

    /// An arena: what is in a thread's block is the thread's.
    fn heap(&mut self, start: usize, end: usize) {
        let mut at = start;
        let mut index = self.owned[..self.count].partition_point(|o| o.start < start);
        while index < self.count && self.owned[index].start < end {
            let block = self.owned[index];
            let shared = self.owned[index + 1..self.count].iter().take_while(|o| o.start == block.start).count();
            self.range(at, block.start.max(at), NOBODY);
            self.range(block.start.max(at), block.end(), if shared == 0 { block.thread } else { NOBODY });
            at = at.max(block.end());
            index += 1 + shared;
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
        let mut at = start & !7;
        while at < end {
            let next = ((at | (PAGE - 1)) + 1).min(end);
            let is_page = next - at == PAGE;
            if !is_page || !snapshot::is_barren(at) {
                self.found = false;
                self.words(at, next - at);
                if is_page && !self.found {
                    snapshot::note_barren(at);
                }
            }
            at = next;
        }
    }

    /// Most words are no addresses of interest: four are looked at at a time.
    fn words(&mut self, start: usize, len: usize) {
        let together = len & !31;
        for at in (start..start + together).step_by(32) {
            // SAFETY: callers name memory that is mapped, of that length, and aligned.
            let words = unsafe { *(at as *const [u64; 4]) };
            if words.map(may_point).into_iter().fold(false, |any, may| any | may) {
                let places = (at..).step_by(8);
                words.into_iter().zip(places).for_each(|(word, place)| self.word_at(word, place));
            }
        }
        let mut place = start + together;
        local::for_each_word(place, len - together, |word| {
            self.word_at(word, place);
            place += 8;
        });
    }

    /// A word that lies at `place`, or somewhere on a stack.
    #[inline]
    fn word_at(&mut self, word: u64, place: usize) {
        let address = word as usize;
        if pool::STACKS.contains(&address) {
            self.found = true;
            let number = (address - pool::STACKS.start) / symdpor_abi::local::STACK_STRIDE as usize;
            if number != self.searching as usize && self.is_on_stack(number, address) && !is_in_vector(number, place) {
                self.stack_known[number % MAX_THREADS] = true;
            }
        } else if Heap::contains(address) {
            self.found = true;
            let searching = self.searching;
            let list = &mut self.owned[..self.count];
            let end = list.partition_point(|o| o.start <= address);
            let here = list[..end].iter_mut().rev().take_while(|o| address < o.end());
            here.filter(|o| o.thread != searching).for_each(|o| o.known = true);
        }
    }

    fn is_on_stack(&self, number: usize, address: usize) -> bool {
        let Some(slot) = pool::slot(number) else { return false };
        let mut found = pool::on_stack(number, address) && address < slot.sp;
        tls::for_each(slot.fs, |start, len| found |= (start..start + len).contains(&address));
        found
    }
}

/// Whether a word may be an address of a stack or a block.
#[inline(always)]
fn may_point(word: u64) -> bool {
    let stacks = (word as usize).wrapping_sub(pool::STACKS.start) < pool::STACKS.end - pool::STACKS.start;
    stacks | Heap::contains(word as usize)
}

/// Whether a place is the loader's note of where a thread has its thread-local variables.
fn is_in_vector(number: usize, place: usize) -> bool {
    place != 0 && pool::slot(number).is_some_and(|slot| tls::vector(slot.fs).contains(&place))
}

#[inline(never)]
fn here() -> usize {
    let here = 0usize;
    &raw const here as usize
}

impl Sink for Search {
    fn code(&mut self, _: u64) {}

    fn weak_object(&mut self, address: usize, len: usize) {
        self.object(address, len);
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.word_at(word, 0);
    }
}
