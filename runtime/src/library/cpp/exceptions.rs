//! Exceptions that threads share (`exception_ptr`). They are counted by the C++ library, whose own code is not instrumented: here
//! giving up a reference is ordered with those before it, so that whoever gives up the last one may destroy the exception.
//!
//! Libraries give up references for the program too, so every call counts. It is no transition: who of several threads comes last
//! is not chosen.

use crate::cell::Global;
use crate::library::{self, Arguments, c_name};
use crate::races;

/// Where things are in the record in front of an exception: different for libstdc++ and libc++abi up to its end, the unwinder's
/// header, right in front of the object.
struct Layout {
    size: usize,
    primary: usize,
}

const LIBSTDCXX: Layout = Layout { size: 112, primary: 0 };
const LIBCXXABI: Layout = Layout { size: 128, primary: 8 };
const UNWINDER_HEADER: usize = 32;
/// "C++\0" or, of one that refers to another, "C++\1", after the vendor.
const ANY_CXX: u64 = 0x432b_2b00;
const REFERS: u64 = 1;

fn word(address: usize) -> usize {
    // SAFETY: callers name words of the C++ library's records.
    unsafe { *(address as *const usize) }
}

/// A reference to an exception is given up.
fn give_up(object: usize) {
    if object != 0 {
        // In the unwinder's header: nothing of the program's is there.
        let place = object - UNWINDER_HEADER / 2;
        races::acquire(place);
        races::release_merge(place);
    }
}

/// The exception that the running thread has caught last, if it is one of C++.
fn caught() -> usize {
    static GLOBALS: Global<usize> = Global::new(0);
    let globals = library::real(&GLOBALS, c"__cxa_get_globals");
    if globals == 0 {
        return 0;
    }
    let globals: extern "C" fn() -> usize = library::function(globals);
    caught_in(globals())
}

/// The same from the library's own record of the thread.
fn caught_in(globals: usize) -> usize {
    static OF_LIBCXXABI: Global<usize> = Global::new(0);
    let record = word(globals);
    if record == 0 {
        return 0;
    }
    let layout = match library::real(&OF_LIBCXXABI, c"__cxa_current_primary_exception") {
        0 => &LIBSTDCXX,
        _ => &LIBCXXABI,
    };
    let class = word(record + layout.size - UNWINDER_HEADER) as u64 & 0xffff_ffff;
    match class ^ ANY_CXX {
        0 => record + layout.size,
        REFERS => word(record + layout.primary),
        _ => 0,
    }
}

macro_rules! gives_up {
    ($($name:ident: $object:expr;)*) => {$(
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            extern "C" fn work(arguments: &Arguments) -> usize {
                static REAL: Global<usize> = Global::new(0);
                let object: fn(&Arguments) -> usize = $object;
                give_up(object(arguments));
                library::real(&REAL, c_name!($name))
            }
            library::args::enter!(work)
        }
    )*};
}

// What programs call that the C++ library is linked into: see llvm-pass/src/linked_in.rs.

#[unsafe(no_mangle)]
extern "C" fn __symdpor___cxa_end_catch(globals: usize) {
    give_up(caught_in(globals));
}

#[unsafe(no_mangle)]
extern "C" fn __symdpor__ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(pointer: usize) {
    give_up(word(pointer));
}

#[unsafe(no_mangle)]
extern "C" fn __symdpor___cxa_decrement_exception_refcount(object: usize) {
    give_up(object);
}

gives_up! {
    __cxa_end_catch: |_| caught();
    // exception_ptr::_M_release
    _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv: |a| word(a.word(0));
    __cxa_decrement_exception_refcount: |a| a.word(0);
}
