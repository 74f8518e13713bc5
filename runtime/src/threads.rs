//! Creating, joining, detaching and ending threads.

use crate::access;
use crate::cancel;
use crate::cycle;
use crate::destructors;
use crate::end::{self, Details};
use crate::exec;
use crate::footprint;
use crate::keys;
use crate::limits;
use crate::pool;
use crate::races;
use crate::sched;
use crate::section;
use crate::spin;
use crate::stack;
use crate::sys::context;
use crate::syscalls;
use crate::thread::{Joining, Life, Start};
use crate::uses;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::channel::{ErrorKind, Outcome};
use symdpor_abi::module::{Function, function_flags};
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind};
use symdpor_detect::heap::Heap;

const EINVAL: i32 = 22;
const ESRCH: i32 = 3;
const EDEADLK: i32 = 35;
pub const EBUSY: i32 = 16;

/// How a thread shall be.
pub struct How {
    pub kind: Start,
    pub detached: bool,
    /// The size of its stack.
    pub stack: usize,
}

/// Creates a thread and writes its `pthread_t` to `out`. Its prologue runs here and now.
#[inline(always)]
pub fn create(out: usize, start: usize, argument: usize, how: How) {
    create_it(out, start, argument, how);
    // Where the new one's stack is must not stay where it could be taken for something that the program knows.
    spin::wipe_below();
}

#[inline(never)]
fn create_it(out: usize, start: usize, argument: usize, how: How) {
    cycle::enter();
    let mut op = Op::new(OpKind::ThreadCreate, ObjectId::THREADS);
    op.arg = exec::get().thread_count as u32;
    sched::visible(op, 0, 0);
    let exec = exec::get();
    let number = exec.thread_count;
    if let Some(step) = sched::last_step() {
        step.op.arg = number as u32;
    }
    let slot = slot_for(number);
    // The new thread may read it at once.
    access::write(out, 8);
    // SAFETY: the program's own pointer; a wild one faults as the program's crash.
    unsafe { *(out as *mut usize) = slot.handle };
    let creator = exec.current;
    exec.thread_count += 1;
    let thread = &mut exec.threads[number as usize];
    thread.life = Life::Alive;
    thread.joining = if how.detached { Joining::Detached } else { Joining::Joinable };
    thread.start_kind = how.kind;
    thread.stack = how.stack;
    thread.in_prologue = true;
    thread.creator = creator;
    (thread.start, thread.argument) = (start, argument);
    thread.chain = footprint::chain_of_start(start, argument);
    thread.fs = slot.fs;
    // SAFETY: the stack below the parked thread's frames belongs to this context alone.
    thread.sp = unsafe { context::prepare(slot.sp, start, argument, returned) };
    if uses::lives() {
        // Who is watched, or may be cancelled, is known by its number.
        footprint::identified(creator);
        footprint::identified(number);
    }
    syscalls::signals::inherit(creator, number);
    races::detector().thread_created(creator, number);
    limits::knows_times_of(number, creator);
    spin::changed();
    sched::run_prologue(number);
    footprint::leave_local(number);
}

fn slot_for(number: u16) -> pool::Slot {
    if let Some(slot) = pool::slot(number as usize) {
        return slot;
    }
    if number as usize >= MAX_THREADS {
        end::unsupported(format_args!("the program creates more than {} threads", MAX_THREADS - 1));
    }
    end::finish(Outcome::Again)
}

/// The start function has returned.
extern "C" fn returned(result: usize) -> ! {
    let c11 = exec::me().start_kind == Start::C11;
    exec::me().returns_the_same = returns_the_same(result);
    finish(if c11 { result as i32 as usize } else { result })
}

/// Whether the result of the running thread's start function is the same for all threads that are about to do the same with the same data.
fn returns_the_same(result: usize) -> bool {
    let (exec, me) = (exec::get(), exec::me());
    let bottom = exec.bottoms[exec.current as usize % MAX_THREADS];
    // In a program whose threads can end in the midst of a function any of them might yet have another result.
    if bottom <= stack::UNKNOWN_BOTTOM || uses::unwinds() {
        return false;
    }
    // SAFETY: the descriptor of a function that was on the stack.
    let flags = unsafe { (*(bottom as *const Function)).flags };
    // The address of a block of its own is another's for each of them.
    let is_plain = !Heap::contains(result) && !pool::STACKS.contains(&result);
    flags & function_flags::RETURNS_CONSTANT != 0
        || flags & function_flags::RETURNS_ARGUMENT != 0 && result == me.argument && is_plain
}

/// The result of a thread that has been joined is used.
pub fn use_result(handle: usize, result: usize) {
    if number_of(handle).is_none_or(|number| !exec::get().threads[number as usize].returns_the_same) {
        footprint::result(result);
    }
}

