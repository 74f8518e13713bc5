//! The log of the standard input, which all workers share.
//!
//! A pipe can be read only once, but every execution shall read the same bytes, those in a later worker too. So the
//! runtime keeps what it reads in a memory file that outlives the worker: see [`symdpor_abi::channel::ENV_INPUT`]. There is
//! one standard input, so there is one log.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

/// The log's descriptor. None if there can be none: then each worker keeps a log of its own.
pub(crate) fn log() -> Option<RawFd> {
    static LOG: OnceLock<Option<OwnedFd>> = OnceLock::new();
    LOG.get_or_init(make).as_ref().map(AsRawFd::as_raw_fd)
}

fn make() -> Option<OwnedFd> {
    // SAFETY: a system call with a string that ends in NUL.
    let fd = unsafe { libc::memfd_create(c"symdpor-input".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: the descriptor was just made and belongs to nobody else.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}
