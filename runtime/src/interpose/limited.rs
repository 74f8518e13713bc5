//! Functions that try, or wait with a time limit. They need the caller's registers, to see whether it comes round to the same
//! point in the same state.

use crate::cond;
use crate::mutex;
use crate::rwlock::{self, Side};
use crate::semaphore;
use crate::spinlock;

const CLOCK_REALTIME: i32 = 0;
const CLOCK_MONOTONIC: i32 = 1;

/// A function of libc's that calls another with the address of the caller's saved registers as a further argument. If that
/// fails, what the runtime left on the stack is wiped (`spin::WIPED`).
macro_rules! with_registers {
    ($($name:ident => $function:path, $argument:literal;)*) => {
        $(
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name() -> i32 {
                core::arch::naked_asm!(
                    // The stack is unwound through here if the thread is cancelled.
                    ".cfi_startproc",
                    "push rbp",
                    ".cfi_adjust_cfa_offset 8",
                    ".cfi_offset rbp, -16",
                    "push rbx",
                    ".cfi_adjust_cfa_offset 8",
                    ".cfi_offset rbx, -24",
                    "push r12",
                    ".cfi_adjust_cfa_offset 8",
                    ".cfi_offset r12, -32",
                    "push r13",
                    ".cfi_adjust_cfa_offset 8",
                    ".cfi_offset r13, -40",
                    "push r14",
                    ".cfi_adjust_cfa_offset 8",
                    ".cfi_offset r14, -48",
                    "push r15",
                    ".cfi_adjust_cfa_offset 8",
                    ".cfi_offset r15, -56",
                    concat!("mov ", $argument, ", rsp"),
                    "sub rsp, 8",
                    ".cfi_adjust_cfa_offset 8",
                    "call {function}",
                    "test eax, eax",
                    "jz 2f",
                    "mov edx, eax",
                    "lea rdi, [rsp - {wiped}]",
                    "mov ecx, {wiped} / 8",
                    "xor eax, eax",
                    "rep stosq",
                    "mov eax, edx",
                    "2:",
                    "add rsp, 8",
                    "pop r15",
                    "pop r14",
                    "pop r13",
                    "pop r12",
                    "pop rbx",
                    "pop rbp",
                    "ret",
                    ".cfi_endproc",
                    function = sym $function,
                    wiped = const crate::spin::WIPED,
                )
            }
        )*
    };
}

pub(super) use with_registers;

with_registers! {
    pthread_mutex_timedlock => mutex_timed, "rdx";
    pthread_mutex_clocklock => mutex_clock, "rcx";
    mtx_timedlock => mtx_timed, "rdx";
    pthread_cond_timedwait => cond_timed, "rcx";
    pthread_cond_clockwait => cond_clock, "r8";
    cnd_timedwait => cnd_timed, "rcx";
    pthread_rwlock_tryrdlock => rwlock::try_read, "rsi";
    pthread_rwlock_trywrlock => rwlock::try_write, "rsi";
    pthread_rwlock_timedrdlock => read_timed, "rdx";
    pthread_rwlock_timedwrlock => write_timed, "rdx";
    pthread_rwlock_clockrdlock => read_clock, "rcx";
    pthread_rwlock_clockwrlock => write_clock, "rcx";
    sem_trywait => semaphore::try_wait, "rsi";
    sem_timedwait => semaphore_timed, "rdx";
    sem_clockwait => semaphore_clock, "rcx";
    pthread_spin_trylock => spinlock::try_lock, "rsi";
}

/// The clocks that a time limit may be on.
pub fn is_clock(clock: i32) -> bool {
    matches!(clock, CLOCK_REALTIME | CLOCK_MONOTONIC)
}

const EINVAL: i32 = 22;

/// C11's `thrd_success`, `thrd_timedout`, `thrd_error`.
fn c11(result: i32) -> i32 {
    match result {
        0 => 0,
        crate::limits::ETIMEDOUT => 4,
        _ => 2,
    }
}

extern "C" fn mutex_timed(mutex: usize, time: usize, registers: usize) -> i32 {
    mutex::lock_until(mutex, CLOCK_REALTIME, time, registers)
}

extern "C" fn mutex_clock(mutex: usize, clock: i32, time: usize, registers: usize) -> i32 {
    if is_clock(clock) { mutex::lock_until(mutex, clock, time, registers) } else { EINVAL }
}

extern "C" fn mtx_timed(mutex: usize, time: usize, registers: usize) -> i32 {
    c11(mutex::lock_until(mutex, CLOCK_REALTIME, time, registers))
}

extern "C" fn cond_timed(cond: usize, mutex: usize, time: usize, registers: usize) -> i32 {
    cond::wait_until(cond, mutex, None, time, registers)
}

extern "C" fn cond_clock(cond: usize, mutex: usize, clock: i32, time: usize, registers: usize) -> i32 {
    if is_clock(clock) { cond::wait_until(cond, mutex, Some(clock), time, registers) } else { EINVAL }
}

extern "C" fn cnd_timed(cond: usize, mutex: usize, time: usize, registers: usize) -> i32 {
    c11(cond::wait_until(cond, mutex, Some(CLOCK_REALTIME), time, registers))
}

extern "C" fn read_timed(lock: usize, time: usize, registers: usize) -> i32 {
    rwlock::lock_until(lock, Side::Read, CLOCK_REALTIME, time, registers)
}

extern "C" fn write_timed(lock: usize, time: usize, registers: usize) -> i32 {
    rwlock::lock_until(lock, Side::Write, CLOCK_REALTIME, time, registers)
}

extern "C" fn read_clock(lock: usize, clock: i32, time: usize, registers: usize) -> i32 {
    if is_clock(clock) { rwlock::lock_until(lock, Side::Read, clock, time, registers) } else { EINVAL }
}

extern "C" fn write_clock(lock: usize, clock: i32, time: usize, registers: usize) -> i32 {
    if is_clock(clock) { rwlock::lock_until(lock, Side::Write, clock, time, registers) } else { EINVAL }
}

extern "C" fn semaphore_timed(semaphore: usize, time: usize, registers: usize) -> i32 {
    semaphore::wait_until(semaphore, CLOCK_REALTIME, time, registers)
}

extern "C" fn semaphore_clock(semaphore: usize, clock: i32, time: usize, registers: usize) -> i32 {
    if !is_clock(clock) {
        return crate::syscalls::errno::result(crate::syscalls::errno::EINVAL);
    }
    semaphore::wait_until(semaphore, clock, time, registers)
}
