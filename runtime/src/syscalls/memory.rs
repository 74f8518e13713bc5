//! Mappings. They are placed in a window of the program's own, at addresses that are the same in every run.
//!
//! The window is filled from below: what was mapped before the snapshot lies under the mark that is set then, what an
//! execution maps lies above it and is unmapped as one range. For mappings from before the snapshot see
//! [`super::old_mappings`].
//!
//! Not covered: what one mapping of a file shows of writes through another; addresses of the program's own choice.

use super::descriptors::{Kind, is_writable, kind, number, path_of};
use super::errno::{EINVAL, ENOMEM};
use super::kernel::real;
use super::names::{name, nr};
use super::refusal::{Reason, changes_file, changes_old_mapping, refuse};
use super::{Args, old_mappings, overlay, state};
use crate::cell::Global;
use crate::end::unsupported;
use crate::snapshot::is_taken;

const PAGE: usize = 4096;
const WINDOW: core::ops::Range<usize> = 0x3000_0000_0000..0x3800_0000_0000;

const PROT_WRITE: usize = 2;
const MAP_SHARED: usize = 0x1;
const MAP_TYPE: usize = 0xf;
const MAP_PRIVATE: usize = 0x2;
const MAP_FIXED: usize = 0x10;
const MAP_ANONYMOUS: usize = 0x20;
const MAP_32BIT: usize = 0x40;
const MAP_GROWSDOWN: usize = 0x100;
const MAP_HUGETLB: usize = 0x4_0000;
const MAP_FIXED_NOREPLACE: usize = 0x10_0000;

pub struct State {
    /// The window is free from here on.
    next: usize,
}

impl State {
    pub const fn new() -> State {
        State { next: WINDOW.start }
    }
}

/// What lies above was mapped by the running execution.
static MARK: Global<usize> = Global::new(WINDOW.start);

pub fn snapshot_taken() {
    *MARK.get() = state().memory.next;
}

pub fn undo() {
    let (mark, next) = (*MARK.get(), state().memory.next);
    if next > mark {
        real(nr::munmap, [mark, next - mark, 0, 0, 0, 0]);
    }
    old_mappings::undo();
}

fn round_up(len: usize) -> Option<usize> {
    Some(len.checked_add(PAGE - 1)? & !(PAGE - 1))
}

/// Addresses for a mapping, and a page behind it that stays free.
fn reserve(len: usize) -> Option<usize> {
    let memory = &mut state().memory;
    let address = memory.next;
    let end = address.checked_add(round_up(len)?)?.checked_add(PAGE)?;
    if end > WINDOW.end {
        return None;
    }
    memory.next = end;
    Some(address)
}

/// Whether the running execution mapped this range, or may use it.
fn is_ours(address: usize, len: usize) -> bool {
    let end = address.checked_add(len);
    address >= *MARK.get() && end.is_some_and(|end| end <= state().memory.next)
}

pub fn mmap(_: usize, args: Args) -> isize {
    let [address, len, protection, flags, fd, offset] = args;
    if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0 {
        return map_fixed(args);
    }
    if flags & MAP_32BIT != 0 {
        return if is_taken() { refuse(nr::mmap, args, Reason::Yet) } else { real(nr::mmap, args) };
    }
    check_sharing(args);
    // A bad length is the kernel's to refuse; so is a descriptor that is not open.
    let Some(address) = (if len == 0 { Some(address) } else { reserve(len) }) else { return ENOMEM };
    let kept = flags & !(MAP_GROWSDOWN | MAP_HUGETLB) | MAP_FIXED_NOREPLACE;
    real(nr::mmap, [address, len, protection, private(kept), fd, offset])
}

/// Shared anonymous memory has no other process to be shared with.
fn private(flags: usize) -> usize {
    if flags & MAP_ANONYMOUS != 0 { flags & !MAP_TYPE | MAP_PRIVATE } else { flags }
}

fn map_fixed(args: Args) -> isize {
    let [address, len, protection, flags, fd, offset] = args;
    if overlaps_runtime(address, len) {
        return ENOMEM;
    }
    if is_taken() {
        check_sharing(args);
        if !is_ours(address, len) {
            refuse_fixed(address);
        }
    }
    real(nr::mmap, [address, len, protection, private(flags), fd, offset])
}

