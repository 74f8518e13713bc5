//! Trace files on disk.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use symdpor_trace::file::{EXTENSION, TraceFile, TraceFileError};

/// Failures of one kind that one directory keeps.
const MOST: u32 = 1_000_000;

/// Bytes of the program's name that the file's name has, at most: file systems allow 255 for all of it.
const LONGEST_NAME: usize = 200;

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
    #[error("{}: {}", .0.display(), .1)]
    Content(PathBuf, TraceFileError),
}

pub fn read(path: &Path) -> Result<TraceFile, ReadError> {
    let bytes = fs::read(path).map_err(|e| ReadError::Io(path.into(), e))?;
    TraceFile::decode(&bytes).map_err(|e| ReadError::Content(path.into(), e))
}

/// The newest trace in the directory that `symdpor run` writes to by default.
pub fn newest() -> Result<PathBuf, ReadError> {
    let directory = Path::new("symdpor-out");
    let none = || io::Error::new(io::ErrorKind::NotFound, "there is no trace: name one");
    let entries = fs::read_dir(directory).map_err(|_| ReadError::Io(directory.into(), none()))?;
    let traces = entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|x| x == EXTENSION));
    let newest = traces.max_by_key(|p| (fs::metadata(p).and_then(|m| m.modified()).ok(), p.clone()));
    newest.ok_or_else(|| ReadError::Io(directory.into(), none()))
}

/// Writes a new file to the directory, which is made if it is not there. Never overwrites one.
pub fn write(directory: &Path, file: &TraceFile) -> io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let program = Path::new(&file.program.path).file_name().unwrap_or_default().to_string_lossy();
    let program = &program[..program.floor_char_boundary(LONGEST_NAME)];
    for number in 1..MOST {
        let path = directory.join(format!("{program}-{}-{number}.{EXTENSION}", file.failure.kind.name()));
        match fs::OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
            Ok(open) => return write_or_remove(open, path, &file.encode()),
        }
    }
    Err(io::Error::other("the directory is full of traces"))
}

/// Half a file is worse than none.
fn write_or_remove(mut open: fs::File, path: PathBuf, bytes: &[u8]) -> io::Result<PathBuf> {
    match open.write_all(bytes) {
        Ok(()) => Ok(path),
        Err(e) => {
            let _ = fs::remove_file(&path);
            Err(e)
        }
    }
}

/// A path as one word for a shell.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%~^".contains(c);
    if text.chars().all(plain) && !text.starts_with('~') { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_take_apart_is_quoted() {
        assert_eq!(quoted(Path::new("out/a-1.symtrace")), "out/a-1.symtrace");
        assert_eq!(quoted(Path::new("out/a b")), "'out/a b'");
        assert_eq!(quoted(Path::new("it's;")), "'it'\\''s;'");
    }
}
