//! The local state of a suspended thread: its residual code and what is live there, as a walk over words.
//!
//! Frames are described by the controller (`symdpor_abi::local`), site by site; a site without a description is asked for, and
//! until the answer is there its thread is like no other. So is a thread that
//!
//! - has asked who it is,
//! - holds a lock or runs an initialiser: others can see that it is this one,
//! - has waited in vain with a time limit: that decides when it may again,
//! - has a frame of code that was not instrumented between its own,
//! - has something live that cannot be read.

use crate::cancel;
use crate::cell::Global;
use crate::channel;
use crate::exec;
use crate::footprint::Lanes;
use crate::keys;
use crate::limits;
use crate::modules;
use crate::names;
use crate::stack;
use crate::sys::context::FloatingPoint;
use crate::syscalls;
use crate::thread::Thread;
use crate::tls;
use crate::uses;
use symdpor_abi::channel::{
    DESCRIPTIONS_BYTES, DESCRIPTIONS_OFFSET, POINTS_CAPACITY, POINTS_OFFSET, WANTED_CAPACITY, WANTED_OFFSET,
};
use symdpor_abi::local::{DESCRIPTION_WORDS, Description, flags, item, name_hash, why};
use symdpor_abi::module::{FRAME_SLOTS_OFFSET, Frame, Function};
use symdpor_abi::op::OpKind;

const MAX_FRAMES: usize = 64;

/// Why a thread has no local state that can be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Why {
    Identified = why::IDENTIFIED as u32,
    HoldsLock = why::HOLDS_LOCK as u32,
    Handlers = why::HANDLERS as u32,
    /// The site has no description yet.
    Unknown = why::UNKNOWN as u32,
    CannotRead = why::CANNOT_READ as u32,
    Opaque = why::OPAQUE as u32,
    TooDeep = why::TOO_DEEP as u32,
    WaitedInVain = why::WAITED_IN_VAIN as u32,
}

/// Whether a thread stands before a plain access: a site where it is not known what is live.
pub fn is_at_plain_access(number: u16) -> bool {
    let kind = exec::get().threads[number as usize].pending.kind;
    matches!(kind, OpKind::PlainLoad | OpKind::PlainStore)
}

/// Gets the words of a local state in their canonical order.
pub trait Sink {
    /// Part of the code: the same for whoever is at the same place.
    fn code(&mut self, word: u64);
    /// A value, which may be an address.
    fn word(&mut self, word: u64);
    /// A frame begins.
    fn frame(&mut self, _site: u32, _before: bool) {}
    /// Memory of the thread's own that belongs to it. All of it is read as words.
    fn object(&mut self, address: usize, len: usize) {
        for_each_word(address, len, |word| self.word(word));
    }
    /// The same, which matters only if something that is live points to it.
    fn weak_object(&mut self, _address: usize, _len: usize) {}
}

/// All of a stretch of memory as words, the last one filled up with zeros.
#[inline]
pub fn for_each_word(address: usize, len: usize, mut each: impl FnMut(u64)) {
    let whole = len & !7;
    for offset in (0..whole).step_by(8) {
        // SAFETY: callers name memory that is mapped, of that length.
        each(unsafe { ((address + offset) as *const u64).read_unaligned() });
    }
    if whole < len {
        let mut bytes = [0u8; 8];
        for (offset, byte) in (whole..len).zip(&mut bytes) {
            // SAFETY: as above.
            *byte = unsafe { *((address + offset) as *const u8) };
        }
        each(u64::from_le_bytes(bytes));
    }
}

/// A point's description and its items.
struct Point {
    description: &'static Description,
    items: usize,
}

impl Point {
    fn items(&self, before: bool) -> &'static [u64] {
        let (skip, count) = match before {
            true => (0, self.description.before_count),
            false => (self.description.before_count, self.description.after_count),
        };
        // SAFETY: the length was checked against the region.
        unsafe { core::slice::from_raw_parts((self.items as *const u64).add(skip as usize), count as usize) }
    }
}

fn point(site: u32) -> Result<Point, Why> {
    if site == 0 || site as usize >= POINTS_CAPACITY {
        return Err(Why::CannotRead);
    }
    // SAFETY: within the region.
    let at = unsafe { *((channel::region(POINTS_OFFSET) + 4 * site as usize) as *const u32) } as usize * 8;
    match at {
        0 => {
            want(site);
            Err(Why::Unknown)
        }
        8 => Err(Why::CannotRead),
        _ if at + 8 * DESCRIPTION_WORDS > DESCRIPTIONS_BYTES => Err(Why::CannotRead),
        _ => described(at),
    }
}

