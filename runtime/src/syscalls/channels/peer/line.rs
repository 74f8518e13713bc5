//! Real connections, over which conversations are led for the first time. One is made when an answer is needed that is not known, what
//! was said before is said again, and it is closed when the program closes its own, or the execution ends.

use super::super::super::descriptors::{close_hidden, hide_duplicate};
use super::super::super::errno::{EAGAIN, EINPROGRESS, EINTR, ENFILE, ETIMEDOUT};
use super::super::super::kernel::real;
use super::super::super::names::nr;
use super::super::socket::CAPACITY;
use super::super::{MOST_DESCRIPTIONS, get};
use super::LONG;
use super::tree::{self, Node, What};
use crate::cell::Global;
use crate::end::unsupported;

/// When nothing has come for so long, in milliseconds, the answer is taken for complete.
const PAUSE: u32 = 100;
const IN: u16 = 1;
const OUT: u16 = 4;

/// A connection: its descriptor, and how far the conversation on it is.
#[derive(Clone, Copy)]
struct Line {
    fd: usize,
    node: Node,
}

/// By description.
static LINES: Global<[Option<Line>; MOST_DESCRIPTIONS]> = Global::new([None; MOST_DESCRIPTIONS]);

fn line(description: usize) -> &'static mut Option<Line> {
    &mut LINES.get()[description % MOST_DESCRIPTIONS]
}

pub fn close(description: usize) {
    if let Some(line) = line(description).take() {
        close_hidden(line.fd);
    }
}

pub fn close_all() {
    (0..MOST_DESCRIPTIONS).for_each(close);
}

fn wait(fd: usize, events: u16, milliseconds: u32) -> bool {
    let mut entry = (fd as u32 as u64) | (events as u64) << 32;
    loop {
        match real(nr::poll, [&raw mut entry as usize, 1, milliseconds as usize, 0, 0, 0]) {
            EINTR => {}
            ready => return ready > 0,
        }
    }
}

/// Connects to the address of a node.
pub fn open(description: usize, node: Node) -> Result<(), isize> {
    const STREAM: usize = 1;
    const NONBLOCK: usize = 0o4000;
    const CLOEXEC: usize = 0o2_000_000;
    close(description);
    let address = tree::text(node);
    let family = get(description).socket.family as usize;
    let made = real(nr::socket, [family, STREAM | NONBLOCK | CLOEXEC, 0, 0, 0, 0]);
    let made = usize::try_from(made).map_err(|_| made)?;
    let hidden = hide_duplicate(made);
    real(nr::close, [made, 0, 0, 0, 0, 0]);
    let fd = hidden.ok_or(ENFILE)?;
    let connected = match real(nr::connect, [fd, address.as_ptr() as usize, address.len(), 0, 0, 0]) {
        EINPROGRESS | EAGAIN if wait(fd, OUT, LONG) => error_of(fd),
        EINPROGRESS | EAGAIN => ETIMEDOUT,
        result => result,
    };
    if connected < 0 {
        close_hidden(fd);
        return Err(connected);
    }
    *line(description) = Some(Line { fd, node });
    Ok(())
}

/// `SO_ERROR`.
fn error_of(fd: usize) -> isize {
    let (mut error, mut len) = (0i32, 4u32);
    real(nr::getsockopt, [fd, 1, 4, &raw mut error as usize, &raw mut len as usize, 0]);
    -(error as isize)
}

/// A line that is as far as the node. None if the peer has gone meanwhile.
fn up_to(description: usize, node: Node) -> Option<usize> {
    let is_on_way = |l: &Line| l.node == node || tree::next_on_way(l.node, node).is_some();
    if !line(description).as_ref().is_some_and(is_on_way) && open(description, tree::beginning(node)).is_err() {
        unsupported(format_args!(
            "{} takes no connection any more; what comes from outside has to be the same each time",
            get(description).socket.peer
        ));
    }
    let Line { fd, node: mut at } = (*line(description))?;
    while let Some(next) = tree::next_on_way(at, node) {
        repeat(description, fd, next);
        at = next;
        *line(description) = Some(Line { fd, node: at });
    }
    Some(fd)
}

/// One step of a conversation on a real connection.
fn repeat(description: usize, fd: usize, node: Node) {
    match tree::get(node).what {
        What::Said => {
            send(fd, tree::text(node));
            tree::get(node).is_delivered = true;
        }
        What::Finished => {
            real(nr::shutdown, [fd, 1, 0, 0, 0, 0]);
        }
        What::Heard if hear(fd, tree::scratch(tree::text(node).len()), LONG).0 != tree::text(node).len() => {
            unsupported(format_args!(
                "{} does not answer as it did before to the same; what comes from outside has to be the same each time",
                get(description).socket.peer
            ));
        }
        _ => {}
    }
}

fn send(fd: usize, mut bytes: &[u8]) {
    const NOSIGNAL: usize = 0x4000;
    while !bytes.is_empty() {
        match real(nr::sendto, [fd, bytes.as_ptr() as usize, bytes.len(), NOSIGNAL, 0, 0]) {
            EINTR => {}
            EAGAIN if wait(fd, OUT, LONG) => {}
            // The peer has gone: that is what will be heard.
            sent if sent < 0 => return,
            sent => bytes = &bytes[sent as usize..],
        }
    }
}

/// Fills a buffer with what comes, until it is full, nothing comes, or the end. How much it was, and what ended it: 0 for the end, an
/// error, or nothing.
fn hear(fd: usize, buffer: &mut [u8], patience: u32) -> (usize, Option<isize>) {
    let mut done = 0;
    while done < buffer.len() {
        if !wait(fd, IN, if done == 0 { patience } else { PAUSE }) {
            return (done, None);
        }
        let rest = &mut buffer[done..];
        match real(nr::read, [fd, rest.as_mut_ptr() as usize, rest.len(), 0, 0, 0]) {
            EINTR | EAGAIN => {}
            got if got <= 0 => return (done, Some(got)),
            got => done += got as usize,
        }
    }
    (done, None)
}

/// Asks the peer what it answers to the conversation so far.
pub fn ask(description: usize, node: Node, patience: u32) -> Option<Node> {
    if tree::is_known_silence(node, patience) {
        return None;
    }
    let fd = up_to(description, node)?;
    let buffer = tree::scratch(CAPACITY);
    let (len, end) = hear(fd, buffer, patience);
    let mut at = node;
    if len > 0 {
        at = tree::answered(at, What::Heard, &buffer[..len], 0);
    }
    if let Some(error) = end {
        let ended = tree::answered(at, What::Ended, b"", error as i32);
        at = if len > 0 { at } else { ended };
    }
    *line(description) = Some(Line { fd, node: at });
    if at == node {
        tree::was_silent(node, patience);
        return None;
    }
    Some(at)
}

/// Sends what the peer has not got yet.
pub fn deliver(description: usize, node: Node) {
    let mut at = node;
    while at != tree::ROOT {
        let record = tree::get(at);
        if record.what == What::Said && !record.is_delivered {
            up_to(description, node);
            return;
        }
        at = record.parent;
    }
}
