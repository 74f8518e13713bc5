//! Makes the trace file of a failing execution, for which it is run once more: ordinary executions keep neither stacks nor
//! values.

use crate::describe::{Describe, Past, Places};
use crate::message;
use crate::naming::is_nameless;
use crate::session::{Ended, Session};
use crate::source;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use symdpor_abi::channel::{self, Outcome};
use symdpor_abi::object::Region;
use symdpor_trace::failure::{Event, Failure, PlainAccessEvent, StackRole, telling};
use symdpor_trace::file::{ExecutionOptions, Program, ThreadInfo, TraceFile};
use symdpor_trace::{FailureKind, Location, NO_THREAD, ObjectId, OpKind, ThreadId, ValueType};
use symdpor_worker::accesses::{Particulars, RawAccess, RawBlock};
use symdpor_worker::decode::{RawError, RawStack};

/// Plain accesses that are kept, at most: the last ones.
const ACCESSES: usize = 4000;

/// The last execution of the session, which ended like this.
pub fn file(
    session: &mut Session,
    program: &Program,
    options: ExecutionOptions,
    kind: FailureKind,
    ended: &Ended,
    mut error: RawError,
) -> TraceFile {
    let output = session.output(&ended.header);
    // A step without end would take its time once more.
    let again = if kind == FailureKind::StepLimit { None } else { look_again(session, kind, &mut error) };
    let (stacks, particulars) = again.unwrap_or_default();
    let sites = session.sites();
    let past = Past { trace: session.trace(), stacks: &stacks };
    let describe = Describe::of_execution(&sites, session.globals(), past);
    let mut failure = describe.failure(kind, ended, &error, past);
    let mut places = Places::default();
    let mut events = describe.events(past, &mut places);
    let line = failure.location.clone().filter(|l| l.line != 0);
    let on_the_line = |site: u32| {
        let frames = sites.frames(site);
        line.as_ref().is_some_and(|line| frames.iter().any(|f| (&f.file, f.line) == (&line.file, line.line)))
    };
    let is_library = |site: u32| sites.location(site).is_some_and(|place| place.is_system());
    let wanted = interesting(
        &particulars.accesses,
        &error,
        &options,
        &Sources { on_the_line: &on_the_line, is_library: &is_library },
    );
    let mut accesses: Vec<PlainAccessEvent> = wanted.iter().map(|a| describe.access(a, &mut places)).collect();
    if options.visible_all {
        give_values(&mut events, &particulars.accesses);
    }
    // Of a stack only variables say something, and so it is with what is in the program's file or a library.
    accesses.retain(|a| a.object.starts_with("heap+0x") || !is_nameless(&a.object));
    // Where something is says nothing, if it is always there.
    let written: BTreeSet<u64> = particulars.accesses.iter().filter(|a| a.writes).map(|a| a.object.0).collect();
    accesses.retain(|a| written.contains(&a.id) || a.ty != ValueType::Pointer || a.values.is_none_or(|(_, v)| v == 0));
    if let Some(message) = message::uncaught(&failure.message, &output) {
        failure.message = message;
    }
    let blocks = Blocks::new(&particulars.blocks, &sites);
    blocks.rename(&mut events, &mut accesses, &mut failure, error.object);
    for place in failure.location.iter().chain(failure.waits.iter().filter_map(|w| w.location.as_ref())) {
        places.number_of(place);
    }
    let threads = threads(&events, &places.locations, &describe, past, &failure, &particulars);
    let source = source::near(&places.locations, &failure);
    TraceFile {
        program: program.clone(),
        options,
        choices: session.choices(),
        original: None,
        threads,
        locations: places.locations,
        events,
        accesses,
        source,
        failure,
        output,
        output_cut: ended.header.output_cut != 0,
    }
}

/// The same execution, watched, shows stacks of steps and earlier accesses.
fn look_again(session: &mut Session, kind: FailureKind, error: &mut RawError) -> Option<(Vec<RawStack>, Particulars)> {
    let again = session.watch(error.object, error.mask as u8, &mut || false)?;
    if kind == FailureKind::DataRace && again.outcome == Outcome::Error {
        let earlier = again.error.into_iter().flat_map(|e| e.stacks);
        error.stacks.retain(|s| s.role != channel::StackRole::Earlier);
        error.stacks.extend(earlier.filter(|s| s.role == channel::StackRole::Earlier));
    }
    Some((again.stacks, again.particulars))
}

