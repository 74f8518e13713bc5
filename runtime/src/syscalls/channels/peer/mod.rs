//! Connections to other processes: a server that the program does not contain.
//!
//! What others send is input, and input is the same in every execution. So the peer is taken for a function: what it sends
//! next depends on its address and on what was said on this connection so far. It is asked once for each beginning of a
//! conversation ([`tree`]), over a real connection ([`line`]), and the answer is kept; executions that say the same get the same, without
//! the network. What one connection does to another, by way of the server, is not seen.
//!
//! An answer is there as soon as it is looked for: the runtime waits for it, the program's threads do not. If the peer says nothing for
//! [`LONG`] it never will; if nobody else can go on then, the run ends with its address.

mod line;
mod tree;

use super::address::Address;
use super::queue;
use super::socket::{CAPACITY, State, Type};
use super::{Kind, channels, get};
use crate::snapshot::is_taken;
use tree::{Node, What};

/// How long is waited for an answer, in milliseconds: to what was sent, or by a thread that can do nothing else; and else.
const LONG: u32 = 10_000;
const SHORT: u32 = 500;

/// Connects a new stream to somebody outside. The error is what the kernel said when it was tried first.
pub fn connect(description: usize, to: &Address) -> Result<(), isize> {
    let node = tree::child(tree::ROOT, What::Connect, to.bytes());
    if !tree::get(node).is_answered {
        let error = line::open(description, node).err().unwrap_or(0);
        let node = tree::get(node);
        (node.is_answered, node.error) = (true, error as i32);
        crate::channel::header().peers += (error == 0) as u32;
    }
    match tree::get(node).error {
        0 => {}
        error => return Err(error as isize),
    }
    let inbox = super::socket::make_inbox(description, 1)?;
    let outbox = queue::make(CAPACITY, false)?;
    if let Some(queue) = queue::get(outbox) {
        // Whatever is done with the connection is one object.
        queue.number = queue::get(inbox).map_or(0, |q| q.number);
        (queue.readers, queue.writers) = (1, 1);
    }
    let d = get(description);
    d.outbox = outbox;
    (d.socket.state, d.socket.peer, d.socket.conversation) = (State::Connected, *to, node);
    Ok(())
}

/// The node that the conversation is at, if it is one with somebody outside.
fn conversation(description: usize) -> Option<Node> {
    let d = get(description);
    (d.kind == Kind::Socket && d.socket.conversation != 0).then_some(d.socket.conversation)
}

/// The program has written to the outbox: it is said.
pub fn said(description: usize) {
    let Some(node) = conversation(description) else { return };
    let Some(outbox) = get(description).outbox() else { return };
    let len = outbox.len();
    let text = tree::scratch(len);
    outbox.peek(0, text);
    outbox.skip(len);
    get(description).socket.conversation = tree::child(node, What::Said, text);
}

/// The program will say nothing more.
pub fn finished(description: usize) {
    if let Some(node) = conversation(description) {
        get(description).socket.conversation = tree::child(node, What::Finished, b"");
    }
}

/// The program looks whether there is something to read: what the peer has sent is put into the inbox. `waits`: it can do nothing else.
pub fn listen(description: usize, waits: bool) {
    let Some(node) = conversation(description) else { return };
    let Some(inbox) = get(description).inbox().filter(|q| q.is_empty() && q.writers > 0) else { return };
    let has_asked = matches!(tree::get(node).what, What::Said | What::Finished);
    let patience = if waits || has_asked { LONG } else { SHORT };
    let Some(answer) = tree::answer(node, patience).or_else(|| line::ask(description, node, patience)) else { return };
    match tree::get(answer).what {
        What::Ended => {
            inbox.writers = 0;
            get(description).socket.error = tree::get(answer).error;
        }
        _ => inbox.push(tree::text(answer)),
    }
    inbox.version += 1;
    get(description).socket.conversation = answer;
}

/// The last descriptor of a socket is closed. What was said and needed no answer is sent, for the peer's sake.
pub fn closing(description: usize) {
    let Some(node) = conversation(description) else { return };
    line::deliver(description, node);
    line::close(description);
    let d = get(description);
    d.socket.conversation = 0;
    if let Some(inbox) = d.inbox() {
        inbox.writers = 0;
    }
    if let Some(outbox) = d.outbox() {
        outbox.readers = 0;
    }
}

/// Whether it is known that somebody outside takes connections at an address.
pub fn is_known(to: &Address) -> bool {
    tree::find(tree::ROOT, What::Connect, to.bytes()).is_some_and(|node| tree::get(node).error == 0)
}

/// Whether a socket can be connected to somebody outside.
pub fn is_possible(description: usize) -> bool {
    get(description).socket.kind == Type::Stream
}

/// Somebody outside who was asked, and has sent nothing.
pub fn silent() -> Option<Address> {
    let all = channels().descriptions.iter().filter(|d| d.kind == Kind::Socket && d.socket.conversation != 0);
    let mut silent = all.filter(|d| tree::is_silent(d.socket.conversation) && d.inbox().is_some_and(|q| q.is_empty()));
    silent.next().map(|d| d.socket.peer)
}

/// The execution has ended: real connections are of no use any more.
pub fn undo() {
    if is_taken() {
        line::close_all();
    }
}
