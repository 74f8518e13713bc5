//! Sockets: making, connecting, accepting, shutting down.
//!
//! A connection is made when the client connects: the server's end waits in the listening socket's queue until it is
//! accepted. Streams to others are kept too ([`peer`]). Datagrams to others are refused by name, except in the program's start, where such
//! a socket, or one to a path, becomes a real one.

use super::super::descriptors::{self, kind, number};
use super::super::errno::{
    EAFNOSUPPORT, EAGAIN, ECONNREFUSED, EFAULT, EINPROGRESS, EINVAL, EISCONN, ENOTCONN, ENOTSOCK, EOPNOTSUPP,
    EPROTONOSUPPORT,
};
use super::super::kernel::{real, store};
use super::super::names::nr;
use super::super::refusal::{Reason, refuse};
use super::super::{Args, turn};
use super::address::{AF_INET, AF_INET6, AF_UNIX, Address};
use super::queue::{self, Set};
use super::{
    DescriptorKind, Kind, O_CLOEXEC, O_NONBLOCK, Use, channels, describe, drop_use, found, get, give, give_kernels,
    lookup, message, names, peer,
};
use crate::snapshot::is_taken;
use symdpor_abi::op::OpKind;
use symdpor_abi::outside::What;

/// What the kernel keeps for a reader, by default.
pub const CAPACITY: usize = 208 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Type {
    Stream = 0,
    Datagram,
    /// Messages in order, over a connection.
    Packets,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    New = 0,
    Listening,
    Connected,
}

/// What there is of a description if it is a socket.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Socket {
    pub kind: Type,
    pub state: State,
    pub family: u16,
    pub is_bound: bool,
    /// The program has connected to it.
    pub was_reached: bool,
    /// `SO_REUSEADDR` or `SO_REUSEPORT`.
    pub may_share: bool,
    pub is_shut_for_reading: bool,
    pub is_shut_for_writing: bool,
    pub backlog: u16,
    /// `SO_ERROR`, negated as all errors here.
    pub error: i32,
    /// Time limits in nanoseconds, or 0.
    pub receive_limit: u64,
    pub send_limit: u64,
    pub address: Address,
    pub peer: Address,
    /// How far the conversation with somebody outside is, or 0: see [`super::peer`].
    pub conversation: u32,
}

impl Socket {
    pub fn is_internet(&self) -> bool {
        matches!(self.family, AF_INET | AF_INET6)
    }
}

/// Calls on descriptors that are the kernel's own sockets are real in the start, and refused afterwards.
pub fn real_or(call: usize, args: Args, emulated: impl FnOnce(usize) -> Result<isize, isize>) -> isize {
    let fd = number(args[0]);
    match kind(fd) {
        Err(error) => error,
        Ok(DescriptorKind::Channel) => match found(fd) {
            Ok(d) if get(d).kind == Kind::Socket => emulated(fd).unwrap_or_else(|error| error),
            _ => ENOTSOCK,
        },
        Ok(_) if !is_taken() => {
            for &output in match call {
                nr::recvfrom => &[1, 4][..],
                _ => &[1][..],
            } {
                super::super::kernel::writable(args[output], 128);
            }
            real(call, args)
        }
        Ok(DescriptorKind::Other) => descriptors::refuse_other(fd, super::super::names::name(call)),
        Ok(_) => ENOTSOCK,
    }
}

fn kind_of(family: usize, kind: usize, protocol: usize) -> Result<Type, isize> {
    const IPPROTO_TCP: usize = 6;
    const IPPROTO_UDP: usize = 17;
    match (family as u16, kind & 0xf, protocol) {
        (AF_UNIX, 1, 0) | (AF_INET | AF_INET6, 1, 0 | IPPROTO_TCP) => Ok(Type::Stream),
        (AF_UNIX, 2, 0) | (AF_INET | AF_INET6, 2, 0 | IPPROTO_UDP) => Ok(Type::Datagram),
        (AF_UNIX, 5, 0) => Ok(Type::Packets),
        (AF_UNIX | AF_INET | AF_INET6, _, _) => Err(EPROTONOSUPPORT),
        _ => Err(EAFNOSUPPORT),
    }
}

fn make(family: u16, kind: Type, flags: usize) -> Result<usize, isize> {
    let description = describe(Kind::Socket, flags & O_NONBLOCK != 0)?;
    let socket = &mut get(description).socket;
    (socket.family, socket.kind) = (family, kind);
    Ok(description)
}

/// A queue that the description reads from.
pub fn make_inbox(description: usize, writers: u16) -> Result<u16, isize> {
    let d = get(description);
    d.inbox = queue::make(CAPACITY, d.socket.kind != Type::Stream)?;
    if let Some(queue) = d.inbox() {
        (queue.readers, queue.writers) = (1, writers);
    }
    Ok(d.inbox)
}

