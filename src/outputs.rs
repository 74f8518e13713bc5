//! Files for others to read: JSON, JUnit, SARIF.

use crate::console::{Console, complain};
use crate::traces;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use symdpor_report::{Job, Summary, TextOptions, junit, sarif};

/// Where reports for continuous integration go.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    pub junit: Option<PathBuf>,
    pub sarif: Option<PathBuf>,
}

impl Outputs {
    /// Better now than after an hour.
    pub fn check(&self) -> Result<(), Box<dyn Error>> {
        [&self.junit, &self.sarif].into_iter().flatten().try_for_each(|path| check_writable(path))
    }

    /// `root`: the directory of the sources.
    pub fn write(&self, jobs: &[Job], root: &Path) -> Result<(), Box<dyn Error>> {
        let root = root.to_string_lossy();
        if let Some(path) = &self.junit {
            let options = TextOptions { directory: root.clone().into_owned(), ..TextOptions::default() };
            write(path, &junit::render(jobs, &options))?;
        }
        if let Some(path) = &self.sarif {
            write(path, &sarif::render(jobs, &root))?;
        }
        Ok(())
    }
}

/// A finished program, with the failing executions read back from where they were written.
pub fn job(name: &str, expected: &str, result: Result<Summary, String>) -> Job {
    let errors = result.as_ref().map_or(&[][..], |s| &s.errors);
    let read = |path: &PathBuf| traces::read(path).inspect_err(|e| complain(e)).ok();
    let traces = errors.iter().map(|e| e.trace.as_ref().and_then(read)).collect();
    Job { name: name.to_owned(), result, traces, expected: expected.to_owned() }
}

pub fn check_writable(path: &Path) -> Result<(), Box<dyn Error>> {
    let open = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
    open.map(|_| ()).map_err(|e| format!("{}: cannot be written: {e}", path.display()).into())
}

/// To a file, or to standard output with `-`.
pub fn write(path: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    if path.as_os_str() == "-" {
        Console::Stdout.print(text);
        return Ok(());
    }
    fs::write(path, text).map_err(|e| format!("{}: cannot be written: {e}", path.display()).into())
}
