//! The end of an execution: what is told to the controller, and the way back to the cycle.

use crate::author;
use crate::cell::Global;
use crate::channel::{self, Writer};
use crate::exec;
use crate::names;
use crate::sched;
use crate::spin;
use crate::stack;
use crate::sys::raw::{nr, syscall3};
use crate::sys::signals::{SignalInfo, UserContext};
use crate::syscalls::turn;
use crate::thread::Thread;
use crate::whereabouts::{self, Place};
use core::fmt::{Arguments, Write};
use symdpor_abi::channel::{
    ERROR_BYTES, ERROR_OFFSET, ErrorKind, ErrorRecord, Outcome, PENDING_BYTES, PENDING_OFFSET, Pending,
};
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{NO_THREAD, Op, OpKind};
use symdpor_abi::outside::What;

/// What is known of an error besides its message and the stack of the thread it happened in.
#[derive(Clone, Copy)]
pub struct Details {
    pub site: usize,
    /// Of a crash: where the program was, which the site of the last hook need not tell.
    pub instruction: usize,
    pub address: usize,
    pub mask: u8,
    pub other_thread: u32,
    pub access_bits: u32,
    /// Site ids of where a block was allocated and freed, with the thread; 0 if it does not apply.
    pub allocated: (u32, u32),
    pub freed: (u32, u32),
}

impl Details {
    pub const fn at(site: usize) -> Details {
        Details {
            site,
            instruction: 0,
            address: 0,
            mask: 0,
            other_thread: NO_THREAD,
            access_bits: 0,
            allocated: (0, 0),
            freed: (0, 0),
        }
    }
}

/// Ends the execution with an error in the running thread.
pub fn error(kind: ErrorKind, details: &Details, message: Arguments) -> ! {
    describe(kind, details, message);
    finish(Outcome::Error)
}

/// The program uses a lock, or whatever else threads synchronise with, as it must not.
pub fn misuse(message: &str) -> ! {
    error(ErrorKind::LockMisuse, &Details::at(0), format_args!("{message}"))
}

/// Ends the execution because the program does something that cannot be controlled.
pub fn unsupported(message: Arguments) -> ! {
    describe(ErrorKind::None, &Details::at(0), message);
    finish(Outcome::Unsupported)
}

/// The program raised a fatal signal on itself.
pub fn raised(signal: i32) -> ! {
    channel::header().signal = signal as u32;
    error(ErrorKind::Crash, &Details::at(0), format_args!("{}", signal_text(signal)))
}

/// The process exits: after all others have done what they can, if that is no error, and otherwise as an operation that depends
/// on all others. Before the snapshot there are no others.
pub fn exit_process(status: i32) -> ! {
    let op = match status as u32 & 0xff {
        0 => Op::quiet_exit(),
        status => Op { arg: status, ..Op::new(OpKind::ProcessExit, symdpor_abi::object::ObjectId::NONE) },
    };
    if crate::snapshot::is_taken() {
        sched::visible(op, 0, 0);
    }
    channel::header().exit_status = op.arg;
    finish(if op.arg == 0 && author::is_dropped() { Outcome::Dropped } else { Outcome::Exited })
}

/// Ends the execution: writes what the threads were about to do, and leaves to the cycle.
pub fn finish(outcome: Outcome) -> ! {
    let mut outcome = outcome;
    if crate::ahead::is_under_way() {
        crate::cycle::leave(outcome);
    }
    if crate::races::detector().exhausted() && outcome != Outcome::Unsupported {
        let text = format_args!("the memory of the race detector is used up: races may have been missed");
        describe(ErrorKind::None, &Details::at(0), text);
        outcome = Outcome::Unsupported;
    }
    crate::footprint::end_step();
    write_pending();
    channel::header().current_thread = exec::get().current as u32;
    crate::debugger::end(outcome);
    crate::cycle::leave(outcome)
}

