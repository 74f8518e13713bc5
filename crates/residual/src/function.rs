//! The code of one function, as the digest has it.

use crate::opcode;
use crate::operand::{Context, Operand};
use crate::reader::{Damaged, Reader, text};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Tells the optimiser something and does nothing.
const MARKERS: [&[u8]; 1] = [b"llvm.experimental.noalias.scope.decl"];

/// These come back more than once: from a point behind them control may still return to where they were called.
const RETURN_TWICE: [&[u8]; 9] = [
    b"setjmp",
    b"_setjmp",
    b"sigsetjmp",
    b"__sigsetjmp",
    b"__sigsetjmp_cancel",
    b"getcontext",
    b"savectx",
    b"vfork",
    b"llvm.eh.sjlj.setjmp",
];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ObjectKind {
    /// Only ever loaded and stored whole.
    Scalar,
    /// Accessed in parts, its address known to its function only.
    Private,
    /// Others may have its address.
    Escaped,
}

#[derive(Clone, Copy, Debug)]
pub struct Object {
    pub kind: ObjectKind,
    /// Bytes, 0 if only known when it runs.
    pub size: u64,
}

#[derive(Debug)]
pub struct Instruction {
    pub opcode: u32,
    /// Structure of the type of the result.
    pub ty: u128,
    pub detail: u64,
    pub source: u128,
    pub operands: Range<usize>,
    /// The local that holds the result.
    pub result: Option<u32>,
    /// First of the blocks that a phi's operands come from.
    pub incoming: usize,
}

/// A local that is live at a suspension point.
#[derive(Clone, Copy, Debug)]
pub struct LiveLocal {
    pub local: u32,
    pub after: bool,
    /// Matters only to whoever has its address.
    pub weak_before: bool,
    pub weak_after: bool,
    pub slot: Option<u32>,
}

/// A suspension point.
#[derive(Debug)]
pub struct Suspension {
    pub block: u32,
    pub instruction: usize,
    pub sites: Vec<u32>,
    pub live: Vec<LiveLocal>,
}

/// A value: an argument or the result of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    pub ty: u128,
    pub words: Option<u32>,
    /// The instruction that defines it.
    pub definition: Option<usize>,
}

#[derive(Default)]
pub struct Function {
    /// Number of slots in its frames.
    pub slots: u32,
    pub values: Vec<Value>,
    pub objects: Vec<Object>,
    /// Control may jump to where it has been before, which no graph shows.
    pub returns_twice: bool,
    /// The object that a value is the address of.
    pub object_at: FxHashMap<u32, usize>,
    /// Where the names of locals are in the strings.
    pub names: FxHashMap<u32, u32>,
    pub blocks: Vec<Range<usize>>,
    pub instructions: Vec<Instruction>,
    operands: Vec<Operand>,
    incoming: Vec<u32>,
    pub suspensions: Vec<Suspension>,
}

impl Function {
    pub fn operands(&self, instruction: &Instruction) -> &[Operand] {
        &self.operands[instruction.operands.clone()]
    }

    /// The blocks that a phi's operands come from.
    pub fn incoming(&self, phi: &Instruction) -> &[u32] {
        &self.incoming[phi.incoming..][..phi.operands.len()]
    }

    /// Blocks that may follow, in the order of the last instruction's operands.
    pub fn successors(&self, block: u32) -> impl DoubleEndedIterator<Item = u32> {
        let last = self.blocks[block as usize].clone().next_back();
        let operands = last.map_or(&[][..], |i| self.operands(&self.instructions[i]));
        operands.iter().filter_map(|o| if let Operand::Block(block) = o { Some(*block) } else { None })
    }

    /// The object that a local is the content of.
    pub fn object(&self, local: u32) -> Option<&Object> {
        (local as usize).checked_sub(self.values.len()).and_then(|i| self.objects.get(i))
    }

