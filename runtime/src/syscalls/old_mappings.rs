//! Taking memory away that was mapped before the snapshot: `munmap` and `mprotect` of the program's older mappings.
//!
//! The snapshot's copies belong to their addresses, so the mapping itself must stay. Its pages are made hot (writable as
//! far as the snapshot is concerned) and then lose the rights that the program takes from them; [`undo`] gives them back
//! before the snapshot writes to them. What the program does to memory that it has unmapped is a crash, as always.
//!
//! Not covered: memory that the snapshot does not manage, because it was shared or not writable. Unmapping that is
//! accepted and does nothing.

use super::kernel::real;
use super::names::nr;
use crate::cell::Global;
use crate::sys::maps;

const PROT_READ: usize = 1;
const PROT_WRITE: usize = 2;
/// Larger ranges are not worth being copied back after every execution.
const MOST_BYTES: usize = 64 << 20;
const MOST_RANGES: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Range {
    start: usize,
    len: usize,
}

/// A list of a few ranges.
struct Ranges {
    items: [Range; MOST_RANGES],
    count: usize,
}

impl Ranges {
    const fn new() -> Ranges {
        Ranges { items: [Range { start: 0, len: 0 }; MOST_RANGES], count: 0 }
    }

    fn all(&self) -> &[Range] {
        &self.items[..self.count]
    }

    fn push(&mut self, range: Range) -> bool {
        let fits = self.count < MOST_RANGES;
        if fits {
            self.items[self.count] = range;
            self.count += 1;
        }
        fits
    }
}

/// Ranges that have lost rights in this execution.
static CHANGED: Global<Ranges> = Global::new(Ranges::new());
/// Ranges that were found to be managed, all of them: this does not change.
static MANAGED: Global<Ranges> = Global::new(Ranges::new());

/// Gives a range these rights until the end of the execution. False if it is not the snapshot's.
pub fn protect(start: usize, len: usize, protection: usize) -> bool {
    let range = Range { start, len };
    if protection & !(PROT_READ | PROT_WRITE) != 0 || !is_managed(range) {
        return false;
    }
    let changed = CHANGED.get();
    if !changed.all().contains(&range) && !changed.push(range) {
        return false;
    }
    real(nr::mprotect, [start, len, protection, 0, 0, 0]) == 0
}

/// Makes the range hot, and finds out whether all of it is.
fn is_managed(range: Range) -> bool {
    if range.len > MOST_BYTES {
        return false;
    }
    if MANAGED.get().all().contains(&range) {
        return true;
    }
    crate::snapshot::make_writable(range.start, range.len);
    let end = range.start + range.len;
    let mut found = 0;
    maps::for_each(|m| {
        if m.writable && m.private {
            found += m.end.min(end).saturating_sub(m.start.max(range.start));
        }
    });
    let all = found == range.len;
    if all {
        // If the list is full, the next execution has to look again, that is all.
        MANAGED.get().push(range);
    }
    all
}

pub fn undo() {
    let changed = CHANGED.get();
    for range in changed.all() {
        real(nr::mprotect, [range.start, range.len, PROT_READ | PROT_WRITE, 0, 0, 0]);
    }
    changed.count = 0;
}
