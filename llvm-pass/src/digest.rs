//! The IR digest: a compact copy of each function's code, with its suspension points and what is live there.
//!
//! From it the controller rebuilds control-flow graphs and the residual code of each point. The format is described in
//! docs/digest.md; [`VERSION`] is its first byte. It is taken after optimisation and before instrumentation, so it
//! holds the program's own instructions only.

use std::collections::HashMap;

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::{LLVMLinkage, LLVMTypeKind, LLVMValueKind};

use crate::bits::Bits;
use crate::details::{case_values, detail, source_type};
use crate::ir::{Block, Kind, Opcode, Type, Value, bytes_to_string, llvm};
use crate::liveness::Live;
use crate::locals::{LocalTable, is_lifetime_marker};
use crate::shims::{Node, constant_data, constant_words};
use crate::sites::{FunctionIndex, SiteIndex, Sites};
use crate::slots::Slots;

pub const VERSION: u8 = 3;

/// Nested constants deeper than this are cut off.
const MAX_CONSTANT_DEPTH: u32 = 8;

/// Tags of operands.
mod tag {
    pub const LOCAL: u8 = 0;
    pub const INTEGER: u8 = 1;
    pub const FLOAT: u8 = 2;
    pub const SYMBOL: u8 = 3;
    pub const BLOCK: u8 = 4;
    pub const ZERO: u8 = 5;
    pub const UNDEFINED: u8 = 6;
    pub const EXPRESSION: u8 = 7;
    pub const AGGREGATE: u8 = 8;
    pub const ASSEMBLY: u8 = 9;
    pub const OTHER: u8 = 10;
    pub const BYTES: u8 = 11;
    pub const PRINTED: u8 = 12;
}

/// Bytes under construction; numbers are LEB128.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A length, then that many bytes.
    fn nested(&mut self, inner: &Writer) {
        self.number(inner.bytes.len() as u64);
        self.bytes.extend(&inner.bytes);
    }
}

/// The digest of a module, growing by one function at a time.
#[derive(Default)]
pub struct Digest {
    types: Writer,
    type_numbers: HashMap<Type, u64>,
    functions: Writer,
    count: u64,
}

/// What the digest says of one function beyond its code.
pub struct FunctionFacts<'a> {
    pub index: FunctionIndex,
    pub table: &'a LocalTable,
    pub slots: &'a Slots,
    /// Suspension points: their sites, and what is live there.
    pub sites: &'a HashMap<Value, Vec<SiteIndex>>,
    pub live: &'a HashMap<Value, Live>,
}

impl Digest {
    pub fn finish(self) -> Vec<u8> {
        let mut whole = Writer::default();
        whole.byte(VERSION);
        whole.number(self.type_numbers.len() as u64);
        whole.bytes.extend(&self.types.bytes);
        whole.number(self.count);
        whole.bytes.extend(&self.functions.bytes);
        whole.bytes
    }

    pub fn add(&mut self, function: Value, facts: &FunctionFacts, sites: &mut Sites) {
        let blocks = function.blocks();
        let numbers = blocks.iter().enumerate().map(|(i, &b)| (b, i as u64)).collect();
        let mut body = Body { digest: self, facts, sites, blocks: numbers, out: Writer::default() };
        body.arguments(function);
        body.objects();
        body.names();
        body.out.number(blocks.len() as u64);
        for block in blocks {
            body.block(block);
        }
        let body = body.out;
        self.functions.number(facts.index.0.into());
        self.functions.nested(&body);
        self.count += 1;
    }

    /// Number of a type; its parts come before it.
    fn type_number(&mut self, ty: Type) -> u64 {
        if let Some(&known) = self.type_numbers.get(&ty) {
            return known;
        }
        let parts: Vec<u64> = parts_of(ty).into_iter().map(|t| self.type_number(t)).collect();
        self.types.number(ty.kind() as u64);
        self.types.number(type_detail(ty));
        self.types.number(parts.len() as u64);
        parts.into_iter().for_each(|p| self.types.number(p));
        let number = self.type_numbers.len() as u64;
        self.type_numbers.insert(ty, number);
        number
    }
}

fn parts_of(ty: Type) -> Vec<Type> {
    match ty.kind() {
        LLVMTypeKind::LLVMArrayTypeKind | LLVMTypeKind::LLVMVectorTypeKind => vec![ty.element()],
        LLVMTypeKind::LLVMStructTypeKind => {
            let count = llvm!(LLVMCountStructElementTypes(ty.0));
            (0..count).map(|i| Type(llvm!(LLVMStructGetTypeAtIndex(ty.0, i)))).collect()
        }
        _ => Vec::new(),
    }
}

