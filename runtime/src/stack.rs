//! Stacks of the program, read from the shadow frames.

use crate::channel::{self, Writer};
use crate::end::Details;
use crate::exec;
use crate::names;
use crate::pool;
use crate::watch;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::channel::{STACKS_BYTES, STACKS_OFFSET, StackRecord, StackRole};
use symdpor_abi::module::{Frame, Site, SiteKind};

pub const MAX_FRAMES: usize = 48;

/// Site ids, innermost first.
#[derive(Clone, Copy)]
pub struct Stack {
    pub sites: [u32; MAX_FRAMES],
    pub len: usize,
}

impl Stack {
    pub const EMPTY: Stack = Stack { sites: [0; MAX_FRAMES], len: 0 };

    /// The frames from `top` on; the innermost one is at `site`, or where its own record says if that is 0.
    pub fn walk(top: usize, site: usize) -> Stack {
        let mut stack = Stack::EMPTY;
        let mut frame = top;
        let mut at = site;
        while stack.len < MAX_FRAMES {
            let (previous, recorded) = if names::is_stack(frame) { read(frame) } else { (0, 0) };
            let here = if at != 0 { at } else { recorded };
            if here != 0 {
                stack.sites[stack.len] = site_id(here);
                stack.len += 1;
            }
            if previous == 0 {
                break;
            }
            at = 0;
            frame = previous;
        }
        stack
    }

    /// Of the running thread.
    pub fn here(site: usize) -> Stack {
        Stack::walk(exec::get().top, site)
    }

    fn write(&self, writer: &mut Writer, thread: u32, role: StackRole) -> u32 {
        let record = StackRecord { thread, role: role as u32, frame_count: self.len as u32, reserved: 0 };
        (writer.record(&record) && writer.bytes(self.sites.as_ptr() as usize, self.len * 4)) as u32
    }
}

/// Previous frame and site of a frame.
fn read(frame: usize) -> (usize, usize) {
    // SAFETY: frames lie on stacks, and the address was checked to be on one.
    let frame = unsafe { &*(frame as *const Frame) };
    (frame.prev, frame.site)
}

/// The number of a site that a module registered, 0 for none.
pub fn site_id(site: usize) -> u32 {
    if site == 0 || !crate::modules::is_site(site) {
        return 0;
    }
    // SAFETY: the address is one of a registered table of sites.
    unsafe { (*(site as *const Site)).id }
}

/// The given site, or the one noted in the running thread's newest frame.
pub fn innermost(site: usize) -> usize {
    let top = exec::get().top;
    if site != 0 || !names::is_stack(top) { site } else { read(top).1 }
}

/// Notes with which function the running thread was started, if that is the one of its oldest frame.
pub fn note_bottom() {
    let exec = exec::get();
    let current = exec.current as usize % MAX_THREADS;
    let mut frame = exec.top;
    exec.bottoms[current] = UNKNOWN_BOTTOM;
    // The program may have written over its frames.
    for _ in 0..MAX_FRAMES {
        if current == 0 || !names::is_stack(frame) {
            break;
        }
        // SAFETY: frames lie on stacks, and the address was checked to be on one.
        let record = unsafe { &*(frame as *const Frame) };
        if record.prev == 0 && record.address == exec.threads[current].start {
            exec.bottoms[current] = record.function;
        }
        frame = record.prev;
    }
}

pub const UNKNOWN_BOTTOM: usize = 1;

/// Whether the running thread's newest frame is at a site of this kind.
pub fn is_at(kind: SiteKind) -> bool {
    let site = innermost(0);
    // SAFETY: as above.
    crate::modules::is_site(site) && unsafe { (*(site as *const Site)).kind } == kind as u32
}

/// Id of the innermost site of the running thread.
pub fn here_id() -> u32 {
    site_id(innermost(0))
}

