//! The checkpoint file: a search that can be gone on with, complete in itself.
//!
//! Laid out like a trace file: eight bytes of magic, the format's version, length and CRC-32 of the payload (little endian),
//! then the payload in postcard's encoding. What is in it is only of use to the same symdpor with the same program, so both are
//! named by length and CRC-32 of their files, and anything else is refused: a search that goes on in another program's tree
//! would prove nothing.

use crate::flags::{Reduction, Symmetry};
use crate::search::Position;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use symdpor_report::ErrorEntry;
use symdpor_trace::file::{ExecutionOptions, Program};
use symdpor_trace::{FailureKind, Location};

const MAGIC: [u8; 8] = *b"SYMCHECK";
/// Raised whenever a record of the file changes.
const FORMAT_VERSION: u32 = 1;
const HEADER_LEN: usize = 8 + 4 + 8 + 4;

/// Length and CRC-32 of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Identity {
    length: u64,
    checksum: u32,
}

impl Identity {
    pub fn of(path: &Path) -> io::Result<Identity> {
        Ok(Identity::of_bytes(&fs::read(path)?))
    }

    pub fn of_bytes(bytes: &[u8]) -> Identity {
        Identity { length: bytes.len() as u64, checksum: crc32fast::hash(bytes) }
    }
}

/// The parts of symdpor that decide how the search goes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tool {
    version: String,
    symdpor: Identity,
    runtime: Identity,
}

impl Tool {
    /// This one, with the runtime at `runtime`.
    pub fn this(runtime: &Path) -> io::Result<Tool> {
        let symdpor = Identity::of(&std::env::current_exe()?)?;
        Ok(Tool { version: env!("CARGO_PKG_VERSION").to_owned(), symdpor, runtime: Identity::of(runtime)? })
    }
}

/// Options that decide what is searched and what is done with an error. Limits are not among them: they are those of each run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SearchOptions {
    pub reduction: Reduction,
    pub symmetry: Symmetry,
    pub execution: ExecutionOptions,
    pub keep_going: bool,
    pub trace_dir: PathBuf,
}

/// An error that was reported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reported {
    kind: FailureKind,
    message: String,
    location: Option<Location>,
    trace: Option<PathBuf>,
}

impl From<&ErrorEntry> for Reported {
    fn from(e: &ErrorEntry) -> Reported {
        let ErrorEntry { kind, message, location, trace } = e.clone();
        Reported { kind, message, location, trace }
    }
}

impl From<Reported> for ErrorEntry {
    fn from(r: Reported) -> ErrorEntry {
        let Reported { kind, message, location, trace } = r;
        ErrorEntry { kind, message, location, trace }
    }
}

/// The program's standard input.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Input {
    /// A file, from where it stood.
    File(Identity),
    /// Anything else: what had been read of it, and whether that was all.
    Read(Vec<u8>),
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Checkpoint {
    pub tool: Tool,
    pub program: Program,
    pub options: SearchOptions,
    pub input: Input,
    pub errors: Vec<Reported>,
    pub position: Position,
}

/// Why a checkpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("{}: cannot be read: {}", .0.display(), .1)]
    Unreadable(PathBuf, io::Error),
    #[error("{}: this is not a checkpoint of symdpor", .0.display())]
    NotACheckpoint(PathBuf),
    #[error("{}: the checkpoint has format version {}, this symdpor reads version {FORMAT_VERSION}: use the symdpor that wrote it, or start anew", .0.display(), .1)]
    OtherVersion(PathBuf, u32),
    #[error("{}: the checkpoint was written by another build of symdpor (version {}): use that one, or start anew", .0.display(), .1)]
    OtherTool(PathBuf, String),
    #[error("{}: the checkpoint is truncated: {found} bytes of {expected}", .path.display())]
    Truncated { path: PathBuf, expected: u64, found: u64 },
    #[error("{}: the checkpoint is damaged: {}", .0.display(), .1)]
    Damaged(PathBuf, &'static str),
    #[error("{}: the program {} has been changed since the checkpoint was written: start anew", .0.display(), .1.display())]
    OtherProgram(PathBuf, PathBuf),
    #[error("{}: standard input is not what it was when the checkpoint was written", .0.display())]
    OtherInput(PathBuf),
    #[error("{}: the directory {} of the program is not there any more", .0.display(), .1.display())]
    NoDirectory(PathBuf, PathBuf),
}

