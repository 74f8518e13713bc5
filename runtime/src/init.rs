//! Start-up: whoever comes first, the runtime's own constructor, a module that registers or a call to malloc.
//!
//! Nothing here may need libc to be initialised: the environment is read from /proc.

use crate::cell::Global;
use crate::channel;
use crate::dispatch;
use crate::end;
use crate::exec;
use crate::names;
use crate::races;
use crate::sys::maps;
use crate::sys::pages;
use crate::sys::raw::{nr, syscall3, syscall6};
use crate::sys::signals;
use core::ops::Range;
use symdpor_abi::channel::ENV_CHANNEL;

static DONE: Global<bool> = Global::new(false);
static OWN: Global<Range<usize>> = Global::new(0..0);
static CHANNEL_FD: Global<usize> = Global::new(usize::MAX);

#[inline(always)]
pub fn ensure() {
    if !*DONE.get() {
        start();
    }
}

/// The runtime's own writable data, which the snapshot leaves out.
pub fn own_data() -> Range<usize> {
    OWN.get().clone()
}

/// The channel's descriptor, which the program must not see.
pub fn channel_fd() -> usize {
    *CHANNEL_FD.get()
}

#[cold]
fn start() {
    *DONE.get() = true;
    let Some(fd) = channel_number() else {
        complain(b"symdpor: libsymdpor_rt.so is loaded by `symdpor run` only\n");
        end::quit(2)
    };
    *CHANNEL_FD.get() = fd;
    if channel::attach(fd).is_none() {
        complain(b"symdpor: libsymdpor_rt.so is of another version than symdpor: install both from one build\n");
        end::quit(2)
    }
    avoid_huge_pages();
    find_own_data();
    exec::init();
    races::init();
    check_processor();
    grow_main_stack();
    names::find_main_stack();
    if !signals::install_all() {
        end::unsupported(format_args!("the system refuses to install signal handlers"));
    }
    if !dispatch::start() {
        end::unsupported(format_args!("the kernel has no syscall user dispatch (Linux 5.11 or newer is needed)"));
    }
    channel::header().attached = 1;
}

/// A huge page would be present, and be copied, as a whole.
fn avoid_huge_pages() {
    const PR_SET_THP_DISABLE: usize = 41;
    // SAFETY: a setting of this process; if it is refused nothing but memory is lost.
    unsafe { syscall6(nr::PRCTL, PR_SET_THP_DISABLE, 1, 0, 0, 0, 0) };
}

fn complain(text: &[u8]) {
    // SAFETY: a constant text.
    unsafe { syscall3(nr::WRITE, 2, text.as_ptr() as usize, text.len()) };
}

fn channel_number() -> Option<usize> {
    const BUFFER: usize = 4 << 20;
    let buffer = pages::map(BUFFER);
    if buffer.is_null() {
        return None;
    }
    // SAFETY: just mapped.
    let text = unsafe { core::slice::from_raw_parts_mut(buffer, BUFFER) };
    let len = maps::read_file(c"/proc/self/environ", text)?;
    let value = text[..len]
        .split(|&b| b == 0)
        .find_map(|entry| entry.strip_prefix(ENV_CHANNEL.as_bytes())?.strip_prefix(b"="))?;
    core::str::from_utf8(value).ok()?.parse().ok()
}

unsafe extern "C" {
    /// Defined by the linker: the end of this library's data.
    static _end: u8;
}

/// Between its first writable page and `_end` lies nothing but the library itself; before that page its read-only parts.
fn find_own_data() {
    let inside = DONE.as_ptr() as usize;
    let start = first_own_mapping(inside).unwrap_or(inside & !(pages::PAGE - 1));
    *OWN.get() = start..pages::round_up(&raw const _end as usize);
}

/// The lowest writable mapping of the run of adjacent mappings that holds `inside`.
fn first_own_mapping(inside: usize) -> Option<usize> {
    let mut run: Option<(usize, usize)> = None;
    let mut found = None;
    maps::for_each(|m| {
        if !m.writable {
            run = None;
            return;
        }
        run = match run {
            Some((start, end)) if end == m.start => Some((start, m.end)),
            _ => Some((m.start, m.end)),
        };
        if m.start <= inside && inside < m.end {
            found = run.map(|(start, _)| start);
        }
    });
    found
}

/// Switching thread control blocks needs the instruction that writes the FS base.
fn check_processor() {
    const AT_HWCAP2: usize = 26;
    const FSGSBASE: usize = 2;
    let mut entries = [0usize; 128];
    // SAFETY: a plain array seen as bytes.
    let bytes = unsafe { core::slice::from_raw_parts_mut(entries.as_mut_ptr() as *mut u8, size_of_val(&entries)) };
    maps::read_file(c"/proc/self/auxv", bytes);
    let found = entries.chunks(2).any(|pair| pair[0] == AT_HWCAP2 && pair[1] & FSGSBASE != 0);
    if !found {
        end::unsupported(format_args!("the processor or the kernel has no FSGSBASE instructions"));
    }
}

/// Main's stack grows on demand, unseen: it is made as large as it may become before the snapshot looks at it.
fn grow_main_stack() {
    const MOST: usize = 8 << 20;
    const MARGIN: usize = 256 << 10;
    let mut limit = [0usize; 2];
    // SAFETY: two words for RLIMIT_STACK.
    unsafe { syscall3(97, 3, limit.as_mut_ptr() as usize, 0) };
    let here = &raw const limit as usize;
    let reach = limit[0].min(MOST).saturating_sub(MARGIN);
    if limit[0] == 0 || reach == 0 {
        return;
    }
    // SAFETY: within the limit of the stack, below everything in use; the kernel extends the mapping.
    unsafe { ((here - reach) as *mut u8).write_volatile(0) };
}

/// Run by the dynamic linker before any other constructor.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

extern "C" fn constructor() {
    ensure();
    // SAFETY: a function that lives as long as the process.
    unsafe { on_exit(at_exit, 0) };
}

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(i32, usize), argument: usize) -> i32;
    fn fflush(stream: usize) -> i32;
}

/// Registered first, so called last: ends the process as `exit` is about to, without the detour of a trapped system call.
extern "C" fn at_exit(status: i32, _: usize) {
    // SAFETY: all streams.
    unsafe { fflush(0) };
    end::exit_process(status)
}
