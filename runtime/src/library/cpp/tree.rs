//! The red-black trees of `std::map` and `std::set`.

use super::super::text::word;
use super::super::{around, before, read, write};
use crate::cell::Global;

const PARENT: usize = 8;
const LEFT: usize = 16;
const RIGHT: usize = 24;
const NODE: usize = 32;
/// Trees are not deeper, unless they are damaged.
const DEEPEST: usize = 128;

fn link(node: usize, which: usize) -> usize {
    read(node + which, 8);
    word(node + which)
}

/// The reads of going to the neighbour on a side.
fn step(node: usize, towards: usize, away: usize) {
    let mut node = node;
    let below = link(node, towards);
    if below != 0 {
        node = below;
        for _ in 0..DEEPEST {
            node = match link(node, away) {
                0 => return,
                next => next,
            };
        }
        return;
    }
    for _ in 0..DEEPEST {
        let above = link(node, PARENT);
        if link(above, towards) != node {
            return;
        }
        node = above;
    }
}

before! {
    _ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base: |a| step(a.word(0), RIGHT, LEFT);
    _ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base: |a| step(a.word(0), RIGHT, LEFT);
    _ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base: |a| step(a.word(0), LEFT, RIGHT);
    _ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base: |a| step(a.word(0), LEFT, RIGHT);
}

/// Nodes that a change may reach, as they were before it: those on the way to the root, and two levels below them.
struct Before {
    nodes: [(usize, [usize; 4]); Before::MOST],
    count: usize,
}

impl Before {
    const MOST: usize = 1024;

    fn add(&mut self, node: usize, levels: usize) {
        if node == 0 || self.count == Before::MOST || self.nodes[..self.count].iter().any(|n| n.0 == node) {
            return;
        }
        self.nodes[self.count] = (node, [0, PARENT, LEFT, RIGHT].map(|field| word(node + field)));
        self.count += 1;
        if levels > 0 {
            self.add(word(node + LEFT), levels - 1);
            self.add(word(node + RIGHT), levels - 1);
        }
    }

    fn add_path(&mut self, from: usize, header: usize) {
        let mut node = from;
        for _ in 0..DEEPEST {
            if node == 0 || node == header {
                break;
            }
            self.add(node, 2);
            node = word(node + PARENT);
        }
        self.add(header, 0);
    }

    /// Notes the words that have changed.
    fn note(&self) {
        for &(node, words) in &self.nodes[..self.count] {
            for (field, old) in [0, PARENT, LEFT, RIGHT].into_iter().zip(words) {
                if word(node + field) != old {
                    write(node + field, 8);
                }
            }
        }
    }
}

static BEFORE: Global<Before> = Global::new(Before { nodes: [(0, [0; 4]); Before::MOST], count: 0 });

around! {
    // (left, node, parent, header)
    fn _ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_(left, node, parent, header) via real {
        write(node, NODE);
        write(parent + if left & 0xff != 0 { LEFT } else { RIGHT }, 8);
        let before = BEFORE.get();
        before.count = 0;
        before.add_path(parent, header);
        let result = real(left, node, parent, header);
        BEFORE.get().note();
        result
    }

    // (node, header): the node that may be deleted now
    fn _ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_(node, header) via real {
        read(node, NODE);
        let before = BEFORE.get();
        before.count = 0;
        let mut next = word(node + RIGHT);
        for _ in 0..DEEPEST {
            if next == 0 {
                break;
            }
            before.add(next, 2);
            next = word(next + LEFT);
        }
        before.add_path(node, header);
        let result = real(node, header);
        BEFORE.get().note();
        result
    }
}
