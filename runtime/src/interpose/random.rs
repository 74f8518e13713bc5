//! Randomness from libc and libstdc++: seeded. (`rand` and `random` are deterministic by themselves.)
//!
//! `std::random_device` asks the processor, which no system call tells of, so its one function that gets a number is
//! replaced by its mangled name.

use crate::syscalls::errno::{self, EFAULT};
use crate::syscalls::random;

/// `EIO`: the answer of `getentropy` to more than 256 bytes.
const EIO: isize = -5;

#[unsafe(no_mangle)]
extern "C" fn getrandom(buffer: usize, len: usize, _flags: u32) -> isize {
    match random::fill_program(buffer, len) {
        EFAULT => errno::result(EFAULT) as isize,
        filled => filled,
    }
}

#[unsafe(no_mangle)]
extern "C" fn getentropy(buffer: usize, len: usize) -> i32 {
    if len > 256 {
        return errno::result(EIO);
    }
    errno::result(random::fill_program(buffer, len).min(0))
}

#[unsafe(no_mangle)]
extern "C" fn arc4random() -> u32 {
    random::next() as u32
}

#[unsafe(no_mangle)]
extern "C" fn arc4random_buf(buffer: usize, len: usize) {
    random::fill_program(buffer, len);
}

/// A number below the bound, each equally likely: numbers of the last, incomplete round are drawn again.
#[unsafe(no_mangle)]
extern "C" fn arc4random_uniform(bound: u32) -> u32 {
    if bound < 2 {
        return 0;
    }
    let incomplete = bound.wrapping_neg() % bound;
    loop {
        let number = random::next() as u32;
        if number >= incomplete {
            return number % bound;
        }
    }
}

/// `std::random_device::_M_getval()`.
#[unsafe(export_name = "_ZNSt13random_device9_M_getvalEv")]
extern "C" fn random_device_value(_this: usize) -> u32 {
    random::next() as u32
}