/// The execution has come back to a state that it has been in.
pub fn repeated() -> ! {
    if !channel::says(symdpor_abi::channel::options::LIVELOCK) {
        finish(Outcome::Repeated)
    }
    let text =
        format_args!("the threads take turns for ever: whatever they do, they come back to where they have been");
    error(ErrorKind::Livelock, &Details::at(0), text)
}

/// A signal that the hardware raised. The process is not trusted any more: the worker ends with this execution.
pub fn crashed(signal: i32, info: &SignalInfo, context: &UserContext) -> ! {
    static NESTED: Global<bool> = Global::new(false);
    if core::mem::replace(NESTED.get(), true) {
        quit(70);
    }
    channel::header().signal = signal as u32;
    names::look_if_new();
    let mut details = Details::at(last_site(context.instruction(), info.address));
    details.address = info.address;
    details.instruction = context.instruction();
    if crate::syscalls::program_handles(signal) {
        let text = format_args!(
            "{}, and the program handles this signal itself, which symdpor cannot follow",
            signal_text(signal)
        );
        describe(ErrorKind::None, &details, text);
        end_worker(Outcome::Unsupported);
    }
    let overflow = stack::is_overflow(info.address, context.stack_pointer());
    if overflow {
        describe(ErrorKind::Crash, &details, format_args!("{} (stack overflow)", signal_text(signal)));
    } else if signal == SIGSEGV && info.code == SI_KERNEL {
        // The processor does not tell the address.
        let text =
            "an address that cannot be one (a pointer that was overwritten?), or an instruction that is not allowed";
        describe(ErrorKind::Crash, &details, format_args!("{}: {text}", signal_text(signal)));
    } else {
        let text = format_args!(
            "{} at address {:#x} (instruction {:#x})",
            signal_text(signal),
            info.address,
            context.instruction()
        );
        describe(ErrorKind::Crash, &details, text);
    }
    end_worker(Outcome::Error)
}

const SIGSEGV: i32 = 11;
/// The code of a fault that is not about one page.
const SI_KERNEL: i32 = 0x80;

/// The site of the last hook, if it is in the code that is running. In a library's code the frames know better: they
/// note every call.
fn last_site(instruction: usize, address: usize) -> usize {
    let (site, atomic) = (exec::get().last_site, exec::get().last_atomic);
    let is_atomic = address.wrapping_add(1).wrapping_sub(atomic) < 16 && atomic != 0;
    if site != 0 && (names::are_together(site, instruction) || is_atomic) { site } else { 0 }
}

/// The controller found that nothing moves.
pub fn watchdog(context: &UserContext) -> ! {
    stuck_outside(context);
    let text = format_args!("thread {} ran for long without reaching a visible operation", exec::get().current);
    let details = Details { instruction: context.instruction(), ..Details::at(exec::get().last_site) };
    describe(ErrorKind::Livelock, &details, text);
    end_worker(Outcome::StepLimit)
}

/// If code that was not compiled with the pass keeps the thread: its name, and the end of the run. Nothing can be said about the
/// program then.
fn stuck_outside(context: &UserContext) {
    let (current, stack) = (exec::get().current, context.stack_pointer());
    let Some((place, caller)) = whereabouts::outside(context.instruction(), stack) else { return };
    let name = |p: &Place| if p.function.is_empty() { "a function" } else { p.function };
    let text = match &caller {
        Some(c) => Text::format(format_args!(", called by {} of {}", name(c), c.library)),
        None => Text::format(format_args!("")),
    };
    let called = core::str::from_utf8(text.bytes()).unwrap_or("");
    let message = format_args!(
        "thread {current} does not come back from {} of {}{called}: what waits or spins in code that was not compiled with \
         symdpor cannot be controlled",
        name(&place),
        place.library,
    );
    describe(ErrorKind::None, &Details::at(0), message);
    end_worker(Outcome::Unsupported)
}

fn end_worker(outcome: Outcome) -> ! {
    if crate::ahead::is_under_way() {
        // Nobody has asked yet. The controller runs its plan in another worker.
        quit(74);
    }
    write_pending();
    channel::header().current_thread = exec::get().current as u32;
    crate::debugger::end(outcome);
    channel::answer(outcome);
    quit(0)
}

