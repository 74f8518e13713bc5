//! The steps that led to an error, a line each.

use crate::paint::Paint;
use crate::repeats::{self, Item};
use crate::{place, words};
use std::fmt::Write;
use symdpor_trace::ThreadId;
use symdpor_trace::failure::Event;
use symdpor_trace::file::TraceFile;

/// Lines from the beginning and from the end that are shown, unless all are asked for.
const HEAD: usize = 40;
const TAIL: usize = 150;
const WIDTH: usize = 80;
/// Step number, thread, and the gaps between the columns.
const FIXED: usize = 2 + 5 + 2 + 6 + 2 + 2;
const OPERATION: std::ops::RangeInclusive<usize> = 12..=34;

/// What a line says besides the step's number.
#[derive(PartialEq)]
struct Row {
    thread: ThreadId,
    operation: String,
    location: u32,
}

/// The table of steps, with a heading.
pub fn table(file: &TraceFile, directory: &str, all: bool, paint: Paint) -> String {
    if file.events.is_empty() {
        return "No steps were recorded.\n".to_owned();
    }
    let row = |e: &Event| Row { thread: e.thread, operation: words::event(e), location: e.location };
    let rows: Vec<Row> = file.events.iter().map(row).collect();
    let items =
        if all { (0..rows.len()).map(Item::Step).collect() } else { repeats::cut(repeats::fold(&rows), HEAD, TAIL) };
    let width = operation_width(&rows, &items);
    let mut text = format!("{}\n", paint.heading(&heading(rows.len())));
    let title = format!("  {:>5}  {:<6}  {:<width$}  where", "step", "thread", "operation");
    let _ = writeln!(text, "{}", paint.faint(&title));
    for item in items {
        let _ = match item {
            Item::Step(i) => writeln!(text, "{}", line(i, &rows[i], width, &where_to(file, i, directory, width))),
            Item::Repeated { steps: 1, times } => writeln!(text, "         ... the same {times} times more ..."),
            Item::Repeated { steps, times } => {
                writeln!(text, "         ... these {steps} steps {times} times more ...")
            }
            Item::LeftOut(steps) => writeln!(text, "         ... {steps} steps left out ..."),
        };
    }
    text
}

fn operation_width(rows: &[Row], items: &[Item]) -> usize {
    let shown = items.iter().filter_map(|i| if let Item::Step(i) = i { Some(&rows[*i]) } else { None });
    let widest = shown.map(|r| r.operation.chars().count()).max().unwrap_or(0);
    widest.clamp(*OPERATION.start(), *OPERATION.end())
}

fn heading(steps: usize) -> String {
    let plural = if steps == 1 { "" } else { "s" };
    format!("The interleaving that led there, {steps} step{plural}:")
}

fn line(step: usize, row: &Row, width: usize, place: &str) -> String {
    let thread = if row.thread == ThreadId::MAIN { "main".to_owned() } else { row.thread.0.to_string() };
    let operation = place::cut_right(&row.operation, width);
    let line = format!("  {:>5}  {thread:<6}  {operation:<width$}  {place}", step + 1);
    line.trim_end().to_owned()
}

/// File and line come first; the function gets what room is left.
fn where_to(file: &TraceFile, step: usize, directory: &str, operation: usize) -> String {
    let Some(location) = file.location_of(&file.events[step]) else { return String::new() };
    let width = WIDTH - FIXED - operation;
    let place = place::cut_left(&place::file_line(location, directory), width);
    let room = width.saturating_sub(place.chars().count() + 1);
    if room < 4 { place } else { format!("{place} {}", place::cut_right(&place::function(location), room)) }
}
