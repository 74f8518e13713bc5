//! Reports for people, as wide as the terminal.

use crate::paint::Paint;
use crate::summary::{Summary, Verdict};
use crate::threads::Threads;
use crate::{conclusion, interleaving, place, stacks, words, wrap};
use std::fmt::Write;
use std::time::Duration;
use symdpor_trace::failure::{Event, Failure, OutputChunk, Race, RaceAccess, Stack};
use symdpor_trace::file::TraceFile;
use symdpor_trace::{FailureKind, Location, ThreadId};

/// If nothing is known of the terminal; and what is still readable.
const WIDTH: usize = 80;
const NARROWEST: usize = 50;
const WIDEST: usize = 200;
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
    /// Columns of the terminal; 0 if they are not known.
    pub width: usize,
}

impl TextOptions {
    /// Columns that lines may have.
    pub fn width(&self) -> usize {
        if self.width == 0 { WIDTH } else { self.width.clamp(NARROWEST, WIDEST) }
    }
}

/// Everything there is to say about one failing execution.
pub fn failure(file: &TraceFile, options: &TextOptions) -> String {
    let failure = &file.failure;
    let threads = Threads::new(file);
    let headline =
        wrap::paragraph(&format!("error: {}", headline_of(failure, &|t| threads.name(t))), options.width(), 0, 2);
    let mut text = match headline.strip_prefix("error:") {
        Some(rest) => format!("{}{rest}", options.paint.error("error:")),
        None => headline,
    };
    if let Some(location) = &failure.location {
        let _ = writeln!(text, "  at {}", stacks::at(location, options, options.width() - 5));
    }
    text.push('\n');
    text.push_str(&interleaving::table(file, &threads, options));
    let conclusion = conclusion::conclusion(file, &threads, options);
    if !conclusion.is_empty() {
        text.push('\n');
        text.push_str(&conclusion);
    }
    if options.output {
        text.push_str(&output(&file.output, file.output_cut, options));
    }
    text
}

/// What happened, in one sentence. Never broken into lines: it is searched for in logs.
pub fn headline(failure: &Failure) -> String {
    match failure.kind {
        FailureKind::Assertion if !failure.message.is_empty() => full(failure),
        _ => headline_of(failure, &place::thread),
    }
}

/// The same as the report of the file has it.
pub fn headline_in(file: &TraceFile) -> String {
    let threads = Threads::new(file);
    headline_of(&file.failure, &|t| threads.name(t))
}

/// The same for people: threads have names, and an assertion's place follows anyway.
pub fn headline_of(failure: &Failure, name: &dyn Fn(ThreadId) -> String) -> String {
    match (&failure.race, failure.kind) {
        (Some(race), _) => race_headline(race, name),
        (None, FailureKind::Deadlock) if failure.message.is_empty() => deadlock_headline(failure),
        (None, FailureKind::Assertion) if failure.location.is_some() => {
            let message = full(failure);
            let end = message.rfind("` failed at ").map_or(message.len(), |i| i + "` failed".len());
            message[..end].to_owned()
        }
        (None, FailureKind::Livelock) => match failure.thread {
            Some(thread) => full(failure).replacen(&format!("thread {} ", thread.0), &format!("{} ", name(thread)), 1),
            None => full(failure),
        },
        _ => full(failure),
    }
}

fn full(failure: &Failure) -> String {
    match failure.kind {
        kind if failure.message.is_empty() => kind.name().to_owned(),
        kind if failure.message.starts_with(kind.name()) => failure.message.clone(),
        kind => format!("{}: {}", kind.name(), failure.message),
    }
}

fn race_headline(race: &Race, name: &dyn Fn(ThreadId) -> String) -> String {
    let object = if race.object.is_empty() { "memory".to_owned() } else { place::demangled(&race.object) };
    let (this, earlier) = (verb(&race.this), past_verb(&race.earlier));
    let (thread, other) = (name(race.this.thread), name(race.earlier.thread));
    format!("data-race on {object}: {thread} {this}, {other} {earlier}, nothing orders them")
}

fn deadlock_headline(failure: &Failure) -> String {
    let count = failure.waits.iter().filter(|w| !w.enabled).count();
    match count {
        1 => "deadlock: one thread waits for ever".to_owned(),
        n => format!("deadlock: {n} threads wait for ever"),
    }
}

pub fn verb(access: &RaceAccess) -> &'static str {
    match (access.write, access.atomic) {
        (true, false) => "writes",
        (false, false) => "reads",
        (true, true) => "atomically writes",
        (false, true) => "atomically reads",
    }
}

pub fn past_verb(access: &RaceAccess) -> &'static str {
    match (access.write, access.atomic) {
        (true, false) => "wrote",
        (false, false) => "read",
        (true, true) => "atomically wrote",
        (false, true) => "atomically read",
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
    let place =
        location.map(|l| format!(" ({})", stacks::at(l, &TextOptions::default(), usize::MAX))).unwrap_or_default();
    format!("`{}` by {}{place}", words::event(event), place::thread(event.thread))
}

/// Where the program did what cannot be controlled; the verdict says what it was.
pub fn unsupported(stack: Option<&Stack>, options: &TextOptions) -> String {
    let Some(stack) = stack.filter(|s| !s.frames.is_empty()) else { return String::new() };
    let mut text = format!("{}\n", options.paint.heading(&format!("{} was here:", place::thread(stack.thread))));
    text.push_str(&stacks::frames(None, &stack.frames, options));
    text
}

/// What the program printed in this execution.
fn output(chunks: &[OutputChunk], cut: bool, options: &TextOptions) -> String {
    let bytes: Vec<u8> = chunks.iter().flat_map(|c| c.bytes.iter().copied()).collect();
    if bytes.is_empty() {
        return String::new();
    }
    let shown = &bytes[bytes.len().saturating_sub(OUTPUT)..];
    let mut text = format!("\n{}\n", options.paint.heading("The program printed:"));
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
    let dropped =
        if counts.dropped == 0 { String::new() } else { format!(", {} dropped by assumptions", counts.dropped) };
    let rate = summary.executions_per_second();
    let rate = if summary.time < Duration::from_millis(10) { String::new() } else { format!(", {}/s", short(rate)) };
    format!("{} execution{plural}{dropped}{redundant} ({:.1} s{rate})", counts.executions, summary.time.as_secs_f64())
}

/// `950`, `113k`, `2.1M`, `40G`, `10^17`.
pub fn short(number: f64) -> String {
    match number {
        n if n >= 9.95e14 => format!("10^{:.0}", n.log10()),
        n if n >= 9.995e8 => format!("{:.0}G", n / 1e9),
        n if n >= 9.95e6 => format!("{:.0}M", n / 1e6),
        n if n >= 999_500.0 => format!("{:.1}M", n / 1e6),
        n if n >= 9_950.0 => format!("{:.0}k", n / 1e3),
        n if n >= 1_000.0 => format!("{:.1}k", n / 1e3),
        n => format!("{n:.0}"),
    }
}
