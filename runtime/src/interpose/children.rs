//! Commands that the program runs before its first thread: `system`, `popen`.
//!
//! The start of the program happens once per worker and for real, so that another process does no harm there if it has ended,
//! and has been waited for, by the time the first thread is created. libc's own functions make it: what they do in the child is
//! libc's code alone, up to the new program, and that must not get the runtime.
//!
//! Not covered: `fork`, whose child would go on with the program and its runtime, and with pipes that are kept in memory.

use crate::cell::Global;
use crate::dispatch;
use crate::end::unsupported;
use crate::init;
use crate::library::{self, real};
use crate::snapshot;
use crate::syscalls::forget_descriptor;
use core::ffi::{CStr, c_char};

/// Streams of `popen` that are open.
static OPEN: Global<usize> = Global::new(0);

/// Refuses what has been started and not been waited for. Called when the first thread is about to be created.
pub fn check_none_left() {
    if *OPEN.get() > 0 {
        unsupported(format_args!(
            "the program creates its first thread while a process that it has started with popen() is there; only those that \
             pclose() has waited for by then are supported"
        ));
    }
}

fn check_before_threads(name: &str) {
    if snapshot::is_taken() {
        unsupported(format_args!(
            "the program calls {name}() after its first thread was created; other processes are supported only before that"
        ));
    }
}

#[unsafe(no_mangle)]
extern "C" fn system(command: *const c_char) -> i32 {
    static REAL: Global<usize> = Global::new(0);
    init::ensure();
    if command.is_null() {
        return 1;
    }
    check_before_threads("system");
    let real: extern "C" fn(*const c_char) -> i32 = library::function(real(&REAL, c"system"));
    run(|| real(command))
}

#[unsafe(no_mangle)]
extern "C" fn popen(command: *const c_char, mode: *const c_char) -> usize {
    static REAL: Global<usize> = Global::new(0);
    init::ensure();
    check_before_threads("popen");
    let real: extern "C" fn(*const c_char, *const c_char) -> usize = library::function(real(&REAL, c"popen"));
    let stream = run(|| real(command, mode));
    if stream != 0 {
        *OPEN.get() += 1;
        forget_descriptor(descriptor(stream));
    }
    stream
}

#[unsafe(no_mangle)]
extern "C" fn pclose(stream: usize) -> i32 {
    static REAL: Global<usize> = Global::new(0);
    init::ensure();
    check_before_threads("pclose");
    let real: extern "C" fn(usize) -> i32 = library::function(real(&REAL, c"pclose"));
    let fd = descriptor(stream);
    let status = run(|| real(stream));
    forget_descriptor(fd);
    *OPEN.get() = OPEN.get().saturating_sub(1);
    status
}

fn descriptor(stream: usize) -> i32 {
    static REAL: Global<usize> = Global::new(0);
    let fileno: extern "C" fn(usize) -> i32 = library::function(real(&REAL, c"fileno"));
    fileno(stream)
}

/// Calls into libc with its system calls let through to the kernel, and an environment that does not preload the runtime.
fn run<T>(work: impl FnOnce() -> T) -> T {
    let _environment = Environment::without_runtime();
    let _pass = dispatch::let_through();
    work()
}

/// The entry of `LD_PRELOAD`, replaced while this lives.
struct Environment(Option<(*mut *const c_char, *const c_char)>);

impl Environment {
    fn without_runtime() -> Environment {
        const NAME: &[u8] = b"LD_PRELOAD=";
        static WITHOUT: Global<[u8; 4096]> = Global::new([0; 4096]);
        let environment = crate::pool::libc_function(c"environ") as *const *mut *const c_char;
        if environment.is_null() {
            return Environment(None);
        }
        // SAFETY: libc's variable.
        let mut entry = unsafe { *environment };
        // SAFETY: an array of strings that ends with a null pointer, if there is one at all.
        while !entry.is_null() && unsafe { !(*entry).is_null() } {
            // SAFETY: a terminated string.
            let text = unsafe { CStr::from_ptr(*entry) }.to_bytes();
            if let Some(list) = text.strip_prefix(NAME) {
                // The runtime is the first of the list.
                let others = list.iter().position(|&b| b == b':' || b == b' ').map_or(&[][..], |at| &list[at + 1..]);
                let without = WITHOUT.get();
                let len = others.len().min(without.len() - NAME.len() - 1);
                without[..NAME.len()].copy_from_slice(NAME);
                without[NAME.len()..][..len].copy_from_slice(&others[..len]);
                without[NAME.len() + len] = 0;
                // SAFETY: an entry of the array; put back when this is dropped.
                let old = unsafe { core::mem::replace(&mut *entry, without.as_ptr() as *const c_char) };
                return Environment(Some((entry, old)));
            }
            // SAFETY: not yet at the end.
            entry = unsafe { entry.add(1) };
        }
        Environment(None)
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        if let Some((entry, old)) = self.0 {
            // SAFETY: as above; nothing of the program has run meanwhile.
            unsafe { *entry = old };
        }
    }
}
