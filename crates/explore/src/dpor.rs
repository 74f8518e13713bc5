//! Dynamic partial order reduction with backtrack sets, without sleep sets.
//!
//! Flanagan and Godefroid (POPL 2005), as in Fig. 5 of Yang, Chen, Gopalakrishnan and Wang, "Automatic
//! Discovery of Transition Symmetry in Multithreaded Programs using Dynamic Analysis", without the symmetry: the baseline of
//! that paper's tables. Deviations:
//!
//! - An operation's races are looked for where it is executed (and at the end, if it is not), not in every state where it is
//!   pending: the races in between are found in the executions that reverse the later ones.
//! - *All* events that the operation races with are taken, not only the last: of several readers, a write races with each.
//!
//! Not covered: it runs many equivalent executions, which is what sleep sets and source sets are for.

use crate::history::Race;
use crate::reduction::{Reduction, Strategy};
use crate::tree::Node;

/// See the module.
pub type Dpor = Reduction<BacktrackSets>;

#[derive(Default)]
pub struct BacktrackSets;

impl Strategy for BacktrackSets {
    const SLEEP_SETS: bool = false;

    /// The racing thread itself if it is enabled there, else one that has to go before it, else all.
    fn reverse(&mut self, node: &mut Node, race: &Race) {
        let wanted = [race.thread, race.first].into_iter().find(|t| node.enabled.contains(*t));
        match wanted {
            Some(thread) => {
                node.backtrack.insert(thread);
            }
            None => node.backtrack.union_with(&node.enabled),
        }
    }
}