pub fn socket(call: usize, args: Args) -> isize {
    let [family, kind, protocol, ..] = args;
    const AF_NETLINK: usize = 16;
    let kind = match kind_of(family, kind, protocol) {
        Ok(kind) => kind,
        // What the start does with other kinds is real. libc manages without a netlink socket.
        Err(_) if !is_taken() => return real(call, args),
        Err(error) if family == AF_NETLINK || (family as u16) < 3 || family as u16 == AF_INET6 => return error,
        Err(_) => refuse(call, args, Reason::Yet),
    };
    let made = make(family as u16, kind, args[1]).and_then(|description| {
        if kind == Type::Datagram {
            make_inbox(description, 0)?;
        }
        // In the start the kernel's descriptor is a real socket, in case it is to be connected to somebody outside.
        if is_taken() { give(description, args[1]) } else { give_kernels(description, real(call, args)) }
    });
    made.map_or_else(|error| error, |fd| fd as isize)
}

pub fn socketpair(call: usize, args: Args) -> isize {
    let [family, kind, protocol, output, ..] = args;
    if family as u16 != AF_UNIX {
        return EOPNOTSUPP;
    }
    let pair = || {
        let kind = kind_of(family, kind, protocol)?;
        let ends = [make(AF_UNIX, kind, args[1])?, make(AF_UNIX, kind, args[1])?];
        connect_ends(ends)?;
        let fds = [give(ends[0], args[1])? as i32, give(ends[1], args[1])? as i32];
        if store(output, fds) { Ok(0) } else { Err(EFAULT) }
    };
    let _ = call;
    pair().unwrap_or_else(|error| error)
}

/// Makes two sockets the ends of a connection.
fn connect_ends(ends: [usize; 2]) -> Result<(), isize> {
    for (this, that) in [(ends[0], ends[1]), (ends[1], ends[0])] {
        let inbox = make_inbox(this, 1)?;
        get(that).outbox = inbox;
        get(this).socket.state = State::Connected;
    }
    for (this, that) in [(ends[0], ends[1]), (ends[1], ends[0])] {
        let address = get(that).socket.address;
        let family = get(that).socket.family;
        get(this).socket.peer = if address.is_empty() { Address::empty(family) } else { address };
    }
    Ok(())
}

pub fn listen(call: usize, args: Args) -> isize {
    real_or(call, args, |fd| {
        let description = found(fd)?;
        if get(description).socket.kind == Type::Datagram {
            return Err(EOPNOTSUPP);
        }
        names::bind_if_needed(description);
        turn::take(address_set(description).op(OpKind::OutsideChange, What::Open, fd));
        let d = get(description);
        match d.socket.state {
            State::Connected => return Err(EINVAL),
            _ if !d.socket.is_bound => return Err(EINVAL),
            State::New => {
                let inbox = make_inbox(description, 0)?;
                if let Some(queue) = queue::get(inbox) {
                    queue.number = get(description).socket.address.number();
                }
            }
            State::Listening => {}
        }
        let d = get(description);
        d.socket.state = State::Listening;
        d.socket.backlog = (args[1] as i32).clamp(0, 4096) as u16;
        Ok(0)
    })
}

/// The queues at the address of a socket that others reach by it.
pub fn address_set(description: usize) -> Set {
    let socket = &get(description).socket;
    if socket.is_bound && socket.state != State::Connected { socket.address.set() } else { Set::default() }
}

/// How many connections wait to be accepted.
fn waiting(listener: usize) -> usize {
    get(listener).inbox().map_or(0, |q| q.len() / 2)
}

pub fn connect(call: usize, args: Args) -> isize {
    real_or(call, args, |fd| {
        let description = found(fd)?;
        let to = Address::load(args[1], args[2])?;
        if !is_taken() && is_outside(description, &to) && !(to.is_internet() && peer::is_possible(description)) {
            return Ok(become_real(fd, description, call, args));
        }
        if get(description).socket.kind == Type::Datagram {
            return connect_datagrams(fd, description, &to);
        }
        if to.family() != get(description).socket.family {
            return Err(EAFNOSUPPORT);
        }
        match get(description).socket.state {
            State::Connected => return Err(EISCONN),
            State::Listening => return Err(EINVAL),
            State::New => {}
        }
        connect_stream(fd, description, to)
    })
}

/// Whether nobody in this program is at the address, so far.
fn is_outside(description: usize, to: &Address) -> bool {
    lookup::bound(&get(description).socket, to).is_none()
}

/// The kernel's own descriptor is used from here on.
fn become_real(fd: usize, description: usize, call: usize, args: Args) -> isize {
    channels().of[fd] = 0;
    drop_use(description);
    descriptors::closed(fd);
    real(call, args)
}

fn connect_datagrams(fd: usize, description: usize, to: &Address) -> Result<isize, isize> {
    const AF_UNSPEC: u16 = 0;
    if to.family() == AF_UNSPEC {
        get(description).socket.peer = Address::default();
        return Ok(0);
    }
    lookup::check_inside(description, to, "connects to")?;
    names::bind_if_needed(description);
    turn::copies(to.words());
    turn::take(to.set().op(OpKind::OutsideLook, What::Connect, fd));
    get(description).socket.peer = *to;
    Ok(0)
}

