//! Reads global variables and their types from a program's debug information. What is not understood has no name; what is
//! damaged ends the reading, and what has been read until then counts.

use crate::layout::{Layouts, Member, Shape, Type, TypeId, Variable};
use gimli::{AttributeValue, DwAt, EndianSlice, LittleEndian, Operation, UnitOffset};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};
use std::collections::BTreeMap;

type Bytes<'d> = EndianSlice<'d, LittleEndian>;
type Entry<'d> = gimli::DebuggingInformationEntry<Bytes<'d>>;
type Unit<'d> = gimli::Unit<Bytes<'d>>;

/// More enumerators than this help no reader.
const MAX_ENUMERATORS: usize = 24;
/// Qualifiers and typedefs on the way to a type; more would be a cycle.
const MAX_QUALIFIERS: usize = 32;

/// The variables of a program, with addresses relative to `base`.
pub fn read(file: &[u8], base: u64) -> Layouts {
    let Ok(file) = ElfFile64::<object::LittleEndian>::parse(file) else { return Layouts::default() };
    let section = |id: gimli::SectionId| -> Result<Bytes<'_>, gimli::Error> {
        let data = file.section_by_name(id.name()).and_then(|s| s.data().ok()).unwrap_or(&[]);
        Ok(EndianSlice::new(data, LittleEndian))
    };
    let Ok(dwarf) = gimli::Dwarf::load(section) else { return Layouts::default() };
    let mut layouts = Layouts::default();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let mut reading = Reading { dwarf: &dwarf, unit: &unit, base, known: BTreeMap::new(), layouts: &mut layouts };
        // A unit that cannot be read to its end has given what it could.
        _ = reading.variables();
    }
    layouts.variables.sort_by(|a, b| (a.address, &a.name).cmp(&(b.address, &b.name)));
    layouts.variables.dedup_by_key(|v| v.address);
    layouts
}

struct Reading<'a, 'd> {
    dwarf: &'a gimli::Dwarf<Bytes<'d>>,
    unit: &'a Unit<'d>,
    base: u64,
    known: BTreeMap<usize, TypeId>,
    layouts: &'a mut Layouts,
}

