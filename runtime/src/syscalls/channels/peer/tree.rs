//! What was said to others outside, and what they said: a tree, whose paths are conversations.
//!
//! It is persistent: later executions find in it what earlier ones have asked for.

use super::super::super::kernel::same;
use crate::cell::Global;
use crate::end::unsupported;
use crate::sys::pages;

/// A node by its number.
pub type Node = u32;

pub const ROOT: Node = 0;
const MOST_NODES: usize = 1 << 16;
const MOST_BYTES: usize = 256 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum What {
    /// What zeroed memory says.
    #[allow(dead_code)]
    Root = 0,
    /// To the address that is its text.
    Connect,
    Said,
    Finished,
    /// The peer has sent something.
    Heard,
    /// The peer will send nothing more.
    Ended,
}

#[repr(C)]
pub struct Record {
    pub what: What,
    /// A connection: whether it was tried.
    pub is_answered: bool,
    /// Something that was said: whether the peer got it.
    pub is_delivered: bool,
    pub parent: Node,
    first_child: Node,
    next: Node,
    /// What the peer answers to the conversation up to here, or 0.
    answer: Node,
    /// For how long nothing was heard, in milliseconds.
    silence: u32,
    pub error: i32,
    text: usize,
    len: usize,
}

struct Tree {
    records: usize,
    count: usize,
    bytes: usize,
    used: usize,
}

static TREE: Global<Tree> = Global::new(Tree { records: 0, count: 0, bytes: 0, used: 0 });

fn tree() -> &'static mut Tree {
    let tree = TREE.get();
    if tree.records == 0 {
        tree.records = pages::map(MOST_NODES * size_of::<Record>()) as usize;
        tree.bytes = pages::map(MOST_BYTES) as usize;
        tree.count = 1;
        if tree.records == 0 || tree.bytes == 0 {
            out_of_memory();
        }
    }
    tree
}

fn out_of_memory() -> ! {
    unsupported(format_args!(
        "the program exchanges more than {} MiB with other processes, which is all that symdpor has room for",
        MOST_BYTES >> 20
    ))
}

#[allow(clippy::mut_from_ref)]
pub fn get(node: Node) -> &'static mut Record {
    // SAFETY: zeroed memory for that many records, for which zeros are valid; references are short.
    unsafe { &mut *((tree().records + node as usize % MOST_NODES * size_of::<Record>()) as *mut Record) }
}

pub fn text(node: Node) -> &'static [u8] {
    let record = get(node);
    // SAFETY: bytes of the tree's own, which never change.
    unsafe { core::slice::from_raw_parts(record.text as *const u8, record.len) }
}

/// Room for a text behind those that are kept; [`child`] keeps it if it is there.
pub fn scratch(len: usize) -> &'static mut [u8] {
    let tree = tree();
    if tree.used + len > MOST_BYTES {
        out_of_memory();
    }
    // SAFETY: within the mapped memory, behind what is in use.
    unsafe { core::slice::from_raw_parts_mut((tree.bytes + tree.used) as *mut u8, len) }
}

fn keep(bytes: &[u8]) -> usize {
    let room = scratch(bytes.len());
    if room.as_ptr() != bytes.as_ptr() {
        room.copy_from_slice(bytes);
    }
    tree().used += bytes.len();
    room.as_ptr() as usize
}

/// The child that says this.
pub fn find(parent: Node, what: What, bytes: &[u8]) -> Option<Node> {
    let mut next = get(parent).first_child;
    while next != 0 && !(get(next).what == what && same(text(next), bytes)) {
        next = get(next).next;
    }
    Some(next).filter(|&node| node != 0)
}

/// The same, made if there is none.
pub fn child(parent: Node, what: What, bytes: &[u8]) -> Node {
    if let Some(node) = find(parent, what, bytes) {
        return node;
    }
    let node = make(parent, what, bytes);
    get(node).next = get(parent).first_child;
    get(parent).first_child = node;
    node
}

fn make(parent: Node, what: What, bytes: &[u8]) -> Node {
    let number = tree().count;
    if number == MOST_NODES {
        out_of_memory();
    }
    tree().count += 1;
    let (text, len) = (keep(bytes), bytes.len());
    let record = get(number as Node);
    (record.what, record.parent, record.text, record.len) = (what, parent, text, len);
    number as Node
}

/// The peer's answer, unless it is not known. One that has been waited for that long in vain is none.
pub fn answer(node: Node, patience: u32) -> Option<Node> {
    let record = get(node);
    match record.answer {
        0 if record.silence >= patience => None,
        answer => Some(answer).filter(|&a| a != 0),
    }
}

/// Whether it is known that there is none.
pub fn is_known_silence(node: Node, patience: u32) -> bool {
    get(node).answer == 0 && get(node).silence >= patience
}

pub fn is_silent(node: Node) -> bool {
    is_known_silence(node, 1)
}

pub fn answered(node: Node, what: What, bytes: &[u8], error: i32) -> Node {
    let answer = make(node, what, bytes);
    get(answer).error = error;
    get(node).answer = answer;
    answer
}

pub fn was_silent(node: Node, patience: u32) {
    get(node).silence = patience;
}

/// The next node on the way from one node down to another, which lies below it.
pub fn next_on_way(from: Node, to: Node) -> Option<Node> {
    let mut node = to;
    while node != ROOT && get(node).parent != from {
        node = get(node).parent;
    }
    (node != ROOT && to != from).then_some(node)
}

/// The connection that a conversation began with.
pub fn beginning(mut node: Node) -> Node {
    while get(node).parent != ROOT {
        node = get(node).parent;
    }
    node
}