fn described(at: usize) -> Result<Point, Why> {
    let address = channel::region(DESCRIPTIONS_OFFSET) + at;
    // SAFETY: within the region, aligned.
    let description = unsafe { &*(address as *const Description) };
    let count = description.before_count as usize + description.after_count as usize;
    let fits = at + 8 * DESCRIPTION_WORDS + 8 * count <= DESCRIPTIONS_BYTES;
    fits.then_some(Point { description, items: address + 8 * DESCRIPTION_WORDS }).ok_or(Why::CannotRead)
}

#[cold]
fn want(site: u32) {
    if crate::ahead::is_under_way() {
        return crate::ahead::spoil();
    }
    let header = channel::header();
    let count = header.wanted_len as usize;
    let list = channel::region(WANTED_OFFSET) as *mut u32;
    // SAFETY: within the region.
    unsafe {
        if count < WANTED_CAPACITY && !(0..count).any(|i| *list.add(i) == site) {
            *list.add(count) = site;
            header.wanted_len = count as u32 + 1;
        }
    }
}

/// The hash of a function's symbol.
fn symbol_hash(function: usize) -> u64 {
    modules::symbol(function).map_or(0, name_hash)
}

/// Whether the thread can be like another at all, apart from its frames.
pub fn is_plain(thread: &Thread) -> Result<(), Why> {
    match () {
        _ if thread.identified => Err(Why::Identified),
        _ if thread.midway => Err(Why::Opaque),
        _ if thread.held != thread.reading.times() => Err(Why::HoldsLock),
        _ if limits::has_given_up(thread) => Err(Why::WaitedInVain),
        _ if thread.cleanup != 0 || thread.destructors != 0 => Err(Why::Handlers),
        _ => Ok(()),
    }
}

/// The live objects on a thread's stack, in the order of the walk: what an address there means.
pub struct Layout {
    objects: [(usize, usize); Layout::MOST],
    count: usize,
    /// Objects that matter once something points to them: then they are added to the others.
    weak: [(usize, usize); Layout::MOST],
    weak_count: usize,
}

impl Layout {
    /// Addresses in further ones are taken as they are, relative to the stack.
    const MOST: usize = 256;

    pub fn objects(&self) -> &[(usize, usize)] {
        &self.objects[..self.count]
    }

    /// The object that an address is in, or just behind, and the offset.
    pub fn find(&mut self, address: usize) -> Option<(usize, usize)> {
        let inside = |&(start, size): &(usize, usize)| address.wrapping_sub(start) < size.max(1);
        let behind = |&(start, size): &(usize, usize)| address == start + size;
        let known = |l: &Layout| l.objects().iter().position(inside).or_else(|| l.objects().iter().position(behind));
        if known(self).is_none() {
            let weak = &self.weak[..self.weak_count];
            let found = weak.iter().position(inside).or_else(|| weak.iter().position(behind))?;
            self.add(self.weak[found]);
        }
        let index = known(self)?;
        Some((index, address - self.objects[index].0))
    }

    /// Whether some of these bytes are in one of the objects, needed for certain or only if something points to them. If there
    /// are more objects than are kept, they may be.
    pub fn overlaps(&self, address: usize, len: usize) -> bool {
        if self.count.max(self.weak_count) == Layout::MOST {
            return true;
        }
        let weak = &self.weak[..self.weak_count];
        let overlaps = |&(start, size): &(usize, usize)| start < address + len && address < start + size;
        self.objects().iter().chain(weak).any(overlaps)
    }

    fn add(&mut self, object: (usize, usize)) {
        if self.count < Layout::MOST {
            self.objects[self.count] = object;
            self.count += 1;
        }
    }
}

static LAYOUT: Global<Layout> =
    Global::new(Layout { objects: [(0, 0); Layout::MOST], count: 0, weak: [(0, 0); Layout::MOST], weak_count: 0 });

/// That of the thread that was walked over last.
pub fn layout() -> &'static mut Layout {
    LAYOUT.get()
}

/// Collects the objects before anything that may point to them is looked at.
struct Collect;

impl Sink for Collect {
    fn code(&mut self, _: u64) {}

    fn word(&mut self, _: u64) {}

    fn object(&mut self, address: usize, len: usize) {
        LAYOUT.get().add((address, len));
    }