impl<'d> Reading<'_, 'd> {
    fn variables(&mut self) -> Result<(), gimli::Error> {
        let unit = self.unit;
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            if entry.tag() == gimli::DW_TAG_variable
                && let Some(address) = self.address(entry)
                && let Some(address) = address.checked_sub(self.base)
            {
                self.variable(entry, address);
            }
        }
        Ok(())
    }

    fn variable(&mut self, entry: &Entry<'d>, address: u64) {
        let declared = self.referred(entry, gimli::DW_AT_specification);
        let declared = declared.or_else(|| self.referred(entry, gimli::DW_AT_abstract_origin));
        let name = self.name(entry).or_else(|| declared.as_ref().and_then(|d| self.name(d)));
        let ty = self.type_of(entry).or_else(|| declared.as_ref().and_then(|d| self.type_of(d)));
        if let (Some(name), Some(ty)) = (name, ty) {
            self.layouts.variables.push(Variable { address, name, ty });
        }
    }

    /// Where a variable is that has one address for good.
    fn address(&self, entry: &Entry<'d>) -> Option<u64> {
        let AttributeValue::Exprloc(expression) = entry.attr_value(gimli::DW_AT_location)? else { return None };
        let mut operations = expression.operations(self.unit.encoding());
        let address = match operations.next().ok()?? {
            Operation::Address { address } => address,
            Operation::AddressIndex { index } => self.dwarf.address(self.unit, index).ok()?,
            _ => return None,
        };
        matches!(operations.next(), Ok(None)).then_some(address)
    }

    fn name(&self, entry: &Entry<'d>) -> Option<String> {
        let text = self.dwarf.attr_string(self.unit, entry.attr_value(gimli::DW_AT_name)?).ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    fn offset(entry: &Entry<'d>, attribute: DwAt) -> Option<UnitOffset> {
        match entry.attr_value(attribute)? {
            AttributeValue::UnitRef(offset) => Some(offset),
            _ => None,
        }
    }

    fn referred(&self, entry: &Entry<'d>, attribute: DwAt) -> Option<Entry<'d>> {
        self.unit.entry(Self::offset(entry, attribute)?).ok()
    }

    fn number(entry: &Entry<'d>, attribute: DwAt) -> Option<u64> {
        entry.attr_value(attribute)?.udata_value()
    }

    fn type_of(&mut self, entry: &Entry<'d>) -> Option<TypeId> {
        self.type_at(Self::offset(entry, gimli::DW_AT_type)?)
    }

    /// Reads a type once. Its number is given before its parts are read, so that it may contain pointers to itself.
    fn type_at(&mut self, offset: UnitOffset) -> Option<TypeId> {
        let (offset, entry) = self.unqualified(offset)?;
        if let Some(known) = self.known.get(&offset.0) {
            return Some(*known);
        }
        let id = TypeId(self.layouts.types.len());
        self.known.insert(offset.0, id);
        let size = Self::number(&entry, gimli::DW_AT_byte_size).unwrap_or(0);
        self.layouts.types.push(Type { size, shape: Shape::Scalar(String::new()) });
        let read = self.shape(&entry, offset, size);
        let ty = &mut self.layouts.types[id.0];
        if let Some((size, shape)) = read {
            *ty = Type { size, shape };
        }
        Some(id)
    }

    /// Typedefs and qualifiers say nothing about layout.
    fn unqualified(&self, mut offset: UnitOffset) -> Option<(UnitOffset, Entry<'d>)> {
        for _ in 0..MAX_QUALIFIERS {
            let entry = self.unit.entry(offset).ok()?;
            match entry.tag() {
                gimli::DW_TAG_typedef
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => offset = Self::offset(&entry, gimli::DW_AT_type)?,
                _ => return Some((offset, entry)),
            }
        }
        None
    }

    fn shape(&mut self, entry: &Entry<'d>, offset: UnitOffset, size: u64) -> Option<(u64, Shape)> {
        match entry.tag() {
            gimli::DW_TAG_base_type => Some((size, Shape::Scalar(self.number_code(entry, size)?))),
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => {
                Some((8, Shape::Scalar("p8".to_owned())))
            }
            gimli::DW_TAG_enumeration_type => Some((size, Shape::Scalar(self.enumeration(offset, size)?))),
            gimli::DW_TAG_array_type => self.array(entry, offset),
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                Some((size, Shape::Members(self.members(offset)?)))
            }
            _ => None,
        }
    }

    fn number_code(&self, entry: &Entry<'d>, size: u64) -> Option<String> {
        let AttributeValue::Encoding(encoding) = entry.attr_value(gimli::DW_AT_encoding)? else { return None };
        let letter = match encoding {
            gimli::DW_ATE_boolean => 'b',
            gimli::DW_ATE_float => 'f',
            gimli::DW_ATE_signed => 's',
            // Signed and unsigned char are small numbers more often than letters.
            gimli::DW_ATE_signed_char if self.name(entry).is_some_and(|n| n == "char") => 'c',
            gimli::DW_ATE_signed_char => 's',
            gimli::DW_ATE_unsigned | gimli::DW_ATE_unsigned_char => 'u',
            _ => return None,
        };
        Some(format!("{letter}{size}"))
    }

    fn children(&self, offset: UnitOffset) -> Option<Vec<Entry<'d>>> {
        let mut tree = self.unit.entries_tree(Some(offset)).ok()?;
        let mut nodes = tree.root().ok()?.children();
        let mut entries = Vec::new();
        while let Ok(Some(node)) = nodes.next() {
            entries.push(node.entry().clone());
        }
        Some(entries)
    }

    fn enumeration(&self, offset: UnitOffset, size: u64) -> Option<String> {
        let children = self.children(offset)?;
        let value = |e: &Entry<'d>| {
            let value = e.attr_value(gimli::DW_AT_const_value)?;
            value.sdata_value().or_else(|| value.udata_value().map(|v| v as i64))
        };
        let named = |e: &Entry<'d>| Some(format!("{}={}", self.name(e)?, value(e)?));
        let all: Vec<String> = children.iter().filter_map(named).collect();
        let readable = !all.is_empty() && all.len() <= MAX_ENUMERATORS;
        Some(if readable { format!("e{size}:{}", all.join(",")) } else { format!("s{size}") })
    }

    fn array(&mut self, entry: &Entry<'d>, offset: UnitOffset) -> Option<(u64, Shape)> {
        let children = self.children(offset)?;
        let count = |e: &Entry<'d>| {
            let counted = Self::number(e, gimli::DW_AT_count);
            counted.or_else(|| Self::number(e, gimli::DW_AT_upper_bound).map(|last| last.saturating_add(1)))
        };
        let ranges = children.iter().filter(|e| e.tag() == gimli::DW_TAG_subrange_type);
        let counts: Vec<u64> = ranges.map(|e| count(e).unwrap_or(0)).collect();
        let element = self.type_of(entry)?;
        let each = self.layouts.types[element.0].size;
        let size = counts.iter().try_fold(each, |size, count| size.checked_mul(*count))?;
        Some((size, Shape::Array(element, counts)))
    }

    /// A base class without data takes up no room of its own.
    fn is_empty(&self, ty: TypeId) -> bool {
        matches!(&self.layouts.types[ty.0].shape, Shape::Members(members) if members.is_empty())
    }

    fn members(&mut self, offset: UnitOffset) -> Option<Vec<Member>> {
        let mut members = Vec::new();
        for child in self.children(offset)? {
            let is_static = child.attr_value(gimli::DW_AT_external).is_some();
            let is_base = child.tag() == gimli::DW_TAG_inheritance;
            // Bit fields share bytes: none of them is what is accessed.
            let is_bits = child.attr_value(gimli::DW_AT_bit_size).is_some();
            if is_static || is_bits || !(is_base || child.tag() == gimli::DW_TAG_member) {
                continue;
            }
            let name = if is_base { String::new() } else { self.name(&child).unwrap_or_default() };
            let offset = Self::number(&child, gimli::DW_AT_data_member_location).unwrap_or(0);
            if let Some(ty) = self.type_of(&child).filter(|ty| !is_base || !self.is_empty(*ty)) {
                members.push(Member { name, offset, ty });
            }
        }
        Some(members)
    }
}
