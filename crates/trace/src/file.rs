//! The trace file: one failing execution, complete in itself.
//!
//! It holds what is needed to run the execution again (program, arguments, choices, options) and what is needed to show
//! it without the program (events, locations, the failure). Layout: eight bytes of magic, the format's version, length
//! and CRC-32 of the payload (little endian), then the payload in postcard's encoding. Length and checksum come first
//! so that a file that was cut or damaged is told apart from one of another version, and neither is ever half read.
//!
//! Of the environment only the variables of [`ENVIRONMENT`] are kept: the rest is often secret and seldom matters.

use crate::failure::{Event, Failure, Location, OutputChunk, PlainAccessEvent};
use crate::plan::Choice;
use crate::thread::ThreadId;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;

pub const MAGIC: [u8; 8] = *b"SYMTRACE";
/// Raised whenever a record of the file changes.
pub const FORMAT_VERSION: u32 = 3;
/// What trace files' names end in.
pub const EXTENSION: &str = "symtrace";
const HEADER_LEN: usize = 8 + 4 + 8 + 4;

/// Variables that change how a program runs without its asking for them.
pub const ENVIRONMENT: [&str; 8] =
    ["LD_LIBRARY_PATH", "LD_PRELOAD", "GLIBC_TUNABLES", "LANG", "LC_ALL", "LC_CTYPE", "LC_NUMERIC", "TZ"];

/// The program that was run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Program {
    pub path: OsString,
    pub arguments: Vec<OsString>,
    pub directory: OsString,
    /// Those of [`ENVIRONMENT`] that were set.
    pub environment: Vec<(String, OsString)>,
    /// Length and CRC-32 of the program's file, to notice that it has been built anew.
    pub length: u64,
    pub checksum: u32,
}

/// The options that an execution depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExecutionOptions {
    pub visible_all: bool,
    pub ignore_races: bool,
    pub max_steps: u32,
    pub seed: u64,
    /// The range of numbers that the program asks for (`__VERIFIER_nondet_int`).
    pub nondet: Option<(i64, i64)>,
}

/// Where a thread comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ThreadInfo {
    pub thread: ThreadId,
    pub created_by: Option<ThreadId>,
    pub created_at: Option<Location>,
    /// What the program called it (`pthread_setname_np`), or nothing.
    pub name: String,
    /// The outermost function of the program that it was seen in, or nothing.
    pub function: String,
}

/// A line of the program's source, as it was when the trace was made.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct SourceLine {
    pub file: String,
    pub line: u32,
    pub text: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceFile {
    pub program: Program,
    pub options: ExecutionOptions,
    /// The schedule that is shown: the one that was found, made as simple as could be.
    pub choices: Vec<Choice>,
    /// The one that was found, if it is another.
    pub original: Option<Vec<Choice>>,
    pub threads: Vec<ThreadInfo>,
    /// The places that events refer to, each once.
    pub locations: Vec<Location>,
    pub events: Vec<Event>,
    /// Plain accesses to what several threads use, in order.
    pub accesses: Vec<PlainAccessEvent>,
    /// Those that are near to a place of the report; sorted.
    pub source: Vec<SourceLine>,
    pub failure: Failure,
    pub output: Vec<OutputChunk>,
    /// Whether there was more output than is kept.
    pub output_cut: bool,
}

/// Why a trace file cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TraceFileError {
    #[error("this is not a trace file of symdpor")]
    NotATrace,
    #[error(
        "the trace file has format version {found}, this symdpor reads version {FORMAT_VERSION}: use the symdpor that wrote it"
    )]
    OtherVersion { found: u32 },
    #[error("the trace file is truncated: {found} bytes of {expected}")]
    Truncated { expected: u64, found: u64 },
    #[error("the trace file is damaged: {0}")]
    Damaged(&'static str),
}

impl TraceFile {
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

    pub fn decode(bytes: &[u8]) -> Result<TraceFile, TraceFileError> {
        let payload = checked_payload(bytes)?;
        let (file, rest): (TraceFile, _) =
            postcard::take_from_bytes(payload).map_err(|_| TraceFileError::Damaged("a record makes no sense"))?;
        if !rest.is_empty() {
            return Err(TraceFileError::Damaged("there is something after its end"));
        }
        if file.events.iter().any(|e| e.location as usize > file.locations.len()) {
            return Err(TraceFileError::Damaged("a step refers to a place that is not in it"));
        }
        if file.accesses.iter().any(|a| a.location as usize > file.locations.len()) {
            return Err(TraceFileError::Damaged("an access refers to a place that is not in it"));
        }
        Ok(file)
    }

    /// Where an event happened.
    pub fn location_of(&self, event: &Event) -> Option<&Location> {
        self.location(event.location)
    }

    /// The place with a number; 0 is none.
    pub fn location(&self, number: u32) -> Option<&Location> {
        self.locations.get((number as usize).checked_sub(1)?)
    }