    fn weak_object(&mut self, address: usize, len: usize) {
        let layout = LAYOUT.get();
        if layout.weak_count < Layout::MOST {
            layout.weak[layout.weak_count] = (address, len);
            layout.weak_count += 1;
        }
    }
}

/// Makes [`layout`] that of a thread.
pub fn collect(number: u16) -> Result<(), Why> {
    (LAYOUT.get().count, LAYOUT.get().weak_count) = (0, 0);
    frames(number, &mut Collect)
}

/// Walks over all that a suspended thread is about to do and knows. What it is given by way of addresses on its stack can be
/// looked up in [`layout`].
pub fn walk(number: u16, sink: &mut impl Sink) -> Result<(), Why> {
    is_plain(&exec::get().threads[number as usize])?;
    walk_all(number, sink)?;
    // Who has been told what time it is is told another the next time.
    sink.code(limits::last_told_to(number));
    exec::get().spins[number as usize].for_each_word(|word| sink.code(word));
    Ok(())
}

/// What decides how a thread computes, and what it can ask about that.
pub fn floating_point(number: u16) -> u64 {
    let exec = exec::get();
    let state = if number == exec.current {
        FloatingPoint::mine()
    } else {
        // SAFETY: it is suspended.
        unsafe { FloatingPoint::at(exec.threads[number as usize].sp) }
    };
    state.modes() | if uses::floating_point_flags() { state.happened() } else { 0 }
}

/// The same of any thread, except how far its turns have been followed.
pub fn walk_all(number: u16, sink: &mut impl Sink) -> Result<(), Why> {
    let thread = &exec::get().threads[number as usize];
    collect(number)?;
    let mut next = LAYOUT.get().count;
    // Main is like itself only.
    sink.code((number == 0) as u64);
    let pending = &thread.pending;
    sink.code(
        pending.kind as u64 | (pending.mask as u64) << 8 | (pending.mask2 as u64) << 16 | (pending.order as u64) << 24,
    );
    if pending.kind == OpKind::ThreadJoin {
        sink.code(pending.arg as u64);
    }
    sink.code(thread.reading.sum());
    sink.code(floating_point(number));
    // How deep it may call.
    sink.code(thread.stack as u64);
    sink.code(exec::get().copied[number as usize]);
    syscalls::of_thread(number as usize).into_iter().for_each(|word| sink.code(word));
    // Whether it may be cancelled it can ask, even if nobody ever cancels.
    sink.code(cancel::told(thread) as u64);
    sink.code(exec::get().locales[number as usize] as u64);
    if pending.kind == OpKind::BarrierPass {
        sink.code((thread.waits_for == 0) as u64);
    }
    for object in [pending.object, pending.object2] {
        sink.code(object.0 >> 60);
        sink.word(object.payload());
    }
    frames(number, sink)?;
    sink.frame(0, false);
    keys::for_each(number, |key, value| {
        sink.code(key as u64);
        sink.word(value as u64);
    });
    tls::for_each(thread.fs, |address, len| sink.object(address, len));
    reached(&mut next, sink);
    Ok(())
}

/// Walks over the frames, what they point to on the stack, and the thread-locals.
pub fn walk_frames(number: u16, sink: &mut impl Sink) -> Result<(), Why> {
    collect(number)?;
    let mut next = LAYOUT.get().count;
    frames(number, sink)?;
    tls::for_each(exec::get().threads[number as usize].fs, |address, len| sink.object(address, len));
    reached(&mut next, sink);
    Ok(())
}

/// Hashes a local state with all values as they are.
pub struct Exact(pub Lanes);

impl Sink for Exact {
    fn code(&mut self, word: u64) {
        self.0.add(word);
    }

    fn word(&mut self, word: u64) {
        self.0.add(word);
        // Objects that it points to belong to the state.
        let _ = layout().find(word as usize);
    }
}

/// Walks over the objects that have been found to be pointed to.
pub fn reached(next: &mut usize, sink: &mut impl Sink) {
    while let Some(&(address, len)) = layout().objects().get(*next) {
        *next += 1;
        sink.code(len as u64);
        sink.object(address, len);
    }
}

