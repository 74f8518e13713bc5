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

const NAMES: [(&CStr, u8); 12] = [
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

/// A loaded file, by where its dynamic section is.
pub fn note(base: usize, dynamic: usize) {
    const DT_NULL: usize = 0;
    const DT_HASH: usize = 4;
    const DT_STRTAB: usize = 5;
    const DT_SYMTAB: usize = 6;
    const DT_GNU_HASH: usize = 0x6fff_fef5;
    let mut entry = dynamic as *const Dynamic;
    let (mut strings, mut symbols, mut hash, mut gnu_hash) = (0, 0, 0, 0);
    // SAFETY: the dynamic linker has read the same section, which ends with a null entry.
    while let Dynamic { tag, value } = unsafe { &*entry }
        && *tag != DT_NULL
    {
        // The dynamic linker has made addresses of offsets, except in files that it did not load itself.
        let address = if *value < base { base + value } else { *value };
        match *tag {
            DT_STRTAB => strings = address,
            DT_SYMTAB => symbols = address,
            DT_HASH => hash = address,
            DT_GNU_HASH => gnu_hash = address,
            _ => {}
        }
        entry = entry.wrapping_add(1);
    }
    // What is wanted from elsewhere is not in the newer table of hashes, and comes before what is there. The older one counts all.
    let count = match (gnu_hash, hash) {
        (0, 0) => 0,
        // SAFETY: the second word of the older table.
        (0, hash) => unsafe { *(hash as *const u32).add(1) },
        // SAFETY: the second word of the newer table.
        (gnu, _) => unsafe { *(gnu as *const u32).add(1) },
    };
    if strings != 0 && symbols != 0 {
        (0..count as usize).for_each(|i| note_symbol(symbols + i * size_of::<Symbol>(), strings));
    }
}

fn note_symbol(symbol: usize, strings: usize) {
    // SAFETY: an entry of the file's symbol table, and its name in the table of strings.
    let (symbol, name) = unsafe {
        let symbol = &*(symbol as *const Symbol);
        (symbol, CStr::from_ptr((strings + symbol.name as usize) as *const _))
    };
    if symbol.section == 0 {
        let uses = NAMES.iter().find(|(known, _)| *known == name).map_or(0, |(_, uses)| *uses);
        *USES.get() |= uses;
    }
}