fn connect_stream(fd: usize, description: usize, to: Address) -> Result<isize, isize> {
    let _use = Use::new(description);
    let nonblocking = get(description).nonblocking;
    let own = get(description).socket;
    // A listener that has enough of connections lets others wait.
    let has_room = move || lookup::listening(&own, &to).is_none_or(|l| waiting(l) <= get(l).socket.backlog as usize);
    let op = to.set().op(OpKind::OutsideChange, What::Connect, fd);
    turn::copies(to.words());
    if let Err(error) = message::wait(fd, description, op, nonblocking, &has_room) {
        return Err(if own.is_internet() && error == EAGAIN { EINPROGRESS } else { error });
    }
    let Some(listener) = lookup::listening(&own, &to) else {
        if !peer::is_possible(description) {
            lookup::check_inside(description, &to, "connects to")?;
        } else if peer::is_known(&to) || lookup::is_outside(&to, true)? {
            names::bind_if_needed(description);
            peer::connect(description, &to)?;
            return if nonblocking && own.is_internet() { Err(EINPROGRESS) } else { Ok(0) };
        }
        return Err(ECONNREFUSED);
    };
    names::bind_if_needed(description);
    let server = make(own.family, own.kind, 0)?;
    get(server).socket.address = to;
    connect_ends([description, server])?;
    // It is used by the queue, until it is accepted.
    get(server).uses = 1;
    if let Some(queue) = get(listener).inbox() {
        queue.push(&(server as u16).to_le_bytes());
        queue.version += 1;
    }
    get(listener).socket.was_reached = true;
    queue::release(get(listener).inbox);
    if nonblocking && own.is_internet() { Err(EINPROGRESS) } else { Ok(0) }
}

/// `accept` and `accept4`.
pub fn accept(call: usize, args: Args) -> isize {
    let flags = if call == nr::accept { 0 } else { args[3] };
    real_or(call, args, |fd| {
        super::no_such_flags(flags, O_NONBLOCK | O_CLOEXEC)?;
        let listener = found(fd)?;
        match get(listener).socket.state {
            State::Listening => {}
            _ if get(listener).socket.kind == Type::Datagram => return Err(EOPNOTSUPP),
            _ => return Err(EINVAL),
        }
        let _use = Use::new(listener);
        let is_ready = move || waiting(listener) > 0 || get(listener).socket.is_shut_for_reading;
        let op = address_set(listener).op(OpKind::OutsideChange, What::Accept, fd);
        let may_not_wait = get(listener).nonblocking || get(listener).socket.receive_limit != 0;
        message::wait(fd, listener, op, may_not_wait, &is_ready)?;
        let Some(queue) = get(listener).inbox().filter(|q| !q.is_empty()) else { return Err(EINVAL) };
        let mut bytes = [0; 2];
        queue.peek(0, &mut bytes);
        queue.skip(2);
        queue::acquire(get(listener).inbox);
        let server = u16::from_le_bytes(bytes) as usize;
        get(server).nonblocking = flags & O_NONBLOCK != 0;
        let given = give(server, flags);
        // The queue does not use it any more.
        drop_use(server);
        let given = given?;
        if args[1] != 0 {
            get(server).socket.peer.store(args[1], args[2])?;
        }
        Ok(given as isize)
    })
}

/// The last descriptor of a socket is closed: connections that nobody accepted are given up.
pub fn closing(description: usize) {
    if get(description).kind != Kind::Socket || get(description).socket.state != State::Listening {
        return;
    }
    while let Some(queue) = get(description).inbox().filter(|q| !q.is_empty()) {
        let mut bytes = [0; 2];
        queue.peek(0, &mut bytes);
        queue.skip(2);
        drop_use(u16::from_le_bytes(bytes) as usize);
    }
}

pub fn shutdown(call: usize, args: Args) -> isize {
    real_or(call, args, |fd| {
        let description = found(fd)?;
        let how = args[1];
        if how > 2 {
            return Err(EINVAL);
        }
        turn::take(message::all_of(description).op(OpKind::OutsideChange, What::Shutdown, fd));
        let d = get(description);
        if d.socket.state == State::New && d.socket.peer.is_empty() {
            return Err(ENOTCONN);
        }
        if how != 1 {
            d.socket.is_shut_for_reading = true;
            if let Some(inbox) = d.inbox() {
                inbox.version += 1;
            }
        }
        if how != 0 && !d.socket.is_shut_for_writing {
            d.socket.is_shut_for_writing = true;
            if let Some(outbox) = d.outbox() {
                outbox.writers = outbox.writers.saturating_sub(1);
                outbox.version += 1;
            }
            queue::release(d.outbox);
            peer::finished(description);
            // It has no part in the queue any more.
            d.outbox = 0;
        }
        Ok(0)
    })
}
