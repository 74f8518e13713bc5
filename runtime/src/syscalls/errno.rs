//! The error numbers that are answered here, negated as system calls return them.

pub const EPERM: isize = -1;
pub const EAGAIN: isize = -11;
pub const EBADF: isize = -9;
pub const ECHILD: isize = -10;
pub const ENOMEM: isize = -12;
pub const EFAULT: isize = -14;
pub const EINVAL: isize = -22;
pub const EMFILE: isize = -24;
pub const ESPIPE: isize = -29;
pub const ERANGE: isize = -34;
pub const ENOSYS: isize = -38;
pub const ETIMEDOUT: isize = -110;

/// Sets the C library's `errno` of the running thread.
pub fn set(error: isize) {
    unsafe extern "C" {
        fn __errno_location() -> *mut i32;
    }
    // SAFETY: libc's own function; it returns the address of a thread-local variable.
    unsafe { *__errno_location() = (-error) as i32 };
}

/// What a C function returns for a system call's result: -1 with `errno` set if it failed.
pub fn result(value: isize) -> i32 {
    if value >= 0 {
        return value as i32;
    }
    set(value);
    -1
}
