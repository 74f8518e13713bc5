//! The worker process: started with the runtime preloaded, never outliving the controller.
//!
//! The kernel kills it when the controller dies (`PR_SET_PDEATHSIG`), dropping [`Process`] kills and reaps it, and so
//! does losing its channel. It is the leader of a process group of its own, so that an interrupt from the terminal goes
//! to the controller alone, which then has time to report; and so that everything it may have forked dies with it.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::fd::RawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use symdpor_abi::channel::{ENV_CHANNEL, ENV_INPUT};

/// What to start.
#[derive(Clone, Debug)]
pub struct Launch {
    pub program: PathBuf,
    /// `argv[0]` and what follows.
    pub arguments: Vec<OsString>,
    pub directory: Option<PathBuf>,
    /// Variables to set, or to remove, in what the controller passes on of its own.
    pub environment: Vec<(String, Option<OsString>)>,
    /// The runtime to preload.
    pub runtime: PathBuf,
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Death {
    Exited(i32),
    Signaled(i32),
    /// It lives, but has overwritten what it should have answered with.
    Damaged,
}

impl std::fmt::Display for Death {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Death::Exited(status) => write!(f, "exit status {status}"),
            Death::Signaled(signal) => write!(f, "signal {signal}"),
            Death::Damaged => write!(f, "a damaged answer"),
        }
    }
}

pub struct Process {
    child: Child,
    death: Option<Death>,
}

impl Process {
    pub fn start(launch: &Launch, channel: RawFd) -> io::Result<Process> {
        let descriptors = lend(channel);
        let mut command = Command::new(&launch.program);
        if let Some(name) = launch.arguments.first() {
            command.arg0(name);
        }
        command.args(launch.arguments.iter().skip(1));
        set_environment(&mut command, launch, &descriptors);
        if let Some(directory) = &launch.directory {
            command.current_dir(directory);
        }
        if io::stdin().is_terminal() {
            // A background process group that reads from the terminal is stopped for good.
            command.stdin(Stdio::null());
        }
        command.process_group(0);
        give(&mut command, descriptors);
        Ok(Process { child: command.spawn()?, death: None })
    }

    pub fn id(&self) -> i32 {
        self.child.id() as i32
    }

    /// How it ended, if it has.
    pub fn death(&mut self) -> Option<Death> {
        if self.death.is_none() {
            let status = self.child.try_wait().ok().flatten()?;
            self.death = Some(death_of(status));
        }
        self.death
    }

    /// Waits a while for it to end.
    pub fn wait(&mut self, patience: Duration) -> Option<Death> {
        let end = std::time::Instant::now() + patience;
        while self.death().is_none() && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.death
    }

    pub fn signal(&self, signal: i32) {
        if self.death.is_none() {
            // SAFETY: the process has not been reaped, so its id is still its own.
            unsafe { libc::kill(self.id(), signal) };
        }
    }

    /// CPU time it has used.
    pub fn cpu_time(&self) -> Duration {
        let mut clock = 0;
        // SAFETY: all zeros is a valid time.
        let mut time: libc::timespec = unsafe { std::mem::zeroed() };
        // SAFETY: both calls write to the given variables only; a process that is gone makes them fail.
        let failed = unsafe {
            libc::clock_getcpuclockid(self.id(), &mut clock) != 0 || libc::clock_gettime(clock, &mut time) != 0
        };
        if failed { Duration::ZERO } else { Duration::new(time.tv_sec as u64, time.tv_nsec as u32) }
    }

