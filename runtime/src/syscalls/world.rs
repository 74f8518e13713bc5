//! Memory for what the runtime keeps of files and channels in one execution. It is put back with the program's memory:
//! zero in the snapshot, unless the program's start has used it.
//!
//! [`World`] fills its beginning; behind it lie buffers in sizes of powers of two, given out from a free list for each size.

use super::channels::Channels;
use super::overlay::Overlay;
use crate::end::unsupported;
use crate::snapshot;

const BASE: usize = 0x4900_0000_0000;
const LIMIT: usize = 1 << 30;
const STEP: usize = 256 << 10;
const CLASSES: usize = 31;

/// All zero is a world in which nothing has happened.
#[repr(C)]
pub struct World {
    /// Bytes in use, from the beginning.
    used: usize,
    /// The first free buffer of each size; each points to the next.
    free: [usize; CLASSES],
    pub overlay: Overlay,
    pub channels: Channels,
}

const WORLD_BYTES: usize = (size_of::<World>() + STEP - 1) & !(STEP - 1);

/// The world; made usable when it is first asked for.
pub fn world() -> &'static mut World {
    use crate::cell::Global;
    static READY: Global<bool> = Global::new(false);
    let ready = READY.get();
    if !*ready {
        crate::init::ensure();
        *ready = snapshot::commit(BASE, WORLD_BYTES);
        if !*ready {
            out_of_memory();
        }
    }
    // SAFETY: committed, zeroed or as an execution left it; zero is valid for every field. One kernel thread; nobody keeps
    // the reference across a switch.
    unsafe { &mut *(BASE as *mut World) }
}

fn out_of_memory() -> ! {
    unsupported(format_args!(
        "the program keeps more than {} MiB in pipes, sockets and their like, which is all that symdpor has room for",
        LIMIT >> 20
    ))
}

fn class(len: usize) -> usize {
    len.max(64).next_power_of_two().trailing_zeros() as usize
}

/// A buffer of at least so many bytes; its contents are undefined.
pub fn allocate(len: usize) -> usize {
    let world = world();
    let class = class(len);
    if class >= CLASSES {
        out_of_memory();
    }
    let free = world.free[class];
    if free != 0 {
        // SAFETY: a buffer on the free list holds the address of the next.
        world.free[class] = unsafe { *(free as *const usize) };
        return free;
    }
    let size = 1 << class;
    let start = world.used.max(WORLD_BYTES);
    let end = start + size;
    let committed = |bytes: usize| (bytes + STEP - 1) & !(STEP - 1);
    for part in (committed(start)..committed(end)).step_by(STEP) {
        if part >= LIMIT || !snapshot::commit(BASE + part, STEP) {
            out_of_memory();
        }
    }
    world.used = end;
    BASE + start
}

/// Gives a buffer of this length back.
pub fn release(address: usize, len: usize) {
    let class = class(len);
    // SAFETY: the buffer is the caller's, and at least 64 bytes long.
    unsafe { *(address as *mut usize) = world().free[class] };
    world().free[class] = address;
}

/// A buffer as bytes.
pub fn bytes(address: usize, len: usize) -> &'static mut [u8] {
    // SAFETY: callers name parts of buffers that they have allocated.
    unsafe { core::slice::from_raw_parts_mut(address as *mut u8, len) }
}
