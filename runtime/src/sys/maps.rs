//! The process's mappings, read from /proc without libc.

use super::pages;
use super::raw::{nr, syscall3};
use crate::cell::Global;

#[derive(Clone, Copy)]
pub struct Mapping {
    pub start: usize,
    pub end: usize,
    pub readable: bool,
    pub writable: bool,
    pub executable: bool,
    pub private: bool,
    /// No file behind it: pages that were never touched are zero.
    pub anonymous: bool,
    pub is_stack: bool,
}

const BUFFER: usize = 4 << 20;
static TEXT: Global<usize> = Global::new(0);

/// Reads a whole file under /proc into `buffer`; the number of bytes, or none if it cannot be opened.
pub fn read_file(path: &core::ffi::CStr, buffer: &mut [u8]) -> Option<usize> {
    // SAFETY: the path is terminated and the buffer is as long as stated.
    unsafe {
        let fd = syscall3(nr::OPEN, path.as_ptr() as usize, 0o2000000, 0);
        if fd < 0 {
            return None;
        }
        let mut len = 0;
        while len < buffer.len() {
            let got = syscall3(nr::READ, fd as usize, buffer.as_mut_ptr() as usize + len, buffer.len() - len);
            if got <= 0 {
                break;
            }
            len += got as usize;
        }
        syscall3(nr::CLOSE, fd as usize, 0, 0);
        Some(len)
    }
}

/// Calls `each` for every mapping, lowest address first. False if they cannot be read.
pub fn for_each(mut each: impl FnMut(Mapping)) -> bool {
    if *TEXT.get() == 0 {
        *TEXT.get() = pages::map(BUFFER) as usize;
    }
    if *TEXT.get() == 0 {
        return false;
    }
    // SAFETY: mapped above, used by nothing else.
    let text = unsafe { core::slice::from_raw_parts_mut(*TEXT.get() as *mut u8, BUFFER) };
    let Some(len) = read_file(c"/proc/self/maps", text) else { return false };
    if len == BUFFER {
        return false;
    }
    text[..len].split(|&b| b == b'\n').filter_map(parse).for_each(&mut each);
    true
}

/// `start-end perms offset device inode path`
fn parse(line: &[u8]) -> Option<Mapping> {
    let mut fields = line.split(|&b| b == b' ').filter(|f| !f.is_empty());
    let range = fields.next()?;
    let dash = range.iter().position(|&b| b == b'-')?;
    let permissions = fields.next()?;
    let inode = fields.nth(2)?;
    let path = fields.next().unwrap_or(b"");
    Some(Mapping {
        start: hex(&range[..dash])?,
        end: hex(&range[dash + 1..])?,
        readable: permissions.first() == Some(&b'r'),
        writable: permissions.get(1) == Some(&b'w'),
        executable: permissions.get(2) == Some(&b'x'),
        private: permissions.get(3) == Some(&b'p'),
        anonymous: inode == b"0",
        is_stack: path == b"[stack]",
    })
}

fn hex(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0usize, |n, &d| Some(n << 4 | (d as char).to_digit(16)? as usize))
}
