//! `pthread_exit`: unwinds the thread's stack, so that destructors and cleanup handlers run, and then ends it.
//!
//! Handlers of `pthread_cleanup_push` are either destructors that the unwinder finds (C++, and C with exceptions), or a
//! `setjmp` buffer each, in a list per thread: when unwinding comes to the frame of the newest one it is jumped to. It runs its
//! handler, and unwinding goes on from there.

use crate::cell::Global;
use crate::dispatch;
use crate::end::Details;
use crate::exec;
use crate::pool;
use crate::threads;
use crate::uses;
use core::arch::{asm, naked_asm};
use core::ffi::CStr;
use symdpor_abi::channel::ErrorKind;

/// The beginning of the C++ ABI's `_Unwind_Exception`, with room for the unwinder's private part.
#[repr(C, align(16))]
struct Exception {
    class: u64,
    cleanup: usize,
    private: [usize; 6],
}

/// libc's `__pthread_unwind_buf_t`.
#[repr(C)]
struct Buffer {
    /// As `setjmp` leaves it: the sixth is the stack pointer.
    registers: [usize; 8],
    mask_was_saved: i32,
    /// The buffer that was pushed before.
    before: usize,
    private: [usize; 3],
}

const END_OF_STACK: i32 = 16;
const NO_REASON: i32 = 0;

#[allow(clippy::mut_from_ref)]
fn buffer(address: usize) -> &'static mut Buffer {
    // SAFETY: the macro in libc's header passes one, on the stack of the thread.
    unsafe { &mut *(address as *mut Buffer) }
}

pub fn push_handler(address: usize) {
    buffer(address).before = core::mem::replace(&mut exec::me().cleanup, address);
}

pub fn pop_handler(address: usize) {
    exec::me().cleanup = buffer(address).before;
}

/// Where the stack was when a handler was pushed. libc hides it with a secret of the thread control block's.
fn stack_pointer(buffer: &Buffer) -> usize {
    let guard: usize;
    // SAFETY: reads a word of the thread control block, where libc keeps the secret.
    unsafe { asm!("mov {}, fs:[0x30]", out(reg) guard, options(nostack, readonly)) };
    buffer.registers[6].rotate_right(17) ^ guard
}

fn libc<T: Copy>(name: &CStr) -> Option<T> {
    let function = function(name);
    // SAFETY: callers name the function's type.
    (function != 0).then(|| unsafe { core::mem::transmute_copy(&function) })
}

/// Runs the newest handler, which calls [`unwind_next`].
fn jump(address: usize) -> ! {
    exec::get().outside = 1;
    if let Some(longjmp) = libc::<extern "C" fn(usize, i32) -> !>(c"longjmp") {
        longjmp(address, 1);
    }
    crate::end::quit(74)
}

/// Called by the unwinder for each frame; `argument` is the thread's result.
extern "C" fn stop(_: i32, actions: i32, _: u64, _: usize, context: usize, argument: usize) -> i32 {
    let newest = exec::me().cleanup;
    if newest != 0 {
        let frame = libc::<extern "C" fn(usize) -> usize>(c"_Unwind_GetCFA").map_or(0, |f| f(context));
        if actions & END_OF_STACK != 0 || frame >= stack_pointer(buffer(newest)) {
            exec::me().result = argument;
            jump(newest);
        }
    }
    if actions & END_OF_STACK != 0 {
        threads::finish(argument);
    }
    NO_REASON
}

/// The program has caught what unwinds the thread, with `catch (...)`, and does not pass it on.
extern "C" fn not_rethrown(_: i32, _: usize) -> ! {
    let text = format_args!("the end of a thread (pthread_exit or cancellation) was caught and not rethrown");
    crate::end::error(ErrorKind::Crash, &Details::at(0), text)
}

/// The library that unwinds, if the program was not linked with it: libc loads it when it is needed, too.
static LIBRARY: Global<usize> = Global::new(0);

/// Before the first execution: a program whose threads end in the midst of functions gets a library that unwinds.
pub fn load_library() {
    const NOW_AND_FOR_ALL: i32 = 0x102;
    if uses::unwinds() && *LIBRARY.get() == 0 && pool::libc_function(UNWIND).is_null() {
        let _pass = dispatch::let_through();
        // SAFETY: a terminated name. Without such a library handlers run all the same, but destructors do not.
        *LIBRARY.get() = unsafe { dlopen(c"libgcc_s.so.1".as_ptr(), NOW_AND_FOR_ALL) };
        crate::names::find_loaded();
        // It initialises itself when it is first used: not in the midst of an execution.
        extern "C" fn stop_at_once(_: usize, _: usize) -> i32 {
            END_OF_STACK
        }
        type Trace = extern "C" fn(extern "C" fn(usize, usize) -> i32, usize) -> i32;
        if let Some(trace) = libc::<Trace>(c"_Unwind_Backtrace") {
            trace(stop_at_once, 0);
        }
    }
}

/// Whether an address is in the library that was loaded for the program, which has initialised itself.
pub fn is_in_library(address: usize) -> bool {
    *LIBRARY.get() != 0 && crate::names::are_together(function(UNWIND), address)
}

const UNWIND: &CStr = c"_Unwind_ForcedUnwind";

unsafe extern "C" {
    fn dlopen(name: *const core::ffi::c_char, flags: i32) -> usize;
}

/// A function of libc's or of the library that unwinds.
pub fn function(name: &CStr) -> usize {
    match pool::libc_function(name) as usize {
        0 => pool::function_of(*LIBRARY.get(), name) as usize,
        found => found,
    }
}

/// What [`exit_thread`] calls: with the unwinder its address and a new exception, otherwise not at all.
#[repr(C)]
struct Unwinding {
    function: usize,
    exception: usize,
}

extern "C" fn prepare(result: usize) -> Unwinding {
    crate::cancel::is_ending();
    let exec = exec::get();
    let function = function(UNWIND);
    let exception = exec.heap.allocate(exec.current, size_of::<Exception>(), 16, 0) as *mut Exception;
    if function == 0 || exception.is_null() {
        let newest = exec::me().cleanup;
        if newest != 0 {
            exec::me().result = result;
            jump(newest);
        }
        threads::finish(result);
    }
    // SAFETY: a fresh block of that size.
    unsafe { exception.write(Exception { class: 0, cleanup: not_rethrown as *const () as usize, private: [0; 6] }) };
    Unwinding { function, exception: exception as usize }
}

/// A handler has run: what the thread was going to end with.
extern "C" fn handler_has_run(address: usize) -> usize {
    pop_handler(address);
    exec::me().result
}

/// Goes on with ending the thread.
#[unsafe(naked)]
pub unsafe extern "C" fn unwind_next(_buffer: usize) -> ! {
    naked_asm!(
        "push rdi",
        "call {has_run}",
        "pop rcx",
        "mov rdi, rax",
        "jmp {exit}",
        has_run = sym handler_has_run,
        exit = sym exit_thread,
    )
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
