//! What functions of libc and of the C++ library do to the memory of their caller.
//!
//! Their own code is not instrumented, so the accesses that follow from their arguments are noted here, byte by byte as
//! the function really makes them, and then libc's function does the work. They are taken over as functions (the preloaded
//! runtime comes first) and not marked by the pass: so it does not matter which of them the compiler makes up from
//! others (`printf` becomes `puts`), results can be looked at, and calls through pointers are seen too. The exceptions are
//! `memcpy` and its like, which are mostly no calls at all in the end: those are the pass's.
//!
//! Only calls from instrumented code count, which is told by the return address: what libraries do among themselves is
//! protected in ways that nobody sees. Everything in one call is one step: a thread is switched away before it, at most.
//!
//! Two kinds: [`before`] notes and then jumps to libc's function with all registers as they were, so that variable
//! arguments, `long double` and exceptions pass through; [`around`] calls libc's function and looks at what came of it.

mod args;
mod cpp;
mod environment;
mod format;
mod numbers;
mod random;
mod scan;
mod sort;
mod stdio;
mod string;
mod text;
mod time;
mod wide;

pub use args::Arguments;

use crate::access;
use crate::cell::Global;
use crate::exec;
use crate::names;
use crate::pool;
use core::ffi::CStr;

/// The return address of the interposed function that was called last.
pub static CALLER: Global<usize> = Global::new(0);

/// Whether the function that was just entered was called by the program.
pub fn is_direct() -> bool {
    names::is_instrumented(*CALLER.get())
}

/// libc's own version of a function, looked up once.
pub fn real(cell: &Global<usize>, name: &CStr) -> usize {
    let known = cell.get();
    if *known == 0 {
        *known = pool::libc_function(name) as usize;
    }
    *known
}

/// The function at an address, which is that of a function of this type.
pub fn function<F: Copy>(address: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    // SAFETY: as the caller says; the sizes are equal.
    unsafe { core::mem::transmute_copy(&address) }
}

/// Whether a function is a library's and not one of the program's own that happens to have the same name: a shared library of
/// the program may define what it likes. That is instrumented, and says for itself what it does.
pub fn is_librarys(function: usize) -> bool {
    !names::is_instrumented(function)
}

/// State of a library that no argument leads to, for races between those who use it.
#[derive(Clone, Copy)]
pub enum Hidden {
    Environment,
    Strtok,
    Drand48,
    Random,
    Sections,
}

/// In the state of the execution: it is an address like any other, and `strtok` keeps its place there.
pub fn hidden(which: Hidden) -> usize {
    &raw mut exec::get().hidden[which as usize] as usize
}

pub use access::{read, write};

/// Defines functions that note accesses and then become libc's function: `name: note`, where the note gets the arguments. They count if
/// the program calls them, and if `also` says so.
macro_rules! before {
    ($($name:ident: $note:expr;)*) => { $crate::library::before! { |_| false => $($name: $note;)* } };
    ($also:expr => $($name:ident: $note:expr;)*) => {$(
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            extern "C" fn work(arguments: &$crate::library::Arguments) -> usize {
                static REAL: $crate::cell::Global<usize> = $crate::cell::Global::new(0);
                const NAME: &core::ffi::CStr = $crate::library::c_name!($name);
                let real = $crate::library::real(&REAL, NAME);
                let also: fn(&$crate::library::Arguments) -> bool = $also;
                if (arguments.is_direct() || also(arguments)) && $crate::library::is_librarys(real) {
                    let note: fn(&$crate::library::Arguments) = $note;
                    note(arguments);
                }
                real
            }
            $crate::library::args::enter!(work)
        }
    )*};
}
pub(crate) use before;

/// Defines functions that call libc's function themselves, under the name after `via`, and may note before and after.
macro_rules! around {
    ($(fn $name:ident($($argument:ident),*) via $real:ident $body:block)*) => {$(
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            extern "C" fn work($($argument: usize),*) -> usize {
                static REAL: $crate::cell::Global<usize> = $crate::cell::Global::new(0);
                const NAME: &core::ffi::CStr = $crate::library::c_name!($name);
                let direct = $crate::library::is_direct();
                let real = $crate::library::real(&REAL, NAME);
                let direct = direct && $crate::library::is_librarys(real);
                // Words in and a word out, as the C convention passes them.
                let real: extern "C" fn($($crate::library::word!($argument)),*) -> usize =
                    $crate::library::function(real);
                if !direct {
                    return real($($argument),*);
                }
                #[allow(clippy::redundant_closure_call)]
                (|$real: extern "C" fn($($crate::library::word!($argument)),*) -> usize| -> usize { $body })(real)
            }
            core::arch::naked_asm!(
                "mov r11, [rsp]",
                "mov [rip + {caller}], r11",
                "jmp {work}",
                caller = sym $crate::library::CALLER,
                work = sym work,
            )
        }
    )*};
}
pub(crate) use around;

macro_rules! word {
    ($argument:ident) => {
        usize
    };
}
pub(crate) use word;

/// The name of a function as libc's symbol table has it.
macro_rules! c_name {
    ($name:ident) => {
        match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        }
    };
}
pub(crate) use c_name;

pub use text::length as text_length;
