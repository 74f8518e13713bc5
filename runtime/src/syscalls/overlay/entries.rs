//! What has become of names in this execution.

use super::super::kernel::same;
use super::super::world;
use super::files::{self, File};
use super::paths::{Name, split};
use super::{MOST_ENTRIES, overlay};
use crate::end::unsupported;

/// A name that does not stand for what it does on disk. All zero: not in use.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    hash: u64,
    path: usize,
    len: usize,
    /// 0: removed; else one more than the number of a file or directory.
    file: usize,
}

/// What a name stands for, if that is not for the disk to say.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Absent,
    File(usize),
    Directory(usize),
}

impl Entry {
    pub fn path(&self) -> &'static [u8] {
        world::bytes(self.path, self.len)
    }

    pub fn found(&self) -> Found {
        match self.file {
            0 => Found::Absent,
            file if files::get(file - 1).is_directory => Found::Directory(file - 1),
            file => Found::File(file - 1),
        }
    }
}

pub fn all() -> &'static [Entry] {
    let overlay = overlay();
    &overlay.entries[..overlay.entry_count]
}

pub fn is_empty() -> bool {
    overlay().entry_count == 0
}

pub fn find(name: &Name) -> Option<Found> {
    index(name).map(|i| overlay().entries[i].found())
}

fn index(name: &Name) -> Option<usize> {
    let hash = name.hash();
    all().iter().position(|e| e.hash == hash && same(e.path(), name.bytes()))
}

/// Lets a name stand for a file, or for nothing. Returns the number of the entry.
pub fn set(name: &Name, file: Option<usize>) -> usize {
    let file = file.map_or(0, |file| file + 1);
    if let Some(index) = index(name) {
        overlay().entries[index].file = file;
        return index;
    }
    let overlay = overlay();
    if overlay.entry_count == MOST_ENTRIES {
        unsupported(format_args!(
            "the program creates, removes or renames more than {MOST_ENTRIES} files after its first thread was created"
        ));
    }
    let len = name.bytes().len();
    let path = world::allocate(len);
    world::bytes(path, len).copy_from_slice(name.bytes());
    overlay.entries[overlay.entry_count] = Entry { hash: name.hash(), path, len, file };
    overlay.entry_count += 1;
    overlay.entry_count - 1
}

/// Whether anything is in a directory that is not on disk.
pub fn has_members(directory: &Name) -> bool {
    all().iter().any(|e| e.found() != Found::Absent && same(split(e.path()).0, directory.bytes()))
}

/// Whether any name in this directory has changed.
pub fn concerns(directory: &[u8]) -> bool {
    all().iter().any(|e| same(split(e.path()).0, directory))
}

/// How many names a file has.
pub fn links(file: &File) -> u64 {
    let is_it = |e: &&Entry| e.file != 0 && core::ptr::eq(files::get(e.file - 1), file);
    all().iter().filter(is_it).count() as u64
}
