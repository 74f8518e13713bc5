//! libsymdpor_rt.so: runs inside the program under test.
//!
//! It takes over the program's threads and runs them in user space, one at a time, in the order it is told; repeats
//! executions from a snapshot of the program's memory; finds races, misuse of memory and locks, and crashes; and writes
//! each execution into the channel. It knows nothing of the search.
//!
//! Ground rules:
//! - Everything runs on the program's first kernel thread. No locks, no atomics but on words shared with the controller.
//! - No std, no allocation, no thread-local storage; raw system calls only. It must not import what it interposes.
//! - Hooks and interposed functions are one-liners into plain modules.
//! - State is either persistent (a [`cell::Global`]) or restored with every execution (in [`exec::Exec`]).
//! - Nothing holds a reference into state across a context switch.
#![no_std]

mod access;
mod accesses;
mod addresses;
mod ahead;
mod alike;
mod atomics;
mod author;
mod barrier;
mod cancel;
mod cell;
mod channel;
mod cond;
mod cycle;
mod debugger;
mod destructors;
mod dispatch;
mod end;
mod exec;
mod flag;
mod footprint;
mod futex;
mod guard;
mod hooks;
mod init;
mod interpose;
mod keys;
mod library;
mod limits;
mod local;
mod memory;
mod modules;
mod mutex;
mod named_semaphores;
mod names;
mod once;
mod output;
mod pool;
mod races;
mod repeat;
mod robust;
mod rwlock;
mod sched;
mod section;
mod semaphore;
mod set;
mod snapshot;
mod spin;
mod spinlock;
mod stack;
mod sys;
mod syscalls;
mod thread;
mod threads;
mod tls;
mod unwind;
mod uses;
mod vain;
mod watch;
mod whereabouts;

/// A bug of the runtime's own: says where, and ends the worker.
#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    let text = end::Text::format(format_args!("symdpor: internal error in the runtime: {info}\n"));
    // SAFETY: a buffer of our own.
    unsafe { sys::raw::syscall3(sys::raw::nr::WRITE, 2, text.bytes().as_ptr() as usize, text.bytes().len()) };
    end::quit(70)
}
