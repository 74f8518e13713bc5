//! Ending the run because the program does something that cannot be controlled: what it is, and why.

use super::descriptors::{number as number_in, path_of};
use super::kernel::{self, Text};
use super::{Args, name};
use crate::end::unsupported;

/// Why a system call is refused.
#[derive(Clone, Copy)]
pub enum Reason {
    /// There is no model of it.
    Yet,
    /// It makes another process, or becomes another program.
    Process,
    /// It changes files, which other executions would see. The path is this argument.
    ChangesFile(usize),
    /// It changes the file of this descriptor.
    ChangesDescriptor(usize),
    /// It waits for, or asks for, a signal from outside.
    Signal,
    /// It would get in the way of the runtime.
    Interferes,
}

const AFTER_START: &str = "after its first thread was created";

pub fn refuse(number: usize, args: Args, reason: Reason) -> ! {
    let name = name(number);
    if name.is_empty() {
        unsupported(format_args!("the program makes system call number {number}, which symdpor does not know"));
    }
    match reason {
        Reason::Yet => unsupported(format_args!("the program calls {name}(), which symdpor cannot control yet")),
        Reason::Process => process(name),
        Reason::ChangesFile(argument) => changes_file(name, kernel::path(args[argument]).unwrap_or(b"?")),
        Reason::ChangesDescriptor(argument) => changes_file(name, path_of(number_in(args[argument]), &mut [0; 256])),
        Reason::Signal => unsupported(format_args!(
            "the program calls {name}(); signals from outside and timers that send them are not supported"
        )),
        Reason::Interferes => {
            unsupported(format_args!("the program calls {name}(), which would get in the way of symdpor's own runtime"))
        }
    }
}

/// `what` makes another process.
pub fn process(what: &str) -> ! {
    unsupported(format_args!(
        "the program calls {what}(); only the threads of one process are supported, not several processes"
    ))
}

/// `what` changes a file.
pub fn changes_file(what: &str, path: &[u8]) -> ! {
    unsupported(format_args!(
        "the program calls {what}() on '{}' {AFTER_START}; executions are repeated, and a changed file cannot be put back",
        Text(path)
    ))
}

pub fn opens_for_writing(path: &[u8]) -> ! {
    unsupported(format_args!(
        "the program opens '{}' for writing {AFTER_START}; executions are repeated, and a changed file cannot be put back",
        Text(path)
    ))
}

/// `what` uses a descriptor that is neither a file nor one of the standard ones. What has no path is called
/// `pipe:[number]` by the kernel.
pub fn uses_channel(what: &str, path: &[u8]) -> ! {
    let kind = path.split(|&b| b == b':').next().unwrap_or(path);
    unsupported(format_args!(
        "the program calls {what}() on a descriptor of {} {AFTER_START}; pipes, sockets and devices are not supported yet",
        Text(kind)
    ))
}

/// `what` changes memory that was mapped before the snapshot was taken.
pub fn changes_old_mapping(what: &str, address: usize) -> ! {
    unsupported(format_args!(
        "the program calls {what}() on memory at {address:#x} that was mapped before its first thread was created, which \
         symdpor cannot undo yet"
    ))
}
