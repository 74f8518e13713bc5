//! Plain accesses to memory: bounds and lifetime of heap blocks, data races, and, on request, transitions of their own.

use crate::accesses;
use crate::channel;
use crate::end::{self, Details};
use crate::exec;
use crate::names;
use crate::pool;
use crate::races;
use crate::sched;
use crate::snapshot;
use crate::spin;
use crate::thread::Life;
use crate::watch;
use symdpor_abi::channel::{ErrorKind, options};
use symdpor_abi::op::{Op, OpKind};
use symdpor_detect::Race;
use symdpor_detect::heap::{Block, Heap, HeapFault, State};

/// A thread that calls so many hooks without a visible operation lets others run: it may wait for one of them in a loop
/// over a plain variable.
const QUIET_LIMIT: u32 = 1_000_000;

/// Most accesses end here: there is nothing to check but the heap, and the thread has done the same already since it last
/// synchronised. All else is one call in tail position, so that no register has to be saved before that is known.
#[inline(always)]
pub fn plain(address: usize, len: usize, site: usize, writes: bool) {
    let exec = exec::get();
    exec.last_site = site;
    exec.quiet_hooks += 1;
    if exec.quiet_hooks <= QUIET_LIMIT
        && races::is_all()
        && exec.idle_threads == 0
        && (!Heap::contains(address) || exec.heap.is_small_and_accessible(address, len))
        && races::detector().has_seen(exec.current, address, len, writes)
    {
        return;
    }
    check(address, len, site, writes);
}

#[inline(never)]
fn check(address: usize, len: usize, site: usize, writes: bool) {
    if exec::get().quiet_hooks > QUIET_LIMIT {
        give_way(site);
    }
    check_place(address, len, site, writes);
    if !snapshot::is_taken() {
        return;
    }
    crate::vain::accessed(address, len, writes);
    if writes {
        spin::stored(address);
        crate::repeat::store(address, len);
    }
    if channel::says(options::VISIBLE_ALL | options::WATCH | options::ACCESSES) {
        slow(address, len, site, writes);
    }
    if races::is_on() {
        let me = exec::get().current;
        let detector = races::detector();
        let race = if writes { detector.write(me, address, len) } else { detector.read(me, address, len) };
        if let Some(race) = race {
            report_race(&race, site);
        }
    }
}

/// A plain access where all of them are visible. `registers`: as for an atomic access, see [`spin::arrive`]. Says whether the
/// stack below has to be wiped.
pub extern "C" fn visible_hook(address: usize, len: usize, site: usize, registers: usize, writes: bool) -> bool {
    let watches = snapshot::is_taken() && channel::says(options::VISIBLE_ALL);
    if watches && !writes {
        spin::arrive(registers, None, false);
    }
    plain(address, len, site, writes);
    if watches && writes {
        spin::wrote(address, len);
    } else if watches {
        spin::read(address, len);
    }
    spin::is_idle()
}

/// Reads made on the program's behalf by functions that are not instrumented.
pub fn read(address: usize, len: usize) {
    if len > 0 {
        plain(address, len, 0, false);
    }
}

/// The same for writes.
pub fn write(address: usize, len: usize) {
    if len > 0 {
        plain(address, len, 0, true);
    }
}

/// A synchronisation object is used: it must be alive, and not be written to as plain memory meanwhile.
pub fn synchronisation_object(address: usize, len: usize) {
    check_place(address, len, 0, false);
    if snapshot::is_taken() && races::is_on() {
        if watch::is_on() {
            watch::note(address, len, false, true, 0);
        }
        let me = exec::get().current;
        if let Some(race) = races::detector().atomic_read(me, address, len) {
            report_race(&race, 0);
        }
    }
}

/// One more hook without a visible operation.
#[inline(always)]
pub fn tick(site: usize) {
    let exec = exec::get();
    exec.last_site = site;
    exec.quiet_hooks += 1;
    if exec.quiet_hooks > QUIET_LIMIT {
        give_way(site);
    }
}

#[cold]
fn give_way(site: usize) {
    exec::get().quiet_hooks = 0;
    let beat = channel::header().heartbeat;
    sched::yield_now(site);
    // Giving way is no progress: the controller's watchdog shall see that nothing else happens.
    if exec::get().thread_count == 1 || !snapshot::is_taken() {
        channel::header().heartbeat = beat;
    }
}