    /// The text of a line of the source, if it is in the file.
    pub fn source_text(&self, location: &Location) -> Option<&str> {
        let key = |l: &SourceLine| (l.file.as_str(), l.line).cmp(&(location.file.as_str(), location.line));
        self.source.binary_search_by(key).ok().map(|i| self.source[i].text.as_str())
    }
}

fn checked_payload(bytes: &[u8]) -> Result<&[u8], TraceFileError> {
    let magic = &bytes[..bytes.len().min(8)];
    if magic.is_empty() || magic != &MAGIC[..magic.len()] {
        return Err(TraceFileError::NotATrace);
    }
    let found = bytes.len() as u64;
    if bytes.len() < HEADER_LEN {
        return Err(TraceFileError::Truncated { expected: HEADER_LEN as u64, found });
    }
    let version = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
    if version != FORMAT_VERSION {
        return Err(TraceFileError::OtherVersion { found: version });
    }
    let length = u64::from_le_bytes(bytes[12..20].try_into().expect("eight bytes"));
    let expected = length.saturating_add(HEADER_LEN as u64);
    if found < expected {
        return Err(TraceFileError::Truncated { expected, found });
    }
    if found > expected {
        return Err(TraceFileError::Damaged("there is something after its end"));
    }
    let payload = &bytes[HEADER_LEN..];
    let checksum = u32::from_le_bytes(bytes[20..24].try_into().expect("four bytes"));
    if crc32fast::hash(payload) != checksum {
        return Err(TraceFileError::Damaged("its checksum is wrong"));
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FailureKind;
    use crate::value::ValueType;
    use symdpor_abi::op::OpKind;

    fn sample() -> TraceFile {
        TraceFile {
            program: Program {
                path: "./prog".into(),
                arguments: vec!["-n".into(), "3".into()],
                directory: "/home/me".into(),
                environment: vec![("TZ".into(), "UTC".into())],
                length: 12345,
                checksum: 7,
            },
            options: ExecutionOptions {
                visible_all: false,
                ignore_races: false,
                max_steps: 100_000,
                seed: 0,
                nondet: None,
            },
            choices: vec![
                Choice { thread: ThreadId(0), alternative: 0 },
                Choice { thread: ThreadId(3), alternative: 2 },
            ],
            original: Some(vec![Choice { thread: ThreadId(1), alternative: 0 }]),
            threads: vec![ThreadInfo {
                thread: ThreadId(0),
                created_by: None,
                created_at: None,
                name: "main".into(),
                function: String::new(),
            }],
            locations: vec![Location { file: "a.c".into(), line: 3, column: 9, function: "main".into() }],
            events: vec![Event {
                thread: ThreadId(0),
                op: OpKind::ThreadCreate,
                order: 5,
                arg: 1,
                size: 0,
                object: String::new(),
                object2: String::new(),
                values: None,
                alternatives: 1,
                location: 1,
                id: 0,
                id2: 0,
                mask: 0,
                ty: ValueType::Unknown,
            }],
            accesses: vec![PlainAccessEvent {
                step: 1,
                thread: ThreadId(0),
                write: true,
                frees: false,
                size: 4,
                object: "x".into(),
                id: 5,
                mask: 0x0f,
                values: Some((0, 1)),
                location: 1,
                ty: ValueType::Signed,
            }],
            source: vec![SourceLine { file: "a.c".into(), line: 3, text: "x = 1;".into() }],
            failure: Failure {
                kind: FailureKind::Assertion,
                message: "x == 1".into(),
                thread: Some(ThreadId(0)),
                location: None,
                race: None,
                waits: vec![],
                stacks: vec![],
            },
            output: vec![OutputChunk { descriptor: 1, bytes: b"hello\n".to_vec() }],
            output_cut: false,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        assert_eq!(TraceFile::decode(&sample().encode()), Ok(sample()));
    }

    #[test]
    fn every_truncation_is_noticed() {
        let bytes = sample().encode();
        assert_eq!(TraceFile::decode(&[]), Err(TraceFileError::NotATrace));
        for len in 1..bytes.len() {
            assert!(matches!(TraceFile::decode(&bytes[..len]), Err(TraceFileError::Truncated { .. })), "{len}");
        }
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let bytes = sample().encode();
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 0x41;
            assert!(TraceFile::decode(&damaged).is_err(), "byte {i}");
        }
    }

    #[test]
    fn other_versions_and_other_files_are_told_apart() {
        let mut newer = sample().encode();
        newer[8] = FORMAT_VERSION as u8 + 1;
        assert_eq!(TraceFile::decode(&newer), Err(TraceFileError::OtherVersion { found: FORMAT_VERSION + 1 }));
        assert_eq!(TraceFile::decode(b"#!/bin/sh\necho hello\n"), Err(TraceFileError::NotATrace));
    }

    #[test]
    fn a_place_that_is_not_there_is_noticed() {
        let mut file = sample();
        file.events[0].location = 2;
        assert!(matches!(TraceFile::decode(&file.encode()), Err(TraceFileError::Damaged(_))));
    }
}
