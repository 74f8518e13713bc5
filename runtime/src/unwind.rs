//! `pthread_exit`: unwinds the thread's stack, so that destructors and cleanup handlers run, and then ends it.

use crate::exec;
use crate::threads;
use core::ffi::CStr;

/// The beginning of the C++ ABI's `_Unwind_Exception`, with room for the unwinder's private part.
#[repr(C, align(16))]
struct Exception {
    class: u64,
    cleanup: usize,
    private: [usize; 6],
}

const END_OF_STACK: i32 = 16;
const NO_REASON: i32 = 0;

type Stop = extern "C" fn(i32, i32, u64, usize, usize, usize) -> i32;
type ForcedUnwind = unsafe extern "C-unwind" fn(*mut Exception, Stop, usize) -> i32;

unsafe extern "C" {
    fn dlsym(handle: usize, name: *const core::ffi::c_char) -> *const ();
}

/// Called by the unwinder for each frame; `argument` is the thread's result.
extern "C" fn stop(_: i32, actions: i32, _: u64, _: usize, _: usize, argument: usize) -> i32 {
    if actions & END_OF_STACK != 0 {
        threads::finish(argument);
    }
    NO_REASON
}

fn unwinder() -> Option<ForcedUnwind> {
    const NAME: &CStr = c"_Unwind_ForcedUnwind";
    // SAFETY: looks up a function that is there if the program can unwind at all.
    let address = unsafe { dlsym(0, NAME.as_ptr()) };
    // SAFETY: that is its type.
    (!address.is_null()).then(|| unsafe { core::mem::transmute::<*const (), ForcedUnwind>(address) })
}

pub fn exit_thread(result: usize) -> ! {
    if let Some(unwind) = unwinder() {
        let exec = exec::get();
        let block = exec.heap.allocate(exec.current, size_of::<Exception>(), 16, 0) as *mut Exception;
        if !block.is_null() {
            // SAFETY: a fresh block of that size; the unwinder calls `stop` at the latest at the end of the stack.
            unsafe {
                block.write(Exception { class: 0, cleanup: 0, private: [0; 6] });
                unwind(block, stop, result);
            }
        }
    }
    threads::finish(result)
}

