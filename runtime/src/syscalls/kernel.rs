//! Real system calls on the program's behalf, and access to the memory that it passes.
//!
//! Pages that are cold in the snapshot are write-protected, so the kernel would answer EFAULT for a good buffer: whatever
//! it writes to is made writable first. Wild pointers must be answered with EFAULT, as the kernel does, and must not
//! crash the runtime: memory is looked at only after [`mapped`] has said that it is there.

use super::Args;
use super::names::nr;
use crate::snapshot::make_writable;
use crate::sys::raw::syscall6;

/// No single call transfers more (`MAX_RW_COUNT` of the kernel).
pub const MOST_BYTES: usize = 0x7fff_f000;
const PAGE: usize = 4096;
const MS_ASYNC: usize = 1;

/// Memory that a call writes to: which argument points to it, and how long it is.
#[derive(Clone, Copy)]
pub struct Output {
    pub argument: usize,
    pub len: Len,
}

#[derive(Clone, Copy)]
pub enum Len {
    Bytes(usize),
    /// As many bytes as this argument says.
    Argument(usize),
}

/// Makes the system call.
pub fn real(number: usize, args: Args) -> isize {
    let [a, b, c, d, e, f] = args;
    // SAFETY: the program makes this call and answers for its arguments; the policy lets through only calls that leave
    // the runtime's own memory and descriptors alone.
    unsafe { syscall6(number, a, b, c, d, e, f) }
}

/// Makes the system call after its outputs have been made writable.
pub fn pass(number: usize, args: Args, outputs: &[Output]) -> isize {
    for output in outputs {
        let len = match output.len {
            Len::Bytes(len) => len,
            Len::Argument(index) => args[index],
        };
        writable(args[output.argument], len);
    }
    real(number, args)
}

/// Prepares a buffer that the kernel will write to.
pub fn writable(address: usize, len: usize) {
    if address != 0 && len != 0 {
        make_writable(address, len.min(MOST_BYTES));
    }
}

/// Whether there is memory at every byte of the range. (Not whether it can be read: a range without access rights counts.)
pub fn mapped(address: usize, len: usize) -> bool {
    if len == 0 {
        return true;
    }
    let start = address & !(PAGE - 1);
    let Some(end) = address.checked_add(len) else { return false };
    // Asks for nothing to be written back, and fails if there is a hole in the range.
    real(nr::msync, [start, end - start, MS_ASYNC, 0, 0, 0]) == 0
}

/// Reads a value of the program, if there is memory.
pub fn load<T: Copy>(address: usize) -> Option<T> {
    if !mapped(address, size_of::<T>()) {
        return None;
    }
    // SAFETY: the memory is there; `T` is plain data that any bytes are valid for.
    Some(unsafe { (address as *const T).read_unaligned() })
}

/// Writes a value to the program's memory; false if there is none.
pub fn store<T: Copy>(address: usize, value: T) -> bool {
    if !mapped(address, size_of::<T>()) {
        return false;
    }
    writable(address, size_of::<T>());
    // SAFETY: the memory is there and the program passed it to be written to.
    unsafe { (address as *mut T).write_unaligned(value) };
    true
}

/// As [`store`], unless the address is null: an output that the program did not ask for.
pub fn store_if_asked<T: Copy>(address: usize, value: T) -> bool {
    address == 0 || store(address, value)
}

/// The program's memory as bytes that can be written, or nothing if it is not there.
pub fn bytes_mut(address: usize, len: usize) -> Option<&'static mut [u8]> {
    let len = len.min(MOST_BYTES);
    if len == 0 {
        return Some(&mut []);
    }
    if !mapped(address, len) {
        return None;
    }
    writable(address, len);
    // SAFETY: the memory is there, and the reference lives for one system call, during which nothing else runs.
    Some(unsafe { core::slice::from_raw_parts_mut(address as *mut u8, len) })
}

/// Most of a path that messages and comparisons look at.
const PATH_BYTES: usize = 512;

/// A path that the program passed, cut at a length that is enough for messages; None if the pointer is bad.
pub fn path(address: usize) -> Option<&'static [u8]> {
    let mut len = 0;
    while len < PATH_BYTES {
        let room = PAGE - (address.wrapping_add(len) & (PAGE - 1));
        if !mapped(address.wrapping_add(len), 1) {
            return None;
        }
        let part = room.min(PATH_BYTES - len);
        // SAFETY: the rest of a page that is there.
        let bytes = unsafe { core::slice::from_raw_parts((address + len) as *const u8, part) };
        if let Some(end) = bytes.iter().position(|&b| b == 0) {
            len += end;
            break;
        }
        len += part;
    }
    // SAFETY: these bytes have just been read.
    Some(unsafe { core::slice::from_raw_parts(address as *const u8, len) })
}

/// Whether two strings of bytes are the same. (The library's own comparison would be a function of libc's.)
pub fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// Whether a string of bytes begins with another.
pub fn begins(whole: &[u8], start: &[u8]) -> bool {
    whole.len() >= start.len() && same(&whole[..start.len()], start)
}

/// Shows bytes that are meant as text, for messages.
pub struct Text<'a>(pub &'a [u8]);

impl core::fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                f.write_str("\u{fffd}")?;
            }
        }
        Ok(())
    }
}
