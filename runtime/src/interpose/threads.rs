//! POSIX threads: creation, joining, keys, once; and the registration of modules.

use crate::access;
use crate::destructors;
use crate::end;
use crate::exec;
use crate::footprint;
use crate::guard;
use crate::init;
use crate::keys;
use crate::modules;
use crate::once;
use crate::pool;
use crate::thread::Start;
use crate::threads::{self, How};
use crate::unwind;
use core::arch::naked_asm;

/// Every instrumented module calls this, if it is there.
#[unsafe(no_mangle)]
pub extern "C" fn __symdpor_register(module: usize) {
    init::ensure();
    modules::register(module);
}

unsafe extern "C" {
    fn pthread_attr_getdetachstate(attributes: usize, state: *mut i32) -> i32;
    fn pthread_attr_getstacksize(attributes: usize, size: *mut usize) -> i32;
}

/// How large a stack the program wants.
fn stack_size(attributes: usize) -> usize {
    let mut size = 0;
    // SAFETY: libc reads the program's attributes.
    if attributes == 0 || unsafe { pthread_attr_getstacksize(attributes, &mut size) } != 0 {
        return pool::STACK_BYTES;
    }
    if size > pool::STACK_BYTES {
        let most = pool::STACK_BYTES >> 20;
        end::unsupported(format_args!("a thread wants a stack of {size} bytes; symdpor gives it {most} MiB"));
    }
    size
}

fn is_detached(attributes: usize) -> bool {
    let mut state = 0;
    // SAFETY: libc reads the program's attributes.
    attributes != 0 && unsafe { pthread_attr_getdetachstate(attributes, &mut state) } == 0 && state == 1
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_create(out: usize, attributes: usize, start: usize, argument: usize) -> i32 {
    let how = How { kind: Start::Posix, detached: is_detached(attributes), stack: stack_size(attributes) };
    threads::create(out, start, argument, how);
    0
}

/// Writes a result to where the program wants it.
pub fn store_word(out: usize, value: usize) {
    access::write(out, 8);
    // SAFETY: the program's own pointer; a wild one faults as the program's crash.
    unsafe { *(out as *mut usize) = value };
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_join(thread: usize, out: usize) -> i32 {
    match threads::join(thread) {
        Ok(result) => {
            if out != 0 {
                threads::use_result(thread, result);
                store_word(out, result);
            }
            0
        }
        Err(error) => error,
    }
}

/// What libc returns: the address of the thread control block.
#[unsafe(no_mangle)]
pub extern "C" fn pthread_self() -> usize {
    if crate::snapshot::is_taken() {
        footprint::identified(exec::get().current);
    }
    crate::sys::context::fs_base()
}

unsafe extern "C" {
    fn __uselocale(locale: usize) -> usize;
}

/// What libc keeps for each thread where nobody else looks is part of its local state.
#[unsafe(no_mangle)]
extern "C" fn uselocale(locale: usize) -> usize {
    const GLOBAL: usize = usize::MAX;
    // SAFETY: the program's own.
    let before = unsafe { __uselocale(locale) };
    if crate::snapshot::is_taken() && locale != 0 {
        let exec = exec::get();
        exec.locales[exec.current as usize] = if locale == GLOBAL { 0 } else { locale };
    }
    before
}

#[unsafe(no_mangle)]
pub extern "C" fn thrd_current() -> usize {
    pthread_self()
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_detach(thread: usize) -> i32 {
    threads::detach(thread)
}

/// In assembly, with nothing of the runtime's left on the stack that is unwound.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_exit(_result: usize) -> ! {
    naked_asm!("jmp {}", sym unwind::exit_thread)
}

#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_once(_control: usize, _function: usize) -> i32 {
    naked_asm!("jmp {}", sym once::once)
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_key_create(out: usize, destructor: usize) -> i32 {
    init::ensure();
    keys::create(out, destructor)
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_key_delete(key: u32) -> i32 {
    keys::delete(key)
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_getspecific(key: u32) -> usize {
    keys::get(key)
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_setspecific(key: u32, value: usize) -> i32 {
    keys::set(key, value)
}

/// Called by the C++ library for each `thread_local` with a destructor.
#[unsafe(no_mangle)]
pub extern "C" fn __cxa_thread_atexit_impl(function: usize, object: usize, library: usize) -> i32 {
    if exec::get().current != 0 {
        destructors::register(function, object);
        return 0;
    }
    // Main's run in libc's exit, which it reaches without a call that could be taken over.
    let real = pool::libc_function(c"__cxa_thread_atexit_impl");
    // SAFETY: that is its type.
    let real: extern "C" fn(usize, usize, usize) -> i32 = unsafe { core::mem::transmute(real) };
    real(function, object, library)
}

/// `pthread_cleanup_push` of C code that is compiled without exceptions.
#[unsafe(no_mangle)]
pub extern "C" fn __pthread_register_cancel(buffer: usize) {
    init::ensure();
    unwind::push_handler(buffer);
}

#[unsafe(no_mangle)]
pub extern "C" fn __pthread_unregister_cancel(buffer: usize) {
    unwind::pop_handler(buffer);
}

/// A handler has run, and the thread goes on ending.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __pthread_unwind_next(_buffer: usize) -> ! {
    naked_asm!("jmp {}", sym unwind::unwind_next)
}

#[unsafe(no_mangle)]
pub extern "C" fn __cxa_guard_acquire(guard: usize) -> i32 {
    init::ensure();
    guard::acquire(guard) as i32
}

#[unsafe(no_mangle)]
pub extern "C" fn __cxa_guard_release(guard: usize) {
    guard::release(guard);
}

#[unsafe(no_mangle)]
pub extern "C" fn __cxa_guard_abort(guard: usize) {
    guard::leave(guard);
}

// Under these names programs find them that the C++ library is linked into: see llvm-pass/src/linked_in.rs.

#[unsafe(no_mangle)]
extern "C" fn __symdpor___cxa_guard_acquire(guard: usize) -> i32 {
    __cxa_guard_acquire(guard)
}

#[unsafe(no_mangle)]
extern "C" fn __symdpor___cxa_guard_release(guard: usize) {
    guard::release(guard);
}

#[unsafe(no_mangle)]
extern "C" fn __symdpor___cxa_guard_abort(guard: usize) {
    guard::leave(guard);
}
