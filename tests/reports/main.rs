//! Reports of real failures: as text, as a page in a browser, under gdb; and schedules made simple.

mod browser;
#[path = "../common/mod.rs"]
mod common;
mod gdb;
mod simple;
mod text;

use common::build::{self, With};
use common::{fixture, process, tool};
use std::path::{Path, PathBuf};

/// A fixture that was run and failed.
struct Failed {
    directory: tempfile::TempDir,
    trace: PathBuf,
}

impl Failed {
    fn new(name: &str) -> Failed {
        Failed::with(name, &[])
    }

    fn with(name: &str, options: &[&str]) -> Failed {
        let fixture = fixture::named(name);
        let program = build::program(&fixture, "-O0", With::Pass).unwrap_or_else(|e| panic!("{e}"));
        let directory = tool::fresh_directory();
        let mut command = tool::symdpor();
        command.current_dir(tool::root()).args(["run", "--quiet", "--trace-dir"]).arg(directory.path());
        command.args(options).args(&fixture.header.options).arg(program).args(&fixture.header.arguments);
        let ran = process::run(&mut command, tool::LIMIT);
        assert_eq!(ran.code(), Some(1), "{name}: {}", ran.describe());
        let traces = std::fs::read_dir(directory.path()).expect("it is there").flatten().map(|e| e.path());
        let trace = traces.min().unwrap_or_else(|| panic!("{name} left no trace: {}", ran.describe()));
        Failed { directory, trace }
    }

    /// What `symdpor show` says, for a terminal of this width or for none.
    fn show(&self, columns: Option<u32>) -> String {
        let mut command = tool::symdpor();
        command.current_dir(tool::root()).arg("show").arg(&self.trace).env_remove("COLUMNS");
        if let Some(columns) = columns {
            command.env("COLUMNS", columns.to_string());
        }
        let ran = process::run(&mut command, tool::LIMIT);
        assert_eq!(ran.code(), Some(0), "{}", ran.describe());
        ran.output()
    }

    fn file(&self) -> symdpor_trace::TraceFile {
        let bytes = std::fs::read(&self.trace).expect("it was just written");
        symdpor_trace::TraceFile::decode(&bytes).expect("it is a trace")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// A program of the system, if it is there.
fn installed(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    names.iter().flat_map(|n| directories.iter().map(move |d| d.join(n))).find(|p: &PathBuf| Path::is_file(p))
}
