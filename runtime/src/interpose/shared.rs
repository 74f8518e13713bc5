//! Read-write locks, semaphores, barriers and spin locks. What tries, or waits with a time limit, is in `limited`.

use crate::barrier;
use crate::init;
use crate::named_semaphores;
use crate::rwlock::{self, Side};
use crate::semaphore;
use crate::spinlock;
use core::ffi::c_char;

unsafe extern "C" {
    fn pthread_rwlockattr_getkind_np(attributes: usize, kind: *mut i32) -> i32;
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_init(lock: usize, attributes: usize) -> i32 {
    init::ensure();
    let mut kind = 0;
    if attributes != 0 {
        // SAFETY: libc reads the program's attributes.
        unsafe { pthread_rwlockattr_getkind_np(attributes, &mut kind) };
    }
    rwlock::init(lock, kind)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_destroy(lock: usize) -> i32 {
    init::ensure();
    rwlock::destroy(lock)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_rdlock(lock: usize) -> i32 {
    init::ensure();
    rwlock::lock(lock, Side::Read)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_wrlock(lock: usize) -> i32 {
    init::ensure();
    rwlock::lock(lock, Side::Write)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_unlock(lock: usize) -> i32 {
    init::ensure();
    rwlock::unlock(lock)
}

/// Whether processes share it makes no difference: there is only one.
#[unsafe(no_mangle)]
extern "C" fn sem_init(semaphore: usize, _shared: i32, value: u32) -> i32 {
    init::ensure();
    semaphore::init(semaphore, value)
}

#[unsafe(no_mangle)]
extern "C" fn sem_destroy(semaphore: usize) -> i32 {
    init::ensure();
    semaphore::destroy(semaphore)
}

#[unsafe(no_mangle)]
extern "C" fn sem_wait(semaphore: usize) -> i32 {
    init::ensure();
    semaphore::wait(semaphore)
}

#[unsafe(no_mangle)]
extern "C" fn sem_post(semaphore: usize) -> i32 {
    init::ensure();
    semaphore::post(semaphore)
}

#[unsafe(no_mangle)]
extern "C" fn sem_getvalue(semaphore: usize, value: usize) -> i32 {
    init::ensure();
    semaphore::value(semaphore, value)
}

/// In C it has a variable number of arguments: the last two are there if the semaphore may have to be made, and are passed as
/// if they were declared.
#[unsafe(no_mangle)]
extern "C" fn sem_open(name: *const c_char, flags: i32, _mode: u32, value: u32) -> usize {
    init::ensure();
    named_semaphores::open(name, flags, value)
}

#[unsafe(no_mangle)]
extern "C" fn sem_close(semaphore: usize) -> i32 {
    named_semaphores::close(semaphore)
}

#[unsafe(no_mangle)]
extern "C" fn sem_unlink(name: *const c_char) -> i32 {
    init::ensure();
    named_semaphores::unlink(name)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_barrier_init(barrier: usize, _attributes: usize, count: u32) -> i32 {
    init::ensure();
    barrier::init(barrier, count)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_barrier_destroy(barrier: usize) -> i32 {
    init::ensure();
    barrier::destroy(barrier)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_barrier_wait(barrier: usize) -> i32 {
    init::ensure();
    barrier::wait(barrier)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_spin_init(lock: usize, _shared: i32) -> i32 {
    init::ensure();
    spinlock::init(lock)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_spin_destroy(lock: usize) -> i32 {
    init::ensure();
    spinlock::destroy(lock)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_spin_lock(lock: usize) -> i32 {
    init::ensure();
    spinlock::lock(lock)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_spin_unlock(lock: usize) -> i32 {
    init::ensure();
    spinlock::unlock(lock)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_mutex_consistent(mutex: usize) -> i32 {
    crate::robust::consistent(mutex)
}