/// What is asked of the place of an access.
struct Sources<'a> {
    /// Whether it is on the line of the error.
    on_the_line: &'a dyn Fn(u32) -> bool,
    /// Whether it is in the library's headers, inlined or not.
    is_library: &'a dyn Fn(u32) -> bool,
}

/// Whether an access, which may be to many bytes, is to a granule.
fn covers(access: &RawAccess, granule: ObjectId) -> bool {
    granule.0 >= access.object.0 && granule.0 - access.object.0 < u64::from(access.len).next_multiple_of(8)
}

/// The accesses to memory that one thread writes and another one uses, and those to memory that the thread of the error used
/// on its line. What is on the way to be written when the execution ends has not been written.
fn interesting(
    all: &[RawAccess],
    error: &RawError,
    options: &ExecutionOptions,
    sources: &Sources<'_>,
) -> Vec<RawAccess> {
    if options.visible_all {
        return vec![];
    }
    let mut users: BTreeMap<u64, (BTreeSet<ThreadId>, bool)> = BTreeMap::new();
    for access in all {
        let entry = users.entry(access.object.0).or_default();
        entry.0.insert(access.thread);
        entry.1 |= access.writes;
    }
    let shared = |a: &RawAccess| users.get(&a.object.0).is_some_and(|(threads, written)| threads.len() > 1 && *written);
    // What is on a stack and no other thread uses is a local variable like any other.
    let own = |a: &RawAccess| {
        let on_stack = matches!(a.object.region(), Region::Stack | Region::MainStack);
        on_stack && users.get(&a.object.0).is_some_and(|(threads, _)| threads.len() == 1)
    };
    let involved: BTreeSet<u64> = all
        .iter()
        .filter(|a| u32::from(a.thread.0) == error.thread && (sources.on_the_line)(a.site) && !own(a))
        .map(|a| a.object.0)
        .collect();
    // What the library does to blocks of its own says little.
    let is_hidden = |a: &RawAccess| (sources.is_library)(a.site) && a.object.region() != Region::Module;
    let is_wanted = |a: &RawAccess| {
        let is_error = a.object == error.object || a.frees && covers(a, error.object);
        is_error || involved.contains(&a.object.0) || shared(a) && !is_hidden(a)
    };
    let mut wanted: Vec<RawAccess> = all.iter().filter(|a| is_wanted(a)).copied().collect();
    if let (Some(last), Some(kept)) = (all.last(), wanted.last_mut())
        && last == kept
        && kept.writes
        && kept.site == error.site
    {
        kept.values = None;
    }
    wanted.split_off(wanted.len().saturating_sub(ACCESSES))
}

/// Where plain accesses are steps, each has the values of the access that follows it.
fn give_values(events: &mut [Event], accesses: &[RawAccess]) {
    // What was on the way to be written when it ended has not been written.
    let made = match accesses.split_last() {
        Some((last, rest)) if last.writes => rest,
        _ => accesses,
    };
    for access in made {
        let Some(event) = (access.step as usize).checked_sub(1).and_then(|i| events.get_mut(i)) else { continue };
        let plain = matches!(event.op, OpKind::PlainLoad | OpKind::PlainStore);
        if plain && event.id == access.object.0 && event.thread == access.thread {
            event.values = access.values;
        }
    }
}

/// The heap blocks that were used, for memory that the source has no name for.
struct Blocks<'a> {
    blocks: BTreeMap<u64, RawBlock>,
    sites: &'a symdpor_worker::Sites,
}

