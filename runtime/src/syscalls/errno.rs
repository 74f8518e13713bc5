//! The error numbers that are answered here, negated as system calls return them.

pub const EPERM: isize = -1;
pub const ENOENT: isize = -2;
pub const ESRCH: isize = -3;
pub const EINTR: isize = -4;
pub const EAGAIN: isize = -11;
pub const EBADF: isize = -9;
pub const ECHILD: isize = -10;
pub const ENOMEM: isize = -12;
pub const EACCES: isize = -13;
pub const EFAULT: isize = -14;
pub const EBUSY: isize = -16;
pub const EEXIST: isize = -17;
pub const ENOTDIR: isize = -20;
pub const EISDIR: isize = -21;
pub const EINVAL: isize = -22;
pub const ENFILE: isize = -23;
pub const EMFILE: isize = -24;
pub const ENOTTY: isize = -25;
pub const EFBIG: isize = -27;
pub const ESPIPE: isize = -29;
pub const EPIPE: isize = -32;
pub const ERANGE: isize = -34;
pub const ENAMETOOLONG: isize = -36;
pub const ENOSYS: isize = -38;
pub const ENOTEMPTY: isize = -39;
pub const ELOOP: isize = -40;
pub const ENOTSOCK: isize = -88;
pub const EDESTADDRREQ: isize = -89;
pub const EMSGSIZE: isize = -90;
pub const EPROTONOSUPPORT: isize = -93;
pub const EOPNOTSUPP: isize = -95;
pub const EAFNOSUPPORT: isize = -97;
pub const EADDRINUSE: isize = -98;
pub const EADDRNOTAVAIL: isize = -99;
pub const EISCONN: isize = -106;
pub const ENOTCONN: isize = -107;
pub const ECONNREFUSED: isize = -111;
pub const EINPROGRESS: isize = -115;
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
