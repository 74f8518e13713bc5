//! Vector clocks: one row per thread, and the clocks of objects, carved from an arena that is reset per execution.
//!
//! Clocks rise over all executions. An execution starts at a *base* that no clock before it exceeds; every thread of
//! it begins at base + 1. So a component that was left over from an earlier execution is at most the base and means
//! nothing, exactly as a component that was never set, and nothing needs clearing: neither rows nor arena.

use crate::MAX_THREADS;
use crate::pages::{Pages, clear_words};

/// Rows are a cache line longer than they need be, lest equal components of all threads fall into one cache set.
const ROW: usize = MAX_THREADS + 16;
/// A base above this starts over from nothing, so that an execution has 2^30 clock values at its disposal.
const WRAP: u32 = 3 << 30;

/// The threads' clocks.
pub(crate) struct Threads {
    rows: *mut u32,
    count: usize,
    base: u32,
    /// The highest clock ever given.
    top: u32,
    /// By thread: how many of its epochs have begun since it last released anything.
    quiet: [u32; MAX_THREADS],
}

impl Threads {
    pub(crate) const fn new() -> Threads {
        Threads { rows: core::ptr::null_mut(), count: 1, base: 0, top: 0, quiet: [0; MAX_THREADS] }
    }

    pub(crate) fn init(&mut self, pages: &mut Pages) -> bool {
        self.rows = pages.take(ROW * MAX_THREADS);
        !self.rows.is_null()
    }

    pub(crate) fn is_ready(&self) -> bool {
        !self.rows.is_null()
    }

    /// Also serves as the number of the execution: it rises with each, and is never 0 in one.
    #[inline]
    pub(crate) fn base(&self) -> u32 {
        self.base
    }

    pub(crate) fn must_wrap(&self) -> bool {
        self.top >= WRAP
    }

    /// As after billions of releases.
    #[cfg(test)]
    pub(crate) fn age(&mut self) {
        self.top = WRAP - 5;
    }

    /// Back to clock zero. All records and clocks elsewhere must be cleared too.
    pub(crate) fn clear(&mut self) {
        // SAFETY: the rows' whole extent.
        unsafe { clear_words(self.rows.cast(), ROW * MAX_THREADS / 2) };
        (self.base, self.top) = (0, 0);
    }

    pub(crate) fn begin_execution(&mut self) {
        self.base = self.top.max(1);
        self.count = 1;
        self.start(0);
    }

    /// The row of thread `t`. The rows must be there.
    #[inline]
    pub(crate) fn row(&self, t: usize) -> *mut u32 {
        // SAFETY: there are MAX_THREADS rows.
        unsafe { self.rows.add(t % MAX_THREADS * ROW) }
    }

    #[inline]
    pub(crate) fn epoch(&self, t: usize) -> u32 {
        // SAFETY: a row has MAX_THREADS components.
        unsafe { *self.row(t).add(t % MAX_THREADS) }
    }

    /// Whether what thread `other` did at `clock` happened before what the thread of `row` does now.
    #[inline]
    pub(crate) fn happened_before(row: *const u32, other: u16, clock: u32) -> bool {
        // SAFETY: a row has MAX_THREADS components.
        clock <= unsafe { *row.add(other as usize % MAX_THREADS) }
    }

    fn set_epoch(&mut self, t: usize, clock: u32) {
        // SAFETY: a row has MAX_THREADS components.
        unsafe { *self.row(t).add(t % MAX_THREADS) = clock };
        self.top = self.top.max(clock);
    }

    fn start(&mut self, t: usize) {
        let clock = self.epoch(t).max(self.base).saturating_add(1);
        self.set_epoch(t, clock);
        self.quiet[t % MAX_THREADS] = 0;
    }

    /// Ends the epoch of `t`: what it does from now on is not part of what it has released.
    pub(crate) fn tick(&mut self, t: usize) {
        self.set_epoch(t, self.epoch(t).saturating_add(1));
        self.quiet[t % MAX_THREADS] = 0;
    }

    /// The same where nothing has been released.
    pub(crate) fn tick_quietly(&mut self, t: usize) {
        self.set_epoch(t, self.epoch(t).saturating_add(1));
        self.quiet[t % MAX_THREADS] += 1;
    }

    /// The first epoch of `t` since it last released anything.
    pub(crate) fn since(&self, t: usize) -> u32 {
        self.epoch(t) - self.quiet[t % MAX_THREADS]
    }

    pub(crate) fn created(&mut self, parent: usize, child: usize) {
        self.count = self.count.max(child % MAX_THREADS + 1);
        // SAFETY: two rows, `count` is at most their length.
        unsafe { copy(self.row(child), self.row(parent), self.count) };
        self.start(child);
        self.tick(parent);
    }

    pub(crate) fn joined(&mut self, joiner: usize, ended: usize) {
        // SAFETY: two rows, `count` is at most their length.
        unsafe { join(self.row(joiner), self.row(ended), self.count) };
    }
}

/// The clock of an object, valid in one execution only. Zeroed memory is a clock that is not valid.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Clock {
    values: *mut u32,
    /// Components there are, and room for more.
    len: u16,
    capacity: u16,
    /// The base of the execution it belongs to.
    execution: u32,
}

