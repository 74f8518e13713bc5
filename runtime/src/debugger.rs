//! What a debugger stops at, and where it finds the threads: they are contexts in user space, of which it knows nothing.
//!
//! The names and the layout are known to the script that `symdpor replay --gdb` writes.

use crate::cell::Global;
use crate::channel;
use crate::exec;
use crate::sched;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::channel::{Outcome, options};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    /// Saved stack pointer while it does not run; see `sys::context` for what lies there.
    sp: usize,
    /// 0 not created, 1 alive, 2 ended.
    life: usize,
}

#[repr(C)]
pub struct Table {
    count: u32,
    current: u32,
    step: u32,
    /// Once it has ended.
    outcome: u32,
    threads: [Entry; MAX_THREADS],
}

#[unsafe(no_mangle)]
pub static symdpor_debug_table: Global<Table> =
    Global::new(Table { count: 0, current: 0, step: 0, outcome: 0, threads: [Entry { sp: 0, life: 0 }; MAX_THREADS] });

/// The running thread is about to make this step, counted from 1.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn symdpor_debug_step(number: u32) {
    core::hint::black_box(number);
}

/// The execution has ended with an error, or otherwise.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn symdpor_debug_end(outcome: u32) {
    // Not the same code as above: the linker would make one function of the two.
    symdpor_debug_table.get().outcome = core::hint::black_box(outcome);
}

/// Called in the context of a thread that has been chosen.
#[inline(always)]
pub fn step() {
    if channel::says(options::DEBUGGER) {
        show_threads();
        symdpor_debug_step(sched::step_number());
    }
}

/// There is no execution after this one.
pub fn end(outcome: Outcome) {
    if channel::says(options::DEBUGGER) && outcome != Outcome::Again {
        show_threads();
        channel::answer(outcome);
        symdpor_debug_end(outcome as u32);
        crate::end::quit(0);
    }
}

#[cold]
fn show_threads() {
    let (exec, table) = (exec::get(), symdpor_debug_table.get());
    (table.count, table.current, table.step) = (exec.thread_count as u32, exec.current as u32, sched::step_number());
    for (entry, thread) in table.threads.iter_mut().zip(&exec.threads).take(exec.thread_count as usize) {
        *entry = Entry { sp: thread.sp, life: thread.life as usize };
    }
}
