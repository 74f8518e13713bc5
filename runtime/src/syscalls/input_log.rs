//! What has been read of a standard input that can be read only once.
//!
//! It is kept in a memory file that belongs to the controller and outlives this worker ([`ENV_INPUT`]). An execution
//! that reads on where earlier ones stopped reads on from the source; everything before that, and that the end has been
//! seen, comes from the log. If the controller gave no file, one is made.

use super::descriptors::{hide_duplicate, size};
use super::errno::ENOMEM;
use super::kernel::real;
use super::names::nr;
use crate::cell::Global;
use crate::sys::{maps, pages};
use symdpor_abi::channel::{ENV_INPUT, INPUT_HEADER};

#[derive(Clone, Copy)]
enum Given {
    Unknown,
    None,
    Descriptor(usize),
}

static GIVEN: Global<Given> = Global::new(Given::Unknown);
static OWN: Global<Option<usize>> = Global::new(None);

/// The descriptor that the controller gave, which the program must not see.
pub fn given() -> Option<usize> {
    let given = GIVEN.get();
    if let Given::Unknown = given {
        *given = find().map_or(Given::None, Given::Descriptor);
    }
    match *given {
        Given::Descriptor(fd) => Some(fd),
        _ => None,
    }
}

fn find() -> Option<usize> {
    const MOST_BYTES: usize = 4 << 20;
    let buffer = pages::map(MOST_BYTES);
    if buffer.is_null() {
        return None;
    }
    // SAFETY: just mapped.
    let text = unsafe { core::slice::from_raw_parts_mut(buffer, MOST_BYTES) };
    let len = maps::read_file(c"/proc/self/environ", text)?;
    let entry = |entry: &'static [u8]| entry.strip_prefix(ENV_INPUT.as_bytes())?.strip_prefix(b"=");
    let value = text[..len].split(|&b| b == 0).find_map(entry)?;
    core::str::from_utf8(value).ok()?.parse().ok()
}

/// The log's descriptor.
fn log() -> Option<usize> {
    given().or_else(|| {
        let own = OWN.get();
        if own.is_none() {
            *own = make();
        }
        *own
    })
}

fn make() -> Option<usize> {
    const MFD_CLOEXEC: usize = 1;
    let name = c"symdpor-input";
    let fd = real(nr::memfd_create, [name.as_ptr() as usize, MFD_CLOEXEC, 0, 0, 0, 0]);
    let hidden = hide_duplicate(usize::try_from(fd).ok()?);
    real(nr::close, [fd as usize, 0, 0, 0, 0, 0]);
    hidden
}

/// Bytes in the log.
fn logged(log: usize) -> u64 {
    size(log).saturating_sub(INPUT_HEADER as u64)
}

fn has_ended(log: usize) -> bool {
    let mut ended = 0u64;
    real(nr::pread64, [log, &raw mut ended as usize, 8, 0, 0, 0]) == 8 && ended != 0
}

/// Reads at a position into a buffer of the program, which must be writable; returns what `read` does.
pub fn read(source: usize, position: u64, buffer: usize, len: usize) -> isize {
    let Some(log) = log() else { return ENOMEM };
    if position < logged(log) {
        return real(nr::pread64, [log, buffer, len, INPUT_HEADER + position as usize, 0, 0]);
    }
    if has_ended(log) { 0 } else { extend(source, log, position, buffer, len) }
}

fn extend(source: usize, log: usize, position: u64, buffer: usize, len: usize) -> isize {
    let got = real(nr::read, [source, buffer, len, 0, 0, 0]);
    if got > 0 {
        keep(log, buffer, got as usize, INPUT_HEADER + position as usize);
    } else if got == 0 && len > 0 {
        let ended = 1u64;
        keep(log, &raw const ended as usize, 8, 0);
    }
    got
}

fn keep(log: usize, from: usize, len: usize, offset: usize) {
    if real(nr::pwrite64, [log, from, len, offset, 0, 0]) != len as isize {
        crate::end::unsupported(format_args!("there is no memory to keep what the program reads from standard input"));
    }
}

/// How many bytes could be read at a position without waiting; at least 1 while the end has not been seen.
pub fn available(position: u64) -> usize {
    let Some(log) = log() else { return 0 };
    let left = logged(log).saturating_sub(position) as usize;
    if left == 0 && !has_ended(log) { 1 } else { left }
}
