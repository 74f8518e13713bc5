//! Stacks as text.

use crate::interleaving::expanded;
use crate::place;
use crate::repeats::{self, Item};
use crate::text::TextOptions;
use symdpor_trace::Location;
use symdpor_trace::file::TraceFile;

/// Frames of one stack that are shown.
const FRAMES: usize = 24;

/// `file:line in function`, no wider than there is room for.
pub fn at(location: &Location, options: &TextOptions, room: usize) -> String {
    let place = place::file_line(location, &options.directory);
    let function = place::function(location);
    let full = if function.is_empty() { place.clone() } else { format!("{place} in {function}") };
    if full.chars().count() <= room {
        return full;
    }
    // The name of the file says more than the way to it.
    let name = place.rsplit('/').next().unwrap_or(&place);
    let left = room.saturating_sub(name.chars().count());
    if left < 8 || function.is_empty() {
        return place::cut_left(&place, room);
    }
    let function = place::cut_right(&function, left.saturating_sub(5).max(3));
    let for_path = room.saturating_sub(function.chars().count() + 4);
    format!("{} in {function}", place::cut_left(&place, for_path.max(name.chars().count())))
}

/// `file:line in function` with nothing but the last part of the path: for sentences.
pub fn brief(location: &Location) -> String {
    let path = place::short_path(&location.file, "");
    let file = if path.starts_with('<') { path.as_str() } else { path.rsplit('/').next().unwrap_or_default() };
    match (file.is_empty(), location.line) {
        (true, _) => "(no line: compile with -g)".to_owned(),
        (false, 0) => file.to_owned(),
        (false, line) => format!("{file}:{line}"),
    }
}

/// Recursion is folded, and so are the calls inside of the library; of long stacks both ends are shown. The innermost line
/// of the program is shown with its text.
pub fn frames(file: Option<&TraceFile>, frames: &[Location], options: &TextOptions) -> String {
    const INDENT: usize = 6;
    let mut text = String::new();
    let (mut inside, mut more) = (0, false);
    let telling = symdpor_trace::failure::telling(frames);
    for item in repeats::cut(repeats::fold(frames), FRAMES / 2, FRAMES / 2) {
        let in_library = matches!(item, Item::Step(i) if i > 0 && frames[i].is_system());
        if in_library {
            inside += 1;
            continue;
        }
        note_inside(&mut text, &mut inside, more);
        more = matches!(item, Item::Step(i) if frames[i].is_system());
        let line = match item {
            Item::Step(i) => at(&frames[i], options, options.width() - INDENT),
            Item::Repeated { steps: 1, times } => format!("... the same {times} times more"),
            Item::Repeated { steps, times } => format!("... these {steps} calls {times} times more"),
            Item::LeftOut(count) => format!("... {count} more"),
        };
        text.push_str(&format!("{:INDENT$}{line}\n", ""));
        if let (Item::Step(i), Some(file)) = (item, file)
            && Some(&frames[i]) == telling
            && let Some(source) = file.source_text(&frames[i])
        {
            let source = place::cut_right(&expanded(source.trim()), options.width() - INDENT - 4);
            text.push_str(&format!("{:INDENT$}    {}\n", "", options.paint.faint(&source)));
        }
    }
    note_inside(&mut text, &mut inside, more);
    text
}

/// How many calls were left out; more, if one of them is shown: the innermost one.
fn note_inside(text: &mut String, calls: &mut usize, more: bool) {
    let more = if more { "more " } else { "" };
    match std::mem::take(calls) {
        0 => {}
        1 => text.push_str(&format!("      ... 1 {more}call inside the library\n")),
        n => text.push_str(&format!("      ... {n} {more}calls inside the library\n")),
    }
}