fn refuse_fixed(address: usize) -> ! {
    unsupported(format_args!(
        "the program maps memory at the fixed address {address:#x} after its first thread was created, which symdpor \
         cannot undo yet"
    ))
}

/// The runtime's own memory is nobody else's.
fn overlaps_runtime(address: usize, len: usize) -> bool {
    let window = crate::sys::pages::WINDOW;
    address < window.end && address.saturating_add(len) > window.start
}

/// After the snapshot a file that is shared for writing is one in memory.
fn check_sharing(args: Args) {
    let [_, _, protection, flags, fd, _] = args;
    if !is_taken() || flags & MAP_ANONYMOUS != 0 {
        return;
    }
    let fd = number(fd);
    let shared = flags & MAP_SHARED != 0 && protection & PROT_WRITE != 0;
    match kind(fd) {
        // The copy in memory: it goes when the execution ends.
        Ok(Kind::Regular) if shared && is_writable(fd) => {
            overlay::about_to_share(fd).unwrap_or_else(|_| changes_file("mmap", path_of(fd, &mut [0; 256])))
        }
        Ok(Kind::Regular) => overlay::end_of(fd),
        Ok(_) if shared => changes_file("mmap", path_of(fd, &mut [0; 256])),
        _ => {}
    }
}

pub fn munmap(_: usize, args: Args) -> isize {
    let [address, len, ..] = args;
    if address % PAGE != 0 || len == 0 || overlaps_runtime(address, len) {
        return EINVAL;
    }
    if is_taken() && !is_ours(address, len) {
        let Some(len) = round_up(len) else { return EINVAL };
        if !old_mappings::take_away(address, len) {
            changes_old_mapping("munmap", address);
        }
        return 0;
    }
    real(nr::munmap, args)
}

/// `mprotect` and `pkey_mprotect`.
pub fn mprotect(call: usize, args: Args) -> isize {
    let [address, len, protection, ..] = args;
    if len == 0 || address % PAGE != 0 {
        return real(call, args);
    }
    if overlaps_runtime(address, len) {
        return ENOMEM;
    }
    if !is_taken() || is_ours(address, len) {
        return real(call, args);
    }
    let Some(len) = round_up(len) else { return ENOMEM };
    if !old_mappings::protect(address, len, protection) {
        changes_old_mapping(name(call), address);
    }
    0
}

/// A mapping that grows is moved to a fresh place, or must fit where it is.
pub fn mremap(call: usize, args: Args) -> isize {
    const MREMAP_MAYMOVE: usize = 1;
    const MREMAP_FIXED: usize = 2;
    let [address, old, new, flags, target, _] = args;
    if overlaps_runtime(address, old) || (flags & MREMAP_FIXED != 0 && overlaps_runtime(target, new)) {
        return EINVAL;
    }
    if is_taken() && !is_ours(address, old) {
        changes_old_mapping(name(call), address);
    }
    if flags & MREMAP_FIXED != 0 {
        if is_taken() && !is_ours(target, new) {
            refuse_fixed(target);
        }
        return real(nr::mremap, args);
    }
    if flags & MREMAP_MAYMOVE == 0 || new <= old || new == 0 {
        return real(nr::mremap, args);
    }
    match reserve(new) {
        Some(target) => real(nr::mremap, [address, old, new, flags | MREMAP_FIXED, target, 0]),
        None => ENOMEM,
    }
}

/// Advice that throws contents away is taken for the execution's own mappings only; other advice changes nothing.
pub fn madvise(call: usize, args: Args) -> isize {
    const MADV_DONTNEED: usize = 4;
    let [address, len, advice, ..] = args;
    if overlaps_runtime(address, len) {
        return ENOMEM;
    }
    if !is_taken() || is_ours(address, len) {
        return real(nr::madvise, args);
    }
    if advice == MADV_DONTNEED {
        changes_old_mapping(name(call), address);
    }
    0
}

/// The break of the program stays where it is once the snapshot is taken.
pub fn brk(_: usize, args: Args) -> isize {
    let wanted = if is_taken() { 0 } else { args[0] };
    real(nr::brk, [wanted, 0, 0, 0, 0, 0])
}
