//! `symdpor cc` and `symdpor c++`: clang with the pass, for `CC=` and `CXX=`.
//!
//! Replaces itself by the compiler, so exit code, signals and output are the compiler's own.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;
use symdpor_worker::install;

const VERSION: &str = "22";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    C,
    Cxx,
}

impl Language {
    fn variable(self) -> &'static str {
        match self {
            Language::C => "SYMDPOR_CLANG",
            Language::Cxx => "SYMDPOR_CLANGXX",
        }
    }

    fn compiler(self) -> &'static str {
        match self {
            Language::C => "clang",
            Language::Cxx => "clang++",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    #[error(transparent)]
    NotInstalled(#[from] install::NotInstalled),
    #[error("neither {0}-{VERSION} nor {0} of version {VERSION} is installed: apt install clang-{VERSION}, or set {1}")]
    NoCompiler(&'static str, &'static str),
    #[error("{} cannot be started: {}", .0.to_string_lossy(), .1)]
    Start(OsString, std::io::Error),
}

/// Does not return unless the compiler cannot be started.
pub fn compile(language: Language, arguments: &[OsString]) -> Result<std::convert::Infallible, CompileError> {
    let pass = install::library(install::PASS)?;
    let mut plugin = OsString::from("-fpass-plugin=");
    plugin.push(&pass);
    let mut added = added(arguments, plugin);
    if let Some(directory) = pass.parent().map(|d| d.join("include")).filter(|d| d.is_dir()) {
        // Where symdpor.h is.
        added.extend(["-isystem".into(), directory.into()]);
    }
    let become_compiler = |compiler: &OsStr| Command::new(compiler).args(&added).args(arguments).exec();
    if let Some(chosen) = std::env::var_os(language.variable()).filter(|v| !v.is_empty()) {
        let error = become_compiler(&chosen);
        return Err(CompileError::Start(chosen, error));
    }
    let versioned = OsString::from(format!("{}-{VERSION}", language.compiler()));
    let error = become_compiler(&versioned);
    if error.kind() != ErrorKind::NotFound {
        return Err(CompileError::Start(versioned, error));
    }
    if !is_right_version(language.compiler()) {
        return Err(CompileError::NoCompiler(language.compiler(), language.variable()));
    }
    let error = become_compiler(language.compiler().as_ref());
    Err(CompileError::Start(language.compiler().into(), error))
}

fn is_right_version(compiler: &str) -> bool {
    let answer = Command::new(compiler).arg("--version").output();
    answer.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).contains(&format!("version {VERSION}.")))
}

/// The pass is of no use when only linking or preprocessing: clang then takes the flag without a word only if told so.
fn added(arguments: &[OsString], plugin: OsString) -> Vec<OsString> {
    let mut added = vec!["--start-no-unused-arguments".into(), plugin];
    if !arguments.iter().any(|a| is_debug_flag(a)) {
        added.push("-g".into());
    }
    added.push("--end-no-unused-arguments".into());
    added
}

fn is_debug_flag(argument: &OsStr) -> bool {
    argument.to_str().is_some_and(|a| a.starts_with("-g") && !a.starts_with("-gcc"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &str) -> Vec<OsString> {
        added(&line.split_whitespace().map(Into::into).collect::<Vec<_>>(), "-fpass-plugin=p.so".into())
    }

    #[test]
    fn debug_information_is_asked_for_unless_it_was_decided() {
        assert!(flags("-O2 -c a.c").contains(&"-g".into()));
        for own in ["-g", "-g0", "-ggdb3", "-gline-tables-only", "-gdwarf-4"] {
            assert!(!flags(own).contains(&"-g".into()), "{own}");
        }
        assert!(flags("-gcc-toolchain=/x").contains(&"-g".into()));
    }
}