/// Width of an integer, length of an array or vector, whether a struct is packed, a pointer's address space.
fn type_detail(ty: Type) -> u64 {
    match ty.kind() {
        LLVMTypeKind::LLVMIntegerTypeKind => ty.int_width().into(),
        LLVMTypeKind::LLVMArrayTypeKind => llvm!(LLVMGetArrayLength2(ty.0)),
        LLVMTypeKind::LLVMVectorTypeKind => ty.lanes().into(),
        LLVMTypeKind::LLVMStructTypeKind => llvm!(LLVMIsPackedStruct(ty.0)) as u64,
        LLVMTypeKind::LLVMPointerTypeKind => llvm!(LLVMGetPointerAddressSpace(ty.0)).into(),
        _ => 0,
    }
}

/// One function being written.
struct Body<'a> {
    digest: &'a mut Digest,
    facts: &'a FunctionFacts<'a>,
    sites: &'a mut Sites,
    blocks: HashMap<Block, u64>,
    out: Writer,
}

impl Body<'_> {
    fn ty(&mut self, ty: Type) {
        let number = self.digest.type_number(ty);
        self.out.number(number);
    }

    fn text(&mut self, text: &str) {
        let offset = self.sites.strings.offset(text);
        self.out.number(offset.into());
    }

    fn arguments(&mut self, function: Value) {
        let arguments = function.arguments();
        self.out.number(arguments.len() as u64);
        for argument in arguments {
            self.ty(argument.ty());
        }
    }

    fn objects(&mut self) {
        self.out.number(self.facts.table.objects.len() as u64);
        for (index, object) in self.facts.table.objects.iter().enumerate() {
            let address = self.facts.table.number(object.address).unwrap_or(0);
            self.out.number(address as u64);
            self.out.byte(object.kind as u8);
            self.out.number(object.size);
            self.slot(self.facts.table.object_number(index));
        }
    }

    /// What debug info calls the locals that can be read.
    fn names(&mut self) {
        let table = self.facts.table;
        let readable = (0..table.len()).filter(|&local| self.facts.slots.get(local).is_some());
        let named: Vec<(usize, String)> =
            readable.filter_map(|local| Some((local, local_name(table, local)?))).collect();
        self.out.number(named.len() as u64);
        for (local, name) in named {
            self.out.number(local as u64);
            self.text(&name);
        }
    }

    /// 1 + the slot, or 0.
    fn slot(&mut self, local: usize) {
        self.out.number(self.facts.slots.get(local).map_or(0, |s| u64::from(s) + 1));
    }

    fn block(&mut self, block: Block) {
        let instructions: Vec<Value> = block.instructions().into_iter().filter(|i| !is_lifetime_marker(*i)).collect();
        self.out.number(instructions.len() as u64);
        for instruction in instructions {
            self.instruction(instruction);
        }
    }

    fn instruction(&mut self, instruction: Value) {
        self.out.number(instruction.opcode() as u64);
        self.ty(instruction.ty());
        self.out.number(detail(instruction));
        self.source(source_type(instruction));
        let operands = [instruction.operands(), case_values(instruction)].concat();
        self.out.number(operands.len() as u64);
        for operand in operands {
            self.operand(operand, 0);
        }
        if instruction.is(Opcode::LLVMPHI) {
            self.incoming_blocks(instruction);
        }
        self.suspension(instruction);
    }

    /// 1 + the type, or 0.
    fn source(&mut self, source: Option<Type>) {
        let number = source.map_or(0, |ty| self.digest.type_number(ty) + 1);
        self.out.number(number);
    }

    /// Successors come as operands for branches; LLVM keeps a phi's blocks elsewhere.
    fn incoming_blocks(&mut self, phi: Value) {
        for edge in 0..llvm!(LLVMCountIncoming(phi.0)) {
            let block = Block(llvm!(LLVMGetIncomingBlock(phi.0, edge)));
            self.out.number(self.blocks[&block]);
        }
    }

    fn suspension(&mut self, instruction: Value) {
        let Some(live) = self.facts.live.get(&instruction) else { return self.out.number(0) };
        let sites = self.facts.sites.get(&instruction).map_or(&[][..], Vec::as_slice);
        self.out.number(sites.len() as u64);
        for site in sites {
            self.out.number(site.0.into());
        }
        self.out.number(live.before.iter().count() as u64);
        for local in live.before.iter() {
            let bit = |set: &Bits| u64::from(set.contains(local));
            let weak = bit(&live.weak_before) << 2 | bit(&live.weak_after) << 1;
            self.out.number((local as u64) << 3 | weak | bit(&live.after));
            self.slot(local);
        }
    }
}

