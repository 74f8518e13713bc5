//! Runs `symdpor run` and watches what it uses.

use crate::tools::{Result, Tools};
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What is read of `symdpor run --json`.
#[derive(Deserialize, Clone, Debug)]
pub struct Summary {
    pub verdict: String,
    #[serde(default)]
    pub complete: bool,
    pub executions: u64,
    pub blocked: u64,
    pub transitions: u64,
    pub time_s: f64,
    #[serde(default)]
    pub symmetry: Symmetry,
}

/// What the search says about symmetry. All of it is missing where nothing was asked.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(default)]
pub struct Symmetry {
    /// `on`, if threads were compared.
    pub mode: Option<String>,
    /// Branches that were left out.
    #[serde(alias = "hits")]
    pub skipped: Option<u64>,
    /// How often two threads were compared.
    #[serde(alias = "checks")]
    pub asked: Option<u64>,
    /// Threads were equal, but their branch could not be left out.
    pub refused: Option<u64>,
    /// Searches of memory for pointers to a thread's own blocks.
    #[serde(alias = "questions")]
    pub scans: Option<u64>,
    /// What all of this took.
    pub time_s: Option<f64>,
}

/// One search.
#[derive(Clone, Debug)]
pub struct Search {
    pub summary: Summary,
    /// Of controller and worker together.
    pub cpu: Duration,
    /// From the start of the process to its end.
    pub wall: Duration,
    pub peak: Peak,
}

/// Most memory at a time, in KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Peak {
    pub controller: u64,
    pub worker: u64,
}

/// Searches the executions of a program, or some of them, without symmetry.
pub fn search(tools: &Tools, program: &Path, limit: Option<u64>) -> Result<Search> {
    let mut options = ["--symmetry", "off", "--reduction", "source"].map(str::to_owned).to_vec();
    options.extend(limit.map(|n| format!("--max-executions={n}")));
    let search = search_with(tools, program, &options)?;
    let wanted = if limit.is_some() { &["ok", "incomplete"][..] } else { &["ok"][..] };
    if !wanted.contains(&search.summary.verdict.as_str()) {
        return Err(format!("{}: {:?}", program.display(), search.summary).into());
    }
    Ok(search)
}

/// Runs `symdpor run` with these options. Whatever it finds is for the caller to judge.
pub fn search_with(tools: &Tools, program: &Path, options: &[String]) -> Result<Search> {
    let directory = tempfile::tempdir()?;
    let json = directory.path().join("summary.json");
    let mut command = tools.symdpor();
    command.args(["run", "--quiet"]).arg("--json").arg(&json).arg("--trace-dir").arg(directory.path()).args(options);
    command.arg("--").arg(program).stdin(Stdio::null()).stdout(Stdio::null());
    // 1: an error was found, 3: a limit was reached.
    let (wall, cpu, peak) = watch(&mut command, &[0, 1, 3])?;
    let summary = serde_json::from_str(&fs::read_to_string(&json)?)?;
    Ok(Search { summary, cpu, wall, peak })
}

/// Runs a command to its end, which must be with one of these codes: wall time, CPU time with that of its children, memory.
fn watch(command: &mut Command, codes: &[i32]) -> Result<(Duration, Duration, Peak)> {
    let start = Instant::now();
    // Waited for below, by `wait4`.
    let id = command.spawn().map_err(|e| format!("{command:?}: {e}"))?.id();
    let done = AtomicBool::new(false);
    let (ended, peak) = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| sample(id, &done));
        let ended = wait(id).map(|(status, cpu)| (status, cpu, start.elapsed()));
        done.store(true, Ordering::Relaxed);
        sampler.thread().unpark();
        (ended, sampler.join().expect("the sampler does not panic"))
    });
    let (status, cpu, wall) = ended?;
    match status.code() {
        Some(code) if codes.contains(&code) => Ok((wall, cpu, peak)),
        _ => Err(format!("{command:?}: {status}").into()),
    }
}

fn wait(id: u32) -> std::io::Result<(ExitStatus, Duration)> {
    let mut status = 0;
    // SAFETY: all zeros is a valid value of this structure of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writes to the two variables only.
    let waited = unsafe { libc::wait4(id as libc::pid_t, &mut status, 0, &mut usage) };
    if waited < 0 {
        return Err(std::io::Error::last_os_error());
    }
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    Ok((ExitStatus::from_raw(status), time(usage.ru_utime) + time(usage.ru_stime)))
}

/// The kernel keeps the peak, so looking now and then is enough: only what comes after the last look is missed.
fn sample(controller: u32, done: &AtomicBool) -> Peak {
    let (mut peak, mut pause) = (Peak::default(), Duration::from_millis(2));
    while !done.load(Ordering::Relaxed) {
        peak.controller = peak.controller.max(high_water(controller));
        peak.worker = children(controller).into_iter().map(high_water).fold(peak.worker, u64::max);
        std::thread::park_timeout(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
    peak
}

fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
    lists.flat_map(|l| l.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
}

fn high_water(process: u32) -> u64 {
    fs::read_to_string(format!("/proc/{process}/status")).ok().and_then(|s| parse_high_water(&s)).unwrap_or(0)
}

fn parse_high_water(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_a_process_is_found() {
        assert_eq!(parse_high_water("VmPeak:\t  9000 kB\nVmHWM:\t  1234 kB\nVmRSS:\t 7 kB\n"), Some(1234));
        assert_eq!(parse_high_water("Name:\tzombie\n"), None);
        assert!(high_water(std::process::id()) > 500);
    }

    #[test]
    fn a_command_is_watched_with_its_children() {
        let script = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; true";
        let (wall, cpu, peak) = watch(Command::new("sh").arg("-c").arg(script), &[0]).unwrap();
        assert!(cpu > Duration::from_millis(10) && wall > Duration::from_millis(10), "{cpu:?} {wall:?}");
        assert!(peak.controller > 100 && peak.worker > 100, "{peak:?}");
        assert!(watch(Command::new("false").stdin(Stdio::null()), &[0, 3]).is_err());
    }
}
