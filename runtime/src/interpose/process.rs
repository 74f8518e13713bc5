//! The ways a process ends: exit, abort, failed assertions.

use crate::destructors;
use crate::end::{self, Details};
use crate::init;
use crate::pool;
use core::ffi::{CStr, c_char};
use symdpor_abi::channel::ErrorKind;

/// Runs the calling thread's own destructors, then libc's `exit`, which ends in the `exit_group` system call.
#[unsafe(no_mangle)]
pub extern "C" fn exit(status: i32) -> ! {
    init::ensure();
    destructors::run();
    let real = pool::libc_function(c"exit");
    if real.is_null() {
        end::exit_process(status);
    }
    // SAFETY: that is its type.
    let real: extern "C" fn(i32) -> ! = unsafe { core::mem::transmute(real) };
    real(status)
}

#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: i32) -> ! {
    init::ensure();
    end::exit_process(status)
}

#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: i32) -> ! {
    init::ensure();
    end::exit_process(status)
}

#[unsafe(no_mangle)]
pub extern "C" fn abort() -> ! {
    init::ensure();
    end::raised(crate::sys::signals::SIGABRT)
}

fn text(pointer: *const c_char) -> &'static str {
    if pointer.is_null() {
        return "?";
    }
    // SAFETY: libc's contract: terminated strings.
    unsafe { CStr::from_ptr(pointer) }.to_str().unwrap_or("?")
}

#[unsafe(no_mangle)]
pub extern "C" fn __assert_fail(
    expression: *const c_char,
    file: *const c_char,
    line: u32,
    function: *const c_char,
) -> ! {
    init::ensure();
    let (expression, file, function) = (text(expression), text(file), text(function));
    let message = format_args!("assertion `{expression}` failed at {file}:{line} in {function}");
    end::error(ErrorKind::Assertion, &Details::at(0), message)
}

#[unsafe(no_mangle)]
pub extern "C" fn __assert(expression: *const c_char, file: *const c_char, line: i32) -> ! {
    __assert_fail(expression, file, line as u32, core::ptr::null())
}

#[unsafe(no_mangle)]
pub extern "C" fn __assert_perror_fail(error: i32, file: *const c_char, line: u32, _: *const c_char) -> ! {
    init::ensure();
    let message = format_args!("assertion failed: error number {error} at {}:{line}", text(file));
    end::error(ErrorKind::Assertion, &Details::at(0), message)
}