/// Walks over the frames of a thread, from the innermost one outwards.
pub fn frames(number: u16, sink: &mut impl Sink) -> Result<(), Why> {
    let exec = exec::get();
    let thread = &exec.threads[number as usize];
    let mut frame = if number == exec.current { exec.top } else { thread.top };
    let mut site = thread.pending_site;
    let mut callee = None;
    // It will do no more than end the process, whatever code it stands in.
    let exits = thread.pending.kind == OpKind::ProcessExit;
    if exits && number == 0 && frame == 0 {
        return Ok(());
    }
    for depth in 0..MAX_FRAMES {
        if !names::is_stack(frame) {
            return Err(Why::Opaque);
        }
        // SAFETY: frames lie on stacks, and the address was checked to be on one.
        let record = unsafe { &*(frame as *const Frame) };
        let here = if depth == 0 && site != 0 { site } else { record.site };
        sink.frame(stack::site_id(here), depth == 0);
        let point = point(stack::site_id(here)).inspect_err(|why| want_others(*why, record.prev))?;
        if depth > 0 || !exits {
            check_call(&point, frame, callee)?;
        }
        live(&point, depth == 0, frame, sink)?;
        callee = Some(record);
        site = 0;
        if record.prev == 0 {
            return bottom_of(thread, record.function, sink);
        }
        frame = record.prev;
    }
    Err(Why::TooDeep)
}

/// Asks for the descriptions of all the frames at once.
fn want_others(why: Why, frame: usize) {
    let mut frame = frame;
    for _ in 0..MAX_FRAMES {
        if why != Why::Unknown || !names::is_stack(frame) {
            return;
        }
        // SAFETY: frames lie on stacks, and the address was checked to be on one.
        let record = unsafe { &*(frame as *const Frame) };
        let _ = point(stack::site_id(record.site));
        frame = record.prev;
    }
}

/// No code that was not instrumented may be between this frame and the one that it called.
fn check_call(point: &Point, frame: usize, callee: Option<&Frame>) -> Result<(), Why> {
    let (description, target) = (point.description, point.description.target as usize);
    let direct = match callee {
        None => description.flags & flags::DIRECT != 0,
        Some(callee) if description.callee != 0 => description.callee == symbol_hash(callee.function),
        // SAFETY: a slot of the frame, which is on a stack.
        Some(callee) if target != 0 => callee.address == unsafe { *(slot(frame, target - 1) as *const usize) },
        Some(_) => false,
    };
    direct.then_some(()).ok_or(Why::Opaque)
}

fn slot(frame: usize, number: usize) -> usize {
    frame + FRAME_SLOTS_OFFSET + 8 * number
}

fn live(point: &Point, before: bool, frame: usize, sink: &mut impl Sink) -> Result<(), Why> {
    let description = point.description;
    let (code, readable) = match before {
        true => (description.before, flags::BEFORE),
        false => (description.after, flags::AFTER),
    };
    if description.flags & readable == 0 {
        return Err(Why::CannotRead);
    }
    code.iter().for_each(|&word| sink.code(word));
    for &raw in point.items(before) {
        let (number, kind, size) = item::unpack(raw);
        let slots = slot(frame, number);
        if kind == item::VALUE {
            for_each_word(slots, 8 * size, |word| sink.word(word));
            continue;
        }
        // SAFETY: a slot of the frame.
        let address = unsafe { *(slots as *const usize) };
        if !names::is_stack(address & !7) || !names::is_stack((address + size.max(1) - 1) & !7) {
            return Err(Why::CannotRead);
        }
        if kind == item::WEAK {
            sink.weak_object(address, size);
        } else {
            sink.object(address, size);
        }
    }
    Ok(())
}

/// Below the outermost instrumented frame there is nothing but the thread's start, or a function of the C++ library that
/// calls it and has nothing to itself but the argument.
fn bottom_of(thread: &Thread, function: usize, sink: &mut impl Sink) -> Result<(), Why> {
    let is_main = core::ptr::eq(thread, &exec::get().threads[0]);
    if is_main || names::are_together(thread.start, function) {
        return Ok(());
    }
    if !names::is_cxx_library(thread.start) {
        return Err(Why::Opaque);
    }
    sink.code(thread.start as u64);
    sink.word(thread.argument as u64);
    Ok(())
}

/// The name that the pass gave to a function, up to the terminating zero.
pub fn name_of(strings: usize, function: &Function) -> &'static [u8] {
    let start = (strings + function.symbol as usize) as *const u8;
    let mut len = 0;
    // SAFETY: the module's strings are terminated.
    while unsafe { *start.add(len) } != 0 {
        len += 1;
    }
    // SAFETY: as counted.
    unsafe { core::slice::from_raw_parts(start, len) }
}
