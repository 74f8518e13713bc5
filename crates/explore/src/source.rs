//! Source sets and sleep sets: the default.
//!
//! Abdulla, Aronis, Jonsson and Sagonas, "Optimal Dynamic Partial Order Reduction" (POPL 2014), Algorithm 1. A race is
//! reversed by any of its *initials*, so nothing is added where one of them is explored already, or sleeps, which means
//! that what begins with it has been explored. Deviations:
//!
//! - The initials are computed over the causal past of the later operation, not over everything that does not depend
//!   on the earlier event: fewer threads are initials, so that sometimes more is added.
//! - Pending operations of blocked threads are looked at too (see `reduction`).
//!
//! Not covered: it may run into sleep-blocked executions, which the optimal algorithm of the same paper avoids.

use crate::history::Race;
use crate::reduction::{Reduction, Strategy};
use crate::tree::Node;

/// See the module.
pub type SourceSets = Reduction<Initials>;

#[derive(Default)]
pub struct Initials;

impl Strategy for Initials {
    const SLEEP_SETS: bool = true;

    fn reverse(&mut self, node: &mut Node, race: &Race) {
        if node.backtrack.intersects(&race.initials) || node.sleep.intersects(&race.initials) {
            return;
        }
        // An initial can be disabled there all the same if it spins: the runtime blocks it until something that it reads
        // is written, and which events would do is not known here. So whoever can run is given the chance.
        let own = race.initials.contains(race.thread);
        let thread = if own { race.thread } else { race.first };
        if node.enabled.contains(thread) {
            node.backtrack.insert(thread);
        } else {
            node.backtrack.union_with(&node.enabled);
        }
    }
}
