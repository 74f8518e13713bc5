//! The log of the standard input, which all workers share.
//!
//! A pipe can be read only once, but every execution shall read the same bytes, those in a later worker too. So the
//! runtime keeps what it reads in a memory file that outlives the worker: see [`symdpor_abi::channel::ENV_INPUT`]. There is
//! one standard input, so there is one log.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// The log's descriptor. None if there can be none: then each worker keeps a log of its own.
pub(crate) fn log() -> Option<RawFd> {
    static LOG: OnceLock<Option<OwnedFd>> = OnceLock::new();
    LOG.get_or_init(make).as_ref().map(AsRawFd::as_raw_fd)
}

/// The log, to be taken up by another controller: see [`restore`].
pub fn saved() -> io::Result<Vec<u8>> {
    let Some(file) = file()? else { return Ok(vec![]) };
    let mut bytes = vec![0; file.metadata()?.len() as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Has all workers read what an earlier controller's workers have read. Before the first one is started.
pub fn restore(log: &[u8]) -> io::Result<()> {
    match file()? {
        Some(file) => file.write_all_at(log, 0),
        None if log.is_empty() => Ok(()),
        None => Err(io::Error::other("there is no log of the standard input")),
    }
}

/// Opened anew.
fn file() -> io::Result<Option<File>> {
    let path = log().map(|fd| format!("/proc/self/fd/{fd}"));
    path.map(|path| File::options().read(true).write(true).open(path)).transpose()
}

fn make() -> Option<OwnedFd> {
    // SAFETY: a system call with a string that ends in NUL.
    let fd = unsafe { libc::memfd_create(c"symdpor-input".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: the descriptor was just made and belongs to nobody else.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}
