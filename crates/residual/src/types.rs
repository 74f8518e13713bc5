//! The module's types, by structure: their index in the table means nothing outside of the module.

use crate::hash::Structure;
use crate::reader::{Damaged, Reader};

/// LLVM's C enumeration `LLVMTypeKind`, as far as it matters here.
mod kind {
    pub const VOID: u64 = 0;
    pub const HALF: u64 = 1;
    pub const FLOAT: u64 = 2;
    pub const DOUBLE: u64 = 3;
    pub const X86_FP80: u64 = 4;
    pub const FP128: u64 = 5;
    pub const INTEGER: u64 = 8;
    pub const STRUCT: u64 = 10;
    pub const ARRAY: u64 = 11;
    pub const POINTER: u64 = 12;
    pub const VECTOR: u64 = 13;
    pub const BFLOAT: u64 = 18;
}

const TAG: u64 = 1;

pub struct Type {
    pub structure: u128,
    pub is_void: bool,
    /// Width in bits, if a value of it is one number.
    bits: Option<u64>,
    /// Words that a value takes in its frame; None for what cannot be kept.
    pub words: Option<u32>,
}

/// Parts come before the types they are part of.
pub fn read_types(reader: &mut Reader<'_>) -> Result<Vec<Type>, Damaged> {
    let mut types = Vec::new();
    for _ in 0..reader.count()? {
        types.push(read_type(reader, &types)?);
    }
    Ok(types)
}

fn read_type(reader: &mut Reader<'_>, earlier: &[Type]) -> Result<Type, Damaged> {
    let (kind, detail) = (reader.number()?, reader.number()?);
    let mut structure = Structure::new(TAG);
    let mut parts: Vec<&Type> = Vec::new();
    let count = reader.count()?;
    structure.words(&[kind, detail, count as u64]);
    for _ in 0..count {
        let part = &earlier[reader.below(earlier.len())? as usize];
        structure.wide(part.structure);
        parts.push(part);
    }
    let bits = bits(kind, detail, &parts);
    let words = match kind {
        kind::STRUCT => parts.iter().try_fold(0u32, |sum, p| sum.checked_add(p.words?)),
        kind::ARRAY => parts.first().and_then(|p| p.words?.checked_mul(u32::try_from(detail).ok()?)),
        _ => bits.and_then(|b| u32::try_from(b.div_ceil(64)).ok()),
    };
    Ok(Type { structure: structure.finish(), is_void: kind == kind::VOID, bits, words })
}

fn bits(kind: u64, detail: u64, parts: &[&Type]) -> Option<u64> {
    match kind {
        kind::HALF | kind::BFLOAT => Some(16),
        kind::FLOAT => Some(32),
        kind::DOUBLE | kind::POINTER => Some(64),
        kind::X86_FP80 => Some(80),
        kind::FP128 => Some(128),
        kind::INTEGER => Some(detail),
        kind::VECTOR => parts.first().and_then(|p| p.bits?.checked_mul(detail)),
        _ => None,
    }
}
