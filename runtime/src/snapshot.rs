//! The snapshot of the program's memory, and how it is put back.
//!
//! Taken once, at the first point where there is a choice. Then all managed pages are write-protected (*cold*). The first
//! write to a cold page faults, makes it writable and *hot* for good; after each execution exactly the hot pages are
//! copied back. So an execution that touches no page for the first time costs no system call.
//!
//! Managed is every private writable mapping, except the runtime's own. Pages that come into being later (the heap
//! grows) are zero in the snapshot. Pages of anonymous mappings that were never touched are not copied but remembered
//! as zero.
//!
//! Not covered here: kernel-side state, see [`crate::syscalls::undo`].

use crate::cell::Global;
use crate::sys::copy;
use crate::sys::maps::{self, Mapping};
use crate::sys::pages::{self, PAGE, PROT_READ, PROT_WRITE};
use crate::sys::raw::{nr, syscall3, syscall6};

const MAX_REGIONS: usize = 16 << 10;
const MAX_HOT: usize = 4 << 20;

/// A managed range of addresses.
#[derive(Clone, Copy)]
struct Region {
    start: usize,
    end: usize,
    /// Per page: address of its copy, 0 if it was zero, and in the lowest bits whether it is hot or barren.
    copies: *mut usize,
}

const HOT: usize = 1;
/// As long as it is cold, no word in it can be an address that anyone searches for.
const BARREN: usize = 2;
const MARKS: usize = HOT | BARREN;

struct Snapshot {
    taken: bool,
    regions: *mut Region,
    region_count: usize,
    /// Hot pages: address, and address of the copy or 0.
    hot: *mut (usize, usize),
    hot_count: usize,
    /// The part of a block of the copies' memory that is not used yet.
    store: usize,
    store_left: usize,
}

static SNAPSHOT: Global<Snapshot> = Global::new(Snapshot {
    taken: false,
    regions: core::ptr::null_mut(),
    region_count: 0,
    hot: core::ptr::null_mut(),
    hot_count: 0,
    store: 0,
    store_left: 0,
});

pub fn is_taken() -> bool {
    SNAPSHOT.get().taken
}

/// All managed ranges.
pub fn for_each_region(mut each: impl FnMut(usize, usize)) {
    for region in SNAPSHOT.get().regions() {
        each(region.start, region.end);
    }
}

/// Whether a page is known to hold nothing that is searched for.
pub fn is_barren(page: usize) -> bool {
    SNAPSHOT.get().slot(page).is_some_and(|(_, slot)| *slot == 0 || *slot & MARKS == BARREN)
}

/// A page has been searched in vain. Only that of a cold one lasts.
pub fn note_barren(page: usize) {
    if let Some((_, slot)) = SNAPSHOT.get().slot(page) {
        *slot |= BARREN;
    }
}

/// Why no snapshot can be taken.
#[derive(Debug)]
pub enum Failure {
    NoMappings,
    TooManyMappings,
    /// Writable memory that is shared with a file or another process.
    SharedMapping,
    NoMemory,
}

/// Takes the snapshot. The caller runs on a stack of the runtime's own.
pub fn take() -> Result<(), Failure> {
    let snapshot = SNAPSHOT.get();
    prepare(snapshot)?;
    let mut pagemap = Pagemap::open();
    let mut result = Ok(());
    let read = maps::for_each(|mapping| {
        if mapping.writable && !mapping.private && !pages::WINDOW.contains(&mapping.start) {
            result = Err(Failure::SharedMapping);
        }
        if result.is_ok() && mapping.writable && mapping.private {
            for (start, end) in without_own(&mapping) {
                if start < end && result.is_ok() {
                    result = snapshot.add(start, end, mapping.anonymous.then_some(&mut pagemap));
                }
            }
        }
    });
    pagemap.close();
    result?;
    if !read {
        return Err(Failure::NoMappings);
    }
    snapshot.taken = true;
    copy::init();
    for region in snapshot.regions() {
        pages::protect(region.start, region.end - region.start, PROT_READ);
    }
    Ok(())
}

fn prepare(snapshot: &mut Snapshot) -> Result<(), Failure> {
    if snapshot.regions.is_null() {
        snapshot.regions = pages::map(MAX_REGIONS * size_of::<Region>()) as *mut Region;
        snapshot.hot = pages::map(MAX_HOT * size_of::<(usize, usize)>()) as *mut (usize, usize);
    }
    if snapshot.regions.is_null() || snapshot.hot.is_null() {
        return Err(Failure::NoMemory);
    }
    snapshot.region_count = 0;
    snapshot.hot_count = 0;
    Ok(())
}

