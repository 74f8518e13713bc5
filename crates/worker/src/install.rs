//! Where the parts of symdpor that are loaded into other programs are: the runtime and the compiler's pass.

use std::path::{Path, PathBuf};

/// Overrides the search.
pub const ENV_LIB_DIR: &str = "SYMDPOR_LIB_DIR";
pub const RUNTIME: &str = "libsymdpor_rt.so";
pub const PASS: &str = "libsymdpor.so";

#[derive(Debug, thiserror::Error)]
#[error("{name} is not to be found (looked in {looked_in}): build or install all of symdpor, or set SYMDPOR_LIB_DIR")]
pub struct NotInstalled {
    name: &'static str,
    looked_in: String,
}

/// The absolute path of one of the libraries.
pub fn library(name: &'static str) -> Result<PathBuf, NotInstalled> {
    let executable = std::env::current_exe().unwrap_or_default();
    let chosen = std::env::var_os(ENV_LIB_DIR).filter(|d| !d.is_empty()).map(PathBuf::from);
    library_in(name, &directories(&executable, chosen))
}

/// Beside the executable, or where `make install` would put them.
fn directories(executable: &Path, chosen: Option<PathBuf>) -> Vec<PathBuf> {
    if let Some(directory) = chosen {
        return vec![directory];
    }
    let Some(beside) = executable.parent() else { return vec![] };
    vec![beside.to_owned(), beside.join("../lib/symdpor")]
}

fn library_in(name: &'static str, directories: &[PathBuf]) -> Result<PathBuf, NotInstalled> {
    let found = directories.iter().map(|d| d.join(name)).find(|p| p.is_file());
    found.and_then(|p| p.canonicalize().ok()).ok_or_else(|| {
        let looked_in: Vec<String> = directories.iter().map(|d| d.display().to_string()).collect();
        NotInstalled { name, looked_in: looked_in.join(", ") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_comes_first_and_alone() {
        let executable = Path::new("/usr/bin/symdpor");
        assert_eq!(directories(executable, Some("/x".into())), [PathBuf::from("/x")]);
        let both = directories(executable, None);
        assert_eq!(both, [PathBuf::from("/usr/bin"), PathBuf::from("/usr/bin/../lib/symdpor")]);
    }

    #[test]
    fn a_missing_library_is_named_with_the_places() {
        let message = library_in(RUNTIME, &["/nowhere".into()]).unwrap_err().to_string();
        assert!(message.starts_with("libsymdpor_rt.so is not to be found (looked in /nowhere)"), "{message}");
    }
}
