//! Files that are open when the snapshot is taken are known by their order, and not by what the kernel calls them: the start
//! may have made them (`tmpfile`), and then they have other numbers in each worker.

use super::super::descriptors::{LIMIT, Stat, is_open, stat_of};
use crate::cell::Global;

/// More than these are known by their numbers.
const MOST: usize = 256;
const S_IFMT: u32 = 0o170_000;
const S_IFREG: u32 = 0o100_000;

struct Origins {
    /// Device and inode, in the order of the first descriptor of each.
    files: [(u64, u64); MOST],
    count: usize,
}

static ORIGINS: Global<Origins> = Global::new(Origins { files: [(0, 0); MOST], count: 0 });

pub fn snapshot_taken() {
    let origins = ORIGINS.get();
    origins.count = 0;
    for fd in (0..LIMIT).filter(|&fd| is_open(fd)) {
        let Ok(stat) = stat_of(fd) else { continue };
        if stat.mode & S_IFMT == S_IFREG && place(&stat).is_none() && origins.count < MOST {
            origins.files[origins.count] = (stat.device, stat.inode);
            origins.count += 1;
        }
    }
}

/// Which of them a file is.
pub fn place(stat: &Stat) -> Option<u64> {
    let origins = ORIGINS.get();
    let known = &origins.files[..origins.count];
    known.iter().position(|f| *f == (stat.device, stat.inode)).map(|i| i as u64)
}
