//! Compiles fixtures, each at most once per test run, and not again while nothing has changed.

use super::fixture::Fixture;
use super::process::{self, Ran};
use super::tool;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

const LIMIT: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum With {
    /// `symdpor cc` or `symdpor c++`.
    Pass,
    /// The same clang alone.
    Plain,
}

type Built = Arc<OnceLock<Result<PathBuf, String>>>;

/// The program of a fixture at a level such as `-O2`.
pub fn program(fixture: &Fixture, level: &str, with: With) -> Result<PathBuf, String> {
    static BUILT: Mutex<Option<HashMap<PathBuf, Built>>> = Mutex::new(None);
    let stem = fixture.name.replace(['/', '.'], "-");
    let output = tool::scratch("fixtures").join(format!("{stem}{level}-{with:?}"));
    let built = {
        let mut map = BUILT.lock().expect("no test panics in here");
        map.get_or_insert_default().entry(output.clone()).or_default().clone()
    };
    built.get_or_init(|| build(fixture, level, with, &output).map(|()| output.clone())).clone()
}

fn build(fixture: &Fixture, level: &str, with: With, output: &Path) -> Result<(), String> {
    if is_current(fixture, output) {
        return Ok(());
    }
    let mut command = compiler(fixture.is_cxx(), with);
    command.args([level, "-g", "-pthread", "-Wall", "-Wextra", "-Werror"]).args(&fixture.header.flags);
    command.arg(&fixture.path).args(beside(fixture, &fixture.header.sources));
    if !fixture.header.library.is_empty() {
        command.arg(library(fixture, level, with, output)?).arg("-Wl,-rpath,$ORIGIN");
    }
    command.args(&fixture.header.link);
    finish(&mut command, output)
}

/// The fixture's own shared library.
fn library(fixture: &Fixture, level: &str, with: With, output: &Path) -> Result<PathBuf, String> {
    let path = output.with_file_name(format!("lib{}.so", output.file_name().unwrap_or_default().to_string_lossy()));
    let mut command = compiler(fixture.is_cxx(), with);
    command.args([level, "-g", "-pthread", "-shared", "-fPIC"]).args(beside(fixture, &fixture.header.library));
    finish(&mut command, &path)?;
    Ok(path)
}

/// Writes to a temporary name first: another process may be running the old file.
fn finish(command: &mut Command, output: &Path) -> Result<(), String> {
    let temporary = output.with_file_name(format!("new-{}-{}", std::process::id(), tool::unique()));
    let ran = process::run(command.arg("-o").arg(&temporary), LIMIT);
    succeeded(&ran, command)?;
    std::fs::rename(&temporary, output).map_err(|e| format!("{}: {e}", output.display()))
}

pub fn succeeded(ran: &Ran, command: &Command) -> Result<(), String> {
    if ran.code() == Some(0) { Ok(()) } else { Err(format!("{command:?}: {}", ran.describe())) }
}

pub fn compiler(cxx: bool, with: With) -> Command {
    match with {
        With::Plain => Command::new(if cxx { "clang++-22" } else { "clang-22" }),
        With::Pass => {
            let mut command = tool::symdpor();
            command.arg(if cxx { "c++" } else { "cc" });
            command
        }
    }
}

fn beside(fixture: &Fixture, files: &[PathBuf]) -> Vec<PathBuf> {
    files.iter().map(|f| fixture.directory().join(f)).collect()
}

/// Whether the program is newer than everything it may be made of.
fn is_current(fixture: &Fixture, output: &Path) -> bool {
    let Ok(built) = modified(output) else { return false };
    let mut inputs = beside(fixture, &fixture.header.sources);
    inputs.extend(beside(fixture, &fixture.header.library));
    inputs.extend([fixture.path.clone(), tool::directory().join("libsymdpor.so")]);
    inputs.extend(included(fixture.directory()));
    inputs.iter().all(|i| modified(i).is_ok_and(|m| m < built))
}

/// The headers beside a fixture, one level down too.
fn included(directory: &Path) -> Vec<PathBuf> {
    let below = [directory.to_owned(), directory.join("parts")];
    let entries = below.iter().filter_map(|d| std::fs::read_dir(d).ok()).flatten().flatten();
    entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "h")).collect()
}

fn modified(path: &Path) -> std::io::Result<SystemTime> {
    std::fs::metadata(path)?.modified()
}

/// Compiles one C or C++ source text that is no fixture.
pub fn text(source: &str, cxx: bool, flags: &[&str], output: &Path, with: With) -> Result<(), String> {
    let file = output.with_extension(if cxx { "cpp" } else { "c" });
    std::fs::write(&file, source).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut command = compiler(cxx, with);
    command.args(["-g", "-pthread"]).args(flags).arg(&file);
    finish(&mut command, output)
}
