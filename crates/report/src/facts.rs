//! What an execution says about its threads at a moment: the locks they hold, and what they last synchronised with.
//!
//! A moment is a number of steps that have begun. Locks taken before the first thread was created are not among the steps.

use symdpor_trace::failure::{Event, PlainAccessEvent};
use symdpor_trace::file::TraceFile;
use symdpor_trace::{Access, ObjectId, Op, OpKind, ThreadId};

/// A lock that is held, and the index of the step that took it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    pub id: u64,
    pub name: String,
    pub step: usize,
}

/// How an event touches its object.
fn access(event: &Event) -> Option<Access> {
    let mut op = Op::new(event.op, ObjectId(event.id));
    op.arg = event.arg;
    op.access()
}

fn is_lock(event: &Event) -> bool {
    !matches!(event.op, OpKind::OnceBegin | OpKind::OnceEnd | OpKind::OnceDone)
}

/// The locks that a thread holds after so many steps, in the order in which it took them.
pub fn held(file: &TraceFile, thread: ThreadId, moment: usize) -> Vec<Held> {
    let mut held: Vec<Held> = Vec::new();
    let release = |held: &mut Vec<Held>, id: u64| {
        if let Some(at) = held.iter().rposition(|h| h.id == id) {
            held.remove(at);
        }
    };
    let steps = file.events.iter().take(moment).enumerate().filter(|(_, e)| e.thread == thread && is_lock(e));
    for (step, event) in steps {
        match access(event) {
            Some(Access::Acquire | Access::TryAcquire) => {
                held.push(Held { id: event.id, name: event.object.clone(), step });
            }
            Some(Access::Release) => release(&mut held, event.id),
            _ if event.op == OpKind::CondWait => release(&mut held, event.id2),
            _ => {}
        }
    }
    held
}

/// Whether a step synchronises with other threads, in some direction.
pub fn synchronises(event: &Event) -> bool {
    !matches!(
        event.op,
        OpKind::PlainLoad | OpKind::PlainStore | OpKind::Yield | OpKind::KeyTable | OpKind::Input | OpKind::Waiting
    )
}

/// The index of the last step before a moment in which a thread synchronised; for one that has not, that of its creation.
pub fn last_synchronisation(file: &TraceFile, thread: ThreadId, moment: usize) -> Option<usize> {
    let mut before = file.events.iter().take(moment);
    before.rposition(|e| e.thread == thread && synchronises(e)).or_else(|| {
        file.events.iter().take(moment).position(|e| e.op == OpKind::ThreadCreate && e.arg == u32::from(thread.0))
    })
}

/// The last write to some of the bytes of an access before it: by a step, or by a plain access.
pub enum Writer<'a> {
    Step(usize, &'a Event),
    Plain(&'a PlainAccessEvent),
}

pub fn last_write(file: &TraceFile, id: u64, mask: u8, before: usize, before_access: usize) -> Option<Writer<'_>> {
    let writes = |e: &Event| matches!(e.op, OpKind::AtomicStore | OpKind::AtomicRmw | OpKind::PlainStore);
    let step = file.events.iter().take(before).rposition(|e| e.id == id && e.mask & mask != 0 && writes(e));
    let plain = file.accesses.iter().take(before_access).rfind(|a| a.id == id && a.mask & mask != 0 && a.write);
    match (step, plain) {
        (Some(step), Some(plain)) if step < plain.step as usize => Some(Writer::Plain(plain)),
        (Some(step), _) => Some(Writer::Step(step, &file.events[step])),
        (None, plain) => plain.map(Writer::Plain),
    }
}
