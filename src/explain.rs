//! `symdpor explain-symmetry`: which threads are alike in a state of the first execution, and what tells the others apart.

use crate::console::Console;
use crate::describe::Describe;
use crate::exit::Exit;
use crate::flags::ExplainFlags;
use crate::interrupt::Interrupt;
use crate::options::{channel_bits, step_timeout};
use crate::session::{Ran, Session};
use crate::subject::Subject;
use std::error::Error;
use std::fmt::Write;
use symdpor_abi::channel::options as bits;
use symdpor_abi::local::why;
use symdpor_trace::file::ExecutionOptions;
use symdpor_trace::{Choice, Execution, Location, Plan, ThreadId, ThreadSet};
use symdpor_worker::Points;
use symdpor_worker::points::Local;
use symdpor_worker::views::{FrameView, ThreadView, Word};

const MAX_STEPS: u32 = 100_000;

pub fn explain(flags: &ExplainFlags) -> Result<Exit, Box<dyn Error>> {
    let interrupt = Interrupt::install()?;
    let subject = Subject::new(&flags.command)?;
    let options =
        ExecutionOptions { visible_all: false, ignore_races: false, max_steps: MAX_STEPS, seed: 0, nondet: None };
    let settings = subject.settings(&options, step_timeout());
    let mut session = Session::new(settings, subject.globals, channel_bits(&options) | bits::LOCALS);
    let mut stop = || interrupt.is_set();
    match session.run(&Plan::default(), false, &mut stop)? {
        Ran::Ended(_) => {}
        _ => return Err("the program does not come to an end: use `symdpor run` first".into()),
    }
    let Some(position) = chosen_state(session.execution(), flags.step)? else {
        Console::Stdout.print("no two threads besides main can ever run side by side in the first execution\n");
        return Ok(Exit::Ok);
    };
    let views = session.views(&question(session.execution(), position), &mut stop)?;
    let enabled = session.execution().steps[position].enabled.clone();
    let sites = session.sites();
    let text = {
        let describe = Describe::new(&sites, session.globals());
        let place = |site: u32| describe.sites.location(site);
        let (last, choice) = (position, session.execution().steps[position].thread);
        let mut text = format!("Before step {} of the first execution, thread {}'s:\n\n", last + 1, choice.0);
        threads(&views, &enabled, &place, &mut text);
        text
    };
    let mut text = text;
    differences(&views, &mut session.points, &|site| sites.location(site), &mut text);
    Console::Stdout.print(&text);
    session.quit();
    Ok(Exit::Ok)
}

/// The position asked for, or the first at which most threads besides main can run.
fn chosen_state(execution: &Execution, step: Option<usize>) -> Result<Option<usize>, String> {
    if let Some(step) = step {
        let steps = execution.steps.len();
        let inside = step.checked_sub(1).filter(|&p| p < steps);
        return inside
            .map(Some)
            .ok_or_else(|| format!("the first execution has {steps} steps: there is no step {step}"));
    }
    let others = |p: usize| execution.steps[p].enabled.iter().filter(|t| *t != ThreadId::MAIN).count();
    let most = (0..execution.steps.len()).map(others).max().unwrap_or(0);
    Ok((0..execution.steps.len()).find(|&p| others(p) == most).filter(|_| most >= 2))
}

fn question(execution: &Execution, position: usize) -> Plan {
    let steps = &execution.steps[..=position];
    let choices = steps.iter().map(|s| Choice { thread: s.thread, alternative: s.alternative }).collect();
    Plan { choices, ask: true, ..Plan::default() }
}

fn at(location: Option<Location>) -> String {
    location.map_or("code that is not known".to_owned(), |l| format!("{}:{} in {}", l.file, l.line, l.function))
}

/// Where each thread is, and whether it can be like another.
fn threads(views: &[ThreadView], enabled: &ThreadSet, place: &dyn Fn(u32) -> Option<Location>, text: &mut String) {
    for view in views {
        let why = view.unlike.map_or(0, |(_, site)| site);
        let site = view.frames.get(1).map(|f| f.site).filter(|site| *site != 0).unwrap_or(why);
        let can = if enabled.contains(view.thread) { "" } else { ", blocked" };
        let _ = writeln!(text, "thread {:<3} {}{can}", view.thread.0, at(place(site)));
        if let Some((reason, site)) = view.unlike {
            let _ = writeln!(text, "           is like no other: {}", reason_text(reason, &at(place(site))));
        } else if !view.stack {
            let _ = writeln!(
                text,
                "           is like no other: an address of its stack is stored where others can see it"
            );
        }
    }
    text.push('\n');
}

