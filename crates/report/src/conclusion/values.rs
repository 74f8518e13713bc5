//! An assertion, a crash, a wrong exit status: what was read just before, and who had written it.

use super::{Prose, at};
use crate::facts::{self, Writer};
use crate::{place, words};
use symdpor_trace::failure::StackRole;
use symdpor_trace::file::TraceFile;
use symdpor_trace::{FailureKind, Location, OpKind, ThreadId};

/// Reads that are told, the last ones.
const READS: usize = 6;
/// If nothing was read on the line itself.
const READS_BEFORE: usize = 3;

pub fn tell(prose: &mut Prose<'_>) {
    let failure = &prose.file.failure;
    let thread = failure.thread.unwrap_or(ThreadId::MAIN);
    let (name, place) = (prose.name(thread), at(failure.location.as_ref()));
    let message = failure.message.clone();
    match failure.kind {
        FailureKind::Assertion => {
            let expression = message.split_once('`').and_then(|(_, rest)| rest.rsplit_once("` failed"));
            match expression {
                Some((expression, _)) => prose.say(&format!("{name} found `{expression}` to be false{place}.")),
                None => prose.say(&format!("{name}: {message}{place}.")),
            }
        }
        FailureKind::Crash => prose.say(&format!("{name} crashed{place}: {message}.")),
        // Nobody says where main was left.
        _ if place.is_empty() => prose.say(&format!("{message}.")),
        _ => prose.say(&format!("{message}; {name} was last seen{place}.")),
    }
    reads(prose, thread);
    let has_calls = prose.file.failure.stack(StackRole::Error).is_some_and(|s| s.frames.len() > 1);
    if has_calls || prose.file.failure.kind == FailureKind::Crash {
        prose.gap();
        prose.stack_of(StackRole::Error, &|name| format!("{name} was here"));
    }
}

/// A value that the thread read: by a step or by a plain access.
struct Read {
    /// Steps that had begun, and accesses that had been made.
    step: usize,
    access: usize,
    thread: ThreadId,
    id: u64,
    mask: u8,
    name: String,
    value: String,
    on_the_line: bool,
}

fn reads(prose: &mut Prose<'_>, thread: ThreadId) {
    let file = prose.file;
    let exact = file.failure.location.as_ref().filter(|_| file.failure.kind != FailureKind::ExitStatus);
    let line = exact.map(|l| (l.file.clone(), l.line));
    let is_here = |number: u32| file.location(number).map(|l| (l.file.clone(), l.line)) == line && line.is_some();
    let mut all: Vec<Read> = Vec::new();
    for (i, a) in file.accesses.iter().enumerate().filter(|(_, a)| a.thread == thread && !a.write) {
        let Some((_, value)) = a.values else { continue };
        let value = words::value(value, a.size.min(8) as u8, &a.ty);
        let (name, on_the_line) = (place::demangled(&a.object), is_here(a.location));
        all.push(Read { thread, step: a.step as usize, access: i, id: a.id, mask: a.mask, name, value, on_the_line });
    }
    let atomic = |op| matches!(op, OpKind::AtomicLoad | OpKind::AtomicRmw | OpKind::PlainLoad);
    for (i, e) in file.events.iter().enumerate().filter(|(_, e)| e.thread == thread && atomic(e.op)) {
        let Some((old, _)) = e.values else { continue };
        let access = file.accesses.iter().take_while(|a| a.step as usize <= i).count();
        let (name, on_the_line) = (place::demangled(&e.object), is_here(e.location));
        let value = words::value(old, e.size, &e.ty);
        all.push(Read { thread, step: i, access, id: e.id, mask: e.mask, name, value, on_the_line });
    }
    all.sort_by_key(|r| (r.step, r.access));
    // Of each variable the last read counts.
    let mut last: Vec<&Read> = Vec::new();
    for read in all.iter().rev() {
        if !last.iter().any(|l| l.name == read.name) {
            last.push(read);
        }
    }
    last.retain(|r| !is_given(file, r));
    let here: Vec<&Read> = last.iter().filter(|r| r.on_the_line).take(READS).copied().collect();
    // Elsewhere only a null pointer says something.
    let told = |r: &&&Read| !r.value.starts_with("0x");
    let before = last.iter().filter(told).take(READS_BEFORE).copied().collect();
    let chosen = if here.is_empty() { before } else { here };
    if chosen.is_empty() {
        return;
    }
    let on_line = chosen.iter().any(|r| r.on_the_line);
    prose.say(if on_line { "It had read:" } else { "The last that it had read of what threads share:" });
    for read in chosen.iter().rev() {
        prose.point(&format!("{} = {}, {}.", read.name, read.value, written_by(prose, read)));
    }
}

/// What a thread was given when it was started, such as the variables that a lambda captures, or keeps for itself, such as
/// where something is: it cannot have read anything else.
fn is_given(file: &TraceFile, read: &Read) -> bool {
    let Some(Writer::Plain(access)) = last_write_of(file, read) else { return false };
    if access.thread == read.thread {
        return read.value.starts_with("0x");
    }
    let created = file.events.iter().position(|e| e.op == OpKind::ThreadCreate && e.arg == u32::from(read.thread.0));
    let before = created.is_some_and(|step| access.step as usize <= step);
    let by_library = file.location(access.location).is_some_and(Location::is_system);
    by_library || before && read.name.starts_with("this->")
}

fn last_write_of<'a>(file: &'a TraceFile, read: &Read) -> Option<Writer<'a>> {
    facts::last_write(file, read.id, read.mask, read.step, read.access)
}

fn written_by(prose: &Prose<'_>, read: &Read) -> String {
    let file = prose.file;
    match last_write_of(file, read) {
        Some(Writer::Step(step, event)) => format!("written by {} in {}", prose.name(event.thread), prose.step(step)),
        Some(Writer::Plain(access)) => {
            let place = file.location(access.location).map(|l| at(Some(l))).unwrap_or_default();
            let after = match access.step {
                0 => String::new(),
                step => format!(" after step {step}"),
            };
            format!("written by {}{after}{place}", prose.name(access.thread))
        }
        None => "which is what it was before the first thread was created".to_owned(),
    }
}
