//! The steps that led to an error, a line each.

use crate::paint::Paint;
use crate::{place, words};
use std::fmt::Write;
use std::ops::Range;
use symdpor_trace::file::TraceFile;
use symdpor_trace::{ThreadId, failure::Event};

/// More steps than this are shortened, unless all are asked for.
const MOST: usize = 200;
const HEAD: usize = 40;
const TAIL: usize = 150;
const WIDTH: usize = 80;
/// Step number, thread, and the gaps between the columns.
const FIXED: usize = 2 + 5 + 2 + 6 + 2 + 2;
const OPERATION: std::ops::RangeInclusive<usize> = 12..=34;

struct Columns {
    operation: usize,
    place: usize,
}

/// The table of steps, with a heading.
pub fn table(file: &TraceFile, directory: &str, all: bool, paint: Paint) -> String {
    let shown = shown_ranges(file.events.len(), all);
    let operations: Vec<String> = file.events.iter().map(words::event).collect();
    let widest = shown.iter().flat_map(|r| &operations[r.clone()]).map(|o| o.chars().count()).max().unwrap_or(0);
    let operation = widest.clamp(*OPERATION.start(), *OPERATION.end());
    let columns = Columns { operation, place: WIDTH - FIXED - operation };
    let mut text = format!("{}\n", paint.heading(&heading(file.events.len())));
    let title = format!("  {:>5}  {:<6}  {:<operation$}  where", "step", "thread", "operation");
    let _ = writeln!(text, "{}", paint.faint(&title));
    let mut next = 0;
    for range in shown {
        if range.start > next {
            let _ = writeln!(text, "         ... {} steps left out ...", range.start - next);
        }
        for step in range.clone() {
            line(
                &mut text,
                step,
                &file.events[step],
                &operations[step],
                &where_to(file, step, directory, columns.place),
                &columns,
            );
        }
        next = range.end;
    }
    text
}

fn heading(steps: usize) -> String {
    let plural = if steps == 1 { "" } else { "s" };
    format!("The interleaving that led there, {steps} step{plural}:")
}

/// The beginning and the end; the former is empty if nothing is left out.
fn shown_ranges(count: usize, all: bool) -> [Range<usize>; 2] {
    if all || count <= MOST { [0..0, 0..count] } else { [0..HEAD, count - TAIL..count] }
}

fn line(text: &mut String, step: usize, event: &Event, operation: &str, place: &str, columns: &Columns) {
    let thread = if event.thread == ThreadId::MAIN { "main".to_owned() } else { event.thread.0.to_string() };
    let (width, operation) = (columns.operation, place::cut_right(operation, columns.operation));
    let line = format!("  {:>5}  {thread:<6}  {operation:<width$}  {place}", step + 1);
    let _ = writeln!(text, "{}", line.trim_end());
}

/// File and line come first; the function gets what room is left.
fn where_to(file: &TraceFile, step: usize, directory: &str, width: usize) -> String {
    let Some(location) = file.location_of(&file.events[step]) else { return String::new() };
    let place = place::cut_left(&place::file_line(location, directory), width);
    let room = width.saturating_sub(place.chars().count() + 1);
    if room < 4 { place } else { format!("{place} {}", place::cut_right(&place::function(location), room)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_keep_their_head_and_tail() {
        assert_eq!(shown_ranges(200, false), [0..0, 0..200]);
        assert_eq!(shown_ranges(1000, false), [0..40, 850..1000]);
        assert_eq!(shown_ranges(1000, true), [0..0, 0..1000]);
    }
}
