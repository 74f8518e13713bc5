//! Names of memory that are the same in every worker: see [`symdpor_abi::object`].

use crate::cell::Global;
use crate::modules;
use crate::pool;
use crate::sys::maps;
use crate::tls;
use crate::uses;
use core::ops::Range;
use symdpor_abi::object::{ObjectId, Region};
use symdpor_detect::heap::Heap;

const MAX_LOADED: usize = 512;

/// A loaded program or library.
#[derive(Clone, Copy)]
struct Loaded {
    start: usize,
    end: usize,
    /// One of the C++ standard libraries.
    is_cxx: bool,
}

struct Names {
    main_stack: Range<usize>,
    loaded: [Loaded; MAX_LOADED],
    count: usize,
}

static NAMES: Global<Names> =
    Global::new(Names { main_stack: 0..0, loaded: [Loaded { start: 0, end: 0, is_cxx: false }; MAX_LOADED], count: 0 });

/// Reads main's stack from the list of mappings.
pub fn find_main_stack() {
    maps::for_each(|mapping| {
        if mapping.is_stack {
            NAMES.get().main_stack = mapping.start..mapping.end;
        }
    });
}

pub fn main_stack() -> Range<usize> {
    NAMES.get().main_stack.clone()
}

/// The beginning of the dynamic linker's `dl_phdr_info` and of an ELF program header.
#[repr(C)]
struct PhdrInfo {
    base: usize,
    name: *const u8,
    headers: *const ProgramHeader,
    count: u16,
    adds: u64,
    subs: u64,
    tls_module: usize,
    /// Of the calling thread, or null.
    tls_data: usize,
}

#[repr(C)]
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: usize,
    address: usize,
    physical: usize,
    file_size: usize,
    memory_size: usize,
    align: usize,
}

unsafe extern "C" {
    fn dl_iterate_phdr(callback: extern "C" fn(&PhdrInfo, usize, usize) -> i32, data: usize) -> i32;
}

extern "C" fn note_loaded(info: &PhdrInfo, _: usize, _: usize) -> i32 {
    const PT_LOAD: u32 = 1;
    const PT_DYNAMIC: u32 = 2;
    const PT_TLS: u32 = 7;
    let names = NAMES.get();
    // SAFETY: the dynamic linker's own array.
    let headers = unsafe { core::slice::from_raw_parts(info.headers, info.count as usize) };
    let loads = || headers.iter().filter(|h| h.kind == PT_LOAD);
    let start = loads().map(|h| info.base + h.address).min().unwrap_or(0);
    let end = loads().map(|h| info.base + h.address + h.memory_size).max().unwrap_or(0);
    if names.count < MAX_LOADED && !names.loaded[..names.count].iter().any(|l| l.start == start) {
        names.loaded[names.count] = Loaded { start: start & !4095, end, is_cxx: is_cxx(info.name) };
        names.count += 1;
    }
    if let Some(header) = headers.iter().find(|h| h.kind == PT_DYNAMIC) {
        uses::note(info.base, info.base + header.address);
    }
    if let Some(header) = headers.iter().find(|h| h.kind == PT_TLS) {
        tls::add(info.tls_data, header.memory_size, start, end);
    }
    0
}

fn is_cxx(name: *const u8) -> bool {
    if name.is_null() {
        return false;
    }
    // SAFETY: the dynamic linker's own terminated string.
    let name = unsafe { core::ffi::CStr::from_ptr(name.cast()) }.to_bytes();
    let file = name.rsplit(|&b| b == b'/').next().unwrap_or(name);
    file.starts_with(b"libstdc++.so") || file.starts_with(b"libc++.so")
}

/// Whether an address is in the C++ standard library.
pub fn is_cxx_library(address: usize) -> bool {
    let names = NAMES.get();
    names.loaded[..names.count].iter().any(|l| l.is_cxx && l.start <= address && address < l.end)
}

