//! Who waits for whom: the cycle if there is one, or what will never come.

use super::{Prose, at, in_function};
use crate::{facts, place, stacks};
use symdpor_trace::failure::{StackRole, Wait};
use symdpor_trace::{NO_THREAD, OpKind, ThreadId};

pub fn tell(prose: &mut Prose<'_>) {
    let waits: Vec<Wait> = prose.file.failure.waits.iter().filter(|w| !w.enabled).cloned().collect();
    let cycle = cycle(&waits);
    let inside = |w: &&Wait| cycle.contains(&w.thread);
    for wait in waits.iter().filter(inside) {
        one(prose, wait);
    }
    if !cycle.is_empty() {
        prose.say(&round(prose, &cycle, &waits));
    }
    for wait in waits.iter().filter(|w| !inside(w)) {
        one(prose, wait);
    }
    long_stacks(prose);
}

/// The threads that wait for each other in turn; empty if there are none.
fn cycle(waits: &[Wait]) -> Vec<ThreadId> {
    let next = |thread: ThreadId| {
        let wait = waits.iter().find(|w| w.thread == thread)?;
        wait.holder.or(wait.joined).filter(|t| waits.iter().any(|w| w.thread == *t))
    };
    for wait in waits {
        let mut path = vec![wait.thread];
        while let Some(thread) = path.last().copied().and_then(next) {
            if let Some(start) = path.iter().position(|t| *t == thread) {
                return path.split_off(start);
            }
            path.push(thread);
        }
    }
    vec![]
}

fn round(prose: &Prose<'_>, cycle: &[ThreadId], waits: &[Wait]) -> String {
    if let [only] = cycle {
        return format!("{} waits for itself, for ever.", prose.name(*only));
    }
    let links = cycle.iter().filter_map(|t| waits.iter().find(|w| w.thread == *t)).map(|w| {
        let what = if w.joined.is_some() { "its end".to_owned() } else { place::demangled(&w.object) };
        format!("{} -> {what} -> ", prose.name(w.thread))
    });
    let (links, first) = (links.collect::<String>(), prose.name(cycle[0]));
    format!("This is a cycle: {links}{first}. None of them can ever go on.")
}

/// One thread: what it waits for, who has it, what it holds itself.
fn one(prose: &mut Prose<'_>, wait: &Wait) {
    let mut text = prose.waiting(wait);
    match wait.holder {
        Some(holder) if holder == wait.thread => text.push_str(", which it holds itself"),
        Some(holder) => text.push_str(&format!(", which {} holds", prose.name(holder))),
        None => {}
    }
    if wait.holder.is_some() {
        if let Some(place) = &wait.held_since {
            text.push_str(&format!(" since {}{}", stacks::brief(place), in_function(place)));
        }
        let ended = wait.holder.filter(|h| !prose.file.failure.waits.iter().any(|w| w.thread == *h));
        if let Some(ended) = ended {
            text.push_str(&format!("; {} has ended without giving it back", prose.name(ended)));
        }
    }
    text.push('.');
    prose.point(&text);
    if matches!(wait.op, OpKind::Waiting | OpKind::CondCancel) {
        signals(prose, wait);
    }
}

/// What became of the signals that a waiter would have needed.
fn signals(prose: &mut Prose<'_>, wait: &Wait) {
    let events = &prose.file.events;
    let Some(went) = events.iter().rposition(|e| e.thread == wait.thread && e.op == OpKind::CondWait) else { return };
    let id = events[went].id;
    let is_signal = |op| matches!(op, OpKind::CondSignal | OpKind::CondBroadcast);
    let sent: Vec<usize> = (0..events.len()).filter(|&i| events[i].id == id && is_signal(events[i].op)).collect();
    let name = place::demangled(&wait.object);
    let text = match sent.last() {
        None => format!("Nobody has signalled {name} in this execution, and nobody is left to do it."),
        Some(&last) if last < went => format!(
            "It went to sleep in {}. The last signal had come before that, in {}{}: it was lost, and nobody is left to send \
             another.",
            prose.step(went),
            prose.step(last),
            if events[last].arg == NO_THREAD && events[last].op == OpKind::CondSignal {
                ", when nobody waited"
            } else {
                ""
            }
        ),
        Some(&last) => format!(
            "It went to sleep in {}; {} woke another thread, and nobody is left to signal {name} again.",
            prose.step(went),
            prose.operation(last)
        ),
    };
    prose.text.push_str(&crate::wrap::paragraph(&text, prose.options.width(), 4, 4));
}

/// Stacks that say more than the place where the thread waits.
fn long_stacks(prose: &mut Prose<'_>) {
    let stacks: Vec<_> = prose.file.failure.stacks.iter().filter(|s| s.frames.len() > 1).cloned().collect();
    for (i, stack) in stacks.iter().enumerate() {
        if matches!(stack.role, StackRole::Other | StackRole::Error) {
            if i == 0 {
                prose.gap();
            }
            prose.stack(&format!("{} is here", prose.name(stack.thread)), stack);
        }
    }
}

pub fn livelock(prose: &mut Prose<'_>) {
    let file = prose.file;
    let failure = &file.failure;
    for wait in failure.waits.clone() {
        let spins = matches!(wait.op, OpKind::AtomicLoad | OpKind::PlainLoad | OpKind::AtomicRmw | OpKind::AtomicCas);
        let step = file.events.iter().rposition(|e| e.thread == wait.thread && e.object == wait.object);
        let value = step.and_then(|i| file.events[i].values.map(|(_, new)| (i, new)));
        let mut text = prose.waiting(&wait);
        if let (true, Some((i, value))) = (spins, value) {
            let (id, mask) = (file.events[i].id, file.events[i].mask);
            text.push_str(&format!(
                ", where it finds {}",
                crate::words::value(value, file.events[i].size, &file.events[i].ty)
            ));
            match facts::last_write(file, id, mask, i, 0) {
                Some(facts::Writer::Step(step, _)) => text.push_str(&format!(
                    "; that was written by {} in {}",
                    prose.name(file.events[step].thread),
                    prose.step(step)
                )),
                _ => text.push_str("; nobody has written it since the first thread was created"),
            }
        }
        prose.point(&format!("{text}."));
    }
    let ended: Vec<String> = file
        .threads
        .iter()
        .filter(|t| !failure.waits.iter().any(|w| w.thread == t.thread))
        .map(|t| prose.name(t.thread))
        .collect();
    if !ended.is_empty() {
        prose.point(&format!("{} {} ended.", ended.join(", "), if ended.len() == 1 { "has" } else { "have" }));
    }
    let place = at(failure.location.as_ref());
    prose.say(&format!("No thread is left that would write what is waited for{place}: it goes round for ever."));
}
