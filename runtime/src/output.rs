//! Standard output and error of the program: kept in the channel for each execution, shown only when asked for.

use crate::cell::Global;
use crate::channel::{self, Writer};
use crate::sys::raw::{nr, syscall3};
use symdpor_abi::channel::{OUTPUT_BYTES, OUTPUT_OFFSET, options};

static USED: Global<usize> = Global::new(0);
static CUT: Global<bool> = Global::new(false);

pub fn reset() {
    if !crate::snapshot::is_taken() {
        return;
    }
    (*USED.get(), *CUT.get()) = (0, false);
}

/// Tells the controller how much there is.
pub fn tell() {
    let header = channel::header();
    (header.output_len, header.output_cut) = (*USED.get() as u32, *CUT.get() as u32);
}

/// Writes to descriptor 1 or 2. No transition may begin here: the caller may be libc, holding a lock of its own. The real descriptor's errors are passed on when output is shown, so that a closed or full
/// one is seen by the program as always.
pub fn write(fd: i32, address: usize, len: usize) -> isize {
    if len > 0 {
        keep(fd, address, len);
    }
    if channel::says(options::SHOW_OUTPUT) {
        // SAFETY: the program's buffer, for reading.
        return unsafe { syscall3(nr::WRITE, fd as usize, address, len) };
    }
    len as isize
}

fn keep(fd: i32, address: usize, len: usize) {
    let mut writer = Writer::resume(OUTPUT_OFFSET, OUTPUT_BYTES, *USED.get());
    let room = OUTPUT_BYTES.saturating_sub(*USED.get() + 16);
    let part = len.min(room);
    if part < len {
        *CUT.get() = true;
    }
    if part == 0 {
        return;
    }
    let head = [fd as u32, part as u32];
    if writer.record(&head) && writer.bytes(address, part) {
        *USED.get() = writer.used();
    }
}
