//! What a descriptor is ready for, as `poll` has it.

use super::queue::{self, Set};
use super::socket::{State, Type};
use super::{Kind, epoll, get, message, of, touched};

pub const IN: u32 = 0x1;
pub const OUT: u32 = 0x4;
pub const ERR: u32 = 0x8;
pub const HUP: u32 = 0x10;
const RDNORM: u32 = 0x40;
const WRNORM: u32 = 0x100;
const RDHUP: u32 = 0x2000;
/// What is reported whether it was asked for or not.
pub const ALWAYS: u32 = ERR | HUP;
const PIPE_BUF: usize = 4096;

/// A descriptor that is looked at.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Entry {
    pub fd: i32,
    pub events: i16,
    pub found: i16,
}

fn when(is: bool, events: u32) -> u32 {
    if is { events } else { 0 }
}

/// What a description is ready for now.
pub fn events(description: usize, asked: u32) -> u32 {
    let found = match get(description).kind {
        Kind::PipeReader => pipe_reader(description),
        Kind::PipeWriter => pipe_writer(description),
        Kind::Event => {
            let count = get(description).inbox().map_or(0, |q| q.count);
            when(count < u64::MAX - 1, OUT) | when(count > 0, IN)
        }
        Kind::Timer => when(get(description).timer.has_gone_off(), IN),
        Kind::Epoll => when(epoll::is_ready(description), IN),
        Kind::Socket => socket(description, asked),
        Kind::Free => 0,
    };
    found | when(found & IN != 0, RDNORM) | when(found & OUT != 0, WRNORM)
}

fn pipe_reader(description: usize) -> u32 {
    let Some(queue) = get(description).inbox() else { return 0 };
    when(!queue.is_empty(), IN) | when(queue.writers == 0, HUP)
}

fn pipe_writer(description: usize) -> u32 {
    let Some(queue) = get(description).outbox() else { return 0 };
    when(queue.space() >= PIPE_BUF, OUT) | when(queue.readers == 0, ERR)
}

/// Only who asks for something to read has to wait for what comes from outside.
fn socket(description: usize, asked: u32) -> u32 {
    let d = get(description);
    let error = when(d.socket.error != 0, ERR);
    let looks = asked & (IN | RDNORM | RDHUP) != 0;
    let readable = when(looks && message::is_readable(description, asked & OUT == 0), IN);
    error
        | match (d.socket.state, d.socket.kind) {
            (State::Listening, _) => when(d.inbox().is_some_and(|q| !q.is_empty()), IN),
            (_, Type::Datagram) => readable | OUT,
            (State::Connected, _) => {
                let ended = d.socket.is_shut_for_reading || d.inbox().is_none_or(|q| q.writers == 0);
                let gone = d.socket.is_shut_for_writing || d.outbox().is_none_or(|q| q.readers == 0);
                let space = gone || d.outbox().is_some_and(|q| q.space() > q.capacity / 3);
                readable | when(space, OUT) | when(ended, RDHUP) | when(ended && gone, HUP)
            }
            _ => OUT | HUP,
        }
}

/// What the description behind a descriptor is ready for, of what was asked.
pub fn look(fd: usize, asked: u32) -> u32 {
    of(fd).map_or(0, |description| events(description, asked) & (asked | ALWAYS))
}

/// The running thread has seen that it is ready: what made it so happened before.
pub fn seen(fd: usize) {
    if let Some(description) = of(fd) {
        queue::acquire(get(description).inbox);
    }
}

/// The queues that decide about it, and how long it takes until a timer behind it goes off.
pub fn objects(fd: usize) -> (Set, Option<u64>) {
    of(fd).map_or((Set::default(), None), of_description)
}

pub fn of_description(description: usize) -> (Set, Option<u64>) {
    match get(description).kind {
        Kind::Epoll => epoll::objects(description),
        Kind::Timer => (touched(description), get(description).timer.left()),
        _ => (touched(description), None),
    }
}
