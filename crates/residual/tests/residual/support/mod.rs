//! Functions as a test writes them down, and their digests.
//!
//! Values are named by ids of the test's own; numbers come from the layout, which a test may change without changing
//! what the function means.

use std::collections::HashMap;
use symdpor_residual::{FunctionEntry, Library, ModuleTables, Point};

pub mod copies;
pub mod machine;
pub mod random;

pub mod op {
    pub const RET: u64 = 1;
    pub const BR: u64 = 2;
    pub const ADD: u64 = 8;
    pub const SUB: u64 = 10;
    pub const MUL: u64 = 12;
    pub const XOR: u64 = 25;
    pub const ALLOCA: u64 = 26;
    pub const LOAD: u64 = 27;
    pub const STORE: u64 = 28;
    pub const ICMP: u64 = 42;
    pub const PHI: u64 = 44;
    pub const CALL: u64 = 45;
    pub const ATOMIC_RMW: u64 = 57;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    Void,
    I32,
    I64,
    Pointer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    Value(usize),
    Constant(u64),
    Symbol(&'static str),
    Block(usize),
}

#[derive(Clone, Debug)]
pub struct Ins {
    pub opcode: u64,
    pub ty: Ty,
    pub detail: u64,
    pub args: Vec<Arg>,
    /// Of a phi, the block of each argument.
    pub incoming: Vec<usize>,
    pub result: Option<usize>,
    pub sites: Vec<u64>,
    /// Live values or objects (those by the id of their address) and whether they are so after the instruction.
    pub live: Vec<(Local, bool)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Local {
    Value(usize),
    Object(usize),
}

impl Ins {
    pub fn new(opcode: u64, ty: Ty, args: Vec<Arg>) -> Ins {
        Ins { opcode, ty, detail: 0, args, incoming: vec![], result: None, sites: vec![], live: vec![] }
    }

    pub fn result(mut self, id: usize) -> Ins {
        self.result = Some(id);
        self
    }

    pub fn detail(mut self, detail: u64) -> Ins {
        self.detail = detail;
        self
    }

    /// Makes it a suspension point.
    pub fn point(mut self, site: u64, live: &[Local]) -> Ins {
        self.sites.push(site);
        self.live = live.iter().map(|&l| (l, true)).collect();
        self
    }
}

#[derive(Clone, Debug, Default)]
pub struct Fun {
    pub args: Vec<(usize, Ty)>,
    /// Address, kind, size.
    pub objects: Vec<(usize, u8, u64)>,
    pub blocks: Vec<Vec<Ins>>,
}

/// What may change without changing the meaning.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Where each block stands; empty for the order in which they are written.
    pub blocks: Vec<usize>,
    pub unused_arguments: usize,
    pub unused_types: usize,
    pub unused_strings: usize,
}

pub struct Built {
    pub digest: Vec<u8>,
    pub strings: Vec<u8>,
}

pub const SLOTS: u32 = 1_000_000;

impl Fun {
    pub fn build(&self, layout: &Layout) -> Built {
        Builder::new(self, layout).module()
    }

    pub fn point(&self, layout: &Layout, site: u32) -> Option<Point> {
        let built = self.build(layout);
        point_of(&built.digest, &built.strings, site)
    }

    /// Block and index of the point.
    pub fn point_place(&self) -> (usize, usize) {
        let in_block = |code: &Vec<Ins>| code.iter().position(|i| !i.sites.is_empty());
        let mut blocks = self.blocks.iter().enumerate();
        blocks.find_map(|(block, code)| in_block(code).map(|index| (block, index))).expect("a point")
    }

    pub fn code(&self, layout: &Layout) -> u128 {
        self.point(layout, 0).expect("site 0 is a point").before.code
    }

    /// What is live at site 0, in the order of the residual code.
    pub fn live(&self, layout: &Layout) -> Vec<Local> {
        let locals = Builder::new(self, layout).numbers;
        let named: HashMap<u64, Local> = locals.into_iter().map(|(local, number)| (number, local)).collect();
        let point = self.point(layout, 0).expect("site 0 is a point");
        point.before.live.iter().map(|l| named[&u64::from(l.local)]).collect()
    }
}

pub fn point_of(digest: &[u8], strings: &[u8], site: u32) -> Option<Point> {
    let mut library = Library::default();
    let functions = [FunctionEntry { symbol: 0, slots: SLOTS }];
    library
        .add_module(ModuleTables { digest, strings, functions: &functions, first_site: 1, site_count: 1000 })
        .ok()?;
    library.point(1 + site).cloned()
}

struct Builder<'a> {
    fun: &'a Fun,
    layout: &'a Layout,
    numbers: HashMap<Local, u64>,
    /// Where each block stands.
    places: Vec<u64>,
    strings: Vec<u8>,
}