/// Ends the running thread: destructors, then another thread runs.
pub fn finish(result: usize) -> ! {
    section::leave();
    destructors::run();
    keys::run_destructors();
    crate::robust::owner_ends();
    if uses::lives() && crate::snapshot::is_taken() {
        sched::visible(Op::new(OpKind::ThreadEnd, ObjectId::life(exec::get().current)), 0, 0);
        spin::wrote(exec::me().fs, 1);
    }
    let exec = exec::get();
    let me = exec::me();
    me.result = result;
    let others = exec.threads[..exec.thread_count as usize].iter().filter(|t| t.is_alive()).count() > 1;
    if !others {
        // The last thread to end ends the process, as if by exit(0).
        crate::interpose::process::exit(0);
    }
    me.life = Life::Ended;
    limits::changed();
    sched::leave_ended()
}

/// The thread that a `pthread_t` stands for in this execution.
pub fn number_of(handle: usize) -> Option<u16> {
    let exec = exec::get();
    if handle == exec.threads[0].fs {
        return Some(0);
    }
    pool::number_of(handle).map(|n| n as u16).filter(|&n| n < exec.thread_count)
}

fn misuse(message: &str) -> ! {
    end::error(ErrorKind::LockMisuse, &Details::at(0), format_args!("{message}"))
}

/// Whether the thread that an operation names has ended.
pub fn has_ended(number: u32) -> bool {
    exec::get().threads[number as usize % MAX_THREADS].life == Life::Ended
}

/// The thread that shall be joined.
fn joinable(handle: usize) -> Result<u16, i32> {
    let Some(number) = number_of(handle) else { return Err(ESRCH) };
    if number == exec::get().current {
        return Err(EDEADLK);
    }
    match exec::get().threads[number as usize].joining {
        Joining::Detached => misuse("a detached thread is joined"),
        Joining::Joined => misuse("a thread is joined a second time"),
        Joining::Joinable => Ok(number),
    }
}

/// Waits for a thread to end; its result, or an error number.
pub fn join(handle: usize) -> Result<usize, i32> {
    let number = joinable(handle)?;
    let object = if cancel::is_possible() { ObjectId::life(number) } else { ObjectId::NONE };
    let mut op = Op::new(OpKind::ThreadJoin, object);
    op.arg = number as u32;
    let way = sched::visible(cancel::point(op), 0, 0);
    cancel::look(way);
    Ok(joined(number))
}

/// Joins a thread if it has ended. `limited`: not being scheduled is its waiting, so that it can be cancelled.
pub fn try_join(handle: usize, registers: usize, limited: bool) -> Result<usize, i32> {
    if !limited && number_of(handle) == Some(exec::get().current) {
        // Who asks has not ended, which is all that is looked at.
        return Err(EBUSY);
    }
    let number = joinable(handle)?;
    if !uses::lives() {
        end::unsupported(format_args!(
            "the program calls pthread_tryjoin_np() or its like through a pointer that it has looked up, which symdpor \
             cannot control"
        ));
    }
    let mut op = Op::new(OpKind::TryJoin, ObjectId::life(number));
    op.arg = number as u32;
    exec::get().outside &= !1;
    spin::arrive(registers, Some(0), true);
    let way = sched::visible(if limited { cancel::point(op) } else { op }, 0, 0);
    cancel::look(way);
    if !has_ended(number as u32) {
        sched::executed(OpKind::TryJoinFailed);
        spin::read(exec::get().threads[number as usize].fs, 1);
        return Err(EBUSY);
    }
    sched::executed(OpKind::ThreadJoin);
    Ok(joined(number))
}

/// Joins a thread if it ends within a time limit.
pub fn join_until(handle: usize, deadline: u64, registers: usize) -> Result<usize, i32> {
    limits::begin(registers, deadline);
    let result = try_join(handle, registers, true);
    if result != Err(EBUSY) {
        limits::end();
        return result;
    }
    limits::give_up();
    Err(limits::ETIMEDOUT)
}

fn joined(number: u16) -> usize {
    let exec = exec::get();
    races::detector().thread_joined(exec.current, number);
    limits::knows_times_of(exec.current, number);
    let thread = &mut exec.threads[number as usize];
    if thread.joining != Joining::Joinable {
        misuse("a thread that another has joined or detached meanwhile is joined");
    }
    thread.joining = Joining::Joined;
    thread.result
}

pub fn detach(handle: usize) -> i32 {
    let Some(number) = number_of(handle) else { return ESRCH };
    // Who is detached does nothing else for it. Whoever names it then, names it in all executions.
    if number == exec::get().current {
        footprint::identified(number);
    }
    let thread = &mut exec::get().threads[number as usize];
    match thread.joining {
        Joining::Joinable => {
            thread.joining = Joining::Detached;
            0
        }
        Joining::Detached => EINVAL,
        Joining::Joined => misuse("a thread that was joined is detached"),
    }
}
