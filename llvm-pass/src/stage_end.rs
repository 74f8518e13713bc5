//! Second stage, after optimisation: hooks, frames and tables.

use std::collections::HashSet;

use inkwell::llvm_sys::LLVMLinkage;
use symdpor_abi::module::{SiteKind, function_flags};

use crate::access::{self, Access};
use crate::assembly;
use crate::attributes::{self, UNTRUE_WITH_HOOKS};
use crate::emit::Emitter;
use crate::escape::Locals;
use crate::frames::FrameEmitter;
use crate::hooks::{Hook, HookTable, has_place_behind};
use crate::ir::{Block, Kind, Module, Value};
use crate::keep;
use crate::locations::Locations;
use crate::loops;
use crate::sites::{Place, Sites};
use crate::tables::Tables;
use crate::{COROUTINE, INSTRUMENTED, PREPARED, SANITIZED_BY_USER};

pub fn run(module: Module) {
    let functions: Vec<Value> = module.functions().into_iter().filter(|f| is_ours(*f)).collect();
    if functions.is_empty() {
        return;
    }
    let mut stage = Stage::new(module);
    for function in functions {
        stage.function(function);
    }
    stage.finish();
}

/// Defined here, and not done before: link-time optimisation may run the pass over the same code again.
fn is_ours(function: Value) -> bool {
    !function.is_declaration()
        && function.linkage() != LLVMLinkage::LLVMAvailableExternallyLinkage
        && !attributes::has_mark(function, INSTRUMENTED)
}

struct Stage {
    emit: Emitter,
    hooks: HookTable,
    sites: Sites,
    tables: Tables,
    /// They run before the module is relocated, when the table's pointers are not good yet.
    resolvers: Vec<Value>,
}

/// What will be done to one function; made before anything is changed.
struct Plan {
    function: Value,
    locations: Locations,
    accesses: Vec<(Value, Vec<Access>)>,
    calls: Vec<Value>,
    latches: Vec<Block>,
}

impl Plan {
    fn place(&self, instruction: Value) -> Place {
        Place { function: self.function, location: self.locations.get(instruction) }
    }

    fn is_empty(&self) -> bool {
        self.accesses.is_empty() && self.calls.is_empty() && self.latches.is_empty()
    }
}

impl Stage {
    fn new(module: Module) -> Stage {
        let emit = Emitter::new(module);
        Stage {
            hooks: HookTable::new(&emit),
            sites: Sites::new(module),
            tables: Tables::new(&emit),
            resolvers: module.ifunc_resolvers(),
            emit,
        }
    }

    fn function(&mut self, function: Value) {
        attributes::add_mark(function, self.emit.module, INSTRUMENTED);
        let locations = Locations::of(function);
        keep::remove_uses(function);
        if !attributes::has_mark(function, SANITIZED_BY_USER) && attributes::has_mark(function, PREPARED) {
            attributes::remove(function, "sanitize_thread");
        }
        let flags = self.flags(function);
        let index = self.sites.function(function);
        self.sites.function_record(index).flags |= flags;
        if flags & (function_flags::UNINSTRUMENTED | function_flags::COROUTINE) == 0 {
            self.instrument(function, locations);
        }
    }

    fn flags(&self, function: Value) -> u32 {
        let left_alone = ["naked", "disable_sanitizer_instrumentation"].iter().any(|a| attributes::has(function, a));
        let mut flags = 0;
        if left_alone || self.resolvers.contains(&function) {
            flags |= function_flags::UNINSTRUMENTED;
        }
        if attributes::has_mark(function, COROUTINE) || attributes::has(function, "presplitcoroutine") {
            flags |= function_flags::COROUTINE;
        }
        if instructions(function).any(is_opaque_assembly) {
            flags |= function_flags::INLINE_ASSEMBLY;
        }
        flags
    }

    fn plan(&self, function: Value, locations: Locations) -> Plan {
        let locals = Locals::of(function);
        let mut plan = Plan { function, locations, accesses: Vec::new(), calls: Vec::new(), latches: Vec::new() };
        let mut stops = HashSet::new();
        for instruction in instructions(function) {
            let accesses = access::of_instruction(self.emit.module, instruction, &locals);
            let call = instruction.is_real_call();
            if call || !accesses.is_empty() {
                stops.insert(instruction.block());
            }
            if call {
                plan.calls.push(instruction);
            }
            if !accesses.is_empty() {
                plan.accesses.push((instruction, accesses));
            }
        }
        plan.latches = loops::silent_latches(function, &stops);
        plan
    }

    fn instrument(&mut self, function: Value, locations: Locations) {
        let plan = self.plan(function, locations);
        if plan.is_empty() {
            return;
        }
        let original: Vec<Value> = instructions(function).collect();
        let index = self.sites.function(function);
        let descriptor = self.tables.function(&self.emit, index);
        let frame = FrameEmitter::push(&self.emit, &self.hooks, function, descriptor, 0);
        for call in &plan.calls {
            self.before_call(&plan, &frame, *call);
        }
        for (instruction, accesses) in &plan.accesses {
            for access in accesses {
                self.around(&plan, *instruction, access);
            }
        }
        for latch in &plan.latches {
            self.at_latch(&plan, *latch);
        }
        for instruction in original {
            frame.at_instruction(&self.emit, &self.hooks, instruction);
        }
        strip_claims(function);
    }

    fn before_call(&mut self, plan: &Plan, frame: &FrameEmitter, call: Value) {
        call.drop_tail();
        if call.is_musttail() {
            return;
        }
        let site = self.sites.of_instruction(plan.place(call), SiteKind::Call, None);
        self.emit.before(call);
        frame.set_site(&self.emit, self.tables.site(&self.emit, site));
    }

    fn around(&mut self, plan: &Plan, instruction: Value, access: &Access) {
        let site = self.sites.of_access(plan.place(instruction), access);
        let site = self.tables.site(&self.emit, site);
        self.emit.before(instruction);
        self.hooks.before(&self.emit, access, site);
        if let Access::Atomic(atomic) = access
            && has_place_behind(instruction)
        {
            self.emit.behind(instruction);
            self.hooks.after(&self.emit, atomic, instruction);
        }
    }

    fn at_latch(&mut self, plan: &Plan, latch: Block) {
        let end = latch.terminator();
        let site = self.sites.of_instruction(plan.place(end), SiteKind::Loop, None);
        self.emit.before(end);
        self.hooks.call(&self.emit, Hook::LoopBack, &[self.tables.site(&self.emit, site)]);
    }

    fn finish(self) {
        for function in self.emit.module.functions() {
            if function.is_declaration() && !function.is_intrinsic() {
                UNTRUE_WITH_HOOKS.iter().for_each(|a| attributes::remove(function, a));
            }
        }
        self.tables.finish(&self.emit, &self.hooks, &self.sites, &[]);
    }
}

fn instructions(function: Value) -> impl Iterator<Item = Value> {
    function.blocks().into_iter().flat_map(|b| b.instructions())
}

fn is_opaque_assembly(instruction: Value) -> bool {
    instruction.is_call() && instruction.callee().kind() == Kind::InlineAsm && !assembly::is_harmless(instruction)
}

/// What the optimiser found out about the function and its callees was true without hooks.
fn strip_claims(function: Value) {
    UNTRUE_WITH_HOOKS.iter().for_each(|a| attributes::remove(function, a));
    for call in instructions(function).filter(|i| i.is_real_call()) {
        UNTRUE_WITH_HOOKS.iter().for_each(|a| attributes::remove_from_call(call, a));
    }
}
