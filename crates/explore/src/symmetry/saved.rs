//! What symmetry knows, as bytes.
//!
//! The orders of plain accesses are not written: they follow from the history and catch up with it. Nor are branches of nodes that
//! are no longer part of the current execution.

use super::left_out::Notes;
use super::past::Past;
use super::rule::Rule;
use super::summary::Summary;
use super::tables::Tables;
use super::{Analysis, Branches, Counters, Explored};
use std::rc::Rc;
use symdpor_trace::saved;
use symdpor_trace::saved::{Reader, Saved};

saved!(Counters { skipped, told_apart, past_differs, cut, asked, nanos });
saved!(Explored { thread, op, summary });
saved!(Branches { current, ways, explored, total, in_vain });

impl<const W: usize> Analysis<W> {
    /// `depth`: how many nodes the current execution has.
    pub fn save(&self, depth: usize, into: &mut Vec<u8>) {
        // Notes and spare memory are no knowledge.
        let Analysis { rule: _, past, nodes, carry, tables, notes: _, spare: _, counters } = self;
        past.save(into);
        tables.save(into);
        let nodes = &nodes[..nodes.len().min(depth)];
        nodes.len().save(into);
        nodes.iter().for_each(|n| n.save(into));
        carry.save(into);
        counters.save(into);
    }

    pub fn load(rule: Rule, from: &mut Reader<'_>) -> Option<Self> {
        let (past, tables): (Past<W>, Tables<W>) = <_>::load(from)?;
        let nodes: Vec<Branches> = Vec::load(from)?;
        let (carry, counters): (Rc<Summary>, Counters) = <_>::load(from)?;
        let sound = carry.fits(&tables) && nodes.iter().all(|n| n.fits(&tables));
        let (notes, spare) = (Notes::default(), Vec::new());
        Some(Analysis { rule, past, nodes, carry, tables, notes, spare, counters }).filter(|_| sound)
    }
}

impl Branches {
    fn fits<const W: usize>(&self, tables: &Tables<W>) -> bool {
        let Branches { current, ways, explored, total, in_vain } = self;
        let finished = ways.iter().map(|w| &w.1).chain(explored.iter().map(|e| &e.summary));
        let mut finished = finished;
        finished.all(|summary| summary.fits(tables))
            && [&**current, &**total, in_vain].iter().all(|summary| summary.fits(tables))
    }
}