/// Whether an address is in a program or library with instrumented code.
pub fn is_instrumented(address: usize) -> bool {
    // Where the last address without any was, and the last one with some: a caller and a callee are asked for in turns.
    static LAST: Global<[Range<usize>; 2]> = Global::new([0..0, 0..0]);
    if let Some(known) = LAST.get().iter().position(|l| l.contains(&address)) {
        return known == 1;
    }
    if !modules::any() {
        return false;
    }
    if NAMES.get().count == 0 {
        // Looking for what is loaded may lead back here.
        static LOOKING: Global<bool> = Global::new(false);
        if core::mem::replace(LOOKING.get(), true) {
            return false;
        }
        find_loaded();
    }
    let names = NAMES.get();
    let Some(found) = names.loaded[..names.count].iter().find(|l| (l.start..l.end).contains(&address)) else {
        return false;
    };
    let instrumented = modules::any_between(found.start, found.end);
    // Modules may still come while the program starts.
    if instrumented || crate::snapshot::is_taken() {
        LAST.get()[instrumented as usize] = found.start..found.end;
    }
    instrumented
}

/// The same, if nothing is known yet.
pub fn look_if_new() {
    if NAMES.get().count == 0 {
        find_loaded();
    }
}

/// Learns what is loaded, in the order of loading.
pub fn find_loaded() {
    NAMES.get().count = 0;
    tls::forget();
    // SAFETY: the callback only reads what it is given.
    unsafe { dl_iterate_phdr(note_loaded, 0) };
}

/// Whether an address is in a loaded program or library.
pub fn is_code(address: usize) -> bool {
    let names = NAMES.get();
    names.loaded[..names.count].iter().any(|l| (l.start..l.end).contains(&address))
}

/// Whether the program or library that is loaded there has instrumented code.
pub fn has_instrumented(base: usize) -> bool {
    let names = NAMES.get();
    let loaded = names.loaded[..names.count].iter().find(|l| (l.start..l.end).contains(&base));
    loaded.is_some_and(|l| modules::any_between(l.start, l.end))
}

/// Whether an address is in the runtime's own library.
pub fn is_runtime(address: usize) -> bool {
    are_together(is_runtime as *const () as usize, address)
}

/// How far an address is from the beginning of the program, if it is in the program's own code.
pub fn in_program(address: usize) -> Option<usize> {
    let names = NAMES.get();
    let program = names.loaded[..names.count].first()?;
    (program.start..program.end).contains(&address).then(|| address - program.start)
}

/// Whether two addresses belong to the same program or library.
pub fn are_together(a: usize, b: usize) -> bool {
    let names = NAMES.get();
    let holds = |l: &&Loaded, address| l.start <= address && address < l.end;
    names.loaded[..names.count].iter().find(|l| holds(l, a)).is_some_and(|l| holds(&l, b))
}

/// The name of the first of some neighbouring granules: of the one with the lowest name. On main's stack names go down as addresses go up.
pub fn first_object(granule: usize, granules: usize) -> ObjectId {
    let first = object(granule);
    if first.region() == Region::MainStack && granules > 1 { object(granule + 8 * (granules - 1)) } else { first }
}

/// The name of the granule that holds an address.
pub fn object(address: usize) -> ObjectId {
    let granule = address & !7;
    if Heap::contains(granule) {
        return ObjectId::new(Region::Heap, granule as u64);
    }
    if pool::STACKS.contains(&granule) {
        return ObjectId::new(Region::Stack, granule as u64);
    }
    let names = NAMES.get();
    if names.main_stack.contains(&granule) {
        return ObjectId::new(Region::MainStack, (names.main_stack.end - granule) as u64);
    }
    match names.loaded[..names.count].iter().position(|l| (l.start..l.end).contains(&granule)) {
        Some(index) => ObjectId::module(index as u16, (granule - names.loaded[index].start) as u64),
        None => ObjectId::new(Region::Mapping, granule as u64),
    }
}

/// The bytes of the granule of `address` that an access of `len` bytes touches.
pub fn mask(address: usize, len: usize) -> u8 {
    let offset = address & 7;
    let bits = if len >= 8 { 0xff } else { (1u16 << len) - 1 };
    (bits << offset) as u8
}

/// Whether an address lies on the stack of a thread.
pub fn is_stack(address: usize) -> bool {
    address & 7 == 0 && (pool::STACKS.contains(&address) && pool::is_mapped(address) || main_stack().contains(&address))
}

/// Whether an address is in the part just below a stack that must not be touched.
pub fn is_stack_guard(address: usize) -> bool {
    pool::STACKS.contains(&address) && pool::is_guard(address)
        || address < main_stack().start && address + (1 << 20) > main_stack().start
}
