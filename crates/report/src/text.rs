//! Reports for people, at most 80 columns wide where the program's own names allow it.

use crate::interleaving;
use crate::paint::Paint;
use crate::place;
use crate::repeats::{self, Item};
use crate::summary::{Summary, Verdict};
use crate::words;
use std::fmt::Write;
use std::time::Duration;
use symdpor_trace::failure::{Event, Failure, OutputChunk, Race, RaceAccess, Stack, StackRole, Wait};
use symdpor_trace::file::TraceFile;
use symdpor_trace::{FailureKind, Location, ThreadId};

/// Frames of one stack that are shown.
const FRAMES: usize = 24;
/// Bytes of the program's output that are shown: its end, where the error is.
const OUTPUT: usize = 4096;

#[derive(Clone, Debug, Default)]
pub struct TextOptions {
    pub paint: Paint,
    /// Paths below it are shown relative to it.
    pub directory: String,
    /// Show every step.
    pub all: bool,
    /// Show what the program printed.
    pub output: bool,
}

/// Everything there is to say about one failing execution.
pub fn failure(file: &TraceFile, options: &TextOptions) -> String {
    let failure = &file.failure;
    let mut text = format!("{} {}\n", options.paint.error("error:"), headline(failure));
    if let Some(location) = &failure.location {
        let _ = writeln!(text, "  at {}", at(location, options));
    }
    waits(&mut text, failure, options);
    stacks(&mut text, failure, options);
    threads(&mut text, file, options);
    text.push('\n');
    text.push_str(&interleaving::table(file, &options.directory, options.all, options.paint));
    if options.output {
        text.push_str(&output(&file.output, file.output_cut, options.paint));
    }
    text
}

/// What happened, in one sentence. Never broken into lines: it is searched for in logs.
pub fn headline(failure: &Failure) -> String {
    match (&failure.race, failure.kind) {
        (Some(race), _) => race_headline(race),
        (None, FailureKind::Deadlock) if failure.message.is_empty() => deadlock_headline(failure),
        (None, kind) if failure.message.is_empty() => kind.name().to_owned(),
        (None, kind) if failure.message.starts_with(kind.name()) => failure.message.clone(),
        (None, kind) => format!("{}: {}", kind.name(), failure.message),
    }
}

fn race_headline(race: &Race) -> String {
    let object = if race.object.is_empty() { "memory".to_owned() } else { place::demangled(&race.object) };
    let (this, earlier) = (verb(&race.this), past_verb(&race.earlier));
    let (thread, other) = (place::thread(race.this.thread), place::thread(race.earlier.thread));
    format!("data-race on {object}: {thread} {this}, {other} {earlier}, nothing orders them")
}

fn deadlock_headline(failure: &Failure) -> String {
    let count = failure.waits.iter().filter(|w| !w.enabled).count();
    match count {
        1 => "deadlock: one thread waits for ever".to_owned(),
        n => format!("deadlock: {n} threads wait for ever"),
    }
}

fn verb(access: &RaceAccess) -> &'static str {
    match (access.write, access.atomic) {
        (true, false) => "writes",
        (false, false) => "reads",
        (true, true) => "atomically writes",
        (false, true) => "atomically reads",
    }
}

fn past_verb(access: &RaceAccess) -> &'static str {
    match (access.write, access.atomic) {
        (true, false) => "wrote",
        (false, false) => "read",
        (true, true) => "atomically wrote",
        (false, true) => "atomically read",
    }
}

fn at(location: &Location, options: &TextOptions) -> String {
    let place = place::file_line(location, &options.directory);
    match place::function(location) {
        name if name.is_empty() => place,
        name => format!("{place} in {name}"),
    }
}

fn waits(text: &mut String, failure: &Failure, options: &TextOptions) {
    let stuck = matches!(failure.kind, FailureKind::Deadlock | FailureKind::Livelock);
    for wait in failure.waits.iter().filter(|_| stuck) {
        let _ = writeln!(text, "  {}", waiting(wait, options));
        if let Some(holder) = wait.holder {
            let since = wait.held_since.as_ref().map(|l| format!(" since {}", at(l, options))).unwrap_or_default();
            let _ = writeln!(text, "      held by {}{since}", holder_name(holder, wait.thread));
        }
    }
}

