//! Second stage, after optimisation: hooks, frames and tables.

use inkwell::llvm_sys::LLVMLinkage;
use symdpor_abi::module::function_flags;

use crate::access::Access;
use crate::assembly;
use crate::attributes::{self, UNTRUE_WITH_HOOKS};
use crate::authors;
use crate::clearing::{self, Clearing};
use crate::digest::{Digest, FunctionFacts};
use crate::emit::Emitter;
use crate::frames::FrameEmitter;
use crate::hooks::{Hook, HookTable, has_place_behind};
use crate::ir::{Kind, Module, Value};
use crate::keep;
use crate::linked_in;
use crate::liveness::Liveness;
use crate::locals::LocalTable;
use crate::locations::Locations;
use crate::loops::Callees;
use crate::orders::{self, Order};
use crate::plan::Plan;
use crate::results;
use crate::retry;
use crate::sites::{FunctionIndex, SiteIndex, Sites};
use crate::slots::{self, Slots};
use crate::tables::{self, Tables};
use crate::{INSTRUMENTED, PREPARED, SANITIZED_BY_USER};
use symdpor_abi::module::HASHED;

pub fn run(module: Module) {
    let functions: Vec<Value> = module.functions().into_iter().filter(|f| is_ours(*f)).collect();
    if functions.is_empty() {
        return tables::mark_as_seen(module);
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
    digest: Digest,
    callees: Callees,
    /// They run before the module is relocated, when the table's pointers are not good yet.
    resolvers: Vec<Value>,
}

impl Stage {
    fn new(module: Module) -> Stage {
        let emit = Emitter::new(module);
        Stage {
            hooks: HookTable::new(&emit),
            sites: Sites::new(module),
            tables: Tables::new(&emit),
            digest: Digest::default(),
            callees: Callees::default(),
            resolvers: module.ifunc_resolvers(),
            emit,
        }
    }

    fn function(&mut self, function: Value) {
        attributes::add_mark(function, self.emit.module, INSTRUMENTED);
        let locations = Locations::of(function);
        keep::remove_all(function);
        if !attributes::has_mark(function, SANITIZED_BY_USER) && attributes::has_mark(function, PREPARED) {
            attributes::remove(function, "sanitize_thread");
        }
        let flags = self.flags(function);
        let index = self.sites.function(function);
        self.sites.function_record(index).flags |= flags;
        if flags & (function_flags::UNINSTRUMENTED | function_flags::COROUTINE) == 0 {
            self.instrument(function, &locations);
        }
    }

    fn flags(&self, function: Value) -> u32 {
        let left_alone = ["naked", "disable_sanitizer_instrumentation"].iter().any(|a| attributes::has(function, a));
        let mut flags = results::flag(function);
        if left_alone || self.resolvers.contains(&function) {
            flags |= function_flags::UNINSTRUMENTED;
        }
        if attributes::has(function, "presplitcoroutine") {
            flags |= function_flags::COROUTINE;
        }
        if instructions(function).any(is_opaque_assembly) {
            flags |= function_flags::INLINE_ASSEMBLY;
        }
        flags
    }

    fn instrument(&mut self, function: Value, locations: &Locations) {
        retry::go_back_to_loads(self.emit.module, function);
        let plan = Plan::make(self.emit.module, &mut self.sites, &mut self.callees, function, locations);
        let orders = orders::of(function);
        if plan.is_empty() {
            return self.report_orders(&orders);
        }
        let original: Vec<Value> = instructions(function).collect();
        let index = self.sites.function(function);
        let table = LocalTable::of(self.emit.module, function);
        let slots = self.digest(function, index, &plan, &table);
        let clearings = clearing::of(function, &table, &slots, &plan.points);
        let descriptor = self.tables.function(&self.emit, index);
        let frame = FrameEmitter::push(&self.emit, &self.hooks, function, descriptor, slots.count.into());
        self.place_hooks(&plan, &frame);
        for instruction in original {
            frame.at_instruction(&self.emit, &self.hooks, instruction);
        }
        slots::store_all(&self.emit, &frame, function, &table, &slots);
        for Clearing { before, address, size } in clearings {
            self.emit.before_without_line(before);
            self.hooks.call(&self.emit, Hook::Clear, &[address, self.emit.word(size)]);
        }
        self.report_orders(&orders);
        slots::remove_lifetime_markers(function);
        strip_claims(function);
    }

    fn report_orders(&self, orders: &[Order]) {
        for &Order { instruction, address, other } in orders {
            self.emit.before_without_line(instruction);
            let pointer = |a: Value| if a.ty().is_pointer() { a } else { self.emit.int_to_pointer(a) };
            let other = other.map_or_else(|| self.emit.int_to_pointer(self.emit.word(HASHED)), pointer);
            self.hooks.call(&self.emit, Hook::Order, &[pointer(address), other]);
        }
    }

    /// Records the function's code as it is, and decides what its frames will hold.
    fn digest(&mut self, function: Value, index: FunctionIndex, plan: &Plan, table: &LocalTable) -> Slots {
        let liveness = Liveness::of(function, table);
        let live = liveness.at(&plan.points);
        let slots = Slots::assign(self.emit.module, table, &liveness, &live);
        let facts = FunctionFacts { index, table, slots: &slots, sites: &plan.point_sites, live: &live };
        self.digest.add(function, &facts, &mut self.sites);
        self.sites.function_record(index).slots = slots.count;
        slots
    }

    fn place_hooks(&mut self, plan: &Plan, frame: &FrameEmitter) {
        for &(call, site) in &plan.calls {
            call.drop_tail();
            self.emit.before(call);
            frame.set_site(&self.emit, self.tables.site(&self.emit, site));
            if call.called_function().is_none_or(|f| f.is_declaration()) {
                self.hooks.leave(&self.emit);
            }
        }
        for (instruction, access, site) in &plan.accesses {
            self.around(*instruction, access, *site);
        }
        for &(latch, site) in &plan.latches {
            self.emit.before(latch.terminator());
            self.hooks.call(&self.emit, Hook::LoopBack, &[self.tables.site(&self.emit, site)]);
        }
    }

    fn around(&mut self, instruction: Value, access: &Access, site: SiteIndex) {
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

    fn finish(self) {
        authors::define(&self.emit, &self.hooks);
        for function in self.emit.module.functions() {
            if function.is_declaration() && !function.is_intrinsic() {
                UNTRUE_WITH_HOOKS.iter().for_each(|a| attributes::remove(function, a));
            }
        }
        linked_in::redirect(&self.emit);
        self.tables.finish(&self.emit, &self.hooks, &self.sites, &self.digest.finish());
    }
}

fn instructions(function: Value) -> impl Iterator<Item = Value> {
    function.blocks().into_iter().flat_map(|b| b.instructions())
}

fn is_opaque_assembly(instruction: Value) -> bool {
    instruction.is_call() && instruction.callee().kind() == Kind::InlineAsm && !assembly::is_understood(instruction)
}

/// What the optimiser found out about the function and its callees was true without hooks.
fn strip_claims(function: Value) {
    UNTRUE_WITH_HOOKS.iter().for_each(|a| attributes::remove(function, a));
    for call in instructions(function).filter(|i| i.is_real_call()) {
        UNTRUE_WITH_HOOKS.iter().for_each(|a| attributes::remove_from_call(call, a));
    }
}
