//! All modules of a program. Points are worked out when they are first asked for: only a few of a program's sites are
//! ever waited at.

use crate::behaviour::Behaviour;
use crate::canonical::write;
use crate::flow::{Flow, Reach};
use crate::function::{Function, Instruction};
use crate::operand::Context;
use crate::reader::{Damaged, Reader, text};
use crate::residual::{Residual, residual};
use crate::section::{Rest, Side};
use crate::types::{Type, read_types};
use rustc_hash::FxHashMap;
use std::ops::Range;

const VERSION: u8 = 3;

/// What the runtime passes on of one module (`symdpor_abi::module::Module`).
#[derive(Clone, Copy)]
pub struct ModuleTables<'a> {
    pub digest: &'a [u8],
    pub strings: &'a [u8],
    pub functions: &'a [FunctionEntry],
    /// Number of the first site in the whole process.
    pub first_site: u32,
    pub site_count: u32,
}

/// Of `symdpor_abi::module::Function`, what matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionEntry {
    /// Offset in the strings.
    pub symbol: u32,
    /// Number of slots in the function's frames.
    pub slots: u32,
}

/// A suspension point: a visible operation, or a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// From the instruction on, itself and its operands included: for the innermost frame, whose operation is still
    /// to be done.
    pub before: Residual,
    /// From behind the call on, its result being a new local: for frames whose callee is under way. None if it is no
    /// call.
    pub after: Option<Residual>,
    /// The symbol that is called, if the call is direct.
    pub callee: Option<String>,
    /// The slot that holds the address of what is called, if the call goes through a pointer.
    pub target: Option<u32>,
    pub function: FunctionName,
}

/// The function that a point is in. Says nothing about its code: equal code may have any name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionName {
    /// Number of the module, in the order in which they were added.
    pub module: usize,
    pub index: u32,
    pub symbol: String,
    pub slots: u32,
}

#[derive(Default)]
pub struct Library {
    modules: Vec<Module>,
    points: FxHashMap<u32, Option<Point>>,
}

impl Library {
    /// Modules are told apart by the order in which they are added, which is that of their registration.
    pub fn add_module(&mut self, tables: ModuleTables<'_>) -> Result<(), Damaged> {
        let module = Module::read(tables, self.modules.len())?;
        self.modules.push(module);
        Ok(())
    }

    /// The point at a site. None if there is no such site, if it is no suspension point, or if its function cannot be
    /// read.
    pub fn point(&mut self, site: u32) -> Option<&Point> {
        let modules = &mut self.modules;
        self.points.entry(site).or_insert_with(|| compute(modules, site)).as_ref()
    }
}

fn compute(modules: &mut [Module], site: u32) -> Option<Point> {
    let holds = |m: &&mut Module| site != 0 && site.checked_sub(m.first_site).is_some_and(|i| i < m.site_count);
    let module = modules.iter_mut().find(holds)?;
    module.point(site - module.first_site)
}

struct Module {
    number: usize,
    digest: Vec<u8>,
    strings: Vec<u8>,
    functions: Vec<FunctionEntry>,
    first_site: u32,
    site_count: u32,
    types: Vec<Type>,
    /// Index in `functions` and place of the body in the digest.
    bodies: Vec<(u32, Range<usize>)>,
    /// For each site that is a point, the body and the suspension; filled when it is first needed.
    index: Option<FxHashMap<u32, (usize, usize)>>,
    read: FxHashMap<usize, Body>,
}

/// A function, and what its points are found from.
struct Body {
    function: Function,
    /// None if it takes too much work.
    behaviour: Option<Behaviour>,
    /// For points that have no behaviour.
    flow: Option<Flow>,
}

impl Body {
    fn of(function: Function) -> Body {
        Body { behaviour: Behaviour::of(&function), function, flow: None }
    }

    fn instruction(&self, suspension: usize) -> &Instruction {
        &self.function.instructions[self.function.suspensions[suspension].instruction]
    }

