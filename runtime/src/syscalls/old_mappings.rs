//! Taking memory away that was mapped before the snapshot: `munmap` and `mprotect` of the program's older mappings.
//!
//! The snapshot's copies belong to their addresses, so the mapping itself must stay. Its pages are made hot (writable as
//! far as the snapshot is concerned) and then lose the rights that the program takes from them; [`undo`] gives them back
//! before the snapshot writes to them. What the program does to memory that it has unmapped is a crash, as always: code of
//! a library that was closed while a thread still runs in it, for one.
//!
//! Not covered: unmapping more than 64 MiB at once is accepted and does nothing.

use super::kernel::real;
use super::names::nr;
use crate::cell::Global;
use crate::names;
use crate::sys::maps;

const PROT_NONE: usize = 0;
const PROT_READ: usize = 1;
const PROT_WRITE: usize = 2;
const PROT_EXEC: usize = 4;
/// Larger ranges are not worth being copied back after every execution.
const MOST_BYTES: usize = 64 << 20;
const MOST_RANGES: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Range {
    start: usize,
    len: usize,
}

/// Part of what the program asked for, and the rights that it had.
#[derive(Clone, Copy)]
struct Part {
    asked: Range,
    range: Range,
    rights: usize,
}

/// A list of a few parts.
struct Parts {
    items: [Part; MOST_RANGES],
    count: usize,
}

impl Parts {
    const fn new() -> Parts {
        let none = Range { start: 0, len: 0 };
        Parts { items: [Part { asked: none, range: none, rights: 0 }; MOST_RANGES], count: 0 }
    }

    fn all(&self) -> &[Part] {
        &self.items[..self.count]
    }

    fn push(&mut self, part: Part) -> bool {
        let fits = self.count < MOST_RANGES;
        if fits {
            self.items[self.count] = part;
            self.count += 1;
        }
        fits
    }
}

/// What has lost rights in this execution, in this order.
static CHANGED: Global<Parts> = Global::new(Parts::new());
/// What was found where nothing had been changed: it is the same in every execution.
static KNOWN: Global<Parts> = Global::new(Parts::new());

/// Gives a range these rights until the end of the execution. False if it is not the snapshot's.
pub fn protect(start: usize, len: usize, protection: usize) -> bool {
    if protection & !(PROT_READ | PROT_WRITE) != 0 || len > MOST_BYTES {
        return false;
    }
    let Some(parts) = parts(Range { start, len }) else { return false };
    let managed = parts.all().iter().filter(|p| p.rights & PROT_WRITE != 0).map(|p| p.range.len);
    managed.sum::<usize>() == len && change(&parts, protection)
}

/// Takes all rights from a range, whatever is mapped there. False if there are too many mappings.
pub fn take_away(start: usize, len: usize) -> bool {
    len > MOST_BYTES || parts(Range { start, len }).is_some_and(|parts| change(&parts, PROT_NONE))
}

/// The mappings of a range.
fn parts(asked: Range) -> Option<Parts> {
    let known = KNOWN.get();
    let mut parts = Parts::new();
    if known.all().iter().any(|p| p.asked == asked) {
        known.all().iter().filter(|p| p.asked == asked).for_each(|p| _ = parts.push(*p));
        return Some(parts);
    }
    parts = look(asked)?;
    // If there is no room, the next execution has to look again, that is all.
    if CHANGED.get().count == 0 && known.count + parts.count <= MOST_RANGES {
        parts.all().iter().for_each(|p| _ = known.push(*p));
    }
    Some(parts)
}

/// Looks at the mappings, once the snapshot has made all its pages writable. Shared memory counts as not writable: it is
/// not the snapshot's.
fn look(asked: Range) -> Option<Parts> {
    crate::snapshot::make_writable(asked.start, asked.len);
    let (mut parts, mut fits) = (Parts::new(), true);
    maps::for_each(|m| {
        let (start, end) = (m.start.max(asked.start), m.end.min(asked.start + asked.len));
        if start < end && !names::is_runtime(start) {
            let right = |has: bool, bit: usize| if has { bit } else { 0 };
            let write = right(m.writable && m.private, PROT_WRITE);
            let rights = right(m.readable, PROT_READ) | write | right(m.executable, PROT_EXEC);
            fits &= parts.push(Part { asked, range: Range { start, len: end - start }, rights });
        }
    });
    fits.then_some(parts)
}

/// Gives parts of a range other rights, and notes what they had.
fn change(parts: &Parts, protection: usize) -> bool {
    let changed = CHANGED.get();
    for part in parts.all() {
        let noted = changed.all().iter().any(|c| (c.asked, c.range) == (part.asked, part.range));
        if !noted && !changed.push(*part) {
            return false;
        }
        real(nr::mprotect, [part.range.start, part.range.len, protection, 0, 0, 0]);
    }
    true
}

/// The last change first: what a range had before the first one is what counts.
pub fn undo() {
    let changed = CHANGED.get();
    for part in changed.all().iter().rev() {
        real(nr::mprotect, [part.range.start, part.range.len, part.rights, 0, 0, 0]);
    }
    changed.count = 0;
}
