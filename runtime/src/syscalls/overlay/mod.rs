//! Files that an execution writes: they exist in memory only, and only until it ends. The disk is never changed.
//!
//! A file that is created, truncated or written to after the snapshot lives in a memory file of the kernel's (`memfd`): new
//! and empty, or a copy of the one on disk. The program's descriptors are real ones, of that memory file, so that offsets,
//! appending, mapping and all else are the kernel's. [`entries`] says what has become of names: created, removed,
//! renamed. At the end of the execution the memory files are closed, which is all there is to undo.
//!
//! Limits: [`MOST_FILES`] files, copies of at most [`MOST_COPIED`] bytes; other processes see nothing of it; times of such
//! files stand still; directories on disk can be neither renamed nor removed.

mod ask;
mod changes;
mod contents;
mod entries;
mod files;
mod list;
mod open;
pub mod origin;
mod paths;

pub use ask::{access, fstat, readlink, stat};
pub use changes::{
    chmod, fchmod, ftruncate, link, memfd_create, mkdir, owner, rename, rmdir, symlink, times, truncate, unlink,
};
pub use contents::{
    about_to_close, about_to_seek, about_to_share, copy, end_of, is_closed, move_in, read, read_at, write, write_at,
};
pub use list::getdents;
pub use open::open;

/// `umask`.
pub fn umask(call: usize, args: super::Args) -> isize {
    if !crate::snapshot::is_taken() {
        return super::kernel::real(call, args);
    }
    files::set_umask(args[0] as u32) as isize
}

use entries::Entry;
use files::File;
use symdpor_abi::object::ObjectId;

pub const MOST_FILES: usize = 256;
const MOST_ENTRIES: usize = 512;
const MOST_RANGES: usize = 256;
pub const MOST_COPIED: u64 = 256 << 20;

/// All zero: nothing has been written.
#[repr(C)]
pub struct Overlay {
    files: [File; MOST_FILES],
    file_count: usize,
    entries: [Entry; MOST_ENTRIES],
    entry_count: usize,
    /// Hashes of names that may have been created or removed, in the order of their use.
    names: [u64; MOST_ENTRIES],
    name_count: usize,
    ranges: [contents::Range; MOST_RANGES],
    range_count: usize,
    /// Numbers of open files, by descriptor; duplicates share one. 0: none was given.
    opened: [u16; super::descriptors::LIMIT],
    last_opened: u16,
    /// Files of the system's directories, by descriptor: nobody writes to them, and libc reads them with locks held.
    quiet: [bool; super::descriptors::LIMIT],
    /// How far directories have been listed beyond what is on disk, by descriptor.
    listed: [u16; super::descriptors::LIMIT],
}

fn overlay() -> &'static mut Overlay {
    &mut super::world::world().overlay
}

/// Mixes a word into a hash.
fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// What all names together stand for: that some were created or removed, by eight groups of names.
const NAMES: ObjectId = ObjectId::hashed(1);
/// That some name was given to something else.
const RENAMES: ObjectId = ObjectId::hashed(2);
const WHOLE: u8 = 0xff;

/// A descriptor has been opened: it has an offset of its own.
pub fn opened(fd: usize) {
    let overlay = overlay();
    if let (Some(number), Some(listed)) = (overlay.opened.get_mut(fd), overlay.listed.get_mut(fd)) {
        overlay.last_opened += 1;
        *number = overlay.last_opened;
        *listed = 0;
        overlay.quiet[fd] = false;
    }
}

/// Nothing that is done to this descriptor is an operation.
fn silence(fd: usize) {
    if let Some(quiet) = overlay().quiet.get_mut(fd) {
        *quiet = true;
    }
}

fn is_quiet(fd: usize) -> bool {
    overlay().quiet.get(fd).is_some_and(|quiet| *quiet)
}

/// A descriptor has been duplicated: the offset is shared.
pub fn duplicated(from: usize, to: usize) {
    let overlay = overlay();
    if let Some(&number) = overlay.opened.get(from)
        && let Some(slot) = overlay.opened.get_mut(to)
    {
        *slot = if number == 0 { MOST_NUMBERS - from as u16 } else { number };
        overlay.quiet[to] = overlay.quiet[from];
    }
}

/// Descriptors that were open before numbers were given have numbers from here downwards.
const MOST_NUMBERS: u16 = u16::MAX;

/// The number of the open file that a descriptor stands for.
fn number_of(fd: usize) -> u64 {
    match overlay().opened.get(fd) {
        Some(0) | None => (MOST_NUMBERS as u64).wrapping_sub(fd as u64),
        Some(&number) => number as u64,
    }
}

/// The offset of an open file, as an object.
fn offset_object(fd: usize) -> (ObjectId, u8) {
    (ObjectId::hashed(mix(3, number_of(fd))), WHOLE)
}