/// Makes everything writable again and forgets the snapshot, so that another can be taken. Memory must be restored.
pub fn forget() {
    let snapshot = SNAPSHOT.get();
    for region in snapshot.regions() {
        pages::protect(region.start, region.end - region.start, PROT_READ | PROT_WRITE);
    }
    snapshot.taken = false;
}

/// The parts of a mapping that are not the runtime's own, at most three.
fn without_own(mapping: &Mapping) -> [(usize, usize); 3] {
    if pages::WINDOW.contains(&mapping.start) {
        return [(0, 0); 3];
    }
    let own = crate::init::own_data();
    let exec = crate::exec::range();
    let clip = |start: usize, end: usize| (start.max(mapping.start), end.min(mapping.end));
    [clip(0, own.start), clip(exec.start, exec.end), clip(own.end, usize::MAX)]
}

impl Snapshot {
    fn regions(&self) -> &'static [Region] {
        // SAFETY: the first `region_count` records were written by `add`.
        unsafe { core::slice::from_raw_parts(self.regions, self.region_count) }
    }

    fn add(&mut self, start: usize, end: usize, mut pagemap: Option<&mut Pagemap>) -> Result<(), Failure> {
        if self.region_count == MAX_REGIONS {
            return Err(Failure::TooManyMappings);
        }
        let count = (end - start) / PAGE;
        let copies = self.allocate(count * 8)? as *mut usize;
        for i in 0..count {
            let page = start + i * PAGE;
            let copy = if pagemap.as_mut().is_some_and(|map| !map.is_present(page)) { 0 } else { self.copy(page)? };
            // SAFETY: `i` is below the count the array was made for.
            unsafe { *copies.add(i) = copy };
        }
        self.push(Region { start, end, copies });
        Ok(())
    }

    /// Keeps the regions sorted by address: they are looked up on each fault.
    fn push(&mut self, region: Region) {
        let at = self.regions().partition_point(|r| r.start < region.start);
        // SAFETY: the caller checked that there is room for one more.
        unsafe {
            let slot = self.regions.add(at);
            core::ptr::copy(slot, slot.add(1), self.region_count - at);
            slot.write(region);
        }
        self.region_count += 1;
    }

    fn copy(&mut self, page: usize) -> Result<usize, Failure> {
        let copy = self.allocate(PAGE)?;
        // SAFETY: a readable page of the program, to fresh memory.
        unsafe { core::ptr::copy_nonoverlapping(page as *const u8, copy as *mut u8, PAGE) };
        Ok(copy)
    }

    /// Whole cache lines, since pages are copied from there again and again.
    fn allocate(&mut self, len: usize) -> Result<usize, Failure> {
        const BLOCK: usize = 4 << 20;
        const LINE: usize = 64;
        let len = (len + LINE - 1) & !(LINE - 1);
        if len > self.store_left {
            let block = BLOCK.max(pages::round_up(len));
            self.store = pages::map(block) as usize;
            self.store_left = block;
        }
        if self.store == 0 {
            self.store_left = 0;
            return Err(Failure::NoMemory);
        }
        let address = self.store;
        self.store += len;
        self.store_left -= len;
        Ok(address)
    }

    fn region_of(&self, address: usize) -> Option<Region> {
        let regions = self.regions();
        let after = regions.partition_point(|r| r.start <= address);
        let region = regions[..after].last()?;
        (address < region.end).then_some(*region)
    }

    /// Makes a cold page writable. False if it is not managed or was hot already.
    fn warm(&mut self, address: usize) -> bool {
        let page = address & !(PAGE - 1);
        let Some((region, slot)) = self.slot(page) else { return false };
        if *slot & HOT != 0 || self.hot_count == MAX_HOT || !unprotect(page, &region) {
            return false;
        }
        // SAFETY: there is room for one more.
        unsafe { *self.hot.add(self.hot_count) = (page, *slot & !MARKS) };
        self.hot_count += 1;
        *slot |= HOT;
        true
    }

    /// The region that a page is in, and the word that is kept for it.
    fn slot(&self, page: usize) -> Option<(Region, &'static mut usize)> {
        let region = self.region_of(page)?;
        // SAFETY: the index is within the region.
        Some((region, unsafe { &mut *region.copies.add((page - region.start) / PAGE) }))
    }
}

