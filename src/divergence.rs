//! Says what a program did differently when it was run again in the same way.

use crate::describe::Describe;
use crate::search::place_of;
use crate::session::Unexpected;
use symdpor_abi::channel::Step;
use symdpor_trace::ThreadId;
use symdpor_trace::failure::Stack;

const CAUSES: &str = "its behaviour depends on something that symdpor does not control";

/// One sentence, and the stack of the operation that differed.
pub fn explain(unexpected: &Unexpected, describe: &Describe<'_>) -> (String, Option<Stack>) {
    let number = unexpected.step + 1;
    let Some(divergence) = &unexpected.divergence else {
        let detail =
            if unexpected.message.is_empty() { "a thread that could run cannot now" } else { &unexpected.message };
        return (format!("the program did not repeat itself at step {number}: {detail}; {CAUSES}"), None);
    };
    let (before, stack_before) = place_of(describe, &divergence.before);
    match &divergence.now {
        None => (
            format!("the program did not repeat itself: step {number} was {before}, now it ended; {CAUSES}"),
            stack_before,
        ),
        Some(now) => {
            let (after, stack) = place_of(describe, now);
            (difference(number, &before, &after), stack.or(stack_before))
        }
    }
}

/// The same where it is known only what was to be done by whom.
pub fn explain_step(
    at: usize,
    thread: ThreadId,
    now: Option<Step>,
    describe: &Describe<'_>,
) -> (String, Option<Stack>) {
    let (number, who) = (at + 1, symdpor_report::text::thread_name(thread));
    let Some(now) = now else {
        return (format!("the program did not repeat itself: it ended before step {number} of {who}; {CAUSES}"), None);
    };
    let (after, stack) = place_of(describe, &now);
    (
        format!("the program did not repeat itself: step {number} of {who} is not what it was, now {after}; {CAUSES}"),
        stack,
    )
}

fn difference(number: usize, before: &str, after: &str) -> String {
    if before == after {
        return format!(
            "the program did not repeat itself: at step {number}, {before}, other threads can run; {CAUSES}"
        );
    }
    format!("the program did not repeat itself: step {number} was {before}, now it is {after}; {CAUSES}")
}
