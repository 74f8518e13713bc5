//! The rows of an interleaving: steps, the plain accesses between them that matter, and where it ended.

use crate::threads::Threads;
use crate::words;
use std::collections::{BTreeMap, BTreeSet};
use symdpor_trace::failure::{Event, Failure, PlainAccessEvent};
use symdpor_trace::file::TraceFile;
use symdpor_trace::{FailureKind, Location, OpKind, ThreadId};

#[derive(Clone, Debug)]
pub struct Row {
    /// The step's number, counted from 1; accesses between steps have none.
    pub step: Option<usize>,
    pub thread: ThreadId,
    pub text: String,
    /// As in [`Event`].
    pub location: u32,
    /// The error is here.
    pub is_error: bool,
    /// No other thread has to do with what it is done to.
    pub is_private: bool,
}

/// Rows are alike if they say the same; their numbers do not count.
impl PartialEq for Row {
    fn eq(&self, other: &Row) -> bool {
        let key = |r: &Row| (r.thread, r.location, r.is_error);
        key(self) == key(other) && self.text == other.text
    }
}

/// A name is not broken into lines.
fn unbroken(name: &str) -> String {
    name.replace(' ', "\u{a0}")
}

/// All rows, in order.
pub fn rows(file: &TraceFile, threads: &Threads) -> Vec<Row> {
    let shared = shared(file);
    let mut rows = Vec::new();
    let mut accesses = file.accesses.iter().peekable();
    for step in 0..=file.events.len() {
        if let Some(event) = step.checked_sub(1).map(|i| &file.events[i]) {
            rows.push(step_row(step, event, threads, &shared));
        }
        while let Some(access) = accesses.next_if(|a| a.step as usize <= step) {
            let row = access_row(access);
            if !is_repeated(file, rows.last(), &row) {
                rows.push(row);
            }
        }
    }
    end(file, threads, &mut rows);
    rows
}

/// The library often looks at the same thing several times on end.
fn is_repeated(file: &TraceFile, last: Option<&Row>, row: &Row) -> bool {
    let in_library = |r: &Row| file.location(r.location).is_some_and(Location::is_system);
    last.is_some_and(|l| l.step.is_none() && l.thread == row.thread && l.text == row.text && in_library(l))
        && in_library(row)
}

/// What is wrong with the use of memory or of a lock, short enough for a column: the conclusion says it in full.
fn misuse(failure: &Failure) -> String {
    let message = failure.message.as_str();
    let name = message.rsplit_once(" (").and_then(|(_, name)| name.strip_suffix(')'));
    if failure.kind == FailureKind::LockMisuse {
        return format!("misuses {}", name.unwrap_or("a lock"));
    }
    let what = match message {
        m if m.contains("second time") => "frees it again",
        m if m.contains("freed block") => "uses freed memory",
        m if m.contains("at offset") => "is out of bounds",
        _ => "memory error",
    };
    name.map_or_else(|| what.to_owned(), |name| format!("{what}: {name}"))
}

/// Objects that more than one thread uses or waits for.
fn shared(file: &TraceFile) -> BTreeSet<u64> {
    let mut users: BTreeMap<u64, BTreeSet<ThreadId>> = BTreeMap::new();
    for event in &file.events {
        users.entry(event.id).or_default().insert(event.thread);
        users.entry(event.id2).or_default().insert(event.thread);
    }
    let names: BTreeSet<&str> = file.failure.waits.iter().filter(|w| !w.enabled).map(|w| w.object.as_str()).collect();
    let awaited = file.events.iter().filter(|e| names.contains(e.object.as_str())).map(|e| e.id);
    let used = users.iter().filter(|(_, t)| t.len() > 1).map(|(id, _)| *id);
    used.chain(awaited).filter(|id| *id != 0).collect()
}

fn step_row(step: usize, event: &Event, threads: &Threads, shared: &BTreeSet<u64>) -> Row {
    let always = matches!(event.op, OpKind::ThreadCreate | OpKind::ThreadJoin | OpKind::ProcessExit | OpKind::CondWait);
    Row {
        step: Some(step),
        thread: event.thread,
        text: words::event_of(event, &|t| unbroken(&threads.name(t))).replace(" -> ", "\u{a0}->\u{a0}"),
        location: event.location,
        is_error: false,
        is_private: !always && !shared.contains(&event.id),
    }
}

fn access_row(access: &PlainAccessEvent) -> Row {
    Row {
        step: None,
        thread: access.thread,
        text: words::plain_access(access).replace(" -> ", "\u{a0}->\u{a0}"),
        location: access.location,
        is_error: false,
        is_private: false,
    }
}

/// Where it ended: what the threads wait for, or what went wrong.
fn end(file: &TraceFile, threads: &Threads, rows: &mut Vec<Row>) {
    let failure = &file.failure;
    let number = |place: Option<&symdpor_trace::Location>| {
        place.and_then(|p| file.locations.iter().position(|l| l == p)).map_or(0, |i| i as u32 + 1)
    };
    let row = |thread, text, location| Row { step: None, thread, text, location, is_error: true, is_private: false };
    if matches!(failure.kind, FailureKind::Deadlock | FailureKind::Livelock) {
        for wait in failure.waits.iter().filter(|w| !w.enabled) {
            let text = words::waiting(wait.op, &wait.object, wait.joined, &|t| unbroken(&threads.name(t)));
            rows.push(row(wait.thread, text, number(wait.location.as_ref())));
        }
        return;
    }
    let text = match failure.kind {
        FailureKind::DataRace => "races",
        FailureKind::Assertion => "assertion fails",
        FailureKind::Crash => "crashes",
        FailureKind::Memory | FailureKind::LockMisuse => &misuse(failure),
        _ => return,
    };
    let Some(thread) = failure.thread else { return };
    let location = number(failure.location.as_ref());
    if let Some(last) = rows.last_mut()
        && failure.kind == FailureKind::DataRace
        && (last.thread, last.location) == (thread, location)
        && last.step.is_none()
    {
        last.is_error = true;
        return;
    }
    rows.push(row(thread, text.to_owned(), location));
}

/// What is shown of a list of rows.
#[derive(Clone, PartialEq, Debug)]
pub enum Entry {
    Row(usize),
    /// So many steps of a thread that only concern itself.
    Private(ThreadId, usize),
}

/// Runs of private steps of this length are worth folding.
const WORTH: usize = 3;

/// Folds what only concerns one thread.
pub fn fold_private(rows: &[Row]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut at = 0;
    while at < rows.len() {
        let thread = rows[at].thread;
        let run = rows[at..].iter().take_while(|r| r.is_private && r.thread == thread).count();
        if run >= WORTH {
            entries.push(Entry::Private(thread, run));
            at += run;
        } else {
            entries.extend((at..at + run.max(1)).map(Entry::Row));
            at += run.max(1);
        }
    }
    entries
}