    /// The direct callee's name: an offset in the strings.
    pub fn callee(&self, instruction: &Instruction) -> Option<u32> {
        match self.operands(instruction).last() {
            Some(Operand::Symbol(_, name)) if opcode::is_call(instruction.opcode) => Some(*name),
            _ => None,
        }
    }

    /// The local that is called, if the call goes through a pointer.
    pub fn target(&self, instruction: &Instruction) -> Option<u32> {
        match self.operands(instruction).last() {
            Some(Operand::Local(local)) if opcode::is_call(instruction.opcode) => Some(*local),
            _ => None,
        }
    }

    /// A call after which there is something on the stack to come back from: inline assembly calls nobody.
    pub fn calls(&self, instruction: &Instruction) -> bool {
        let assembly = matches!(self.operands(instruction).last(), Some(Operand::Assembly(_)));
        opcode::is_call(instruction.opcode) && !assembly
    }
}

impl Function {
    /// Whether the instruction may change places with others of its kind: it has no effect, and what it reads does not
    /// change while only such instructions run. At -O0 every use of a variable is a load of this kind.
    pub fn is_movable(&self, instruction: &Instruction) -> bool {
        if instruction.opcode != opcode::LOAD || instruction.detail != 0 {
            return opcode::is_pure(instruction.opcode);
        }
        match self.operands(instruction) {
            [Operand::Local(address)] => self.is_scalar(*address),
            _ => false,
        }
    }

    fn is_scalar(&self, address: u32) -> bool {
        let object = self.object_at.get(&address).map(|&i| &self.objects[i]);
        object.is_some_and(|o| o.kind == ObjectKind::Scalar)
    }
}

impl Function {
    /// Reads a body; `slots` is the number of slots of the function's frames.
    pub fn read(bytes: &[u8], context: Context<'_>, slots: u32) -> Result<Function, Damaged> {
        let function = Function { slots, ..Function::default() };
        let mut parser = Parser { reader: Reader::new(bytes), context, function };
        parser.body()?;
        if !parser.reader.is_empty() {
            return Err(Damaged("a function's length"));
        }
        parser.function.check()?;
        Ok(parser.function)
    }

    /// What can only be checked once everything is there.
    fn check(&self) -> Result<(), Damaged> {
        let in_range = |operand: &Operand| match operand {
            Operand::Local(local) => (*local as usize) < self.values.len(),
            Operand::Block(block) => (*block as usize) < self.blocks.len(),
            _ => true,
        };
        let locals = self.values.len() + self.objects.len();
        let live = || self.suspensions.iter().flat_map(|s| &s.live);
        let sound = self.operands.iter().all(in_range)
            && self.incoming.iter().all(|&block| (block as usize) < self.blocks.len())
            && self.object_at.keys().all(|&address| (address as usize) < self.values.len())
            && live().all(|l| (l.local as usize) < locals)
            && self.suspensions.iter().all(|s| all_different(s.live.iter().map(|l| l.local)));
        if sound { Ok(()) } else { Err(Damaged("an index is out of range")) }
    }
}

fn all_different(locals: impl Iterator<Item = u32>) -> bool {
    let mut seen = FxHashSet::default();
    let mut locals = locals;
    locals.all(|l| seen.insert(l))
}

struct Parser<'a> {
    reader: Reader<'a>,
    context: Context<'a>,
    function: Function,
}