    /// Ends it and whatever it has started.
    pub fn kill(&mut self) {
        if self.death().is_some() {
            return;
        }
        // SAFETY: the child has not been reaped, so neither its id nor that of its group can be anybody else's.
        unsafe { libc::kill(-self.id(), libc::SIGKILL) };
        let _ = self.child.kill();
        if let Ok(status) = self.child.wait() {
            self.death = Some(death_of(status));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Descriptors that the child gets, and the numbers it gets them under: the channel, and what was read of standard input.
pub(crate) type Lent = [Option<(RawFd, RawFd)>; 2];

pub(crate) fn lend(channel: RawFd) -> Lent {
    let [number, input_number] = free_high_descriptors();
    [Some((channel, number)), crate::input::log().map(|fd| (fd, input_number))]
}

/// Has the child get them, and die with the controller.
pub(crate) fn give(command: &mut Command, lent: Lent) {
    let parent = std::process::id();
    // SAFETY: the closure makes system calls only: no allocation, no locks.
    unsafe { command.pre_exec(move || prepare_child(lent, parent)) };
}

/// The variables of the program, those of the runtime among them.
pub(crate) fn set_environment(command: &mut Command, launch: &Launch, lent: &Lent) {
    for (name, value) in &launch.environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let [channel, input] = lent;
    set_runtime_environment(command, launch, channel.map_or(-1, |(_, number)| number));
    if let Some((_, number)) = input {
        command.env(ENV_INPUT, number.to_string());
    }
}

fn death_of(status: std::process::ExitStatus) -> Death {
    match (status.code(), status.signal()) {
        (Some(code), _) => Death::Exited(code),
        (None, signal) => Death::Signaled(signal.unwrap_or(0)),
    }
}

fn set_runtime_environment(command: &mut Command, launch: &Launch, channel: RawFd) {
    let inherited = |name: &str| {
        let given = launch.environment.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone());
        given.unwrap_or_else(|| std::env::var_os(name)).filter(|v| !v.is_empty())
    };
    let preload = joined(Some(launch.runtime.clone().into()), inherited("LD_PRELOAD"));
    let tunables = joined(inherited("GLIBC_TUNABLES"), Some("glibc.pthread.rseq=0".into()));
    command.env("LD_PRELOAD", preload).env("GLIBC_TUNABLES", tunables);
    command.env("LD_BIND_NOW", "1").env(ENV_CHANNEL, channel.to_string());
}

fn joined(first: Option<OsString>, second: Option<OsString>) -> OsString {
    let parts: Vec<OsString> = first.into_iter().chain(second).collect();
    parts.join(OsStr::new(":"))
}

/// Numbers far above those the program will use, so that its own descriptors have their usual numbers.
fn free_high_descriptors() -> [RawFd; 2] {
    // SAFETY: all zeros is a valid limit.
    let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: writes to the given variable only.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    let highest = (limit.rlim_cur.min(1 << 20) as RawFd).saturating_sub(1);
    let first = highest.min(1000);
    // SAFETY: asking for the flags of a descriptor changes nothing.
    let is_free = |fd: &RawFd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } == -1;
    let mut free = (first..=highest).chain((3..first).rev()).filter(is_free);
    [free.next().unwrap_or(first), free.next().unwrap_or(first)]
}

/// Runs in the child: gives it descriptors under other numbers, and has it die with its parent.
fn prepare_child(descriptors: [Option<(RawFd, RawFd)>; 2], parent: u32) -> io::Result<()> {
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: system calls on plain values, in a child that has one thread.
    unsafe {
        let failed = descriptors.into_iter().flatten().any(|(from, to)| libc::dup2(from, to) < 0);
        if failed || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            return Err(io::Error::last_os_error());
        }
        // The parent may have died before the line above.
        if libc::getppid() as u32 != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        libc::setrlimit(libc::RLIMIT_CORE, &no_core);
        // Containers forbid this one, and nothing depends on it.
        let persona = libc::personality(0xffff_ffff);
        if persona != -1 {
            libc::personality((persona | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong);
        }
    }
    Ok(())
}

/// Whether a file can be executed by this user.
pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a system call with a string that ends in NUL.
    unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(script: &str) -> Launch {
        Launch {
            program: "/bin/sh".into(),
            arguments: ["sh", "-c", script].map(Into::into).to_vec(),
            directory: None,
            environment: vec![("LD_PRELOAD".into(), None)],
            runtime: "".into(),
        }
    }

    fn start(script: &str) -> Process {
        Process::start(&launch(script), 0).unwrap()
    }

    #[test]
    fn deaths_are_told_apart() {
        assert_eq!(start("exit 3").wait(Duration::from_secs(5)), Some(Death::Exited(3)));
        assert_eq!(start("kill -TERM $$").wait(Duration::from_secs(5)), Some(Death::Signaled(libc::SIGTERM)));
    }

    #[test]
    fn the_channel_and_the_settings_reach_the_child() {
        let script = "test -e /proc/self/fd/$SYMDPOR_CHANNEL && test $SYMDPOR_CHANNEL -ge 500 && test $LD_BIND_NOW = 1 \
                      && case $GLIBC_TUNABLES in *rseq=0*) exit 0;; esac";
        assert_eq!(start(script).wait(Duration::from_secs(5)), Some(Death::Exited(0)));
    }

    #[test]
    fn dropping_kills_it_and_what_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let mark = directory.path().join("mark");
        let process = start(&format!("(sleep 0.3; touch {}) & sleep 1000", mark.display()));
        std::thread::sleep(Duration::from_millis(100));
        drop(process);
        std::thread::sleep(Duration::from_millis(400));
        assert!(!mark.exists());
    }

    #[test]
    fn lists_are_joined_where_both_parts_are_there() {
        assert_eq!(joined(Some("a".into()), Some("b".into())), "a:b");
        assert_eq!(joined(None, Some("b".into())), "b");
    }
}