#[cold]
fn slow(address: usize, len: usize, site: usize, writes: bool) {
    if channel::says(options::VISIBLE_ALL) {
        for_each_granule(address, len, |start, part| {
            let kind = if writes { OpKind::PlainStore } else { OpKind::PlainLoad };
            let mut op = Op::new(kind, names::object(start));
            op.mask = names::mask(start, part);
            sched::visible(op, 0, site);
            if !writes {
                crate::footprint::read(start, part);
            }
        });
        // Another thread may have freed the block meanwhile.
        check_place(address, len, site, writes);
    }
    if channel::says(options::WATCH) {
        watch::note(address, len, writes, false, site);
    }
    if accesses::is_on() {
        accesses::note(address, len, writes, site);
    }
}

fn for_each_granule(address: usize, len: usize, mut each: impl FnMut(usize, usize)) {
    let mut start = address;
    while start < address + len {
        let part = (8 - (start & 7)).min(address + len - start);
        each(start, part);
        start += part;
    }
}

/// Whether memory is there: a block of the heap, or the stack of a thread that has not ended.
#[inline(always)]
pub fn check_place(address: usize, len: usize, site: usize, writes: bool) {
    if Heap::contains(address) {
        if let Err(fault) = exec::get().heap.check(address, len) {
            report_fault(fault, address, len, site, writes);
        }
    } else if pool::STACKS.contains(&address) {
        check_stack(address, len, site, writes);
    }
}

fn check_stack(address: usize, len: usize, site: usize, writes: bool) {
    let (exec, owner) = (exec::get(), pool::number_at(address));
    let has_ended = owner < exec.thread_count as usize && exec.threads[owner].life == Life::Ended;
    if has_ended && owner != exec.current as usize {
        report_ended(owner, address, len, site, writes);
    }
}

#[cold]
fn report_ended(owner: usize, address: usize, len: usize, site: usize, writes: bool) -> ! {
    let (what, unit) = words(len, writes);
    let mut details = Details::at(site);
    details.address = address;
    details.mask = names::mask(address, len);
    let text = format_args!("{what} of {len} {unit} on the stack of thread {owner}, which has ended");
    end::error(ErrorKind::Memory, &details, text)
}

fn words(len: usize, writes: bool) -> (&'static str, &'static str) {
    (if writes { "write" } else { "read" }, if len == 1 { "byte" } else { "bytes" })
}

#[cold]
fn report_fault(fault: HeapFault, address: usize, len: usize, site: usize, writes: bool) -> ! {
    let (what, unit) = words(len, writes);
    let mut details = Details::at(site);
    details.address = address;
    details.mask = names::mask(address, len);
    match fault {
        HeapFault::UseAfterFree(block) => {
            block_details(&mut details, &block);
            let offset = address.wrapping_sub(block.base) as isize;
            let text =
                format_args!("{what} of {len} {unit} at offset {offset} of a freed block of {} bytes", block.size);
            end::error(ErrorKind::Memory, &details, text)
        }
        HeapFault::OutOfBounds(block, offset) => {
            block_details(&mut details, &block);
            let text = format_args!("{what} of {len} {unit} at offset {offset} of a block of {} bytes", block.size);
            end::error(ErrorKind::Memory, &details, text)
        }
        HeapFault::Wild => {
            let text = format_args!("{what} of {len} {unit} on the heap where no block was ever allocated");
            end::error(ErrorKind::Memory, &details, text)
        }
    }
}

/// Where a block came from and went to.
pub fn block_details(details: &mut Details, block: &Block) {
    details.allocated = (block.alloc_site, block.thread as u32);
    if block.state == State::Freed {
        details.freed = (block.free_site, block.free_thread as u32);
    }
}

#[cold]
pub fn report_race(race: &Race, site: usize) -> ! {
    let mut details = Details::at(site);
    details.address = race.address;
    details.mask = race.mask;
    details.other_thread = race.other_thread as u32;
    details.access_bits = race.this_writes as u32
        | (race.other_writes as u32) << 1
        | (race.this_atomic as u32) << 2
        | (race.other_atomic as u32) << 3;
    let kind = |writes: bool, atomic: bool| match (atomic, writes) {
        (false, false) => "read",
        (false, true) => "write",
        (true, false) => "atomic read",
        (true, true) => "atomic write",
    };
    let text = format_args!(
        "{} by thread {} and earlier {} by thread {} are not ordered",
        kind(race.this_writes, race.this_atomic),
        exec::get().current,
        kind(race.other_writes, race.other_atomic),
        race.other_thread
    );
    end::error(ErrorKind::DataRace, &details, text)
}
