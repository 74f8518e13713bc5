//! Instrumented modules: numbering of their sites, and their tables for the controller.

use crate::cell::Global;
use crate::channel::{self, Writer};
use crate::end;
use crate::hooks;
use symdpor_abi::channel::{MODULES_BYTES, MODULES_OFFSET, ModuleRecord};
use symdpor_abi::module::{Function, Hooks, MODULE_MAGIC, Module, Site};

const MAX_MODULES: usize = 16 << 10;

#[derive(Clone, Copy)]
struct Known {
    descriptor: usize,
    sites: usize,
    count: u32,
    first: u32,
    functions: usize,
    function_count: u32,
    strings: usize,
}

const NOTHING: Known =
    Known { descriptor: 0, sites: 0, count: 0, first: 0, functions: 0, function_count: 0, strings: 0 };

struct Modules {
    known: [Known; MAX_MODULES],
    count: usize,
    next_site: u32,
    /// The one that a site was last looked up in.
    last: usize,
}

/// Persistent: a library that is loaded in every execution keeps its numbers.
static MODULES: Global<Modules> =
    Global::new(Modules { known: [NOTHING; MAX_MODULES], count: 0, next_site: 0, last: 0 });

/// Takes a module in: called from its constructor.
pub fn register(descriptor: usize) {
    // SAFETY: the pass emits such a descriptor; magic and version are checked before anything else is believed.
    let module = unsafe { &*(descriptor as *const Module) };
    if module.magic != MODULE_MAGIC || module.version != symdpor_abi::PROTOCOL_VERSION {
        end::unsupported(format_args!("a part of the program was compiled with another version of the pass"));
    }
    let first = number(descriptor, module);
    for i in 0..module.site_count {
        // SAFETY: the table has that many sites.
        unsafe { (*(module.sites as *mut Site).add(i as usize)).id = first + i };
    }
    // SAFETY: the module's own table.
    unsafe { *(module.hooks as *mut Hooks) = hooks::table() };
}

/// The id of the module's first site.
fn number(descriptor: usize, module: &Module) -> u32 {
    let modules = MODULES.get();
    let same = |k: &&Known| (k.descriptor, k.sites, k.count) == (descriptor, module.sites, module.site_count);
    if let Some(known) = modules.known[..modules.count].iter().find(same) {
        return known.first;
    }
    if modules.count == MAX_MODULES {
        end::unsupported(format_args!("the program has more than {MAX_MODULES} modules"));
    }
    // Id 0 means "no site".
    let first = modules.next_site.max(1);
    modules.next_site = first + module.site_count;
    modules.known[modules.count] = Known {
        descriptor,
        sites: module.sites,
        count: module.site_count,
        first,
        functions: module.functions,
        function_count: module.function_count,
        strings: module.strings,
    };
    modules.count += 1;
    publish(module, first);
    first
}

fn publish(module: &Module, first: u32) {
    let header = channel::header();
    let start = header.modules_len as usize;
    let mut writer = Writer::resume(MODULES_OFFSET, MODULES_BYTES, start);
    let mut record = ModuleRecord {
        len: 0,
        first_site: first,
        site_count: module.site_count,
        function_count: module.function_count,
        strings_len: module.strings_len,
        digest_len: module.digest_len as u32,
    };
    let fits = writer.record(&record)
        && writer.bytes(module.sites, module.site_count as usize * size_of::<Site>())
        && writer.bytes(module.functions, module.function_count as usize * size_of::<Function>())
        && writer.bytes(module.strings, module.strings_len as usize)
        && writer.bytes(module.digest, module.digest_len as usize);
    if !fits {
        end::unsupported(format_args!("the program's tables do not fit into the channel"));
    }
    record.len = (writer.used() - start) as u32;
    Writer::resume(MODULES_OFFSET, MODULES_BYTES, start).record(&record);
    header.modules_len = writer.used() as u32;
    header.modules_count += 1;
}

/// Whether any module has registered.
pub fn any() -> bool {
    MODULES.get().count > 0
}

/// Whether a module lies in a range of addresses.
pub fn any_between(start: usize, end: usize) -> bool {
    let modules = MODULES.get();
    modules.known[..modules.count].iter().any(|k| (start..end).contains(&k.descriptor))
}

/// The symbol of a function that frames point to.
pub fn symbol(function: usize) -> Option<&'static [u8]> {
    let modules = MODULES.get();
    let has = |known: &&Known| {
        let offset = function.wrapping_sub(known.functions);
        offset < known.function_count as usize * size_of::<Function>() && offset.is_multiple_of(size_of::<Function>())
    };
    let known =
        Some(&modules.known[modules.last]).filter(has).or_else(|| modules.known[..modules.count].iter().find(has))?;
    // SAFETY: one of a registered table of functions.
    Some(crate::local::name_of(known.strings, unsafe { &*(function as *const Function) }))
}

/// Whether an address is one of a registered site.
pub fn is_site(address: usize) -> bool {
    let modules = MODULES.get();
    let has = |known: &Known| {
        let offset = address.wrapping_sub(known.sites);
        offset < known.count as usize * size_of::<Site>() && offset.is_multiple_of(size_of::<Site>())
    };
    // Mostly in the module that was asked for last.
    if has(&modules.known[modules.last]) {
        return true;
    }
    let found = modules.known[..modules.count].iter().position(has);
    modules.last = found.unwrap_or(0);
    found.is_some()
}
