//! The program under test: found, checked, and ready to be started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use symdpor_trace::file::{ENVIRONMENT, ExecutionOptions, Program};
use symdpor_worker::install::{self, NotInstalled};
use symdpor_worker::preflight::{self, Checked};
use symdpor_worker::{Globals, Launch, PreflightError, Settings};

#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    #[error(transparent)]
    NotInstalled(#[from] NotInstalled),
    #[error("the current directory cannot be found: {0}")]
    Directory(std::io::Error),
}

pub struct Subject {
    /// As trace files describe it.
    pub program: Program,
    pub globals: Globals,
    pub launch: Launch,
    /// Whether the program's own file is; its libraries may be in any case.
    pub instrumented: bool,
}

impl Subject {
    /// The program as given on the command line.
    ///
    /// # Panics
    /// If there is not even a program's name.
    pub fn new(command: &[OsString]) -> Result<Subject, SubjectError> {
        let checked = preflight::check(&command[0])?;
        let directory = std::env::current_dir().map_err(SubjectError::Directory)?;
        let environment = ENVIRONMENT.iter().filter_map(|v| Some(((*v).to_owned(), std::env::var_os(v)?))).collect();
        let path = directory.join(&checked.path);
        Subject::build(checked, describe(&path, command.to_vec(), directory.into(), environment), None)
    }

    /// The program of a trace file, in the directory and with the variables it had.
    pub fn again(recorded: &Program) -> Result<Subject, SubjectError> {
        let checked = preflight::check(&recorded.path)?;
        let directory = PathBuf::from(&recorded.directory);
        let now = Program { length: 0, checksum: 0, ..recorded.clone() };
        Subject::build(checked, now, directory.is_dir().then_some(directory))
    }

    fn build(checked: Checked, mut program: Program, directory: Option<PathBuf>) -> Result<Subject, SubjectError> {
        program.length = checked.bytes.len() as u64;
        program.checksum = crc32fast::hash(&checked.bytes);
        let recorded = |name: &&str| program.environment.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone());
        let launch = Launch {
            program: PathBuf::from(&program.path),
            arguments: program.arguments.clone(),
            directory,
            environment: ENVIRONMENT.iter().map(|v| ((*v).to_owned(), recorded(v))).collect(),
            runtime: install::library(install::RUNTIME)?,
        };
        let globals = Globals::read(&checked.bytes);
        Ok(Subject { globals, program, launch, instrumented: checked.instrumented })
    }

    pub fn settings(&self, options: &ExecutionOptions, step_timeout: std::time::Duration) -> Settings {
        Settings {
            launch: self.launch.clone(),
            max_steps: options.max_steps,
            seed: options.seed,
            nondet: options.nondet.unwrap_or_default(),
            step_timeout,
        }
    }
}

fn describe(
    path: &Path,
    arguments: Vec<OsString>,
    directory: OsString,
    environment: Vec<(String, OsString)>,
) -> Program {
    Program { path: path.into(), arguments, directory, environment, length: 0, checksum: 0 }
}