fn waiting(wait: &Wait, options: &TextOptions) -> String {
    let what = words::waiting(wait.op, &wait.object, wait.joined);
    let place = wait.location.as_ref().map(|l| format!(" at {}", at(l, options))).unwrap_or_default();
    format!("{} {what}{place}", place::thread(wait.thread))
}

fn holder_name(holder: ThreadId, waiter: ThreadId) -> String {
    if holder == waiter { "the same thread".to_owned() } else { place::thread(holder) }
}

fn stacks(text: &mut String, failure: &Failure, options: &TextOptions) {
    for stack in failure.stacks.iter().filter(|s| says_more(s, failure)) {
        let title = stack_title(stack, failure);
        let _ = writeln!(text, "\n{}", options.paint.heading(&format!("{title}:")));
        frames(text, &stack.frames, options);
    }
}

/// Recursion is folded, and so are the calls inside of the library; of long stacks both ends are shown.
fn frames(text: &mut String, frames: &[Location], options: &TextOptions) {
    let mut inside = 0;
    for item in repeats::cut(repeats::fold(frames), FRAMES / 2, FRAMES / 2) {
        let in_library = matches!(item, Item::Step(i) if i > 0 && frames[i].is_system() && frames[i - 1].is_system());
        if in_library {
            inside += 1;
            continue;
        }
        note_inside(text, &mut inside);
        let _ = match item {
            Item::Step(i) => writeln!(text, "    {}", at(&frames[i], options)),
            Item::Repeated { steps: 1, times } => writeln!(text, "    ... the same {times} times more"),
            Item::Repeated { steps, times } => writeln!(text, "    ... these {steps} calls {times} times more"),
            Item::LeftOut(count) => writeln!(text, "    ... {count} more"),
        };
    }
    note_inside(text, &mut inside);
}

fn note_inside(text: &mut String, calls: &mut usize) {
    match std::mem::take(calls) {
        0 => {}
        1 => text.push_str("    ... 1 more call inside the library\n"),
        n => text.push_str(&format!("    ... {n} more calls inside the library\n")),
    }
}

/// A stack of one frame that is already named as the place where its thread waits adds nothing, nor do those of other
/// threads unless these are why nothing goes on.
fn says_more(stack: &Stack, failure: &Failure) -> bool {
    let wait = failure.waits.iter().find(|w| w.thread == stack.thread).and_then(|w| w.location.as_ref());
    let stuck = matches!(failure.kind, FailureKind::Deadlock | FailureKind::Livelock);
    match stack.frames.as_slice() {
        [] => false,
        _ if stack.role == StackRole::Other && !stuck => false,
        [only] => !stuck || Some(only) != wait,
        _ => true,
    }
}

fn stack_title(stack: &Stack, failure: &Failure) -> String {
    let thread = place::thread(stack.thread);
    match (stack.role, &failure.race) {
        (StackRole::Error, Some(race)) => format!("{thread} {} here", verb(&race.this)),
        (StackRole::Earlier, Some(race)) => format!("{thread} {} here", past_verb(&race.earlier)),
        (StackRole::Error, None) => format!("{thread} was here"),
        (StackRole::Earlier, None) => format!("{thread} was here before"),
        (StackRole::Other, _) => format!("{thread} is here"),
        (StackRole::Allocated, _) => format!("allocated by {thread}"),
        (StackRole::Freed, _) => format!("freed by {thread}"),
    }
}

fn threads(text: &mut String, file: &TraceFile, options: &TextOptions) {
    let created = file.threads.iter().filter(|t| t.created_by.is_some());
    for (i, info) in created.enumerate() {
        if i == 0 {
            let _ = writeln!(text, "\n{}", options.paint.heading("Threads:"));
        }
        let by = info.created_by.map(place::thread).unwrap_or_default();
        let place = info.created_at.as_ref().map(|l| format!(" at {}", at(l, options))).unwrap_or_default();
        let _ = writeln!(text, "    {} was created by {by}{place}", place::thread(info.thread));
    }
}

pub fn thread_name(thread: ThreadId) -> String {
    place::thread(thread)
}

/// A function with its place, for a sentence.
pub fn named_place(place: &Location, directory: &str) -> String {
    format!("{} ({})", place::function(place), place::file_line(place, directory))
}

/// One step with its place, for a sentence.
pub fn step(event: &Event, location: Option<&Location>) -> String {
    let place = location.map(|l| format!(" ({})", at(l, &TextOptions::default()))).unwrap_or_default();
    format!("`{}` by {}{place}", words::event(event), place::thread(event.thread))
}