impl<'a> Builder<'a> {
    fn new(fun: &'a Fun, layout: &'a Layout) -> Builder<'a> {
        let mut builder = Builder { fun, layout, numbers: HashMap::new(), places: vec![], strings: vec![0] };
        builder.places = vec![0; fun.blocks.len()];
        builder.order().into_iter().enumerate().for_each(|(place, block)| builder.places[block] = place as u64);
        builder.strings.extend((0..layout.unused_strings).flat_map(|_| *b"unused\0"));
        let first = layout.unused_arguments;
        let results = builder.order().into_iter().flat_map(|b| &fun.blocks[b]).filter_map(|i| i.result);
        let values: Vec<usize> = fun.args.iter().map(|a| a.0).chain(results).collect();
        let objects = fun.objects.iter().map(|o| Local::Object(o.0));
        let all = values.into_iter().map(Local::Value).chain(objects);
        builder.numbers = all.enumerate().map(|(i, l)| (l, (first + i) as u64)).collect();
        builder
    }

    /// Blocks as they are laid out.
    fn order(&self) -> Vec<usize> {
        if self.layout.blocks.is_empty() { (0..self.fun.blocks.len()).collect() } else { self.layout.blocks.clone() }
    }

    fn ty(&self, ty: Ty) -> u64 {
        self.layout.unused_types as u64 + ty as u64
    }

    fn module(mut self) -> Built {
        let mut out = vec![3];
        number(&mut out, self.layout.unused_types as u64 + 4);
        for width in 0..self.layout.unused_types as u64 {
            [8, 7 + width, 0].into_iter().for_each(|n| number(&mut out, n));
        }
        [0, 0, 0, 8, 32, 0, 8, 64, 0, 12, 0, 0].into_iter().for_each(|n| number(&mut out, n));
        let body = self.body();
        [1, 0, body.len() as u64].into_iter().for_each(|n| number(&mut out, n));
        out.extend(body);
        Built { digest: out, strings: self.strings }
    }

    fn body(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let unused = std::iter::repeat_n(Ty::I64, self.layout.unused_arguments);
        let arguments: Vec<Ty> = unused.chain(self.fun.args.iter().map(|a| a.1)).collect();
        number(&mut out, arguments.len() as u64);
        arguments.into_iter().for_each(|t| number(&mut out, self.ty(t)));
        number(&mut out, self.fun.objects.len() as u64);
        for &(address, kind, size) in &self.fun.objects {
            number(&mut out, self.numbers[&Local::Value(address)]);
            out.push(kind);
            number(&mut out, size);
            number(&mut out, 1 + self.numbers[&Local::Object(address)]);
        }
        number(&mut out, 0);
        number(&mut out, self.fun.blocks.len() as u64);
        for block in self.order() {
            number(&mut out, self.fun.blocks[block].len() as u64);
            self.fun.blocks[block].iter().for_each(|i| self.instruction(&mut out, i));
        }
        out
    }

    fn block(&self, block: usize) -> u64 {
        self.places[block]
    }

    fn instruction(&mut self, out: &mut Vec<u8>, ins: &Ins) {
        [ins.opcode, self.ty(ins.ty), ins.detail, 0, ins.args.len() as u64].into_iter().for_each(|n| number(out, n));
        ins.args.iter().for_each(|a| self.operand(out, a));
        ins.incoming.iter().for_each(|&b| number(out, self.block(b)));
        number(out, ins.sites.len() as u64);
        ins.sites.iter().for_each(|&s| number(out, s));
        if !ins.sites.is_empty() {
            number(out, ins.live.len() as u64);
            for (local, after) in &ins.live {
                let local = self.numbers[local];
                number(out, local << 3 | u64::from(*after));
                number(out, local + 1);
            }
        }
    }

    fn operand(&mut self, out: &mut Vec<u8>, arg: &Arg) {
        match arg {
            Arg::Value(id) => {
                out.push(0);
                number(out, self.numbers[&Local::Value(*id)]);
            }
            Arg::Constant(value) => {
                out.push(1);
                [self.ty(Ty::I32), 1, *value].into_iter().for_each(|n| number(out, n));
            }
            Arg::Symbol(name) => {
                out.extend([3, 0]);
                number(out, self.strings.len() as u64);
                self.strings.extend(name.bytes().chain([0]));
            }
            Arg::Block(block) => {
                out.push(4);
                number(out, self.block(*block));
            }
        }
    }
}

pub fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
