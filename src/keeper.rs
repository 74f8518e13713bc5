//! Writes checkpoints: now and then, and when the search is put aside.

use crate::checkpoint::{Checkpoint, Identity, Input, Reported, SearchOptions, Tool};
use crate::console::complain;
use crate::search::Position;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use symdpor_trace::file::Program;
use symdpor_worker::input;

const EVERY: Duration = Duration::from_secs(30);
/// Overrides how often, in milliseconds.
const ENV_EVERY: &str = "SYMDPOR_CHECKPOINT_MS";

pub struct Keeper {
    path: PathBuf,
    every: Duration,
    last: Instant,
    /// The last attempt failed, which has been said.
    is_failing: bool,
    /// All but the position, which changes.
    tool: Tool,
    program: Program,
    options: SearchOptions,
}

impl Keeper {
    /// Fails if nothing can be written there: better now than after an hour.
    pub fn new(path: &Path, tool: Tool, program: Program, options: SearchOptions) -> Result<Keeper, String> {
        let said = |e: io::Error| format!("{}: a checkpoint cannot be written: {e}", path.display());
        let temporary = temporary(path);
        File::create(&temporary).and_then(|_| fs::remove_file(&temporary)).map_err(said)?;
        let set = std::env::var(ENV_EVERY).ok().and_then(|v| v.parse().ok()).map(Duration::from_millis);
        let every = set.unwrap_or(EVERY);
        Ok(Keeper { path: path.to_owned(), every, last: Instant::now(), is_failing: false, tool, program, options })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn is_due(&self) -> bool {
        self.last.elapsed() >= self.every
    }

    /// Whether it could be written. A search is not ended because it cannot.
    pub fn write(&mut self, errors: Vec<Reported>, position: Position) -> bool {
        let started = Instant::now();
        let written = standard_input().and_then(|input| {
            let (tool, program, options) = (self.tool.clone(), self.program.clone(), self.options.clone());
            let checkpoint = Checkpoint { tool, program, options, input, errors, position };
            replace(&self.path, &checkpoint.encode())
        });
        if let Err(e) = &written
            && !self.is_failing
        {
            let path = self.path.display();
            complain(&format!(
                "{path}: the checkpoint could not be written: {e}; the search goes on, and it is tried again"
            ));
        }
        self.is_failing = written.is_err();
        self.last = Instant::now();
        // A state that is large is written less often: at most a twentieth of the time goes into it.
        self.every = self.every.max(started.elapsed() * 20);
        written.is_ok()
    }

    /// Whether there is one, older than what has been done.
    pub fn is_behind(&self) -> bool {
        self.is_failing && self.path.exists()
    }

    /// The search is over: there is nothing to go on with.
    pub fn remove(&self) {
        match fs::remove_file(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                complain(&format!("{}: the checkpoint could not be removed: {e}", self.path.display()));
            }
            _ => {}
        }
    }
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Whatever happens meanwhile, the file is the old one or the new one.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary(path);
    let mut file = File::create(&temporary)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

/// What the program reads, as it is known now.
pub fn standard_input() -> io::Result<Input> {
    const STDIN: &str = "/proc/self/fd/0";
    if !fs::metadata(STDIN).is_ok_and(|m| m.is_file()) {
        return Ok(Input::Read(input::saved()?));
    }
    let file = File::open(STDIN)?;
    let mut rest = Vec::new();
    let mut buffer = [0; 1 << 16];
    let start = offset_of_standard_input()?;
    loop {
        match file.read_at(&mut buffer, start + rest.len() as u64)? {
            0 => break,
            n => rest.extend_from_slice(&buffer[..n]),
        }
    }
    Ok(Input::File(Identity::of_bytes(&rest)))
}

fn offset_of_standard_input() -> io::Result<u64> {
    let info = fs::read_to_string("/proc/self/fdinfo/0")?;
    let offset = info.lines().find_map(|l| l.strip_prefix("pos:")).and_then(|v| v.trim().parse().ok());
    offset.ok_or_else(|| io::Error::other("the offset of standard input cannot be found"))
}
