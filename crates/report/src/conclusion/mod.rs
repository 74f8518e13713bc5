//! What went wrong, in words: a section that follows the interleaving.

mod deadlock;
mod race;
mod values;

use crate::stacks;
use crate::text::TextOptions;
use crate::threads::Threads;
use crate::{facts, place, words, wrap};
use symdpor_trace::failure::{Stack, StackRole, Wait};
use symdpor_trace::file::TraceFile;
use symdpor_trace::{FailureKind, Location, ThreadId};

/// The whole section, with its heading.
pub fn conclusion(file: &TraceFile, threads: &Threads, options: &TextOptions) -> String {
    let mut prose = Prose { file, threads, options, text: String::new() };
    match file.failure.kind {
        FailureKind::DataRace => race::tell(&mut prose),
        FailureKind::Deadlock => deadlock::tell(&mut prose),
        FailureKind::Livelock => deadlock::livelock(&mut prose),
        FailureKind::Assertion | FailureKind::Crash | FailureKind::ExitStatus => values::tell(&mut prose),
        FailureKind::Memory => memory(&mut prose),
        FailureKind::LockMisuse => misuse(&mut prose),
        FailureKind::StepLimit => step_limit(&mut prose),
    }
    if prose.text.is_empty() {
        return String::new();
    }
    format!("{}\n{}", options.paint.heading("What went wrong:"), prose.text)
}

/// Text in the making, with what is needed to name things.
struct Prose<'a> {
    file: &'a TraceFile,
    threads: &'a Threads,
    options: &'a TextOptions,
    text: String,
}

impl Prose<'_> {
    fn say(&mut self, sentence: &str) {
        self.text.push_str(&wrap::paragraph(sentence, self.options.width(), 2, 2));
    }

    fn point(&mut self, sentence: &str) {
        self.text.push_str(&wrap::paragraph(&format!("- {sentence}"), self.options.width(), 2, 4));
    }

    fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    fn name(&self, thread: ThreadId) -> String {
        self.threads.name(thread)
    }

    /// A title and the calls.
    fn stack(&mut self, title: &str, stack: &Stack) {
        if stack.frames.is_empty() {
            return;
        }
        let title = wrap::paragraph(&format!("{title}:"), self.options.width(), 4, 4);
        self.text.push_str(&title);
        self.text.push_str(&stacks::frames(Some(self.file), &stack.frames, self.options));
    }

    fn stack_of(&mut self, role: StackRole, title: &dyn Fn(String) -> String) {
        if let Some(stack) = self.file.failure.stack(role) {
            let (title, stack) = (title(self.name(stack.thread)), stack.clone());
            self.stack(&title, &stack);
        }
    }

    /// ` in step 3 (a.c:12)`, counted as the interleaving counts.
    fn step(&self, index: usize) -> String {
        let place = self.file.location_of(&self.file.events[index]).map(|l| format!(", {}", stacks::brief(l)));
        format!("step {}{}", index + 1, place.unwrap_or_default())
    }

    /// The operation of a step in quotes, with its number and place.
    fn operation(&self, index: usize) -> String {
        let what = words::event_of(&self.file.events[index], &|t| self.name(t));
        format!("`{what}` ({})", self.step(index))
    }

    /// What a thread holds, as the end of a sentence: `held m (since step 3, a.c:12)`.
    fn held(&self, thread: ThreadId, moment: usize) -> String {
        let held = facts::held(self.file, thread, moment);
        let each = held.iter().map(|h| format!("{} (since {})", place::demangled(&h.name), self.step(h.step)));
        match held.len() {
            0 => "no lock".to_owned(),
            _ => each.collect::<Vec<_>>().join(" and "),
        }
    }

    /// What a thread that has not ended was doing.
    fn waiting(&self, wait: &Wait) -> String {
        let name = |t: ThreadId| self.name(t);
        let what = if wait.enabled {
            "could go on".to_owned()
        } else {
            words::waiting(wait.op, &wait.object, wait.joined, &name)
        };
        format!("{} {what}{}", self.name(wait.thread), at(wait.location.as_ref()))
    }
}

/// ` at a.c:12 in f`, or nothing.
fn at(location: Option<&Location>) -> String {
    location.map(|l| format!(" at {}{}", stacks::brief(l), in_function(l))).unwrap_or_default()
}

fn in_function(location: &Location) -> String {
    let function = crate::threads::short_function(&place::function(location));
    if function.is_empty() || location.line == 0 { String::new() } else { format!(" in {function}") }
}

/// Allocation, free and use.
fn memory(prose: &mut Prose<'_>) {
    let message = prose.file.failure.message.clone();
    let thread = prose.file.failure.thread.map(|t| prose.name(t)).unwrap_or_default();
    prose.say(&format!("{thread} did this: {message}."));
    prose.gap();
    prose.stack_of(StackRole::Error, &|name| format!("{name} was here"));
    prose.stack_of(StackRole::Allocated, &|name| format!("the block was allocated by {name}"));
    prose.stack_of(StackRole::Freed, &|name| format!("it was freed by {name}"));
    let freed = prose.file.failure.stack(StackRole::Freed).map(|s| s.thread);
    if let (Some(freed), Some(user)) = (freed, prose.file.failure.thread)
        && freed != user
    {
        prose.gap();
        let (who, by) = (prose.name(user), prose.name(freed));
        if prose.file.failure.message.contains("second time") {
            prose.say(&format!("Nothing keeps {by} and {who} from both freeing it."));
        } else {
            prose.say(&format!("Nothing keeps {by} from freeing the block while {who} still uses it."));
        }
    }
}

/// Who holds what, and where it happened.
fn misuse(prose: &mut Prose<'_>) {
    let failure = &prose.file.failure;
    let thread = failure.thread.unwrap_or(ThreadId::MAIN);
    let (name, message) = (prose.name(thread), failure.message.clone());
    let place = at(failure.location.as_ref());
    prose.say(&format!("{name} did this{place}: {message}."));
    let moment = prose.file.events.len();
    let mut all: Vec<ThreadId> = prose.file.threads.iter().map(|t| t.thread).collect();
    all.sort();
    let mut someone = false;
    for holder in all {
        if !facts::held(prose.file, holder, moment).is_empty() {
            someone = true;
            prose.point(&format!("{} holds {}", prose.name(holder), prose.held(holder, moment)));
        }
    }
    if !someone {
        prose.point("no lock is held that was taken since the first thread was created");
    }
    prose.gap();
    prose.stack_of(StackRole::Error, &|name| format!("{name} was here"));
}

fn step_limit(prose: &mut Prose<'_>) {
    prose.say(&format!(
        "{}. Either the program runs on for ever in this interleaving, or the limit is too low for it (--max-steps).",
        prose.file.failure.message
    ));
    prose.stack_of(StackRole::Error, &|name| format!("{name} was here"));
}
