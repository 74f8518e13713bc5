//! The lines of the program's source that a report shows, read while they are still what was compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use symdpor_trace::Location;
use symdpor_trace::failure::Failure;
use symdpor_trace::file::SourceLine;

/// Lines around a place that are kept.
const AROUND: u32 = 12;
/// Longer files are generated, and longer lines are not read by anybody.
const FILE_BYTES: u64 = 4 << 20;
const LINE_CHARS: usize = 400;
const MOST_LINES: usize = 20_000;

/// The lines near to the places of the steps and of the failure, sorted.
pub fn near(places: &[Location], failure: &Failure) -> Vec<SourceLine> {
    let stacks = failure.stacks.iter().flat_map(|s| &s.frames);
    let waits = failure.waits.iter().flat_map(|w| w.location.iter().chain(&w.held_since));
    let all = places.iter().chain(&failure.location).chain(stacks).chain(waits);
    let mut wanted: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for place in all.filter(|p| p.line != 0 && !p.is_system()) {
        let lines = place.line.saturating_sub(AROUND).max(1)..=place.line.saturating_add(AROUND);
        wanted.entry(&place.file).or_default().extend(lines);
    }
    let mut lines: Vec<SourceLine> = wanted.into_iter().flat_map(|(file, lines)| read(file, &lines)).collect();
    lines.truncate(MOST_LINES);
    lines
}

fn read(file: &str, wanted: &BTreeSet<u32>) -> Vec<SourceLine> {
    let is_small = fs::metadata(file).is_ok_and(|m| m.is_file() && m.len() <= FILE_BYTES);
    let Some(bytes) = is_small.then(|| fs::read(file).ok()).flatten() else { return vec![] };
    let text = String::from_utf8_lossy(&bytes);
    let numbered = (1..).zip(text.lines());
    let kept = numbered.filter(|(number, _)| wanted.contains(number));
    kept.map(|(line, text)| SourceLine { file: file.to_owned(), line, text: text.chars().take(LINE_CHARS).collect() })
        .collect()
}