/// Where the program did what cannot be controlled; the verdict says what it was.
pub fn unsupported(stack: Option<&Stack>, options: &TextOptions) -> String {
    let Some(stack) = stack.filter(|s| !s.frames.is_empty()) else { return String::new() };
    let mut text = format!("{}\n", options.paint.heading(&format!("{} was here:", place::thread(stack.thread))));
    frames(&mut text, &stack.frames, options);
    text
}

/// What the program printed in this execution.
fn output(chunks: &[OutputChunk], cut: bool, paint: Paint) -> String {
    let bytes: Vec<u8> = chunks.iter().flat_map(|c| c.bytes.iter().copied()).collect();
    if bytes.is_empty() {
        return String::new();
    }
    let shown = &bytes[bytes.len().saturating_sub(OUTPUT)..];
    let mut text = format!("\n{}\n", paint.heading("The program printed:"));
    if shown.len() < bytes.len() {
        let _ = writeln!(text, "    ... {} bytes left out ...", bytes.len() - shown.len());
    }
    for line in String::from_utf8_lossy(shown).lines() {
        let _ = writeln!(text, "    {}", printable(line));
    }
    if cut {
        text.push_str("    ... and more that was not kept\n");
    }
    text
}

/// Control characters would change the terminal.
fn printable(line: &str) -> String {
    line.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// What limits the verdict, a line each.
pub fn notes(notes: &[String], paint: Paint) -> String {
    const MOST: usize = 8;
    let mut text: String = notes.iter().take(MOST).map(|n| format!("{} {n}\n", paint.faint("note:"))).collect();
    if notes.len() > MOST {
        text.push_str(&format!("{} and {} more of this kind\n", paint.faint("note:"), notes.len() - MOST));
    }
    text
}

/// The last line: the verdict with the numbers behind it.
pub fn verdict(summary: &Summary, paint: Paint) -> String {
    let ran = ran(summary);
    match summary.verdict {
        Verdict::Ok => format!("{} no errors in {ran}\n", paint.good("ok:")),
        Verdict::Error => {
            let more = summary.reason.as_ref().map(|r| format!("; stopped: {r}")).unwrap_or_default();
            format!("{} {} in {ran}{more}\n", paint.error("error:"), found(summary))
        }
        Verdict::Incomplete => {
            let reason = summary.reason.as_deref().unwrap_or("stopped");
            format!("{} {reason}; no errors so far, in {ran}{}\n", paint.warning("incomplete:"), of_about(summary))
        }
        Verdict::Unsupported => {
            let reason = summary.reason.as_deref().unwrap_or("the program cannot be controlled");
            format!("{} {reason}\n", paint.warning("unsupported:"))
        }
    }
}

fn of_about(summary: &Summary) -> String {
    let Some(estimate) = summary.estimate else { return String::new() };
    format!(", of about {} ({} to {})", short(estimate.likely), short(estimate.low), short(estimate.high))
}

fn found(summary: &Summary) -> String {
    let mut kinds: Vec<&str> = summary.errors.iter().map(|e| e.kind.name()).collect();
    kinds.dedup();
    match summary.errors.len() {
        1 => format!("found one ({})", kinds.join(", ")),
        n => format!("found {n} ({})", kinds.join(", ")),
    }
}

fn ran(summary: &Summary) -> String {
    let counts = &summary.counts;
    let plural = if counts.executions == 1 { "" } else { "s" };
    let redundant = if counts.blocked == 0 { String::new() } else { format!(", {} more cut off", counts.blocked) };
    let rate = summary.executions_per_second();
    let rate = if summary.time < Duration::from_millis(10) { String::new() } else { format!(", {}/s", short(rate)) };
    format!("{} execution{plural}{redundant} ({:.1} s{rate})", counts.executions, summary.time.as_secs_f64())
}

/// `950`, `113k`, `2.1M`.
pub fn short(number: f64) -> String {
    match number {
        n if n >= 9.95e6 => format!("{:.0}M", n / 1e6),
        n if n >= 999_500.0 => format!("{:.1}M", n / 1e6),
        n if n >= 9_950.0 => format!("{:.0}k", n / 1e3),
        n if n >= 1_000.0 => format!("{:.1}k", n / 1e3),
        n => format!("{n:.0}"),
    }
}
