//! What will be done to one function: decided before anything in it is changed.

use std::collections::{HashMap, HashSet};

use symdpor_abi::module::{ATOMIC_IN_LOOP, SiteKind};

use crate::access::{self, Access};
use crate::call_names;
use crate::escape::Locals;
use crate::ir::{Block, Module, Value};
use crate::locations::Locations;
use crate::loops::{self, Callees};
use crate::sites::{Place, SiteIndex, Sites};

#[derive(Default)]
pub struct Plan {
    /// Accesses to report, in order.
    pub accesses: Vec<(Value, Access, SiteIndex)>,
    /// Calls of other code, except those that replace this function's frame (`musttail`).
    pub calls: Vec<(Value, SiteIndex)>,
    /// Blocks whose end closes a cycle without any hook.
    pub latches: Vec<(Block, SiteIndex)>,
    /// Suspension points in order, with the sites by which a frame tells that it is there.
    pub points: Vec<Value>,
    pub point_sites: HashMap<Value, Vec<SiteIndex>>,
}

impl Plan {
    pub fn make(
        module: Module,
        sites: &mut Sites,
        callees: &mut Callees,
        function: Value,
        locations: &Locations,
    ) -> Plan {
        let locals = Locals::of(function);
        let place = |instruction| Place { function, location: locations.get(instruction) };
        let mut plan = Plan::default();
        let mut stops = HashSet::new();
        for instruction in function.blocks().into_iter().flat_map(|b| b.instructions()) {
            for mut found in access::of_instruction(module, instruction, &locals) {
                if let Access::Atomic(atomic) = &mut found
                    && callees.is_in_cycle(instruction.block())
                {
                    atomic.shape |= ATOMIC_IN_LOOP;
                }
                let site = sites.of_access(place(instruction), &found);
                plan.add_access(instruction, found, site);
                stops.insert(instruction.block());
            }
            if instruction.is_real_call() {
                stops.insert(instruction.block());
                if !instruction.is_musttail() {
                    let site = sites.of_instruction(
                        place(instruction),
                        kind_of_call(instruction),
                        call_names::of_call(module, instruction),
                    );
                    plan.calls.push((instruction, site));
                    plan.add_point(instruction, site);
                }
            }
        }
        for latch in loops::silent_latches(function, &stops) {
            let site = sites.of_instruction(place(latch.terminator()), SiteKind::Loop, None);
            plan.latches.push((latch, site));
        }
        plan
    }

    pub fn is_empty(&self) -> bool {
        self.accesses.is_empty() && self.calls.is_empty() && self.latches.is_empty()
    }

    fn add_access(&mut self, instruction: Value, access: Access, site: SiteIndex) {
        if matches!(access, Access::Atomic(_) | Access::Fence { .. }) {
            self.add_point(instruction, site);
        }
        self.accesses.push((instruction, access, site));
    }

    fn add_point(&mut self, instruction: Value, site: SiteIndex) {
        let sites = self.point_sites.entry(instruction).or_default();
        if sites.is_empty() {
            self.points.push(instruction);
        }
        sites.push(site);
    }
}

/// Who is the last to come to a barrier is often not asked.
fn kind_of_call(call: Value) -> SiteKind {
    let barrier = call.called_function().is_some_and(|f| f.name() == "pthread_barrier_wait");
    if barrier && call.is_unused() { SiteKind::Meet } else { SiteKind::Call }
}
