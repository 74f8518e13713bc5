//! Where instrumented modules keep their thread-local variables, relative to the thread control block.

use crate::cell::Global;
use crate::modules;
use crate::sys::context;

const MAX_BLOCKS: usize = 64;

#[derive(Clone, Copy)]
struct Block {
    /// From the thread control block.
    offset: isize,
    len: usize,
}

struct Tls {
    blocks: [Block; MAX_BLOCKS],
    count: usize,
    errno: isize,
}

static TLS: Global<Tls> = Global::new(Tls { blocks: [Block { offset: 0, len: 0 }; MAX_BLOCKS], count: 0, errno: 0 });

unsafe extern "C" {
    fn __errno_location() -> *mut i32;
}

/// Forgets what is known, before the modules are looked through.
pub fn forget() {
    let tls = TLS.get();
    tls.count = 0;
    // SAFETY: every thread has one.
    tls.errno = unsafe { __errno_location() } as isize - context::fs_base() as isize;
}

/// A loaded object has thread-local variables: of the calling thread they are at `address`.
pub fn add(address: usize, len: usize, start: usize, end: usize) {
    let tls = TLS.get();
    let offset = address as isize - context::fs_base() as isize;
    if address == 0 || len == 0 || tls.count == MAX_BLOCKS || !modules::any_between(start, end) {
        return;
    }
    tls.blocks[tls.count] = Block { offset, len };
    tls.count += 1;
}

/// Longer vectors are taken for none.
const MOST_MODULES: usize = 1 << 12;

/// The vector by which the loader finds the thread-local variables of the thread with this control block. Nobody else looks there.
///
/// The second word of a control block is its address; before it lies how many pairs of words there are.
pub fn vector(fs: usize) -> core::ops::Range<usize> {
    const PAIR: usize = 16;
    // SAFETY: the control block of a thread that is parked.
    let vector = unsafe { *((fs + 8) as *const usize) };
    let Some(start) = vector.checked_sub(PAIR) else { return 0..0 };
    // SAFETY: the loader puts it there.
    let len = unsafe { *(start as *const usize) };
    if len > MOST_MODULES { 0..0 } else { start..start + PAIR * (len + 2) }
}

/// The thread-local variables of the thread with this control block, and its errno.
pub fn for_each(fs: usize, mut each: impl FnMut(usize, usize)) {
    let tls = TLS.get();
    for block in &tls.blocks[..tls.count] {
        each((fs as isize + block.offset) as usize, block.len);
    }
    if tls.errno != 0 {
        each((fs as isize + tls.errno) as usize, 4);
    }
}
