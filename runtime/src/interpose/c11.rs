//! C11 `<threads.h>`: the same objects under other names and with other results.

use crate::access;
use crate::cond;
use crate::keys;
use crate::mutex;
use crate::once;
use crate::pool;
use crate::thread::Start;
use crate::threads::{self, How};
use crate::unwind;
use core::arch::naked_asm;

const SUCCESS: i32 = 0;
const BUSY: i32 = 1;
const ERROR: i32 = 2;

fn result(error: i32) -> i32 {
    match error {
        0 => SUCCESS,
        mutex::EBUSY => BUSY,
        _ => ERROR,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn thrd_create(out: usize, start: usize, argument: usize) -> i32 {
    let how = How { kind: Start::C11, detached: false, stack: pool::STACK_BYTES };
    threads::create(out, start, argument, how);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn thrd_join(thread: usize, out: usize) -> i32 {
    match threads::join(thread) {
        Ok(value) => {
            if out != 0 {
                threads::use_result(thread, value);
                access::write(out, 4);
                // SAFETY: the program's own pointer.
                unsafe { *(out as *mut i32) = value as i32 };
            }
            SUCCESS
        }
        Err(error) => result(error),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn thrd_detach(thread: usize) -> i32 {
    result(threads::detach(thread))
}

#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_exit(_value: i32) -> ! {
    naked_asm!("movsxd rdi, edi", "jmp {}", sym unwind::exit_thread)
}

/// `mtx_plain` 0, `mtx_recursive` 1, `mtx_timed` 2, in any sensible combination.
#[unsafe(no_mangle)]
pub extern "C" fn mtx_init(mutex: usize, kind: i32) -> i32 {
    if !(0..=3).contains(&kind) {
        return ERROR;
    }
    result(mutex::init(mutex, kind & 1))
}

#[unsafe(no_mangle)]
pub extern "C" fn mtx_destroy(mutex: usize) {
    mutex::destroy(mutex);
}

#[unsafe(no_mangle)]
pub extern "C" fn mtx_lock(mutex: usize) -> i32 {
    result(mutex::lock(mutex))
}

#[unsafe(no_mangle)]
pub extern "C" fn mtx_trylock(mutex: usize) -> i32 {
    // SAFETY: the program's mutex, as for every other call.
    result(unsafe { mutex::try_lock_shim(mutex) })
}

#[unsafe(no_mangle)]
pub extern "C" fn mtx_unlock(mutex: usize) -> i32 {
    result(mutex::unlock(mutex))
}

#[unsafe(no_mangle)]
pub extern "C" fn cnd_init(cond: usize) -> i32 {
    result(cond::init(cond, 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn cnd_destroy(cond: usize) {
    cond::destroy(cond);
}

#[unsafe(no_mangle)]
pub extern "C" fn cnd_wait(cond: usize, mutex: usize) -> i32 {
    result(cond::wait(cond, mutex))
}

#[unsafe(no_mangle)]
pub extern "C" fn cnd_signal(cond: usize) -> i32 {
    result(cond::signal(cond))
}

#[unsafe(no_mangle)]
pub extern "C" fn cnd_broadcast(cond: usize) -> i32 {
    result(cond::broadcast(cond))
}

#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn call_once(_control: usize, _function: usize) {
    naked_asm!("jmp {}", sym once::once)
}

#[unsafe(no_mangle)]
pub extern "C" fn tss_create(out: usize, destructor: usize) -> i32 {
    result(keys::create(out, destructor))
}

#[unsafe(no_mangle)]
pub extern "C" fn tss_delete(key: u32) {
    keys::delete(key);
}

#[unsafe(no_mangle)]
pub extern "C" fn tss_get(key: u32) -> usize {
    keys::get(key)
}

#[unsafe(no_mangle)]
pub extern "C" fn tss_set(key: u32, value: usize) -> i32 {
    result(keys::set(key, value))
}