/// The kernel limits how many pieces the address space may be in: when it refuses, the whole region is opened, and its
/// other pages become hot by [`Snapshot::warm_all`].
fn unprotect(page: usize, region: &Region) -> bool {
    if pages::protect(page, PAGE, PROT_READ | PROT_WRITE) {
        return true;
    }
    if !pages::protect(region.start, region.end - region.start, PROT_READ | PROT_WRITE) {
        return false;
    }
    SNAPSHOT.get().warm_all(region, page);
    true
}

impl Snapshot {
    fn warm_all(&mut self, region: &Region, except: usize) {
        for page in (region.start..region.end).step_by(PAGE).filter(|&page| page != except) {
            // SAFETY: the index is within the region, and the list has room for every page of the address space's
            // managed part up to its limit.
            unsafe {
                let slot = &mut *region.copies.add((page - region.start) / PAGE);
                if *slot & HOT == 0 && self.hot_count < MAX_HOT {
                    *self.hot.add(self.hot_count) = (page, *slot & !MARKS);
                    self.hot_count += 1;
                    *slot |= HOT;
                }
            }
        }
    }
}

/// Called for a write that faulted: true if the page was cold and the write can be tried again.
pub fn on_write_fault(address: usize) -> bool {
    let snapshot = SNAPSHOT.get();
    snapshot.taken && snapshot.warm(address)
}

/// Makes pages writable that the kernel is going to write to.
pub fn make_writable(address: usize, len: usize) {
    let snapshot = SNAPSHOT.get();
    if !snapshot.taken || len == 0 {
        return;
    }
    let Some(end) = address.checked_add(len) else { return };
    for page in ((address & !(PAGE - 1))..end).step_by(PAGE) {
        snapshot.warm(page);
    }
}

/// Puts every page back as it was.
pub fn restore() {
    let snapshot = SNAPSHOT.get();
    // SAFETY: the first `hot_count` records are pages that are writable, with readable copies.
    unsafe {
        for &(page, copy) in core::slice::from_raw_parts(snapshot.hot, snapshot.hot_count) {
            if copy == 0 {
                core::ptr::write_bytes(page as *mut u8, 0, PAGE);
            } else {
                copy::page(page, copy);
            }
        }
    }
}

/// Makes a range at a fixed address usable, zeroed if it was not there yet. After the snapshot was taken, new pages
/// belong to it as zero pages. Commits last: a range that was committed once stays so.
pub fn commit(address: usize, len: usize) -> bool {
    let snapshot = SNAPSHOT.get();
    if snapshot.taken && snapshot.region_of(address).is_some_and(|r| address + len <= r.end) {
        return true;
    }
    if !pages::map_at(address, len) {
        return false;
    }
    if !snapshot.taken {
        return true;
    }
    let Ok(copies) = snapshot.allocate(len / PAGE * 8) else { return false };
    if snapshot.region_count == MAX_REGIONS {
        return false;
    }
    snapshot.push(Region { start: address, end: address + len, copies: copies as *mut usize });
    pages::protect(address, len, PROT_READ)
}

/// Tells which pages of anonymous memory were ever touched.
struct Pagemap {
    fd: isize,
    /// Page number of the first of `entries`; none are read yet if it is `usize::MAX`.
    first: usize,
    entries: [u64; Pagemap::WINDOW],
}

impl Pagemap {
    const WINDOW: usize = 512;

    fn open() -> Pagemap {
        // SAFETY: a terminated path; read-only, close-on-exec.
        let fd = unsafe { syscall3(nr::OPEN, c"/proc/self/pagemap".as_ptr() as usize, 0o2000000, 0) };
        Pagemap { fd, first: usize::MAX, entries: [0; Pagemap::WINDOW] }
    }

    /// Present or swapped out. Without /proc/self/pagemap every page counts as present.
    fn is_present(&mut self, page: usize) -> bool {
        let number = page / PAGE;
        if self.fd < 0 {
            return true;
        }
        if !(self.first..self.first.saturating_add(Pagemap::WINDOW)).contains(&number) {
            self.first = number;
            // Where nothing can be read an entry counts as present.
            self.entries = [u64::MAX; Pagemap::WINDOW];
            let buffer = self.entries.as_mut_ptr() as usize;
            // SAFETY: into our own array, of its length.
            unsafe { syscall6(nr::PREAD64, self.fd as usize, buffer, Pagemap::WINDOW * 8, number * 8, 0, 0) };
        }
        self.entries[number - self.first] >> 62 != 0
    }

    fn close(&self) {
        if self.fd >= 0 {
            // SAFETY: our own descriptor.
            unsafe { syscall3(nr::CLOSE, self.fd as usize, 0, 0) };
        }
    }
}
