//! Child processes that cannot hang a test: each runs in a process group of its own, which is killed when time is up.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub struct Ran {
    /// None if it had to be killed.
    pub status: Option<ExitStatus>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub time: Duration,
}

impl Ran {
    /// The exit code; a timeout or a signal is none.
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|s| s.code())
    }

    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// How it ended and what it said, for messages.
    pub fn describe(&self) -> String {
        let ended = match self.status {
            None => format!("still running after {:?}", self.time),
            Some(s) => match s.signal() {
                Some(signal) => format!("killed by signal {signal}"),
                None => format!("exit code {}", s.code().unwrap_or(-1)),
            },
        };
        format!("{ended}\n--- stdout\n{}\n--- stderr\n{}", cut(&self.output()), cut(&self.errors()))
    }
}

fn cut(text: &str) -> String {
    const MOST: usize = 4000;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// Runs the command to its end, at most for `limit`.
pub fn run(command: &mut Command, limit: Duration) -> Ran {
    let started = Instant::now();
    let mut child = start(command);
    let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let status = wait(&mut child, started + limit);
    if status.is_none() {
        kill_group(&mut child);
    }
    let collected = |handle: JoinHandle<Vec<u8>>| handle.join().expect("the reader does not panic");
    Ran { status, stdout: collected(stdout), stderr: collected(stderr), time: started.elapsed() }
}

/// Starts the command in a process group of its own, output piped, nothing to read unless the caller said otherwise.
pub fn start(command: &mut Command) -> Child {
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

fn collect(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            stream.read_to_end(&mut bytes).expect("a pipe can be read");
        }
        bytes
    })
}

/// Waits until the child ends or the deadline has passed.
pub fn wait(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

pub fn kill_group(child: &mut Child) {
    let group = i32::try_from(child.id()).expect("process ids are small");
    // SAFETY: kill has no memory effects; the group is the child's own, made by `start`, and not yet waited for.
    unsafe { libc::kill(-group, libc::SIGKILL) };
    child.wait().expect("a killed child can be waited for");
}
