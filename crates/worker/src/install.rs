//! Where the parts of symdpor that are loaded into other programs are: the runtime and the compiler's pass.

use std::path::{Path, PathBuf};

/// Overrides the search.
pub const ENV_LIB_DIR: &str = "SYMDPOR_LIB_DIR";
pub const RUNTIME: &str = "libsymdpor_rt.so";
pub const PASS: &str = "libsymdpor.so";

#[derive(Debug, thiserror::Error)]
pub enum NotInstalled {
    #[error(
        "{name} is not to be found (looked in {looked_in}): build or install all of symdpor, or set SYMDPOR_LIB_DIR"
    )]
    Missing { name: &'static str, looked_in: String },
    #[error("{}: LD_PRELOAD takes no path with a space or a colon: put symdpor elsewhere, or set SYMDPOR_LIB_DIR", .0.display())]
    BadPath(PathBuf),
    #[error("where symdpor itself is cannot be found out ({0}): is /proc mounted? It is needed")]
    Nowhere(std::io::Error),
}

/// The absolute path of one of the libraries.
pub fn library(name: &'static str) -> Result<PathBuf, NotInstalled> {
    let chosen = std::env::var_os(ENV_LIB_DIR).filter(|d| !d.is_empty()).map(PathBuf::from);
    if let Some(directory) = chosen {
        return library_in(name, &[directory]);
    }
    let executable = std::env::current_exe().map_err(NotInstalled::Nowhere)?;
    library_in(name, &directories(&executable))
}

/// Beside the executable, or where `make install` would put them.
fn directories(executable: &Path) -> Vec<PathBuf> {
    let Some(beside) = executable.parent() else { return vec![] };
    vec![beside.to_owned(), beside.join("../lib/symdpor")]
}

fn library_in(name: &'static str, directories: &[PathBuf]) -> Result<PathBuf, NotInstalled> {
    let found = directories.iter().map(|d| d.join(name)).find(|p| p.is_file());
    let found = found.and_then(|p| p.canonicalize().ok()).ok_or_else(|| {
        let looked_in: Vec<String> = directories.iter().map(|d| d.display().to_string()).collect();
        NotInstalled::Missing { name, looked_in: looked_in.join(", ") }
    })?;
    let separates = |b: &u8| matches!(b, b' ' | b':');
    let is_bad = name == RUNTIME && found.as_os_str().as_encoded_bytes().iter().any(separates);
    if is_bad { Err(NotInstalled::BadPath(found)) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_beside_the_program_or_installed() {
        let both = directories(Path::new("/usr/bin/symdpor"));
        assert_eq!(both, [PathBuf::from("/usr/bin"), PathBuf::from("/usr/bin/../lib/symdpor")]);
    }

    #[test]
    fn a_path_that_cannot_be_preloaded_is_refused() {
        let directory = tempfile::Builder::new().prefix("with space").tempdir().unwrap();
        for name in [RUNTIME, PASS] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        assert!(matches!(library_in(RUNTIME, &[directory.path().into()]), Err(NotInstalled::BadPath(_))));
        assert!(library_in(PASS, &[directory.path().into()]).is_ok());
    }

    #[test]
    fn a_missing_library_is_named_with_the_places() {
        let message = library_in(RUNTIME, &["/nowhere".into()]).unwrap_err().to_string();
        assert!(message.starts_with("libsymdpor_rt.so is not to be found (looked in /nowhere)"), "{message}");
    }
}
