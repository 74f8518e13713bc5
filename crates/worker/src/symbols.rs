//! Sites and objects as the source names them.
//!
//! Sites come from the modules that registered with the runtime, which copies their tables to the channel. Objects have
//! no names there: global variables are looked up in the program's symbol table, others are described by their region.

use crate::bytes::{Damaged, Reader};
use crate::channel::Channel;
use crate::dwarf;
use crate::layout::{Layouts, Part};
use crate::lines;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{LittleEndian, Object, ObjectSymbol, SymbolKind, elf};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use symdpor_abi::channel::{self as layout, Header};
use symdpor_abi::module::function_flags;
use symdpor_abi::object::{ObjectId, Region};
use symdpor_trace::Location;

const SITE_WORDS: usize = 8;
const FUNCTION_WORDS: usize = 6;
const SEEN_IN_PART: u32 = function_flags::INLINE_ASSEMBLY | function_flags::COROUTINE | function_flags::UNINSTRUMENTED;

#[derive(Default)]
pub struct Sites {
    modules: Vec<Module>,
}

struct Module {
    first_site: u32,
    sites: Vec<[u32; SITE_WORDS]>,
    functions: Vec<[u32; FUNCTION_WORDS]>,
    strings: Vec<u8>,
}

impl Sites {
    /// Reads all modules that have registered so far.
    pub fn read(channel: &Channel, header: &Header) -> Result<Sites, Damaged> {
        let len = header.modules_len as usize;
        if len > layout::MODULES_BYTES {
            return Err(Damaged("the length of the modules"));
        }
        Sites::parse(&channel.bytes(layout::MODULES_OFFSET, len))
    }

    fn parse(bytes: &[u8]) -> Result<Sites, Damaged> {
        let mut modules = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let len = Reader::new(rest).u32()? as usize;
            if len < size_of::<layout::ModuleRecord>() || len > rest.len() {
                return Err(Damaged("the length of a module"));
            }
            let (record, after) = rest.split_at(len);
            modules.push(read_module(&mut Reader::new(record))?);
            rest = after;
        }
        Ok(Sites { modules })
    }

    fn find(&self, id: u32) -> Option<(&Module, &[u32; SITE_WORDS])> {
        let holds = |m: &&Module| id >= m.first_site && ((id - m.first_site) as usize) < m.sites.len();
        let module = self.modules.iter().find(holds).filter(|_| id != 0)?;
        Some((module, &module.sites[(id - module.first_site) as usize]))
    }

    pub fn location(&self, id: u32) -> Option<Location> {
        self.find(id).map(|(module, site)| module.location(site))
    }

    /// The place and, where functions were inlined, the calls around it, innermost first.
    pub fn frames(&self, id: u32) -> Vec<Location> {
        let Some((module, mut site)) = self.find(id) else { return vec![] };
        let mut frames = vec![module.location(site)];
        // A chain longer than the table would be a cycle.
        while frames.len() <= module.sites.len() {
            let [.., inlined_at] = *site;
            let Some(caller) = (inlined_at as usize).checked_sub(1).and_then(|i| module.sites.get(i)) else { break };
            site = caller;
            frames.push(module.location(site));
        }
        frames
    }

    /// What a function is called that the symbol table knows by this name.
    pub fn function(&self, symbol: &str) -> Option<String> {
        let names = self.modules.iter().flat_map(|m| m.functions.iter().map(move |f| (m, f)));
        names.into_iter().find(|(m, f)| m.is_string(f[0], symbol)).map(|(m, f)| m.string(f[1]))
    }

    /// The functions of which not everything is seen, with their [`function_flags`].
    pub fn remarkable(&self) -> Vec<(u32, Location)> {
        let place = |m: &Module, f: &[u32; FUNCTION_WORDS]| {
            let [_, name, file, line, _, flags] = *f;
            (flags, Location { file: m.string(file), line, column: 0, function: m.string(name) })
        };
        let all = self.modules.iter().flat_map(|m| m.functions.iter().map(move |f| place(m, f)));
        let mut remarkable: Vec<(u32, Location)> = all.filter(|(flags, _)| *flags & SEEN_IN_PART != 0).collect();
        remarkable.sort();
        remarkable.dedup();
        remarkable
    }

    /// The variable or expression accessed at a site, if it is known.
    pub fn name(&self, id: u32) -> Option<String> {
        let (module, site) = self.find(id)?;
        Some(module.string(site[5])).filter(|s| !s.is_empty())
    }

    /// How the value of what is accessed at a site is read: the code behind its name (docs/hook-abi.md).
    pub fn code(&self, id: u32) -> String {
        let Some((module, site)) = self.find(id).filter(|(_, site)| site[5] != 0) else { return String::new() };
        let name = module.strings.get(site[5] as usize..).unwrap_or(&[]);
        let behind = name.iter().position(|&b| b == 0).map_or(name.len(), |end| end + 1);
        module.string(site[5].saturating_add(behind as u32))
    }
}

