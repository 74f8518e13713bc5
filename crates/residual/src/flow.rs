//! Control flow: which blocks a point can still reach, in an order that depends on the code alone.

use crate::function::Function;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::Bfs;

/// The part of a function that a point can reach.
#[derive(Default)]
pub struct Reach {
    /// Blocks that are reached at their beginning, nearest first. The point's own is among them if a loop leads back.
    pub blocks: Vec<u32>,
    /// 1 + position in `blocks`, or 0. Label 0 is the rest of the block that the point is in.
    pub labels: Vec<u32>,
}

pub struct Flow {
    graph: DiGraph<u32, ()>,
}

impl Flow {
    pub fn of(function: &Function) -> Flow {
        let mut graph = DiGraph::new();
        let blocks = 0..function.blocks.len() as u32;
        blocks.clone().for_each(|block| _ = graph.add_node(block));
        for block in blocks {
            connect(&mut graph, NodeIndex::new(block as usize), function, block);
        }
        Flow { graph }
    }

    /// Breadth first from the end of `start`, successors in the order of the branch's operands.
    pub fn reach(&mut self, function: &Function, start: u32) -> Reach {
        let rest = self.graph.add_node(start);
        connect(&mut self.graph, rest, function, start);
        let mut reach = Reach { blocks: Vec::new(), labels: vec![0; function.blocks.len()] };
        let mut order = Bfs::new(&self.graph, rest);
        while let Some(node) = order.next(&self.graph) {
            if node != rest {
                reach.blocks.push(self.graph[node]);
                reach.labels[node.index()] = reach.blocks.len() as u32;
            }
        }
        self.graph.remove_node(rest);
        reach
    }
}

/// Petgraph gives neighbours newest first, so the first successor is added last.
fn connect(graph: &mut DiGraph<u32, ()>, from: NodeIndex, function: &Function, block: u32) {
    for next in function.successors(block).rev() {
        graph.add_edge(from, NodeIndex::new(next as usize), ());
    }
}