impl Parser<'_> {
    fn body(&mut self) -> Result<(), Damaged> {
        for _ in 0..self.reader.count()? {
            let ty = self.reader.below(self.context.types.len())?;
            self.define(ty, None);
        }
        for index in 0..self.reader.count()? {
            self.object(index)?;
        }
        for _ in 0..self.reader.count()? {
            let (local, name) = (self.reader.small()?, self.reader.small()?);
            text(self.context.strings, name)?;
            self.function.names.insert(local, name);
        }
        for block in 0..self.reader.count()? {
            self.block(block as u32)?;
        }
        Ok(())
    }

    /// A new value of a type; None for void.
    fn define(&mut self, ty: u32, definition: Option<usize>) -> Option<u32> {
        let ty = &self.context.types[ty as usize];
        if ty.is_void {
            return None;
        }
        self.function.values.push(Value { ty: ty.structure, words: ty.words, definition });
        Some(self.function.values.len() as u32 - 1)
    }

    fn object(&mut self, index: usize) -> Result<(), Damaged> {
        let address = self.reader.small()?;
        let kind = match self.reader.byte()? {
            0 => ObjectKind::Scalar,
            1 => ObjectKind::Private,
            2 => ObjectKind::Escaped,
            _ => return Err(Damaged("an object's kind")),
        };
        let size = self.reader.number()?;
        self.slot()?;
        self.function.objects.push(Object { kind, size });
        match self.function.object_at.insert(address, index) {
            None => Ok(()),
            Some(_) => Err(Damaged("two objects have one address")),
        }
    }

    fn slot(&mut self) -> Result<Option<u32>, Damaged> {
        Ok(self.reader.below((self.function.slots as usize).saturating_add(1))?.checked_sub(1))
    }

    fn block(&mut self, block: u32) -> Result<(), Damaged> {
        let first = self.function.instructions.len();
        let count = self.reader.count()?;
        for left in (0..count).rev() {
            self.instruction(block, left == 0)?;
        }
        self.function.blocks.push(first..self.function.instructions.len());
        Ok(())
    }

    fn instruction(&mut self, block: u32, is_last: bool) -> Result<(), Damaged> {
        let opcode = self.reader.small()?;
        let ty = self.reader.below(self.context.types.len())?;
        let (detail, source) = (self.reader.number()?, self.context.source(&mut self.reader)?);
        let operands = self.operands(is_last)?;
        let incoming = self.function.incoming.len();
        if opcode == opcode::PHI {
            for _ in operands.clone() {
                let from = self.reader.small()?;
                self.function.incoming.push(from);
            }
        }
        let place = self.function.instructions.len();
        let result = self.define(ty, Some(place));
        let ty = self.context.types[ty as usize].structure;
        self.function.instructions.push(Instruction { opcode, ty, detail, source, operands, result, incoming });
        let suspends = self.suspension(block, place)?;
        let Some(callee) = self.function.callee(&self.function.instructions[place]) else { return Ok(()) };
        let callee = text(self.context.strings, callee)?;
        self.function.returns_twice |= RETURN_TWICE.contains(&callee);
        if !suspends && !is_last && result.is_none() && MARKERS.contains(&callee) {
            self.function.instructions.pop();
        }
        Ok(())
    }

    /// Only the last instruction of a block leads to others.
    fn operands(&mut self, is_last: bool) -> Result<Range<usize>, Damaged> {
        let first = self.function.operands.len();
        for _ in 0..self.reader.count()? {
            let operand = self.context.operand(&mut self.reader)?;
            if matches!(operand, Operand::Block(_)) && !is_last {
                return Err(Damaged("a branch within a block"));
            }
            self.function.operands.push(operand);
        }
        Ok(first..self.function.operands.len())
    }

    fn suspension(&mut self, block: u32, instruction: usize) -> Result<bool, Damaged> {
        let mut sites = Vec::new();
        for _ in 0..self.reader.count()? {
            sites.push(self.reader.small()?);
        }
        if sites.is_empty() {
            return Ok(false);
        }
        let mut live = Vec::new();
        for _ in 0..self.reader.count()? {
            let raw = self.reader.small()?;
            let [after, weak_after, weak_before] = [0, 1, 2].map(|bit| raw >> bit & 1 != 0);
            live.push(LiveLocal { local: raw >> 3, after, weak_before, weak_after, slot: self.slot()? });
        }
        self.function.suspensions.push(Suspension { block, instruction, sites, live });
        Ok(true)
    }
}
