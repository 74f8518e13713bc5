//! Finds the tool and compiles the programs.

use crate::cases::Source;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Where the tool is, and where programs are put.
pub struct Tools {
    directory: PathBuf,
    programs: PathBuf,
}

impl Tools {
    /// The tool that was built along with this program: in the same directory, or, for a benchmark of cargo's, one above.
    pub fn find() -> Result<Tools> {
        let executable = std::env::current_exe()?;
        let directory = executable.ancestors().skip(1).find(|d| d.join("symdpor").is_file());
        let directory = directory.ok_or("symdpor is not built: cargo build --release --workspace")?.to_owned();
        let programs = directory.join("bench-programs");
        std::fs::create_dir_all(&programs)?;
        Ok(Tools { directory, programs })
    }

    pub fn symdpor(&self) -> Command {
        Command::new(self.directory.join("symdpor"))
    }

    /// The library of that name.
    pub fn library(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Compiles a program with the pass.
    pub fn instrumented(&self, source: &Source) -> Result<PathBuf> {
        self.instrumented_with(source.file, source.macros)
    }

    /// The same for a size that is only known now.
    pub fn instrumented_with(&self, file: &str, macros: &[&str]) -> Result<PathBuf> {
        let mut command = self.symdpor();
        command.arg("cc");
        self.compile(command, file, macros, "pass")
    }

    /// Compiles a program without the pass, to be run by `native/driver.c`.
    pub fn native(&self, source: &Source) -> Result<PathBuf> {
        let mut command = Command::new("clang-22");
        command.arg("-Dmain=program_main").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("native/driver.c"));
        self.compile(command, source.file, source.macros, "native")
    }

    fn compile(&self, mut command: Command, file: &str, macros: &[&str], kind: &str) -> Result<PathBuf> {
        let output = self.programs.join(format!("{}-{kind}", name(file, macros)));
        command.args(["-O2", "-g", "-pthread"]);
        command.args(macros.iter().map(|m| format!("-D{m}")));
        command.args(["-x", "c"]).arg(fixtures().join(file)).arg("-o").arg(&output);
        let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
        if status.success() { Ok(output) } else { Err(format!("{command:?}: {status}").into()) }
    }
}

fn name(file: &str, macros: &[&str]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    [&[file], macros].concat().join("-").chars().map(plain).collect()
}

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}
