//! What is compiled into libc++.

use crate::flag;
use core::arch::naked_asm;

/// `std::__1::__call_once`.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ZNSt3__111__call_onceERVmPvPFvS2_E(_flag: usize, _argument: usize, _function: usize) {
    naked_asm!("jmp {}", sym flag::call_once)
}
