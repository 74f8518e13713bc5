//! `flockfile` and its like: a recursive lock for each stream, of the runtime's own. libc's is never held while another thread
//! runs, unless a stream of the program's own making (`fopencookie`) waits in its callbacks.
//!
//! Not covered: other calls on the stream do not wait for the lock, so that what others print may come in between.

use crate::end;
use crate::exec;
use crate::init;
use crate::mutex;

pub const MOST: usize = 256;

/// A stream and its lock, which is a `pthread_mutex_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Stream {
    file: usize,
    lock: [u64; 5],
}

/// Of a `pthread_mutex_t`: the word that begins with its kind, and the recursive one.
const KIND: usize = 2;
const RECURSIVE: u64 = 1;

/// The lock of a stream. Its place depends on the stream's own within a page, which is the same in every execution and every
/// worker, and not on who comes first.
fn lock_of(file: usize) -> usize {
    init::ensure();
    let stream = &mut exec::get().streams[file >> 4 & (MOST - 1)];
    if stream.file != 0 && stream.file != file {
        end::unsupported(format_args!("the program locks too many streams with flockfile()"));
    }
    stream.file = file;
    stream.lock[KIND] = RECURSIVE;
    stream.lock.as_ptr() as usize
}

#[unsafe(no_mangle)]
extern "C" fn flockfile(file: usize) {
    mutex::lock(lock_of(file));
}

#[unsafe(no_mangle)]
extern "C" fn ftrylockfile(file: usize) -> i32 {
    mutex::try_lock(lock_of(file), 0)
}

#[unsafe(no_mangle)]
extern "C" fn funlockfile(file: usize) {
    mutex::unlock(lock_of(file));
}
