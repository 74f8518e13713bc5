//! Results of futures that become ready when their thread ends (`set_value_at_thread_exit`).
//!
//! libstdc++ keeps a list of them for each thread, and goes through it in the destructor of a key. What happens there is in the
//! library: that the result is ready would be stored unseen, so that whoever reads it would not be ordered behind the thread. Here
//! the callback of each entry is replaced by one that announces the store, and then calls the library's.
//!
//! The entry refers weakly to the shared state. Whether that is still there is looked at in a step of its own, and it is held
//! meanwhile: the library's own counting would not order whoever destroys it last.

use crate::atomics;
use crate::cell::Global;
use crate::library::{self, Arguments, c_name};
use symdpor_abi::op::OpKind;

/// An entry of the list: the next one, the callback, and a `weak_ptr`.
const CALLBACK: usize = 8;
const STATE: usize = 16;
const COUNTS: usize = 24;
/// In the shared state: the word that says whether it is ready.
const STATUS: usize = 16;
/// In the record of a `shared_ptr`: owners, and those who refer weakly, all owners together being one of them.
const OWNERS: usize = 8;
const REFERRERS: usize = 12;
/// Its virtual functions: what is owned is destroyed; the record is.
const DISPOSE: usize = 2;
const DESTROY: usize = 3;
const RELEASE: u8 = 3;
const ACQ_REL: u8 = 4;

/// The library's own callback, the same for all.
static LIBRARYS: Global<usize> = Global::new(0);

fn word(address: usize) -> &'static mut usize {
    // SAFETY: callers name words of the C++ library's records.
    unsafe { &mut *(address as *mut usize) }
}

fn count(address: usize) -> &'static mut i32 {
    // SAFETY: callers name counters of the C++ library's records.
    unsafe { &mut *(address as *mut i32) }
}

/// `_Make_ready::_M_set`: the entry is put into the list.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn _ZNSt13__future_base13_State_baseV211_Make_ready6_M_setEv() {
    extern "C" fn work(arguments: &Arguments) {
        static REAL: Global<usize> = Global::new(0);
        let name = c_name!(_ZNSt13__future_base13_State_baseV211_Make_ready6_M_setEv);
        let set: extern "C" fn(usize) = library::function(library::real(&REAL, name));
        let entry = arguments.word(0);
        set(entry);
        replace_callback(entry);
    }
    library::args::call!(work)
}

/// The same has been done by a library that is linked into the program: see llvm-pass/src/linked_in.rs.
#[unsafe(no_mangle)]
extern "C" fn __symdpor__ZNSt13__future_base13_State_baseV211_Make_ready6_M_setEv(entry: usize) {
    replace_callback(entry);
}

fn replace_callback(entry: usize) {
    let own = thread_ends as *const () as usize;
    let before = core::mem::replace(word(entry + CALLBACK), own);
    if before != own {
        *LIBRARYS.get() = before;
    }
}

/// The callback.
extern "C" fn thread_ends(entry: usize) {
    let counts = *word(entry + COUNTS);
    let held = counts != 0 && hold(counts);
    if held {
        atomics::announce(*word(entry + STATE) + STATUS, 4, OpKind::AtomicStore, RELEASE);
    } else if counts != 0 {
        // The entry may be the last to refer to the record, and the library destroys it then.
        atomics::announce(counts + REFERRERS, 4, OpKind::AtomicRmw, ACQ_REL);
    }
    let callback: extern "C" fn(usize) = library::function(*LIBRARYS.get());
    callback(entry);
    if held {
        give_up(counts);
    }
}

/// One owner more, if there is any.
fn hold(counts: usize) -> bool {
    atomics::announce(counts + OWNERS, 4, OpKind::AtomicRmw, ACQ_REL);
    let owners = count(counts + OWNERS);
    *owners += (*owners != 0) as i32;
    *owners != 0
}

fn give_up(counts: usize) {
    let method = |index: usize| -> extern "C" fn(usize) { library::function(*word(*word(counts) + 8 * index)) };
    if is_last(counts + OWNERS) {
        method(DISPOSE)(counts);
        if is_last(counts + REFERRERS) {
            method(DESTROY)(counts);
        }
    }
}

fn is_last(counter: usize) -> bool {
    atomics::announce(counter, 4, OpKind::AtomicRmw, ACQ_REL);
    *count(counter) -= 1;
    *count(counter) == 0
}
