//! Both accesses, what each thread synchronised with, and why no order holds between them.

use super::Prose;
use crate::facts;
use crate::place;
use crate::text;
use symdpor_trace::failure::{Race, StackRole};
use symdpor_trace::{OpKind, ThreadId};

pub fn tell(prose: &mut Prose<'_>) {
    let Some(race) = prose.file.failure.race.clone() else { return };
    let moments = Moments::find(prose, &race);
    let (later, earlier) = (prose.name(race.this.thread), prose.name(race.earlier.thread));
    let object = if race.object.is_empty() { "the memory".to_owned() } else { place::demangled(&race.object) };
    let (did, does) = (text::past_verb(&race.earlier), text::verb(&race.this));
    let when = moments.earlier.and_then(|m| m.checked_sub(1)).map(|i| format!(" after step {}", i + 1));
    prose.say(&format!(
        "{earlier} {did} {object}{}, {later} {does} it at the end, and nothing orders the two: they could as well come the \
         other way round, or at the same time. What the program does then is undefined.",
        when.unwrap_or_default()
    ));
    prose.gap();
    prose.stack_of(StackRole::Earlier, &|name| format!("{name} {did} it here"));
    prose.stack_of(StackRole::Error, &|name| format!("{name} {does} it here"));
    prose.gap();
    prose.say("Why no order holds between them:");
    locks(prose, &race, &moments);
    before_and_after(prose, &race, &moments);
    relaxed(prose, &race, &moments);
}

/// When the accesses were made: how many steps had begun.
struct Moments {
    earlier: Option<usize>,
    this: usize,
}

impl Moments {
    fn find(prose: &Prose<'_>, race: &Race) -> Moments {
        let file = prose.file;
        let this = file.events.len();
        let of = |thread: ThreadId| file.accesses.iter().filter(move |a| a.thread == thread);
        let last = of(race.this.thread).next_back();
        let plain = last.and_then(|l| {
            let same = |a: &&_| {
                let a: &&symdpor_trace::failure::PlainAccessEvent = a;
                a.id == l.id && a.mask & l.mask != 0 && a.write == race.earlier.write
            };
            of(race.earlier.thread).rfind(same)
        });
        let step = || {
            let step = file
                .events
                .iter()
                .rposition(|e| e.thread == race.earlier.thread && e.object == race.object && !e.object.is_empty());
            step.map(|i| i + 1)
        };
        Moments { earlier: plain.map(|a| a.step as usize).or_else(step), this }
    }
}

fn locks(prose: &mut Prose<'_>, race: &Race, moments: &Moments) {
    let Some(moment) = moments.earlier else { return };
    let (a, b) = (race.earlier.thread, race.this.thread);
    let (one, other) = (facts::held(prose.file, a, moment), facts::held(prose.file, b, moments.this));
    let (name_a, name_b) = (prose.name(a), prose.name(b));
    if one.is_empty() && other.is_empty() {
        prose.point("neither thread held a lock.");
        return;
    }
    let both = one.iter().any(|h| other.iter().any(|o| o.id == h.id));
    let so = if both { "" } else { " There is no lock that both held." };
    let (held_a, held_b) = (prose.held(a, moment), prose.held(b, moments.this));
    prose.point(&format!("{name_a} held {held_a}; {name_b} holds {held_b}.{so}"));
}

fn before_and_after(prose: &mut Prose<'_>, race: &Race, moments: &Moments) {
    let (a, b) = (race.earlier.thread, race.this.thread);
    if let Some(moment) = moments.earlier {
        let before = last(prose, a, moment);
        let after = prose.file.events.iter().enumerate().skip(moment);
        let after = after.filter(|(_, e)| e.thread == a && facts::synchronises(e)).map(|(i, _)| i).next();
        let after = match after {
            Some(step) => format!("the next time after it is {}", prose.operation(step)),
            None => "after it, it has not done so again".to_owned(),
        };
        prose.point(&format!("{} last synchronised before its access with {before}; {after}.", prose.name(a)));
    }
    let before = last(prose, b, moments.this);
    prose.point(&format!("{} last synchronised before its access with {before}.", prose.name(b)));
}

fn last(prose: &Prose<'_>, thread: ThreadId, moment: usize) -> String {
    match facts::last_synchronisation(prose.file, thread, moment) {
        Some(step) if prose.file.events[step].thread != thread => {
            format!("its creation (step {})", step + 1)
        }
        Some(step) => prose.operation(step),
        None => "nothing at all".to_owned(),
    }
}

/// An atomic that both use between the accesses but that is declared not to order anything.
fn relaxed(prose: &mut Prose<'_>, race: &Race, moments: &Moments) {
    const RELAXED: u8 = 0;
    let Some(moment) = moments.earlier else { return };
    let atomic = |op| matches!(op, OpKind::AtomicLoad | OpKind::AtomicStore | OpKind::AtomicRmw);
    let between = &prose.file.events[moment.min(prose.file.events.len())..];
    let wrote = between.iter().find(|e| {
        e.thread == race.earlier.thread
            && atomic(e.op)
            && e.op != OpKind::AtomicLoad
            && between.iter().any(|o| {
                o.thread == race.this.thread
                    && o.id == e.id
                    && atomic(o.op)
                    && (o.order == RELAXED || e.order == RELAXED)
            })
    });
    if let Some(event) = wrote {
        let name = place::demangled(&event.object);
        prose.point(&format!(
            "both use {name} in between, but with relaxed order: that says nothing about other memory. A store with release \
             and a load with acquire would."
        ));
    }
}
