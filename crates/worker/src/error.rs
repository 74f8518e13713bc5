//! Why a program cannot be run. Each message says what to do about it.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    #[error("{}: no such program{hint}", path.display())]
    NotFound { path: PathBuf, hint: String },
    #[error("{}: this is a directory, not a program", .0.display())]
    Directory(PathBuf),
    #[error("{}: cannot be read: {}", .0.display(), .1)]
    Unreadable(PathBuf, std::io::Error),
    #[error("{}: not executable (chmod +x it, or is it the right file?)", .0.display())]
    NotExecutable(PathBuf),
    #[error("{}: this is a script: symdpor runs compiled programs, name the program that the script starts", .0.display())]
    Script(PathBuf),
    #[error("{}: not an ELF executable for x86-64: build it for this machine with `symdpor cc` or `symdpor c++`", .0.display())]
    WrongFormat(PathBuf),
    #[error("{}: statically linked, so the runtime cannot be loaded into it: link it without -static", .0.display())]
    Static(PathBuf),
    #[error("{}: built with -fsanitize={flag}, which takes over what symdpor has to: build it without", path.display())]
    Sanitizer { path: PathBuf, flag: &'static str },
    #[error("{}: set-user-id or set-group-id programs ignore LD_PRELOAD: remove the bit (chmod ug-s) or run a copy", .0.display())]
    SetId(PathBuf),
    #[error("{}: built by a pass of another version ({found}, this symdpor has {ours}): rebuild the program", path.display())]
    OtherVersion { path: PathBuf, found: u32, ours: u32 },
    #[error("{}: its `.symdpor` section is damaged: rebuild the program", .0.display())]
    DamagedSection(PathBuf),
    #[error("{}: not instrumented: build it with `symdpor cc` or `symdpor c++`, or with clang-22 -fpass-plugin=libsymdpor.so", .0.display())]
    NotInstrumented(PathBuf),
}

/// A failure of the machinery around the program.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("shared memory for the program cannot be made: {0}")]
    Channel(std::io::Error),
    #[error("the program cannot be started: {0}")]
    Start(std::io::Error),
    #[error("the program ended with {0} before the runtime was in charge: does it start without symdpor?")]
    NeverAttached(String),
    #[error("the program does not start: nothing was heard from it within {0} s")]
    NoStart(u64),
    #[error("this schedule is too long: {0} choices")]
    PlanTooLong(usize),
    #[error("the runtime asked {0} times for the same execution again: too many threads?")]
    TooManyReruns(u32),
}
