//! The steps that led to an error: a column for each thread where there is room, otherwise a line each with the thread's name.

use crate::paint::Paint;
use crate::repeats::{self, Item};
use crate::rows::{self, Entry, Row};
use crate::text::TextOptions;
use crate::threads::Threads;
use crate::{place, wrap};
use std::fmt::Write;
use symdpor_trace::ThreadId;
use symdpor_trace::file::TraceFile;

/// Lines from the beginning and from the end that are shown, unless all are asked for.
const HEAD: usize = 30;
const TAIL: usize = 90;
/// The step's number, and the mark of the error before it. More than four digits get more room.
const NUMBER: usize = 6;
/// What a column of a thread may be wide, with the gap after it.
const COLUMN: std::ops::RangeInclusive<usize> = 12..=30;
/// What the source gets at least.
const SOURCE: usize = 26;

/// The table of steps, with a heading.
pub fn table(file: &TraceFile, threads: &Threads, options: &TextOptions) -> String {
    if file.events.is_empty() && file.accesses.is_empty() {
        return "No steps were recorded.\n".to_owned();
    }
    let rows = rows::rows(file, threads);
    let entries = if options.all { (0..rows.len()).map(Entry::Row).collect() } else { rows::fold_private(&rows) };
    let items = if options.all {
        (0..entries.len()).map(Item::Step).collect()
    } else {
        let keys: Vec<Key> = entries.iter().map(|e| key(e, &rows)).collect();
        repeats::cut(repeats::fold(&keys), HEAD, TAIL)
    };
    let layout = Layout::new(file, threads, &rows, &entries, &items, options);
    let mut text = format!("{}\n", options.paint.heading(&heading(file)));
    text.push_str(&layout.title(threads));
    for item in items {
        match item {
            Item::Step(i) => match &entries[i] {
                Entry::Row(row) => text.push_str(&layout.row(&rows[*row], threads)),
                Entry::Private(thread, steps) => {
                    let who = threads.name(*thread);
                    text.push_str(
                        &layout.note(&format!("... {steps} steps of {who} that concern no other thread ...")),
                    );
                }
            },
            Item::Repeated { steps: 1, times } => {
                text.push_str(&layout.note(&format!("... the same {times} times more ...")))
            }
            Item::Repeated { steps, times } => {
                text.push_str(&layout.note(&format!("... these {steps} lines {times} times more ...")));
            }
            Item::LeftOut(steps) => {
                text.push_str(&layout.note(&format!("... {steps} lines left out (--all shows them) ...")));
            }
        }
    }
    text
}

/// What makes two entries the same for folding.
#[derive(PartialEq)]
enum Key<'a> {
    Row(&'a Row),
    Private(ThreadId, usize),
}

fn key<'a>(entry: &Entry, rows: &'a [Row]) -> Key<'a> {
    match entry {
        Entry::Row(i) => Key::Row(&rows[*i]),
        Entry::Private(thread, steps) => Key::Private(*thread, *steps),
    }
}

fn heading(file: &TraceFile) -> String {
    let steps = file.events.len();
    let plural = if steps == 1 { "" } else { "s" };
    format!("How it came to this, {steps} step{plural}:")
}

struct Layout<'a> {
    file: &'a TraceFile,
    paint: Paint,
    directory: &'a str,
    width: usize,
    /// Of the step's number with what is around it.
    number: usize,
    /// The threads that have columns, with where these begin and how wide they are; or none: then each line has the
    /// thread's name.
    columns: Vec<(ThreadId, usize, usize)>,
    /// Of the name and the operation, without columns.
    name: usize,
    operation: usize,
    /// All places are in this one file, so it need not be said.
    only_file: Option<String>,
}

