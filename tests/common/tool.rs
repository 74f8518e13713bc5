//! The tool under test, and its answers as data.

use super::process::{self, Ran};
use serde::Deserialize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// No single run of a test may take longer.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Where `symdpor` and its libraries are: `SYMDPOR_BIN_DIR`, or where cargo has put the binary.
pub fn directory() -> PathBuf {
    let built = || Path::new(env!("CARGO_BIN_EXE_symdpor")).parent().expect("it is in a directory").to_owned();
    let directory = std::env::var_os("SYMDPOR_BIN_DIR").map_or_else(built, PathBuf::from);
    for name in ["symdpor", "libsymdpor.so", "libsymdpor_rt.so"] {
        let file = directory.join(name);
        assert!(file.exists(), "{} is missing: cargo build --release --workspace", file.display());
    }
    directory
}

pub fn symdpor() -> Command {
    let mut command = Command::new(directory().join("symdpor"));
    command.stdin(Stdio::null());
    command
}

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A directory for this test binary's files below cargo's target directory.
pub fn scratch(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    directory
}

/// A directory that nobody else uses, removed when dropped.
pub fn fresh_directory() -> tempfile::TempDir {
    fresh_directory_in(&scratch("runs"))
}

/// Whoever the tool runs as may write there.
fn fresh_directory_in(parent: &Path) -> tempfile::TempDir {
    let open = std::fs::Permissions::from_mode(0o777);
    let directory = tempfile::Builder::new().prefix("run-").permissions(open.clone()).tempdir_in(parent);
    let directory = directory.unwrap_or_else(|e| panic!("{}: {e}", parent.display()));
    std::fs::set_permissions(directory.path(), open).expect("it is ours");
    directory
}

#[derive(Deserialize, Debug)]
pub struct Summary {
    pub version: u32,
    pub verdict: String,
    pub complete: bool,
    pub reason: Option<String>,
    pub errors: Vec<Error>,
    pub notes: Vec<String>,
    pub executions: u64,
    pub blocked: u64,
    pub transitions: u64,
    pub threads: u64,
    pub time_s: f64,
    pub executions_per_s: f64,
}

#[derive(Deserialize, Debug)]
pub struct Error {
    pub kind: String,
    pub message: String,
    pub location: Option<Location>,
    pub trace: Option<PathBuf>,
}

#[derive(Deserialize, Debug)]
pub struct Location {
    pub file: String,
    pub line: u32,
}

/// A finished `symdpor run` with its summary and its files, which are removed when this is dropped.
pub struct Verification {
    pub ran: Ran,
    pub summary: Summary,
    pub directory: tempfile::TempDir,
}

/// What to run and how. The rest is the same for all tests.
#[derive(Clone, Default)]
pub struct Request {
    pub options: Vec<String>,
    pub arguments: Vec<String>,
    /// Programs with their arguments that start the tool (`taskset -c 0`).
    pub wrapper: Vec<String>,
    /// Another copy of the tool.
    pub tool: Option<PathBuf>,
    /// Where to make the directory of the run.
    pub directory: Option<PathBuf>,
}

/// Runs `symdpor run` on the program, in a directory of its own.
pub fn verify(program: &Path, request: &Request) -> Result<Verification, String> {
    verify_with(program, request, |_| {})
}

pub fn verify_with(
    program: &Path,
    request: &Request,
    prepare: impl FnOnce(&mut Command),
) -> Result<Verification, String> {
    let directory = request.directory.as_deref().map_or_else(fresh_directory, fresh_directory_in);
    let json = directory.path().join("summary.json");
    let mut command = start(request);
    command.arg("run").arg("--quiet").arg("--json").arg(&json);
    command.arg("--trace-dir").arg(directory.path().join("traces"));
    command.args(&request.options).arg("--").arg(program).args(&request.arguments);
    command.current_dir(directory.path());
    prepare(&mut command);
    let ran = process::run(&mut command, LIMIT);
    let text = std::fs::read_to_string(&json).map_err(|e| format!("no summary ({e}): {}", ran.describe()))?;
    let summary = serde_json::from_str(&text).map_err(|e| format!("{e} in {text}: {}", ran.describe()))?;
    Ok(Verification { ran, summary, directory })
}

/// The tool, behind the wrapper if there is one.
fn start(request: &Request) -> Command {
    let tool = request.tool.clone().unwrap_or_else(|| directory().join("symdpor"));
    let mut command = match request.wrapper.split_first() {
        None => Command::new(tool),
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(tool);
            command
        }
    };
    command.stdin(Stdio::null());
    command
}

/// A number that is not used twice in this process.
pub fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
