//! In which library the program is, when it is stuck there: for code that was not compiled with the pass.
//!
//! The stack is not unwound, since whatever is stuck may have broken it: words that look like return addresses (there is a call
//! before them) stand for frames. The innermost one with a name counts, but for the runtime's own.

use crate::exec;
use crate::names;
use crate::pool;
use core::ffi::{CStr, c_char};

const MOST_WORDS: usize = 4096;

/// What the dynamic linker's `dladdr` tells.
#[repr(C)]
struct Info {
    file: *const c_char,
    base: usize,
    name: *const c_char,
    address: usize,
}

unsafe extern "C" {
    fn dladdr(address: usize, info: *mut Info) -> i32;
}

/// A function of a loaded library.
pub struct Place {
    pub function: &'static str,
    pub library: &'static str,
    pub base: usize,
}

fn text(of: *const c_char) -> Option<&'static str> {
    if of.is_null() {
        return None;
    }
    // SAFETY: the dynamic linker's own terminated string, which stays.
    unsafe { CStr::from_ptr(of) }.to_str().ok()
}

fn place(address: usize) -> Option<Place> {
    let mut info = Info { file: core::ptr::null(), base: 0, name: core::ptr::null(), address: 0 };
    // SAFETY: a record to be filled.
    let known = unsafe { dladdr(address, &mut info) } != 0;
    let library = text(info.file).filter(|_| known)?;
    let library = library.rsplit('/').next().unwrap_or(library);
    Some(Place { function: text(info.name).unwrap_or(""), library, base: info.base })
}

/// Whether the instruction before an address is a call.
fn follows_call(address: usize) -> bool {
    if !names::is_code(address) || !names::is_code(address - 8) {
        return false;
    }
    let byte = |back: usize| {
        // SAFETY: code that is loaded, as was just checked.
        unsafe { *((address - back) as *const u8) }
    };
    byte(5) == 0xe8 || [2, 3, 4, 6, 7].into_iter().any(|back| byte(back) == 0xff && byte(back - 1) >> 3 & 7 == 2)
}

/// The innermost functions with a name, from the given instruction outwards, without the runtime's.
fn frames(instruction: usize, stack: usize, end: usize) -> impl Iterator<Item = Place> {
    let words = (end.saturating_sub(stack) / 8).min(MOST_WORDS);
    let word = move |i: usize| {
        // SAFETY: within the stack that the caller names.
        unsafe { *((stack & !7) as *const usize).add(i) }
    };
    let returns = (0..words).map(word).filter(|&w| follows_call(w)).map(|w| w - 1);
    let own = follows_call as *const () as usize;
    core::iter::once(instruction).chain(returns).filter(move |&a| !names::are_together(a, own)).filter_map(place)
}

/// Where code that is not instrumented keeps the thread, if that is what runs: the function, and if it is libc's, who called it.
pub fn outside(instruction: usize, stack: usize) -> Option<(Place, Option<Place>)> {
    let end = stack_end();
    let mut inner: Option<Place> = None;
    for frame in frames(instruction, stack, end) {
        let same = inner.as_ref().is_some_and(|i| i.base == frame.base);
        match &mut inner {
            // Instrumented code is stuck by itself.
            None if names::has_instrumented(frame.base) => return None,
            None => inner = Some(frame),
            Some(known) if same && known.function.is_empty() => known.function = frame.function,
            Some(known) if !same && is_libc(known.library) => {
                let caller = if frame.function.is_empty() { None } else { Some(frame) };
                return inner.map(|i| (i, caller));
            }
            Some(known) if !same || !known.function.is_empty() && !is_libc(known.library) => break,
            _ => {}
        }
    }
    inner.map(|i| (i, None))
}

fn stack_end() -> usize {
    if names::main_stack().is_empty() {
        names::find_main_stack();
    }
    names::look_if_new();
    match exec::get().current {
        0 => names::main_stack().end,
        number => pool::top(number as usize),
    }
}

/// The library that the call of an interposed function came from, if that has no instrumented code. `stack`: where the
/// function's return address is.
pub fn calling_library(stack: usize) -> Option<Place> {
    let own = follows_call as *const () as usize;
    let first = frames(own, stack, stack_end()).find(|f| !is_libc(f.library))?;
    (!names::has_instrumented(first.base)).then_some(first)
}

fn is_libc(library: &str) -> bool {
    library.starts_with("libc.so") || library.starts_with("ld-linux") || library.starts_with("libpthread")
}
