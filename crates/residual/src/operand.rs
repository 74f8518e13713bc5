//! Operands. What is not local stands for itself and is kept as a hash of its structure.

use crate::hash::Structure;
use crate::reader::{Damaged, Reader, text};
use crate::types::Type;

/// Constants nested deeper than the pass ever writes them.
const MAX_DEPTH: u32 = 32;

const SYMBOL: u64 = 2;
const CONSTANT: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    Local(u32),
    Block(u32),
    Constant(u128),
    /// A function or global variable, and where its name is in the strings.
    Symbol(u128, u32),
    /// The callee of inline assembly: its text.
    Assembly(u128),
    /// Cannot be compared with anything.
    Opaque,
}

/// What operands refer to.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub types: &'a [Type],
    pub strings: &'a [u8],
    /// Tells the module's own symbols from those of the same name elsewhere.
    pub module: u64,
}

impl Context<'_> {
    pub fn operand(&self, reader: &mut Reader<'_>) -> Result<Operand, Damaged> {
        self.nested(reader, 0)
    }

    fn nested(&self, reader: &mut Reader<'_>, depth: u32) -> Result<Operand, Damaged> {
        if depth > MAX_DEPTH {
            return Err(Damaged("a constant is nested too deeply"));
        }
        let tag = reader.byte()?;
        match tag {
            0 => Ok(Operand::Local(reader.small()?)),
            3 => self.symbol(reader),
            4 => Ok(Operand::Block(reader.small()?)),
            10 => Ok(Operand::Opaque),
            7 | 8 => self.compound(tag, reader, depth),
            _ => self.plain(tag, reader),
        }
    }

    fn ty(&self, reader: &mut Reader<'_>) -> Result<u128, Damaged> {
        Ok(self.types[reader.below(self.types.len())? as usize].structure)
    }

    /// Symbols without a name cannot be told apart.
    fn symbol(&self, reader: &mut Reader<'_>) -> Result<Operand, Damaged> {
        let own = match reader.byte()? {
            0 => 0,
            1 => self.module + 1,
            _ => return Err(Damaged("a symbol's mark")),
        };
        let offset = reader.small()?;
        let name = text(self.strings, offset)?;
        let mut structure = Structure::new(SYMBOL);
        structure.word(own);
        structure.bytes(name);
        Ok(if name.is_empty() { Operand::Opaque } else { Operand::Symbol(structure.finish(), offset) })
    }

    /// Expressions and aggregates.
    fn compound(&self, tag: u8, reader: &mut Reader<'_>, depth: u32) -> Result<Operand, Damaged> {
        let mut structure = Structure::new(CONSTANT);
        structure.word(tag.into());
        structure.wide(self.ty(reader)?);
        if tag == 7 {
            structure.word(reader.number()?);
            structure.wide(self.source(reader)?);
        }
        let count = reader.count()?;
        structure.word(count as u64);
        let mut comparable = true;
        for _ in 0..count {
            match self.nested(reader, depth + 1)? {
                Operand::Constant(part) | Operand::Symbol(part, _) | Operand::Assembly(part) => structure.wide(part),
                Operand::Local(_) | Operand::Block(_) | Operand::Opaque => comparable = false,
            }
        }
        Ok(if comparable { Operand::Constant(structure.finish()) } else { Operand::Opaque })
    }

    /// The type that an instruction or expression names besides that of its result.
    pub fn source(&self, reader: &mut Reader<'_>) -> Result<u128, Damaged> {
        match reader.below(self.types.len() + 1)? {
            0 => Ok(0),
            index => Ok(self.types[index as usize - 1].structure),
        }
    }

    fn plain(&self, tag: u8, reader: &mut Reader<'_>) -> Result<Operand, Damaged> {
        let mut structure = Structure::new(CONSTANT);
        structure.word(tag.into());
        match tag {
            1 | 2 => {
                structure.wide(self.ty(reader)?);
                for _ in 0..reader.count()? {
                    structure.word(reader.number()?);
                }
            }
            5 | 6 => structure.wide(self.ty(reader)?),
            9 => {
                structure.bytes(text(self.strings, reader.small()?)?);
                structure.bytes(text(self.strings, reader.small()?)?);
            }
            11 => {
                structure.wide(self.ty(reader)?);
                let len = reader.count()?;
                structure.bytes(reader.take(len)?);
            }
            12 => return self.printed(structure, reader),
            _ => return Err(Damaged("an operand's tag")),
        }
        let hash = structure.finish();
        Ok(if tag == 9 { Operand::Assembly(hash) } else { Operand::Constant(hash) })
    }

    /// Text that names a symbol does not say whose it is.
    fn printed(&self, mut structure: Structure, reader: &mut Reader<'_>) -> Result<Operand, Damaged> {
        let printed = text(self.strings, reader.small()?)?;
        structure.bytes(printed);
        Ok(if printed.contains(&b'@') { Operand::Opaque } else { Operand::Constant(structure.finish()) })
    }
}