impl Clock {
    pub(crate) const NONE: Clock = Clock { values: core::ptr::null_mut(), len: 0, capacity: 0, execution: 0 };

    pub(crate) fn empty(execution: u32) -> Clock {
        Clock { execution, ..Clock::NONE }
    }

    pub(crate) fn is_valid(&self, execution: u32) -> bool {
        self.execution == execution
    }

    /// Makes the clock say nothing, keeping its room.
    pub(crate) fn reset(&mut self) {
        self.len = 0;
    }

    /// Joins this clock into a row.
    pub(crate) fn join_into(&self, row: *mut u32) {
        // SAFETY: the clock has `len` components, a row MAX_THREADS.
        unsafe { join(row, self.values, self.len as usize) };
    }
}

/// Memory for the clocks of one execution.
pub(crate) struct Arena {
    first: *mut Chunk,
    current: *mut Chunk,
    /// Components used of the current chunk.
    used: usize,
}

const CHUNK_BYTES: usize = 256 << 10;
const CHUNK_VALUES: usize = CHUNK_BYTES / 4 - 4;

#[repr(C)]
struct Chunk {
    next: *mut Chunk,
    reserved: u64,
    values: [u32; CHUNK_VALUES],
}

impl Arena {
    pub(crate) const fn new() -> Arena {
        Arena { first: core::ptr::null_mut(), current: core::ptr::null_mut(), used: 0 }
    }

    pub(crate) fn init(&mut self, pages: &mut Pages) -> bool {
        self.first = pages.take(1);
        self.current = self.first;
        !self.first.is_null()
    }

    pub(crate) fn begin_execution(&mut self) {
        self.current = self.first;
        self.used = 0;
    }

    pub(crate) fn clear(&mut self) {
        let mut chunk = self.first;
        while !chunk.is_null() {
            // SAFETY: chunks are linked until null.
            unsafe {
                clear_words((&raw mut (*chunk).values).cast(), CHUNK_VALUES / 2);
                chunk = (*chunk).next;
            }
        }
    }

    fn take(&mut self, len: usize, pages: &mut Pages) -> Option<*mut u32> {
        if self.used + len > CHUNK_VALUES {
            self.advance(pages)?;
        }
        // SAFETY: `used + len` components fit into the current chunk.
        let values = unsafe { (&raw mut (*self.current).values).cast::<u32>().add(self.used) };
        self.used += len;
        Some(values)
    }

    fn advance(&mut self, pages: &mut Pages) -> Option<()> {
        // SAFETY: the current chunk exists since `init`.
        unsafe {
            if (*self.current).next.is_null() {
                (*self.current).next = pages.take(1);
            }
            let next = (*self.current).next;
            if next.is_null() {
                return None;
            }
            self.current = next;
        }
        self.used = 0;
        Some(())
    }

    /// Makes room for `len` components, keeping those there are.
    fn reserve(&mut self, clock: &mut Clock, len: usize, pages: &mut Pages) -> Option<()> {
        if len <= clock.capacity as usize {
            return Some(());
        }
        let capacity = [8, 64, 256].into_iter().find(|&c| len <= c).unwrap_or(MAX_THREADS);
        let values = self.take(capacity, pages)?;
        // SAFETY: the new components are at least as many.
        unsafe { copy(values, clock.values, clock.len as usize) };
        clock.values = values;
        clock.capacity = capacity as u16;
        Some(())
    }

    /// Makes `clock` equal to `from`.
    pub(crate) fn assign(&mut self, clock: &mut Clock, from: Span, pages: &mut Pages) {
        clock.reset();
        self.merge(clock, from, pages);
    }

    /// Joins `from` into `clock`.
    pub(crate) fn merge(&mut self, clock: &mut Clock, from: Span, pages: &mut Pages) {
        if self.reserve(clock, from.len, pages).is_none() {
            return;
        }
        let common = from.len.min(clock.len as usize);
        // SAFETY: both have `common` components, and `clock` has room for `from.len`.
        unsafe {
            join(clock.values, from.values, common);
            copy(clock.values.add(common), from.values.add(common), from.len - common);
        }
        clock.len = clock.len.max(from.len as u16);
    }
}

/// Some components of a row or of another clock.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    values: *const u32,
    len: usize,
}

impl Span {
    pub(crate) fn of_thread(threads: &Threads, t: usize) -> Span {
        Span { values: threads.row(t), len: threads.count }
    }

    pub(crate) fn of_clock(clock: &Clock) -> Span {
        Span { values: clock.values, len: clock.len as usize }
    }
}

/// # Safety
/// Both sides must have `len` components.
unsafe fn copy(to: *mut u32, from: *const u32, len: usize) {
    for i in 0..len {
        // SAFETY: the caller's. Volatile, or this would become a call of memcpy.
        unsafe { to.add(i).write_volatile(*from.add(i)) };
    }
}

/// # Safety
/// Both sides must have `len` components.
unsafe fn join(to: *mut u32, from: *const u32, len: usize) {
    for i in 0..len {
        // SAFETY: the caller's.
        unsafe { *to.add(i) = (*to.add(i)).max(*from.add(i)) };
    }
}
