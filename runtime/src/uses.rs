//! Which functions the program and its libraries can call at all.
//!
//! Some calls make operations visible that are not otherwise: in a program that cancels threads every point where a thread can
//! be cancelled is a choice. Whether a program makes such calls has to be known before its first choice, and be the same in
//! all executions, so it is read from the symbols that the loaded files want from elsewhere. A function that is reached in
//! another way (`dlsym`, a library that is loaded later) finds that it was not expected, and ends the run.

use crate::cell::Global;
use core::ffi::CStr;

/// Threads are asked whether they have ended.
const LIVES: u8 = 1;
/// Threads are cancelled.
const CANCELS: u8 = 2;
/// Signals are sent to other threads.
const SIGNALS: u8 = 4;
/// Threads end in the midst of functions.
const UNWINDS: u8 = 8;
/// Threads ask what has happened in computations with floating-point numbers.
const FLAGS: u8 = 16;

const NAMES: [(&CStr, u8); 18] = [
    (c"fetestexcept", FLAGS),
    (c"fegetexceptflag", FLAGS),
    (c"fegetenv", FLAGS),
    (c"feholdexcept", FLAGS),
    (c"fesetenv", FLAGS),
    (c"feupdateenv", FLAGS),
    (c"pthread_tryjoin_np", LIVES),
    (c"pthread_timedjoin_np", LIVES),
    (c"pthread_clockjoin_np", LIVES),
    (c"pthread_cancel", LIVES | CANCELS | UNWINDS),
    (c"pthread_exit", UNWINDS),
    (c"thrd_exit", UNWINDS),
    (c"pthread_kill", LIVES | SIGNALS),
    (c"pthread_sigqueue", LIVES | SIGNALS),
    (c"kill", SIGNALS),
    (c"killpg", SIGNALS),
    (c"sigqueue", SIGNALS),
    (c"tgkill", LIVES | SIGNALS),
];

static USES: Global<u8> = Global::new(0);

pub fn lives() -> bool {
    *USES.get() & LIVES != 0
}

pub fn cancels() -> bool {
    *USES.get() & CANCELS != 0
}

pub fn unwinds() -> bool {
    *USES.get() & UNWINDS != 0
}

pub fn floating_point_flags() -> bool {
    *USES.get() & FLAGS != 0
}

pub fn signals() -> bool {
    *USES.get() & SIGNALS != 0
}

/// An entry of the dynamic section, and of a symbol table.
#[repr(C)]
struct Dynamic {
    tag: usize,
    value: usize,
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: usize,
}

/// What a dynamic section says of symbols: addresses, and the length of all names.
#[derive(Default)]
struct Tables {
    strings: usize,
    strings_len: usize,
    symbols: usize,
    hash: usize,
    gnu_hash: usize,
}

/// A loaded file, by where its dynamic section is.
pub fn note(base: usize, dynamic: usize) {
    const DT_NULL: usize = 0;
    const DT_HASH: usize = 4;
    const DT_STRTAB: usize = 5;
    const DT_SYMTAB: usize = 6;
    const DT_STRSZ: usize = 10;
    const DT_GNU_HASH: usize = 0x6fff_fef5;
    let mut entry = dynamic as *const Dynamic;
    let mut tables = Tables::default();
    // SAFETY: the dynamic linker has read the same section, which ends with a null entry.
    while let Dynamic { tag, value } = unsafe { &*entry }
        && *tag != DT_NULL
    {
        // The dynamic linker has made addresses of offsets, except in files that it did not load itself.
        let address = if *value < base { base + value } else { *value };
        match *tag {
            DT_STRTAB => tables.strings = address,
            DT_STRSZ => tables.strings_len = *value,
            DT_SYMTAB => tables.symbols = address,
            DT_HASH => tables.hash = address,
            DT_GNU_HASH => tables.gnu_hash = address,
            _ => {}
        }
        entry = entry.wrapping_add(1);
    }
    if tables.strings != 0 && tables.symbols != 0 {
        (0..tables.count()).for_each(|i| note_symbol(tables.symbols + i * size_of::<Symbol>(), &tables));
    }
}

impl Tables {
    /// How many symbols there are. The older table of hashes says it; the newer one has those that can be found by their names, and
    /// in files without any it says nothing: then the names come right after the symbols.
    fn count(&self) -> usize {
        if self.hash != 0 {
            return word(self.hash, 1);
        }
        let hashed = if self.gnu_hash == 0 { 0 } else { self.hashed() };
        if hashed == 0 { self.strings.saturating_sub(self.symbols) / size_of::<Symbol>() } else { hashed }
    }

    /// One more than the last symbol in the newer table; 0 if it is empty.
    fn hashed(&self) -> usize {
        let [buckets, first, filter] = [0, 1, 2].map(|i| word(self.gnu_hash, i));
        let table = self.gnu_hash + 16 + 8 * filter;
        let mut last = (0..buckets).map(|i| word(table, i)).max().unwrap_or(0);
        if last < first || last == 0 {
            return 0;
        }
        // The last of a bucket is marked.
        while word(table + 4 * buckets, last - first) & 1 == 0 {
            last += 1;
        }
        last + 1
    }
}

fn word(table: usize, index: usize) -> usize {
    // SAFETY: within a table of a loaded file, as that says.
    unsafe { *(table as *const u32).add(index) as usize }
}

fn note_symbol(symbol: usize, tables: &Tables) {
    // SAFETY: an entry of the file's symbol table, or what lies before its names.
    let symbol = unsafe { &*(symbol as *const Symbol) };
    if symbol.section != 0 || symbol.name as usize >= tables.strings_len {
        return;
    }
    // SAFETY: the file's names, of which the last one ends too.
    let name = unsafe { CStr::from_ptr((tables.strings + symbol.name as usize) as *const _) };
    let uses = NAMES.iter().find(|(known, _)| *known == name).map_or(0, |(_, uses)| *uses);
    *USES.get() |= uses;
}
