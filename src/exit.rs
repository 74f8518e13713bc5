//! The exit codes that scripts depend on.

use std::process::ExitCode;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Every behaviour explored, no error; or nothing was to be decided.
    Ok = 0,
    /// An error was found.
    Error = 1,
    /// Wrong usage or environment.
    Usage = 2,
    /// A limit was reached, no error so far.
    Incomplete = 3,
    /// The program does something that cannot be controlled.
    Unsupported = 4,
    /// A replayed error did not come back.
    NotReproduced = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