fn reason_text(reason: u64, place: &str) -> String {
    match reason {
        why::IDENTIFIED => {
            "it has asked for its own id (pthread_self), was detached, or was named by another".to_owned()
        }
        why::HOLDS_LOCK => "it holds a lock that no other can hold at the same time".to_owned(),
        why::WAITED_IN_VAIN => "it has waited in vain with a time limit".to_owned(),
        why::HANDLERS => "it has cleanup handlers or destructors of thread-local variables".to_owned(),
        why::OPAQUE => format!("code that was not instrumented is under way, called at {place}"),
        why::CANNOT_READ => format!("something that is live cannot be read at {place}"),
        why::TOO_DEEP => "its stack is too deep".to_owned(),
        _ => format!("its code is not known at {place}"),
    }
}

/// The groups of threads that are alike, and what tells each from the first.
fn differences(views: &[ThreadView], points: &mut Points, place: &dyn Fn(u32) -> Option<Location>, text: &mut String) {
    let comparable: Vec<&ThreadView> = views.iter().filter(|v| v.unlike.is_none() && v.stack).collect();
    let mut groups: Vec<Vec<&ThreadView>> = Vec::new();
    for view in comparable {
        match groups.iter_mut().find(|g| g[0].hash == view.hash) {
            Some(group) => group.push(view),
            None => groups.push(vec![view]),
        }
    }
    for group in groups.iter().filter(|g| g.len() > 1) {
        let names: Vec<String> = group.iter().map(|v| v.thread.0.to_string()).collect();
        let _ = writeln!(text, "Threads {} are alike.", names.join(", "));
    }
    for other in groups.iter().skip(1) {
        let (one, other) = (groups[0][0], other[0]);
        let _ = writeln!(
            text,
            "Threads {} and {} differ: {}.",
            one.thread.0,
            other.thread.0,
            difference(one, other, points, place)
        );
    }
}

fn difference(
    one: &ThreadView,
    other: &ThreadView,
    points: &mut Points,
    place: &dyn Fn(u32) -> Option<Location>,
) -> String {
    if one.frames[0].words != other.frames[0].words {
        return "they are about to do different operations".to_owned();
    }
    let inside = |v: &ThreadView| v.frames.iter().filter(|f| f.site != 0).cloned().collect::<Vec<_>>();
    let (mine, theirs) = (inside(one), inside(other));
    if let Some((a, b)) = mine.iter().zip(&theirs).find(|(a, b)| a.words != b.words) {
        return frame_difference(one.thread, other.thread, a, b, points, place);
    }
    if mine.len() != theirs.len() {
        return format!(
            "thread {} has {} functions under way, thread {} has {}",
            one.thread.0,
            mine.len(),
            other.thread.0,
            theirs.len()
        );
    }
    let outside = |v: &ThreadView| v.frames.iter().filter(|f| f.site == 0).map(|f| f.words.clone()).collect::<Vec<_>>();
    let (mine, theirs) = (outside(one), outside(other));
    if mine.get(1) != theirs.get(1) {
        return "a thread-local variable, a thread-specific value or errno".to_owned();
    }
    let words = || mine.get(2).into_iter().flatten().zip(theirs.get(2).into_iter().flatten());
    match words().find(|(a, b)| a != b) {
        Some((a, b)) => format!(
            "their own heap blocks (what they were started with, say) hold {} in thread {} and {} in thread {}",
            show_word(a),
            one.thread.0,
            show_word(b),
            other.thread.0
        ),
        None => "their own heap blocks have different sizes".to_owned(),
    }
}

fn frame_difference(
    one: ThreadId,
    other: ThreadId,
    a: &FrameView,
    b: &FrameView,
    points: &mut Points,
    place: &dyn Fn(u32) -> Option<Location>,
) -> String {
    const CODE_WORDS: usize = 2;
    let first = a.words.iter().zip(&b.words).position(|(x, y)| x != y).unwrap_or(a.words.len().min(b.words.len()));
    if first < CODE_WORDS {
        return format!("different code is left to run from {} and from {}", at(place(a.site)), at(place(b.site)));
    }
    let values = || {
        let show = |w: Option<&Word>| w.map_or("nothing".to_owned(), show_word);
        format!(
            "{} in thread {} and {} in thread {}",
            show(a.words.get(first)),
            one.0,
            show(b.words.get(first)),
            other.0
        )
    };
    match points.local_at(a.site, a.before, first - CODE_WORDS) {
        Local::Named(name) => format!("local `{name}` is {} ({})", values(), at(place(a.site))),
        Local::Unnamed => format!("a local without a name is {} ({})", values(), at(place(a.site))),
        Local::Beyond => format!("something live is {} ({})", values(), at(place(a.site))),
    }
}

fn show_word(word: &Word) -> String {
    match *word {
        Word::Code(value) | Word::Value(value) if value < 1 << 16 => value.to_string(),
        Word::Code(value) | Word::Value(value) => format!("{value:#x}"),
        Word::OwnObject(index) => format!("an address in its local {}, offset {}", index >> 32, index as u32),
        Word::OwnStack(offset) => format!("an address of its stack ({offset:#x})"),
        Word::OwnBlock(index) => format!("an address in its block {}, offset {}", index >> 32, index as u32),
    }
}
