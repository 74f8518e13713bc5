//! `pthread_exit`: unwinds the thread's stack, so that destructors and cleanup handlers run, and then ends it.

use crate::end;
use crate::exec;
use crate::pool;
use crate::threads;
use core::arch::naked_asm;
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

/// Called by the unwinder for each frame; `argument` is the thread's result.
extern "C" fn stop(_: i32, actions: i32, _: u64, _: usize, _: usize, argument: usize) -> i32 {
    if actions & END_OF_STACK != 0 {
        threads::finish(argument);
    }
    NO_REASON
}

fn unwinder() -> usize {
    const NAME: &CStr = c"_Unwind_ForcedUnwind";
    // Found in a library that was loaded before: it is there if the program can unwind at all.
    pool::libc_function(NAME) as usize
}

/// What [`exit_thread`] calls: with the unwinder its address and a new exception, otherwise not at all.
#[repr(C)]
struct Unwinding {
    function: usize,
    exception: usize,
}

extern "C" fn prepare(result: usize) -> Unwinding {
    let exec = exec::get();
    if exec::me().cleanup_handlers > 0 {
        end::unsupported(format_args!("pthread_exit() with handlers of pthread_cleanup_push() is not supported yet"));
    }
    let function = unwinder();
    let exception = exec.heap.allocate(exec.current, size_of::<Exception>(), 16, 0) as *mut Exception;
    if function == 0 || exception.is_null() {
        threads::finish(result);
    }
    // SAFETY: a fresh block of that size.
    unsafe { exception.write(Exception { class: 0, cleanup: 0, private: [0; 6] }) };
    Unwinding { function, exception: exception as usize }
}

/// Ends the running thread with a result. A tail call into the unwinder: no frame of Rust's may lie on the stack that is
/// unwound. At the end of the stack the unwinder calls [`stop`], which does not return.
#[unsafe(naked)]
pub unsafe extern "C" fn exit_thread(_result: usize) -> ! {
    naked_asm!(
        "push rdi",
        "call {prepare}",
        "pop rcx",
        "mov rdi, rdx",
        "lea rsi, [rip + {stop}]",
        "mov rdx, rcx",
        "jmp rax",
        prepare = sym prepare,
        stop = sym stop,
    )
}