/// Ends the process at once.
pub fn quit(status: usize) -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { syscall3(nr::EXIT_GROUP, status, 0, 0) };
    }
}

fn signal_text(signal: i32) -> &'static str {
    match signal {
        1 => "hangup (SIGHUP)",
        2 => "interrupted (SIGINT)",
        3 => "quit (SIGQUIT)",
        4 => "illegal instruction (SIGILL)",
        5 => "trap (SIGTRAP)",
        6 => "abort (SIGABRT)",
        7 => "bus error (SIGBUS)",
        8 => "arithmetic error (SIGFPE)",
        9 => "killed (SIGKILL)",
        10 => "killed by SIGUSR1, for which it has no handler",
        11 => "segmentation fault (SIGSEGV)",
        12 => "killed by SIGUSR2, for which it has no handler",
        13 => "broken pipe (SIGPIPE)",
        14 => "alarm clock (SIGALRM)",
        15 => "terminated (SIGTERM)",
        _ => "killed by a signal of its own",
    }
}

/// Text of bounded length; what does not fit is cut.
pub struct Text {
    bytes: [u8; 2048],
    len: usize,
}

impl Text {
    pub fn format(arguments: Arguments) -> Text {
        let mut text = Text { bytes: [0; 2048], len: 0 };
        // Cutting is not a failure.
        let _ = text.write_fmt(arguments);
        text
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> core::fmt::Result {
        let room = self.bytes.len() - self.len;
        let mut cut = part.len().min(room);
        while !part.is_char_boundary(cut) {
            cut -= 1;
        }
        self.bytes[self.len..self.len + cut].copy_from_slice(&part.as_bytes()[..cut]);
        self.len += cut;
        Ok(())
    }
}

fn describe(kind: ErrorKind, details: &Details, message: Arguments) {
    let text = Text::format(message);
    let header = channel::header();
    header.error_kind = kind as u32;
    let mut record = ErrorRecord {
        thread: exec::get().current as u32,
        site: stack::site_id(stack::innermost(details.site)),
        object: if details.address == 0 { 0 } else { names::object(details.address).0 },
        mask: details.mask as u32,
        other_thread: details.other_thread,
        access_bits: details.access_bits,
        message_len: text.bytes().len() as u32,
        stack_count: 0,
        reserved: 0,
        address: details.address as u64,
        instruction: names::in_program(details.instruction).unwrap_or(0) as u64,
    };
    let mut writer = Writer::new(ERROR_OFFSET, ERROR_BYTES);
    writer.record(&record);
    writer.bytes(text.bytes().as_ptr() as usize, text.bytes().len());
    record.stack_count = stack::write_all(&mut writer, details);
    header.error_len = writer.used() as u32;
    Writer::new(ERROR_OFFSET, ERROR_BYTES).record(&record);
}

/// No thread can go on. A deadlock, or, if some spin, a livelock.
pub fn stuck() -> ! {
    if author::is_dropped() {
        finish(if spin::spinner().is_some() { Outcome::DroppedHere } else { Outcome::Dropped });
    }
    if let Some(number) = signal_waiter() {
        unsupported(format_args!("thread {number} waits for a signal that only another process could send"));
    }
    if let (Some(number), Some(address)) = (waits_for_clients(), crate::syscalls::lonely()) {
        unsupported(format_args!(
            "thread {number} waits, and only another process could connect to {address}, where the program takes connections; clients \
             have to be threads of the program"
        ));
    }
    if let Some((number, address)) = waits_for_others() {
        unsupported(format_args!(
            "thread {number} waits for {address}, which is outside of this process and has sent nothing for some seconds"
        ));
    }
    if let Some(number) = cancelled_inside() {
        unsupported(format_args!(
            "thread {number} shall be cancelled while it waits inside of a library's function (of <stdio.h>, say), which symdpor \
             cannot follow"
        ));
    }
    let Some(number) = spin::spinner() else {
        describe(ErrorKind::None, &Details::at(0), format_args!("no thread can go on"));
        finish(Outcome::Deadlock)
    };
    let exec = exec::get();
    let site = exec.threads[number as usize].pending_site;
    // The error is the spinning thread's, whoever ran last.
    exec.threads[exec.current as usize].top = exec.top;
    (exec.current, exec.top) = (number, exec.threads[number as usize].top);
    let text = format_args!("thread {number} spins, and no other thread will ever write to what it reads");
    error(ErrorKind::Livelock, &Details::at(site), text)
}

/// A thread that waits for a signal, in a program that sends none.
fn signal_waiter() -> Option<u16> {
    let exec = exec::get();
    let waits = |n: &u16| {
        let thread = &exec.threads[*n as usize];
        thread.is_alive() && exec.pending.contains(*n) && thread.pending.object == ObjectId::SIGNALS
    };
    (0..exec.thread_count).find(waits).filter(|_| !crate::uses::signals())
}

/// A thread that waits for a descriptor while somebody outside owes an answer.
fn waits_for_others() -> Option<(u16, impl core::fmt::Display)> {
    waits_for_descriptor().zip(crate::syscalls::silent())
}

/// A thread that waits for connections, if nobody waits for anything else but the end of threads: any other wait may be what keeps a
/// client of the program's own from connecting.
fn waits_for_clients() -> Option<u16> {
    let exec = exec::get();
    let pending = |n: &u16| &exec.threads[*n as usize].pending;
    let for_clients = |op: &Op| {
        let what = op.arg as u8;
        turn::is_outside(op.kind) && (what == What::Accept as u8 || what == What::Poll as u8)
    };
    let alive = || (0..exec.thread_count).filter(|n| exec.threads[*n as usize].is_alive());
    let all = alive().all(|n| for_clients(pending(&n)) || pending(&n).kind == OpKind::ThreadJoin);
    alive().find(|n| for_clients(pending(n))).filter(|_| all && spin::spinner().is_none())
}

fn waits_for_descriptor() -> Option<u16> {
    let exec = exec::get();
    let waits = |n: &u16| {
        let thread = &exec.threads[*n as usize];
        thread.is_alive() && exec.pending.contains(*n) && turn::is_outside(thread.pending.kind)
    };
    (0..exec.thread_count).find(waits)
}

/// A thread that could be cancelled where it waits, if that were in a function that is taken over.
fn cancelled_inside() -> Option<u16> {
    let exec = exec::get();
    let waits = |n: &u16| {
        let thread = &exec.threads[*n as usize];
        let outside = turn::is_outside(thread.pending.kind) && !thread.pending.may_be_cancelled();
        thread.is_alive() && exec.pending.contains(*n) && outside && crate::cancel::acts(thread)
    };
    (0..exec.thread_count).find(waits)
}

/// Who holds what a thread waits for, and the site where it was taken.
fn holder_of(thread: &Thread) -> (u32, u32) {
    match thread.pending.kind {
        OpKind::MutexLock if thread.pending.mask != 0xff => crate::spinlock::holder_of(thread.pending_address),
        OpKind::RwRead | OpKind::RwWrite => crate::rwlock::holder_of(thread.pending_address),
        _ => crate::mutex::holder_of(thread),
    }
}

fn write_pending() {
    sched::end_trace();
    crate::accesses::finish();
    crate::footprint::finish();
    crate::output::tell();
    let exec = exec::get();
    let mut writer = Writer::new(PENDING_OFFSET, PENDING_BYTES);
    let mut count = 0;
    for number in 0..exec.thread_count {
        let thread = &exec.threads[number as usize];
        if !thread.is_alive() || !exec.pending.contains(number) {
            continue;
        }
        let (holder, held_since) = holder_of(thread);
        let pending = Pending {
            thread: number,
            enabled: sched::is_enabled(number) as u16,
            site: stack::site_id(thread.pending_site),
            op: thread.pending,
            holder,
            held_since,
        };
        if !writer.record(&pending) {
            break;
        }
        count += 1;
    }
    channel::header().pending_count = count;
    channel::header().thread_count = exec.thread_count as u32;
}