impl<'a> Blocks<'a> {
    fn new(blocks: &[RawBlock], sites: &'a symdpor_worker::Sites) -> Blocks<'a> {
        Blocks { blocks: blocks.iter().map(|b| (b.base, *b)).collect(), sites }
    }

    /// `block of 32 bytes from f() (a.c:12)`, with the offset if it is not its beginning.
    fn name(&self, object: ObjectId) -> Option<String> {
        let address = object.payload();
        let (_, block) = self.blocks.range(..=address + 7).next_back().filter(|(base, b)| address < *base + b.size)?;
        let frames = self.sites.frames(block.site);
        // The library's line that allocates says nothing.
        let place = telling(&frames).filter(|l| !l.is_system());
        let from = place.map(|l| {
            let file = l.file.rsplit('/').next().unwrap_or_default();
            format!(" from {}:{}", file, l.line)
        });
        let inside = match address.saturating_sub(block.base) {
            0 => String::new(),
            offset => format!("byte {offset} of "),
        };
        Some(format!("{inside}block of {} bytes{}", block.size, from.unwrap_or_default()))
    }

    fn rename(&self, events: &mut [Event], accesses: &mut [PlainAccessEvent], failure: &mut Failure, object: ObjectId) {
        let better = |name: &mut String, id: u64| {
            if name.starts_with("heap+0x")
                && ObjectId(id).region() == Region::Heap
                && let Some(block) = self.name(ObjectId(id))
            {
                *name = block;
            }
        };
        let mut known: BTreeMap<String, u64> = BTreeMap::new();
        for event in events {
            known.insert(event.object.clone(), event.id);
            better(&mut event.object, event.id);
            better(&mut event.object2, event.id2);
        }
        accesses.iter_mut().for_each(|a| better(&mut a.object, a.id));
        for wait in &mut failure.waits {
            let id = known.get(&wait.object).copied().unwrap_or(0);
            better(&mut wait.object, id);
        }
        if let Some(race) = &mut failure.race {
            better(&mut race.object, object.0);
        }
    }
}

/// The threads of an execution: what they are called, and where they come from.
fn threads(
    events: &[Event],
    locations: &[Location],
    describe: &Describe<'_>,
    past: Past<'_>,
    failure: &Failure,
    particulars: &Particulars,
) -> Vec<ThreadInfo> {
    let name = |thread| {
        let given = particulars.names.iter().find(|(t, _)| *t == thread);
        given.map(|(_, name)| name.clone()).unwrap_or_default()
    };
    let functions = functions(describe, past, failure, &particulars.accesses);
    let info = |thread, created_by, created_at| ThreadInfo {
        thread,
        created_by,
        created_at,
        name: name(thread),
        function: functions.get(&thread).cloned().unwrap_or_default(),
    };
    let created = events.iter().filter(|e| e.op == OpKind::ThreadCreate && e.arg != NO_THREAD).map(|e| {
        let place = (e.location as usize).checked_sub(1).and_then(|i| locations.get(i).cloned());
        info(ThreadId(e.arg as u16), Some(e.thread), place)
    });
    std::iter::once(info(ThreadId::MAIN, None, None)).chain(created).collect()
}

/// The outermost function of the program that each thread was seen in.
fn functions(
    describe: &Describe<'_>,
    past: Past<'_>,
    failure: &Failure,
    accesses: &[RawAccess],
) -> BTreeMap<ThreadId, String> {
    let mut functions = BTreeMap::new();
    let outermost = |frames: &[Location]| {
        let own = |l: &&Location| !l.is_system() && !l.function.is_empty();
        frames.iter().rev().find(own).or(frames.last()).map(|l| l.function.clone())
    };
    for stack in &failure.stacks {
        if matches!(stack.role, StackRole::Allocated | StackRole::Freed) {
            continue;
        }
        if let Some(function) = outermost(&stack.frames) {
            functions.entry(stack.thread).or_insert(function);
        }
    }
    for step in 0..past.trace.len() {
        let thread = ThreadId(past.trace.step(step).thread);
        if let Entry::Vacant(entry) = functions.entry(thread) {
            let frames: Vec<Location> = past.sites(step).iter().flat_map(|&s| describe.sites.frames(s)).collect();
            if let Some(function) = outermost(&frames) {
                entry.insert(function);
            }
        }
    }
    // Some threads do nothing but plain accesses.
    for access in accesses {
        if let Entry::Vacant(entry) = functions.entry(access.thread)
            && let Some(own) = describe.sites.frames(access.site).iter().rfind(|l| !l.is_system())
        {
            entry.insert(own.function.clone());
        }
    }
    functions
}
