//! The program's buffers of one call, filled or emptied from front to back.

use super::super::errno::{EFAULT, EINVAL};
use super::super::kernel::{self, bytes_mut, load, mapped};

/// One buffer, or an array of them.
#[derive(Clone, Copy)]
pub struct Buffers {
    array: usize,
    count: usize,
    one: (usize, usize),
    /// Which buffer is next, and where in it.
    at: (usize, usize),
    total: usize,
}

const MOST_BUFFERS: usize = 1024;

impl Buffers {
    pub fn one(address: usize, len: usize) -> Buffers {
        let len = len.min(kernel::MOST_BYTES);
        Buffers { array: 0, count: 1, one: (address, len), at: (0, 0), total: len }
    }

    pub fn many(array: usize, count: usize) -> Result<Buffers, isize> {
        if count > MOST_BUFFERS {
            return Err(EINVAL);
        }
        let mut buffers = Buffers { array, count, one: (0, 0), at: (0, 0), total: 0 };
        for i in 0..count {
            buffers.total += buffers.buffer(i).ok_or(EFAULT)?.1;
        }
        Ok(buffers)
    }

    /// How many bytes there are in all.
    pub fn total(&self) -> usize {
        self.total
    }

    fn buffer(&self, index: usize) -> Option<(usize, usize)> {
        if self.array == 0 { Some(self.one) } else { load(self.array + 16 * index) }
    }

    /// The next part, of at most `len` bytes.
    fn next(&mut self, len: usize) -> Option<(usize, usize)> {
        while self.at.0 < self.count {
            let (address, size) = self.buffer(self.at.0)?;
            let part = len.min(size - self.at.1.min(size));
            if part > 0 {
                let start = address + self.at.1;
                self.at.1 += part;
                return Some((start, part));
            }
            self.at = (self.at.0 + 1, 0);
        }
        None
    }

    /// Fills the next bytes.
    pub fn put(&mut self, mut bytes: &[u8]) -> Result<(), isize> {
        while !bytes.is_empty() {
            let (address, len) = self.next(bytes.len()).ok_or(EFAULT)?;
            bytes_mut(address, len).ok_or(EFAULT)?.copy_from_slice(&bytes[..len]);
            bytes = &bytes[len..];
        }
        Ok(())
    }

    /// Takes the next bytes.
    pub fn get(&mut self, bytes: &mut [u8]) -> Result<(), isize> {
        let mut done = 0;
        while done < bytes.len() {
            let (address, len) = self.next(bytes.len() - done).ok_or(EFAULT)?;
            if !mapped(address, len) {
                return Err(EFAULT);
            }
            // SAFETY: the memory is there; the program passed it to be read.
            bytes[done..done + len].copy_from_slice(unsafe { core::slice::from_raw_parts(address as *const u8, len) });
            done += len;
        }
        Ok(())
    }
}