impl<'a> Layout<'a> {
    fn new(
        file: &'a TraceFile,
        threads: &Threads,
        rows: &[Row],
        entries: &[Entry],
        items: &[Item],
        options: &'a TextOptions,
    ) -> Layout<'a> {
        let shown: Vec<&Row> = items
            .iter()
            .filter_map(|item| match item {
                Item::Step(i) => match entries[*i] {
                    Entry::Row(row) => Some(&rows[row]),
                    Entry::Private(..) => None,
                },
                _ => None,
            })
            .collect();
        let width = options.width();
        let mut all: Vec<ThreadId> = rows.iter().map(|r| r.thread).collect();
        all.sort();
        all.dedup();
        let last = shown.iter().filter_map(|r| r.step).max().unwrap_or(0);
        let number = NUMBER.max(last.to_string().len() + 2);
        let columns = columns(&all, threads, &shown, width.saturating_sub(number + SOURCE));
        let widest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
        let name = widest(&mut all.iter().map(|t| threads.name(*t).chars().count())).clamp(6, 16) + 2;
        let operation = widest(&mut shown.iter().map(|r| r.text.chars().count())) + 2;
        let operation = operation.min(width.saturating_sub(number + name + SOURCE)).max(12);
        let mut files: Vec<String> = shown
            .iter()
            .filter_map(|r| file.location(r.location))
            .map(|l| place::short_path(&l.file, &options.directory))
            .collect();
        files.sort();
        files.dedup();
        let only_file = if files.len() == 1 { files.pop() } else { None };
        let (paint, directory) = (options.paint, &options.directory);
        Layout { file, paint, directory, width, number, columns, name, operation, only_file }
    }

    fn title(&self, threads: &Threads) -> String {
        let mut line = format!("{:>width$}  ", "step", width = self.number - 2);
        if self.columns.is_empty() {
            let _ = write!(line, "{:<n$}{:<o$}", "thread", "operation", n = self.name, o = self.operation);
        }
        for (thread, _, width) in &self.columns {
            let name = place::cut_right(&threads.name(*thread), width - 1);
            let _ = write!(line, "{name:<width$}");
        }
        let room = self.width.saturating_sub(line.chars().count());
        line.push_str(&self.only_file.as_ref().map_or("where".to_owned(), |f| place::cut_left(f, room)));
        format!("{}\n", self.paint.faint(line.trim_end()))
    }

    /// A row; more than one line if its operation is too long for its column.
    fn row(&self, row: &Row, threads: &Threads) -> String {
        let number = row.step.map(|n| n.to_string()).unwrap_or_default();
        let mark = if row.is_error { ">" } else { " " };
        let (before, width) = match self.columns.iter().find(|(t, ..)| *t == row.thread) {
            Some((_, start, width)) => (" ".repeat(*start), *width),
            None => {
                let name = place::cut_right(&threads.name(row.thread), self.name - 2);
                (format!("{name:<width$}", width = self.name), self.operation)
            }
        };
        let cell = wrap::fill(&row.text, width - 1, width - 2);
        let end = self.columns.last().map_or(0, |(_, start, width)| start + width);
        let after = end.saturating_sub(before.chars().count() + width);
        // The thousands are where the mark would be.
        let (all, digits) = (self.number - 2, self.number - 3);
        let start = format!("{:>all$}  ", format!("{mark}{number:>digits$}").trim_start());
        let mut text = String::new();
        for (i, part) in cell.iter().enumerate() {
            let part = place::cut_right(part, width - 1);
            let line = if i == 0 {
                let fixed = self.number + before.chars().count() + width + after;
                let source = self.source(row, self.width.saturating_sub(fixed));
                let done = format!("{part:<width$}");
                let done = if row.is_error { self.paint.error(&done) } else { done };
                format!("{start}{before}{done}{:after$}{}", "", self.paint.faint(&source))
            } else {
                let indent = before.chars().count();
                let margin = self.number;
                format!("{:margin$}{:indent$} {}", "", "", if row.is_error { self.paint.error(&part) } else { part })
            };
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    /// The place and the text of the line.
    fn source(&self, row: &Row, room: usize) -> String {
        let Some(location) = self.file.location(row.location) else { return String::new() };
        if location.file.is_empty() {
            return String::new();
        }
        let place = match &self.only_file {
            Some(_) if location.line != 0 => format!("{:>3}", location.line),
            _ => place::file_line(location, self.directory),
        };
        let text = self.file.source_text(location).map(|t| expanded(t.trim())).unwrap_or_default();
        let short = match place.rsplit_once('/') {
            Some((way, name)) if place.chars().count() > room / 2 => {
                if way.starts_with('<') {
                    format!("<{name}")
                } else {
                    name.to_owned()
                }
            }
            _ => place,
        };
        let short = place::cut_left(&short, room);
        let left = room.saturating_sub(short.chars().count() + 2);
        if left < 6 || text.is_empty() { short } else { format!("{short}  {}", place::cut_right(&text, left)) }
    }

    fn note(&self, text: &str) -> String {
        let margin = self.number;
        format!("{:margin$}{}\n", "", self.paint.faint(&place::cut_right(text, self.width - margin)))
    }
}

/// Where the columns of threads begin and how wide they are; empty if there is not room for all of them, or so little that
/// most operations would be in pieces.
fn columns(all: &[ThreadId], threads: &Threads, shown: &[&Row], room: usize) -> Vec<(ThreadId, usize, usize)> {
    let wanted = |thread: ThreadId| {
        let texts = shown.iter().filter(|r| r.thread == thread).map(|r| r.text.chars().count());
        texts.chain([threads.name(thread).chars().count()]).max().unwrap_or(0) + 2
    };
    // What cannot be broken has to fit.
    let least = |thread: ThreadId| {
        let words = shown.iter().filter(|r| r.thread == thread).flat_map(|r| r.text.split(' '));
        let longest = words.map(|w| w.chars().count()).max().unwrap_or(0).max(threads.name(thread).chars().count());
        (longest + 2).max(*COLUMN.start())
    };
    let least: Vec<usize> = all.iter().map(|t| least(*t)).collect();
    let mut widths: Vec<usize> =
        all.iter().zip(&least).map(|(t, l)| wanted(*t).clamp(*l, (*COLUMN.end()).max(*l))).collect();
    // The widest gives way first: its texts are broken into lines.
    while widths.iter().sum::<usize>() > room {
        let can = widths.iter_mut().zip(&least).filter(|(w, l)| **w > **l);
        let Some((widest, _)) = can.max_by_key(|(w, _)| **w) else { return vec![] };
        *widest -= 1;
    }
    let width_of = |thread: ThreadId| all.iter().position(|t| *t == thread).map_or(0, |i| widths[i]);
    let broken = shown.iter().map(|r| wrap::fill(&r.text, width_of(r.thread) - 1, width_of(r.thread) - 2).len() - 1);
    if broken.sum::<usize>() > shown.len() {
        return vec![];
    }
    let starts = widths.iter().scan(0, |at, w| Some(std::mem::replace(at, *at + w)));
    all.iter().zip(starts).zip(&widths).map(|((t, start), w)| (*t, start, *w)).collect()
}

/// Control characters would move what follows.
pub fn expanded(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
