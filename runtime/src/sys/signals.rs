//! Signal handlers of the runtime. All run on one signal stack and never switch contexts on it.
//!
//! - SIGSYS: a system call of the program; continued in [`super::trap::entry`].
//! - SIGSEGV: the first write to a cold page of the snapshot, or a crash.
//! - SIGBUS, SIGFPE, SIGILL, SIGTRAP: a crash.
//! - SIGPROF: the controller's watchdog asks where the program is.

use super::pages;
use super::raw::{nr, syscall3, syscall6};
use super::trap;
use core::arch::naked_asm;

pub const SIGILL: i32 = 4;
pub const SIGTRAP: i32 = 5;
pub const SIGABRT: i32 = 6;
pub const SIGBUS: i32 = 7;
pub const SIGFPE: i32 = 8;
pub const SIGSEGV: i32 = 11;
pub const SIGPROF: i32 = 27;
pub const SIGSYS: i32 = 31;

const SA_SIGINFO: usize = 4;
const SA_ONSTACK: usize = 0x0800_0000;
const SA_RESTORER: usize = 0x0400_0000;
const SA_NODEFER: usize = 0x4000_0000;
const SIGNAL_STACK_BYTES: usize = 256 << 10;

/// Indices into the general registers of a signal frame.
const REG_RSP: usize = 15;
const REG_RIP: usize = 16;
const REG_ERR: usize = 19;

/// The beginning of the kernel's `ucontext`.
#[repr(C)]
pub struct UserContext {
    flags: usize,
    link: usize,
    stack: [usize; 3],
    registers: [usize; 23],
}

impl UserContext {
    pub fn stack_pointer(&self) -> usize {
        self.registers[REG_RSP]
    }

    pub fn instruction(&self) -> usize {
        self.registers[REG_RIP]
    }
}

/// The beginning of the kernel's `siginfo`.
#[repr(C)]
pub struct SignalInfo {
    signal: i32,
    errno: i32,
    pub code: i32,
    padding: i32,
    pub address: usize,
}

type Handler = extern "C" fn(i32, &SignalInfo, &mut UserContext);

#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

/// By name and by its instructions debuggers know that this is no call. They look for the name of what comes before the place
/// that a handler returns to, so that is not the first instruction.
#[unsafe(naked)]
#[unsafe(export_name = "__restore_rt")]
unsafe extern "C" fn restorer() {
    naked_asm!("nop", ".byte 0x48, 0xc7, 0xc0", ".long {sigreturn}", "syscall", sigreturn = const nr::RT_SIGRETURN)
}

fn install(signal: i32, handler: Handler) -> bool {
    let action = KernelAction {
        handler: handler as usize,
        flags: SA_SIGINFO | SA_ONSTACK | SA_RESTORER | SA_NODEFER,
        restorer: restorer as *const () as usize + 1,
        mask: 0,
    };
    // SAFETY: the record outlives the call, and the handlers are functions of this module.
    unsafe { syscall6(nr::RT_SIGACTION, signal as usize, &raw const action as usize, 0, 8, 0, 0) == 0 }
}

extern "C" fn on_system_call(_: i32, _: &SignalInfo, context: &mut UserContext) {
    *trap::RETURN_TO.get() = context.registers[REG_RIP];
    context.registers[REG_RIP] = trap::entry as *const () as usize;
}

extern "C" fn on_fault(signal: i32, info: &SignalInfo, context: &mut UserContext) {
    const WRITE: usize = 2;
    let writes = context.registers[REG_ERR] & WRITE != 0;
    // A positive code comes from the kernel's fault handler and carries the address.
    let beyond = crate::stack::is_beyond_wanted(info.address);
    if signal == SIGSEGV
        && !beyond
        && info.code > 0
        && info.code < 0x80
        && writes
        && crate::snapshot::on_write_fault(info.address)
    {
        return;
    }
    crate::end::crashed(signal, info, context);
}

extern "C" fn on_watchdog(_: i32, _: &SignalInfo, context: &mut UserContext) {
    crate::end::watchdog(context);
}

/// Installs the handlers and their stack; false if the kernel refuses.
pub fn install_all() -> bool {
    let stack = pages::map(SIGNAL_STACK_BYTES);
    if stack.is_null() {
        return false;
    }
    let record = [stack as usize, 0, SIGNAL_STACK_BYTES];
    // SAFETY: the record is a `stack_t`, and the memory is never given back.
    let ok = unsafe { syscall3(nr::SIGALTSTACK, record.as_ptr() as usize, 0, 0) } == 0;
    ok && install(SIGSYS, on_system_call)
        && install(SIGPROF, on_watchdog)
        && [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP].into_iter().all(|signal| install(signal, on_fault))
}