    fn residual(&mut self, suspension: usize, side: Side) -> Residual {
        let Body { function, behaviour, flow } = self;
        let point = &function.suspensions[suspension];
        let rest = Rest { function, point, side, reach: &Reach::default() };
        if let Some(written) = behaviour.as_ref().and_then(|b| b.write(&rest)) {
            return residual(&rest, written);
        }
        let reach = flow.get_or_insert_with(|| Flow::of(function)).reach(function, point.block);
        let rest = Rest { reach: &reach, ..rest };
        residual(&rest, write(&rest))
    }
}

impl Module {
    fn read(tables: ModuleTables<'_>, number: usize) -> Result<Module, Damaged> {
        let mut reader = Reader::new(tables.digest);
        if reader.byte()? != VERSION {
            return Err(Damaged("it is of another version"));
        }
        let types = read_types(&mut reader)?;
        let mut bodies = Vec::new();
        for _ in 0..reader.count()? {
            let index = reader.below(tables.functions.len())?;
            let len = reader.count()?;
            let start = tables.digest.len() - reader.left();
            reader.take(len)?;
            bodies.push((index, start..start + len));
        }
        if !reader.is_empty() {
            return Err(Damaged("something is left over"));
        }
        Ok(Module {
            number,
            digest: tables.digest.to_vec(),
            strings: tables.strings.to_vec(),
            functions: tables.functions.to_vec(),
            first_site: tables.first_site,
            site_count: tables.site_count,
            types,
            bodies,
            index: None,
            read: FxHashMap::default(),
        })
    }

    fn parse(&self, body: usize) -> Result<Function, Damaged> {
        let (index, range) = self.bodies[body].clone();
        let context = Context { types: &self.types, strings: &self.strings, module: self.number as u64 };
        Function::read(&self.digest[range], context, self.functions[index as usize].slots)
    }

    /// Which suspension each site is. A function that cannot be read has none.
    fn find(&mut self, site: u32) -> Option<(usize, usize)> {
        if self.index.is_none() {
            let mut index = FxHashMap::default();
            for body in 0..self.bodies.len() {
                let Ok(function) = self.parse(body) else { continue };
                for (i, suspension) in function.suspensions.iter().enumerate() {
                    suspension.sites.iter().for_each(|&site| _ = index.insert(site, (body, i)));
                }
            }
            self.index = Some(index);
        }
        self.index.as_ref()?.get(&site).copied()
    }

    fn point(&mut self, site: u32) -> Option<Point> {
        let (body, suspension) = self.find(site)?;
        let mut known = match self.read.remove(&body) {
            Some(known) => known,
            None => Body::of(self.parse(body).ok()?),
        };
        let point = self.describe(body, &mut known, suspension);
        self.read.insert(body, known);
        Some(point)
    }

    fn describe(&self, body: usize, known: &mut Body, suspension: usize) -> Point {
        let calls = known.function.calls(known.instruction(suspension));
        let mut named = |side| {
            let mut residual = known.residual(suspension, side);
            let names = &known.function.names;
            residual.live.iter_mut().for_each(|l| l.name = names.get(&l.local).map(|&n| self.string(n)));
            residual
        };
        let before = named(Side::Before);
        let after = calls.then(|| named(Side::After));
        let target = known.function.target(known.instruction(suspension)).and_then(|local| before.slot_of(local));
        let (index, _) = self.bodies[body];
        let entry = self.functions[index as usize];
        Point {
            before,
            after,
            callee: known.function.callee(known.instruction(suspension)).map(|name| self.string(name)),
            target,
            function: FunctionName {
                module: self.number,
                index,
                symbol: self.string(entry.symbol),
                slots: entry.slots,
            },
        }
    }

    fn string(&self, offset: u32) -> String {
        String::from_utf8_lossy(text(&self.strings, offset).unwrap_or_default()).into_owned()
    }
}
