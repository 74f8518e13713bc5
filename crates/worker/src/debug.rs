//! One execution under gdb, which starts the program itself: the worker's process is gdb's child, and so is its terminal.

use crate::channel::{Channel, Word};
use crate::error::WorkerError;
use crate::process::{self, Launch};
use crate::worker::{self, Request, Settings};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::Ordering;
use std::time::Duration;
use symdpor_abi::channel::{Header, Outcome, command, options, waiting};

const GLANCE: Duration = Duration::from_millis(50);

/// Runs gdb with a script until it is left. How the execution ended, if it came to its end.
pub fn run(
    settings: &Settings,
    request: Request<'_>,
    gdb: &Path,
    script: &Path,
) -> Result<Option<(Outcome, Header)>, WorkerError> {
    let mut channel = Channel::new(waiting::NOTHING).map_err(WorkerError::Channel)?;
    let request = Request { options: request.options | options::DEBUGGER, ..request };
    worker::write_request(&mut channel, request, settings, waiting::NOTHING);
    let mut sequence = 1;
    channel.word(Word::Command).store(command::RUN | sequence << 8, Ordering::SeqCst);
    let mut child = start(&settings.launch, &channel, gdb, script).map_err(WorkerError::Start)?;
    while child.try_wait().map_err(WorkerError::Start)?.is_none() {
        // With more threads than it has stacks for, the runtime begins anew.
        if answered(&channel, sequence) == Some(Outcome::Again) {
            sequence += 1;
            channel.word(Word::Command).store(command::RUN | sequence << 8, Ordering::SeqCst);
            channel.wake_worker();
        }
        std::thread::sleep(GLANCE);
    }
    Ok(answered(&channel, sequence).map(|outcome| (outcome, channel.header())))
}

fn answered(channel: &Channel, sequence: u32) -> Option<Outcome> {
    let has = channel.word(Word::Answer).load(Ordering::Acquire) == sequence;
    has.then(|| Outcome::from_u32(channel.header().outcome)).flatten()
}

fn start(launch: &Launch, channel: &Channel, gdb: &Path, script: &Path) -> io::Result<Child> {
    let mut command = Command::new(gdb);
    command.arg("-q").arg("-nh");
    let mut tell = |line: OsString| {
        command.arg("-iex").arg(line);
    };
    // A shell would be the one to get the runtime.
    tell("set startup-with-shell off".into());
    tell("set auto-load libthread-db off".into());
    tell("set debuginfod enabled off".into());
    let descriptors = process::lend(channel.descriptor());
    let mut for_program = Command::new(&launch.program);
    process::set_environment(&mut for_program, launch, &descriptors);
    for (name, value) in for_program.get_envs() {
        let mut line = OsString::from(if value.is_some() { "set environment " } else { "unset environment " });
        line.push(name);
        if let Some(value) = value {
            line.push(" ");
            line.push(value);
        }
        tell(line);
    }
    command.arg("-x").arg(script).arg("--args").arg(&launch.program).args(launch.arguments.iter().skip(1));
    if let Some(directory) = &launch.directory {
        command.current_dir(directory);
    }
    process::give(&mut command, descriptors);
    command.spawn()
}