impl Module {
    fn string(&self, offset: u32) -> String {
        let tail = self.strings.get(offset as usize..).unwrap_or(&[]);
        let end = tail.iter().position(|&b| b == 0).unwrap_or(tail.len());
        String::from_utf8_lossy(&tail[..end]).into_owned()
    }

    fn is_string(&self, offset: u32, text: &str) -> bool {
        let tail = self.strings.get(offset as usize..).unwrap_or(&[]);
        tail.strip_prefix(text.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    }

    fn location(&self, site: &[u32; SITE_WORDS]) -> Location {
        let [_, line, column, file, function, ..] = *site;
        let function = self.functions.get(function as usize).map(|f| self.string(f[1])).unwrap_or_default();
        Location { file: self.string(file), line, column, function }
    }
}

fn read_module(reader: &mut Reader<'_>) -> Result<Module, Damaged> {
    let [_, first_site, site_count, function_count, strings_len, _] = words(reader)?;
    let sites = (0..site_count).map(|_| words(reader)).collect::<Result<_, _>>()?;
    let functions = (0..function_count).map(|_| words(reader)).collect::<Result<_, _>>()?;
    let strings = reader.take_padded(strings_len as usize)?.to_vec();
    Ok(Module { first_site, sites, functions, strings })
}

fn words<const N: usize>(reader: &mut Reader<'_>) -> Result<[u32; N], Damaged> {
    let mut all = [0; N];
    for word in &mut all {
        *word = reader.u32()?;
    }
    Ok(all)
}

/// The names of files, with the symbols that follow them.
fn foreign<'a>(symbols: impl Iterator<Item = (bool, &'a str)>) -> Vec<String> {
    let mut files: Vec<(&str, bool)> = Vec::new();
    for (is_file, name) in symbols {
        match files.last_mut() {
            _ if is_file => files.push((name, false)),
            Some((_, seen)) => *seen |= name.starts_with("symdpor."),
            None => {}
        }
    }
    let foreign = files.iter().filter(|(name, seen)| !seen && !is_of_compiler(name));
    let names: BTreeSet<&str> = foreign.map(|(name, _)| *name).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// What the linker adds to every program that needs it.
fn is_of_compiler(file: &str) -> bool {
    const FILES: [&str; 12] = [
        "",
        "crtstuff.c",
        "init.c",
        "abi-note.c",
        "static-reloc.c",
        "elf-init.c",
        "atexit.c",
        "at_quick_exit.c",
        "pthread_atfork.c",
        "stack_chk_fail_local.c",
        "libgcc2.c",
        "cpuinfo.c",
    ];
    FILES.contains(&file) || file.ends_with(".o") || file.ends_with(".oS")
}

/// The program's global variables, by address.
#[derive(Default)]
pub struct Globals {
    /// Address, length, name; sorted.
    symbols: Vec<(u64, u64, String)>,
    /// The program's file and where its addresses begin: debug information is read when something is to be named.
    file: Vec<u8>,
    base: u64,
    layouts: OnceCell<Layouts>,
}

impl Globals {
    /// From the program's file; empty if it has no symbol table.
    pub fn read(bytes: &[u8]) -> Globals {
        let Ok(file) = ElfFile64::<LittleEndian>::parse(bytes) else { return Globals::default() };
        let loads = file.elf_program_headers().iter().filter(|p| p.p_type(LittleEndian) == elf::PT_LOAD);
        // Objects are named by their distance from where the program is loaded.
        let base = loads.map(|p| p.p_vaddr(LittleEndian)).min().unwrap_or(0) & !4095;
        let all = file.symbols().chain(file.dynamic_symbols());
        let data = all.filter(|s| s.kind() == SymbolKind::Data && s.is_definition());
        let mut symbols: Vec<(u64, u64, String)> = data
            .filter_map(|s| Some((s.address().checked_sub(base)?, s.size().max(1), s.name().ok()?.to_owned())))
            .collect();
        symbols.sort();
        symbols.dedup();
        Globals { symbols, file: bytes.to_vec(), base, layouts: OnceCell::new() }
    }

    /// The variable at an address of the file, with the offset into it.
    fn find(&self, address: u64) -> Option<(&str, u64)> {
        let after = self.symbols.partition_point(|(start, ..)| *start <= address);
        let (start, _, name) = self.symbols[..after].iter().rev().take(4).find(|(s, len, _)| address - s < *len)?;
        Some((name, address - start))
    }

    /// The part of a variable that so many bytes of an object are, if debug information tells.
    pub fn part(&self, object: ObjectId, mask: u8, len: u64) -> Option<Part> {
        let (module, offset) = object.module_offset();
        if object.region() != Region::Module || module != 0 {
            return None;
        }
        let layouts = self.layouts.get_or_init(|| dwarf::read(&self.file, self.base));
        layouts.part_at(offset + u64::from(mask.trailing_zeros() % 8), len)
    }

    /// Source files of the program that were not compiled with the pass: the symbol table has a list of each file's own
    /// symbols, and the pass adds one to every file. Empty if the program is stripped.
    pub fn foreign_files(&self) -> Vec<String> {
        let Ok(file) = ElfFile64::<LittleEndian>::parse(&*self.file) else { return vec![] };
        let locals = file.symbols().filter(|s| s.is_local());
        foreign(locals.filter_map(|s| Some((s.kind() == SymbolKind::File, s.name().ok()?))))
    }

    /// The place of an instruction, told by its distance from the beginning of the program, and the calls that were inlined
    /// around it, innermost first.
    pub fn places(&self, instruction: u64) -> Vec<Location> {
        if self.file.is_empty() { vec![] } else { lines::at(&self.file, self.base.wrapping_add(instruction)) }
    }

    /// Whether the object is (part of) a global variable of the program.
    pub fn knows(&self, object: ObjectId) -> bool {
        let (module, offset) = object.module_offset();
        object.region() == Region::Module && module == 0 && self.find(offset).is_some()
    }

    /// A granule and the bytes of it that are meant, as well as they can be named.
    pub fn describe(&self, object: ObjectId, mask: u8) -> String {
        let byte = u64::from(mask.trailing_zeros() % 8);
        match object.region() {
            Region::Module => {
                let (module, offset) = object.module_offset();
                if let Some(part) = self.part(object, mask, 1) {
                    return part.name;
                }
                let found = if module == 0 { self.find(offset + byte) } else { None };
                match found {
                    Some((name, 0)) => name.to_owned(),
                    Some((name, inside)) => format!("{name}+{inside}"),
                    None if module == 0 => format!("program+{:#x}", offset + byte),
                    None => format!("library+{:#x}", offset + byte),
                }
            }
            Region::Heap => format!("heap+{:#x}", object.payload() + byte),
            Region::Stack => format!("stack+{:#x}", object.payload() + byte),
            Region::MainStack => format!("main's stack-{:#x}", object.payload()),
            Region::Mapping => format!("memory at {:#x}", object.payload() + byte),
            Region::Special | Region::None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(first_site: u32) -> Vec<u8> {
        let strings = b"\0a.c\0main\0_Z4workv\0work()\0counter\0";
        let sites: [[u32; 8]; 2] = [[first_site, 10, 3, 1, 1, 26, 0, 2], [first_site + 1, 20, 5, 1, 0, 0, 3, 0]];
        let functions: [[u32; 6]; 2] = [[5, 5, 1, 18, 0, 0], [10, 19, 1, 8, 0, 0]];
        let mut body: Vec<u8> = Vec::new();
        body.extend(sites.as_flattened().iter().flat_map(|w| w.to_le_bytes()));
        body.extend(functions.as_flattened().iter().flat_map(|w| w.to_le_bytes()));
        body.extend(strings);
        body.resize(body.len().next_multiple_of(8), 0);
        let header = [24 + body.len() as u32, first_site, 2, 2, strings.len() as u32, 0];
        header.iter().flat_map(|w| w.to_le_bytes()).chain(body).collect()
    }

    #[test]
    fn sites_are_found_across_modules() {
        let bytes = [module(1), module(3)].concat();
        let sites = Sites::parse(&bytes).unwrap();
        let place = sites.location(3).unwrap();
        assert_eq!((place.file.as_str(), place.line, place.function.as_str()), ("a.c", 10, "work()"));
        assert_eq!(sites.name(3).as_deref(), Some("counter"));
        assert_eq!(sites.name(4), None);
        assert_eq!(sites.location(0), None);
        assert_eq!(sites.location(5), None);
    }

    #[test]
    fn functions_that_are_seen_in_part_are_listed() {
        let mut bytes = module(1);
        assert!(Sites::parse(&bytes).unwrap().remarkable().is_empty());
        bytes[24 + 64 + 20] = function_flags::INLINE_ASSEMBLY as u8;
        let found = Sites::parse(&[bytes.clone(), bytes].concat()).unwrap().remarkable();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].0, found[0].1.function.as_str(), found[0].1.line), (1, "main", 18));
    }

    #[test]
    fn inlined_calls_are_frames() {
        let sites = Sites::parse(&module(1)).unwrap();
        let lines: Vec<u32> = sites.frames(1).iter().map(|l| l.line).collect();
        assert_eq!(lines, [10, 20]);
    }

    #[test]
    fn a_cycle_of_inlined_calls_ends() {
        let mut bytes = module(1);
        bytes[24 + 32 + 28] = 1;
        assert_eq!(Sites::parse(&bytes).unwrap().frames(1).len(), 3);
    }

    #[test]
    fn damaged_modules_are_refused() {
        let bytes = module(1);
        for len in 1..bytes.len() {
            assert!(Sites::parse(&bytes[..len]).is_err(), "{len}");
        }
        let mut huge = bytes.clone();
        huge[11] = 0xff;
        assert!(Sites::parse(&huge).is_err());
    }

    #[test]
    fn files_without_a_mark_are_foreign() {
        let file = |name| (true, name);
        let symbols =
            [file("Scrt1.o"), (false, "abi"), file("a.c"), (false, "f"), (false, "symdpor.module"), file("b.c")];
        let more = [file("c.c"), (false, "g"), file("data.c"), (false, "symdpor.data"), file("")];
        assert_eq!(foreign(symbols.into_iter().chain(more)), ["b.c", "c.c"]);
    }

    #[test]
    fn globals_are_named_with_their_offset() {
        let symbols = vec![(0x4000, 16, "a".into()), (0x4010, 4, "b".into())];
        let globals = Globals { symbols, ..Globals::default() };
        assert_eq!(globals.describe(ObjectId::module(0, 0x4000), 0x0f), "a");
        assert_eq!(globals.describe(ObjectId::module(0, 0x4008), 0xf0), "a+12");
        assert_eq!(globals.describe(ObjectId::module(0, 0x4010), 0x0f), "b");
        assert_eq!(globals.describe(ObjectId::module(0, 0x4010), 0xf0), "program+0x4014");
        assert_eq!(globals.describe(ObjectId::new(Region::Heap, 0x40), 0xff), "heap+0x40");
    }
}
