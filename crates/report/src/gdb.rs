//! The script that has gdb stop at the steps of an execution, and show the program's threads.
//!
//! gdb sees one thread: the others are contexts in user space. The runtime tells where they are, see its `debugger.rs`.

use crate::threads::Threads;
use crate::{stacks, text, words};
use serde_json::json;
use std::collections::BTreeMap;
use symdpor_trace::file::TraceFile;

const SCRIPT: &str = include_str!("gdb.py");

/// `at`: the steps to stop at, besides the error. `is_shown`: whether the steps of the file are those that will be made.
pub fn script(file: &TraceFile, is_shown: bool, at: &[usize]) -> String {
    let threads = Threads::new(file);
    let names: BTreeMap<u16, String> = file.threads.iter().map(|t| (t.thread.0, threads.name(t.thread))).collect();
    let steps: Vec<String> = file
        .events
        .iter()
        .filter(|_| is_shown)
        .map(|e| {
            let place = file.location_of(e).map(|l| format!(" at {}", stacks::brief(l))).unwrap_or_default();
            format!("{}{place}", words::event_of(e, &|t| threads.name(t)))
        })
        .collect();
    let data = json!({
        "names": names,
        "steps": steps,
        "at": at,
        "error": text::headline_of(&file.failure, &|t| threads.name(t)),
    });
    // A JSON text in a Python string: what JSON escapes Python would otherwise read.
    let quoted = data.to_string().replace('\\', "\\\\").replace('\'', "\\'");
    SCRIPT.replace("@DATA@", &quoted)
}