/// Writes the stacks that belong to an error; returns how many.
pub fn write_all(writer: &mut Writer, details: &Details) -> u32 {
    let exec = exec::get();
    // Where the instruction tells more, the site of the last hook stays out of it.
    let site = if names::in_program(details.instruction).is_some() { 0 } else { details.site };
    let mut count = Stack::here(site).write(writer, exec.current as u32, StackRole::Error);
    if let Some(earlier) = watch::earlier(details) {
        count += earlier.write(writer, details.other_thread, StackRole::Earlier);
    }
    for ((site, thread), role) in [(details.allocated, StackRole::Allocated), (details.freed, StackRole::Freed)] {
        if site != 0 {
            let mut stack = Stack::EMPTY;
            stack.sites[0] = site;
            stack.len = 1;
            count += stack.write(writer, thread, role);
        }
    }
    for number in 0..exec.thread_count {
        let thread = &exec.threads[number as usize];
        if number != exec.current && thread.is_alive() && exec.pending.contains(number) {
            count += Stack::walk(thread.top, thread.pending_site).write(writer, number as u32, StackRole::Other);
        }
    }
    count
}

/// Writes the stack that a thread has at the step it is about to make, after those of the steps before.
#[cold]
pub fn write_step(number: u16) {
    let (exec, header) = (exec::get(), channel::header());
    let thread = &exec.threads[number as usize];
    crate::accesses::step(thread.pending.object);
    let top = if number == exec.current { exec.top } else { thread.top };
    let mut writer = Writer::resume(STACKS_OFFSET, STACKS_BYTES, header.stacks_len as usize);
    Stack::walk(top, thread.pending_site).write(&mut writer, number as u32, StackRole::Other);
    header.stacks_len = writer.used() as u32;
}

/// Whether a fault looks like a stack that ran out: near the stack pointer, and below or at the edge of a stack; or in a frame
/// that is larger than what was left of it.
pub fn is_overflow(address: usize, stack_pointer: usize) -> bool {
    let near = address.abs_diff(stack_pointer) < NEAR;
    near && (names::is_stack_guard(address) || is_beyond_wanted(address)) || is_in_frame_below(address, stack_pointer)
}

/// A function touches what is this far from its stack pointer, at most, unless its frame is large.
const NEAR: usize = 64 << 10;

fn is_in_frame_below(address: usize, stack_pointer: usize) -> bool {
    const LARGEST: usize = 1 << 32;
    let number = exec::get().current as usize;
    let end = if number == 0 { names::main_stack().start } else { pool::base(number) };
    let below = end.wrapping_sub(stack_pointer);
    below != 0 && below < LARGEST && (stack_pointer - NEAR..end).contains(&address)
}

/// What the runtime and the hooks need of a stack besides, generously.
const OWN_NEEDS: usize = 64 << 10;

/// Whether an address is on the running thread's stack, but beyond what the program wanted that to be. Asked when a page is
/// written for the first time.
pub fn is_beyond_wanted(address: usize) -> bool {
    let (number, wanted) = (exec::get().current as usize, exec::me().stack);
    let Some(slot) = pool::slot(number).filter(|_| number != 0 && wanted != 0) else { return false };
    (pool::base(number)..slot.sp.saturating_sub(wanted + OWN_NEEDS)).contains(&address)
}

/// Sets an object on the running thread's stack to zero. (What the compiler makes of a plain loop is a call of the program's
/// `memset`, and of volatile writes a copy of each word.)
#[inline(always)]
pub fn clear(address: usize, size: usize) {
    let end = address + size;
    let words_end = address + (size & !7);
    // SAFETY: the program names an object of its own, to which nothing has been written yet.
    unsafe {
        core::arch::asm!(
            "2:",
            "cmp {at}, {words_end}",
            "jae 3f",
            "mov qword ptr [{at}], 0",
            "add {at}, 8",
            "jmp 2b",
            "3:",
            "cmp {at}, {end}",
            "jae 4f",
            "mov byte ptr [{at}], 0",
            "inc {at}",
            "jmp 3b",
            "4:",
            at = inout(reg) address => _,
            words_end = in(reg) words_end,
            end = in(reg) end,
            options(nostack),
        );
    }
}
