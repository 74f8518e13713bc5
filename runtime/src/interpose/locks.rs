//! POSIX mutexes and condition variables.

use crate::cond;
use crate::init;
use crate::mutex;
use core::arch::naked_asm;

unsafe extern "C" {
    fn pthread_mutexattr_gettype(attributes: usize, kind: *mut i32) -> i32;
    fn pthread_condattr_getclock(attributes: usize, clock: *mut i32) -> i32;
    fn pthread_mutexattr_getrobust(attributes: usize, robust: *mut i32) -> i32;
}

/// The kind word of a mutex that is made with these attributes.
fn kind_of(attributes: usize) -> i32 {
    const ROBUST: i32 = 16;
    let (mut kind, mut robust) = (0, 0);
    if attributes != 0 {
        // SAFETY: libc reads the program's attributes.
        unsafe {
            pthread_mutexattr_gettype(attributes, &mut kind);
            pthread_mutexattr_getrobust(attributes, &mut robust);
        }
    }
    kind | if robust != 0 { ROBUST } else { 0 }
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_mutex_init(mutex: usize, attributes: usize) -> i32 {
    init::ensure();
    mutex::init(mutex, kind_of(attributes))
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_mutex_destroy(mutex: usize) -> i32 {
    init::ensure();
    mutex::destroy(mutex)
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_mutex_lock(mutex: usize) -> i32 {
    init::ensure();
    mutex::lock(mutex)
}

#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_trylock(_mutex: usize) -> i32 {
    naked_asm!("jmp {}", sym mutex::try_lock_shim)
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_mutex_unlock(mutex: usize) -> i32 {
    init::ensure();
    mutex::unlock(mutex)
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_cond_init(cond: usize, attributes: usize) -> i32 {
    init::ensure();
    let mut clock = 0;
    if attributes != 0 {
        // SAFETY: libc reads the program's attributes.
        unsafe { pthread_condattr_getclock(attributes, &mut clock) };
    }
    cond::init(cond, clock)
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_cond_destroy(cond: usize) -> i32 {
    init::ensure();
    cond::destroy(cond)
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_cond_wait(cond: usize, mutex: usize) -> i32 {
    cond::wait(cond, mutex)
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_cond_signal(cond: usize) -> i32 {
    cond::signal(cond)
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_cond_broadcast(cond: usize) -> i32 {
    cond::broadcast(cond)
}
