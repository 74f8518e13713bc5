//! Destructors of C++ thread-locals, in a list per thread; `__cxa_thread_atexit_impl` ends up here.

use crate::exec;

type Destructor = extern "C" fn(usize);

#[repr(C)]
struct Entry {
    function: usize,
    object: usize,
    next: usize,
}

/// Registers a destructor for the running thread's end.
pub fn register(function: usize, object: usize) {
    let exec = exec::get();
    let entry = exec.heap.allocate(exec.current, size_of::<Entry>(), 16, 0) as *mut Entry;
    if entry.is_null() {
        return;
    }
    let me = exec::me();
    // SAFETY: a fresh block of that size.
    unsafe { entry.write(Entry { function, object, next: me.destructors }) };
    me.destructors = entry as usize;
}

/// Runs them, the last registered first. They may register more.
pub fn run() {
    while exec::me().destructors != 0 {
        let address = exec::me().destructors;
        // SAFETY: written by `register`, and the program has no pointer to it.
        let entry = unsafe { &*(address as *const Entry) };
        exec::me().destructors = entry.next;
        // SAFETY: registered as a destructor.
        let function: Destructor = unsafe { core::mem::transmute(entry.function) };
        function(entry.object);
    }
}