/// Operands.
impl Body<'_> {
    fn operand(&mut self, value: Value, depth: u32) {
        match value.kind() {
            Kind::Instruction(_) | Kind::Argument => {
                self.out.byte(tag::LOCAL);
                let number = self.facts.table.number(value).unwrap_or(0);
                self.out.number(number as u64);
            }
            Kind::Function | Kind::GlobalVariable => self.symbol(value),
            Kind::Block => {
                self.out.byte(tag::BLOCK);
                let block = Block(llvm!(LLVMValueAsBasicBlock(value.0)));
                self.out.number(self.blocks.get(&block).copied().unwrap_or(0));
            }
            Kind::InlineAsm => self.assembly(value),
            Kind::Constant => self.constant(value, depth),
            Kind::Other => self.out.byte(tag::OTHER),
        }
    }

    /// Symbols that only this module can mean are marked: the same name elsewhere is another thing.
    fn symbol(&mut self, value: Value) {
        let local = matches!(value.linkage(), LLVMLinkage::LLVMInternalLinkage | LLVMLinkage::LLVMPrivateLinkage);
        self.out.byte(tag::SYMBOL);
        self.out.byte(local.into());
        self.text(&value.name());
    }

    fn assembly(&mut self, value: Value) {
        let mut len = 0;
        let template = llvm!(LLVMGetInlineAsmAsmString(value.0, &mut len));
        let template = bytes_to_string(template.cast(), len);
        let constraints = llvm!(LLVMGetInlineAsmConstraintString(value.0, &mut len));
        let constraints = bytes_to_string(constraints.cast(), len);
        self.out.byte(tag::ASSEMBLY);
        self.text(&template);
        self.text(&constraints);
    }

    fn constant(&mut self, value: Value, depth: u32) {
        use LLVMValueKind::*;
        match llvm!(LLVMGetValueKind(value.0)) {
            _ if depth > MAX_CONSTANT_DEPTH => self.out.byte(tag::OTHER),
            LLVMConstantIntValueKind if !value.ty().is_vector() => self.words(tag::INTEGER, value),
            LLVMConstantFPValueKind if !value.ty().is_vector() => self.words(tag::FLOAT, value),
            LLVMConstantPointerNullValueKind | LLVMConstantAggregateZeroValueKind => self.tagged(tag::ZERO, value.ty()),
            LLVMUndefValueValueKind | LLVMPoisonValueKind => self.tagged(tag::UNDEFINED, value.ty()),
            LLVMConstantExprValueKind => {
                self.tagged(tag::EXPRESSION, value.ty());
                let opcode = llvm!(LLVMGetConstOpcode(value.0));
                self.out.number(opcode as u64);
                let steps = opcode == Opcode::LLVMGetElementPtr;
                self.source(steps.then(|| Type(llvm!(LLVMGetGEPSourceElementType(value.0)))));
                self.parts(value, depth);
            }
            LLVMConstantArrayValueKind | LLVMConstantStructValueKind | LLVMConstantVectorValueKind => {
                self.tagged(tag::AGGREGATE, value.ty());
                self.parts(value, depth);
            }
            LLVMConstantDataArrayValueKind | LLVMConstantDataVectorValueKind => self.data(value),
            LLVMGlobalAliasValueKind | LLVMGlobalIFuncValueKind => self.symbol(value),
            _ => self.printed(value),
        }
    }

    fn tagged(&mut self, tag: u8, ty: Type) {
        self.out.byte(tag);
        self.ty(ty);
    }

    fn words(&mut self, tag: u8, value: Value) {
        let words = constant_words(value);
        self.tagged(tag, value.ty());
        self.out.number(words.len() as u64);
        words.into_iter().for_each(|w| self.out.number(w));
    }

    fn parts(&mut self, value: Value, depth: u32) {
        let operands = value.operands();
        self.out.number(operands.len() as u64);
        for operand in operands {
            self.operand(operand, depth + 1);
        }
    }

    fn data(&mut self, value: Value) {
        let bytes = constant_data(value);
        self.tagged(tag::BYTES, value.ty());
        self.out.number(bytes.len() as u64);
        self.out.bytes.extend(bytes);
    }

    /// Rare constants (block addresses, vectors of one repeated value) as LLVM prints them.
    fn printed(&mut self, value: Value) {
        let text = value.print();
        self.out.byte(tag::PRINTED);
        self.text(&text);
    }
}

/// The variable that a local is, or the content of.
fn local_name(table: &LocalTable, local: usize) -> Option<String> {
    let variable = match table.object_index(local) {
        Some(object) => Node::variable_at(table.objects[object].address),
        None => Node::variable_of(table.values[local]),
    };
    variable?.variable_name()
}
