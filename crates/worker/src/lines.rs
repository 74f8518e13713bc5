//! Where an instruction of the program is in the source, from its debug information. What is damaged tells nothing.

use gimli::{EndianSlice, LittleEndian};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use symdpor_trace::Location;

/// The place of an instruction and, where functions were inlined, the calls around it, innermost first. Functions have the
/// names of the symbol table.
pub fn at(file: &[u8], address: u64) -> Vec<Location> {
    frames(file, address).unwrap_or_default()
}

fn frames(file: &[u8], address: u64) -> Option<Vec<Location>> {
    let file = ElfFile64::<object::LittleEndian>::parse(file).ok()?;
    let section = |id: gimli::SectionId| -> Result<EndianSlice<'_, LittleEndian>, gimli::Error> {
        let data = file.section_by_name(id.name()).and_then(|s| s.data().ok()).unwrap_or(&[]);
        Ok(EndianSlice::new(data, LittleEndian))
    };
    let dwarf = gimli::Dwarf::load(section).ok()?;
    let context = addr2line::Context::from_dwarf(dwarf).ok()?;
    let here = frames_at(&context, address)?;
    let function = |frames: &[Location]| frames.last().map(|f| f.function.clone());
    // What the compiler or the pass has put in belongs to no line: the one before it says where that is.
    let before = (0..NEAR).map_while(|back| frames_at(&context, address.checked_sub(back)?));
    let same = before.take_while(|frames| function(frames) == function(&here));
    let mut found = same.into_iter().find(|frames| frames.iter().all(|f| f.line != 0)).unwrap_or_default();
    // With lines alone (`-gline-tables-only`, `-gsplit-dwarf`) the symbol table has to do.
    if let Some(last) = found.last_mut().filter(|l| l.function.is_empty()) {
        let mut functions = file.symbols().filter(|s| s.kind() == SymbolKind::Text);
        let symbol = functions.find(|s| address.wrapping_sub(s.address()) < s.size());
        last.function = symbol.and_then(|s| s.name().ok()).unwrap_or_default().to_owned();
    }
    Some(found)
}

/// How many bytes of instructions without a line there may be.
const NEAR: u64 = 256;

fn frames_at(context: &addr2line::Context<EndianSlice<'_, LittleEndian>>, address: u64) -> Option<Vec<Location>> {
    let mut found = context.find_frames(address).skip_all_loads().ok()?;
    let mut frames = Vec::new();
    while let Ok(Some(frame)) = found.next() {
        let Some(place) = frame.location else { continue };
        let function = frame.function.map(|f| f.name.to_string_lossy().into_owned()).unwrap_or_default();
        frames.push(Location {
            // As the pass writes it.
            file: place.file.unwrap_or_default().replace("/./", "/"),
            line: place.line.unwrap_or(0),
            column: place.column.unwrap_or(0),
            function,
        });
    }
    Some(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_program_has_no_lines() {
        assert!(at(b"hello", 0).is_empty());
    }

    /// A function that is there whatever the optimiser does.
    #[inline(never)]
    fn somewhere(number: u64) -> u64 {
        std::hint::black_box(number) + 1
    }

    /// The test program itself has debug information.
    #[test]
    fn an_instruction_is_found() {
        assert_eq!(std::hint::black_box(somewhere as fn(u64) -> u64)(1), 2);
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = ElfFile64::<object::LittleEndian>::parse(&*bytes).unwrap();
        let symbol = file.symbols().find(|s| s.name().is_ok_and(|n| n.contains("tests9somewhere"))).unwrap();
        let found = at(&bytes, symbol.address());
        assert!(found.last().is_some_and(|l| l.function.contains("somewhere")), "{found:?}");
        assert_eq!(at(&bytes, u64::MAX), []);
    }
}