impl Checkpoint {
    pub fn encode(&self) -> Vec<u8> {
        let payload = postcard::to_stdvec(self).expect("plain data always encodes");
        let mut bytes = Vec::with_capacity(HEADER_LEN + payload.len());
        bytes.extend(MAGIC);
        bytes.extend(FORMAT_VERSION.to_le_bytes());
        bytes.extend((payload.len() as u64).to_le_bytes());
        bytes.extend(crc32fast::hash(&payload).to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    pub fn read(path: &Path) -> Result<Checkpoint, CheckpointError> {
        let bytes = fs::read(path).map_err(|e| CheckpointError::Unreadable(path.into(), e))?;
        Checkpoint::decode(&bytes, path)
    }

    /// `path`: for messages.
    fn decode(bytes: &[u8], path: &Path) -> Result<Checkpoint, CheckpointError> {
        let payload = checked_payload(bytes, path)?;
        let damaged = |what| CheckpointError::Damaged(path.into(), what);
        let (checkpoint, rest): (Checkpoint, _) =
            postcard::take_from_bytes(payload).map_err(|_| damaged("a record makes no sense"))?;
        if !rest.is_empty() {
            return Err(damaged("there is something after its end"));
        }
        Ok(checkpoint)
    }

    /// Whether it can be gone on with, by this symdpor, with the program as it is now.
    pub fn check(&self, path: &Path, tool: &Tool, program: &Program, input: &Input) -> Result<(), CheckpointError> {
        if self.tool != *tool {
            return Err(CheckpointError::OtherTool(path.into(), self.tool.version.clone()));
        }
        if (program.length, program.checksum) != (self.program.length, self.program.checksum) {
            return Err(CheckpointError::OtherProgram(path.into(), program.path.clone().into()));
        }
        let same = match (&self.input, input) {
            (Input::File(then), Input::File(now)) => then == now,
            (Input::Read(_), Input::Read(_)) => true,
            // Nothing had been read: then nothing depends on it.
            (Input::Read(read), Input::File(_)) => read.iter().all(|b| *b == 0),
            (Input::File(_), Input::Read(_)) => false,
        };
        if same { Ok(()) } else { Err(CheckpointError::OtherInput(path.into())) }
    }

    pub fn command(&self) -> Vec<OsString> {
        self.program.arguments.clone()
    }
}

fn checked_payload<'a>(bytes: &'a [u8], path: &Path) -> Result<&'a [u8], CheckpointError> {
    let damaged = |what| CheckpointError::Damaged(path.into(), what);
    let magic = &bytes[..bytes.len().min(8)];
    if magic.is_empty() || magic != &MAGIC[..magic.len()] {
        return Err(CheckpointError::NotACheckpoint(path.into()));
    }
    let found = bytes.len() as u64;
    let truncated = |expected| CheckpointError::Truncated { path: path.into(), expected, found };
    if bytes.len() < HEADER_LEN {
        return Err(truncated(HEADER_LEN as u64));
    }
    let version = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
    if version != FORMAT_VERSION {
        return Err(CheckpointError::OtherVersion(path.into(), version));
    }
    let length = u64::from_le_bytes(bytes[12..20].try_into().expect("eight bytes"));
    let expected = length.saturating_add(HEADER_LEN as u64);
    if found < expected {
        return Err(truncated(expected));
    }
    if found > expected {
        return Err(damaged("there is something after its end"));
    }
    let payload = &bytes[HEADER_LEN..];
    let checksum = u32::from_le_bytes(bytes[20..24].try_into().expect("four bytes"));
    if crc32fast::hash(payload) != checksum {
        return Err(damaged("its checksum is wrong"));
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Checkpoint {
        let identity = Identity { length: 5, checksum: 6 };
        Checkpoint {
            tool: Tool { version: "0".into(), symdpor: identity, runtime: identity },
            program: Program {
                path: "./prog".into(),
                arguments: vec!["./prog".into(), "-n".into()],
                directory: "/home/me".into(),
                environment: vec![],
                length: 12345,
                checksum: 7,
            },
            options: SearchOptions {
                reduction: Reduction::Source,
                symmetry: Symmetry::On,
                execution: ExecutionOptions {
                    visible_all: false,
                    ignore_races: false,
                    max_steps: 1,
                    seed: 0,
                    nondet: None,
                },
                keep_going: true,
                trace_dir: "/tmp/x".into(),
            },
            input: Input::Read(vec![0; 8]),
            errors: vec![],
            position: Position::default(),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let again = Checkpoint::decode(&sample().encode(), Path::new("c")).unwrap();
        assert_eq!(again, sample());
    }

    #[test]
    fn every_truncation_and_every_changed_byte_is_noticed() {
        let bytes = sample().encode();
        for len in 0..bytes.len() {
            let error = Checkpoint::decode(&bytes[..len], Path::new("c")).unwrap_err();
            let expected = if len == 0 { "not a checkpoint" } else { "truncated" };
            assert!(error.to_string().contains(expected), "{len}: {error}");
        }
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 0x41;
            assert!(Checkpoint::decode(&damaged, Path::new("c")).is_err(), "byte {i}");
        }
    }

    #[test]
    fn other_versions_tools_programs_and_inputs_are_told_apart() {
        let mut newer = sample().encode();
        newer[8] += 1;
        let error = Checkpoint::decode(&newer, Path::new("c")).unwrap_err();
        assert!(matches!(error, CheckpointError::OtherVersion(_, 2)), "{error}");
        let it = sample();
        let check = |tool: &Tool, program: &Program, input: &Input| it.check(Path::new("c"), tool, program, input);
        assert!(check(&it.tool, &it.program, &it.input).is_ok());
        let tool = Tool { runtime: Identity { length: 5, checksum: 7 }, ..it.tool.clone() };
        assert!(matches!(check(&tool, &it.program, &it.input), Err(CheckpointError::OtherTool(..))));
        let program = Program { checksum: 8, ..it.program.clone() };
        assert!(matches!(check(&it.tool, &program, &it.input), Err(CheckpointError::OtherProgram(..))));
        let file = Input::File(Identity { length: 1, checksum: 1 });
        assert!(check(&it.tool, &it.program, &file).is_ok(), "nothing had been read");
        let it = Checkpoint { input: file, ..sample() };
        let none = Input::Read(vec![]);
        assert!(it.check(Path::new("c"), &it.tool, &it.program, &none).is_err());
    }
}
