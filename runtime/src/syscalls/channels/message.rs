//! Sending and receiving, on whatever kind of descriptor.

use super::super::descriptors::number;
use super::super::errno::{
    EAGAIN, EBADF, ECONNREFUSED, EDESTADDRREQ, EFAULT, EINVAL, EMSGSIZE, ENOTCONN, ENOTSOCK, EPIPE,
};
use super::super::kernel::{load, store};
use super::super::{Args, signals, turn};
use super::address::Address;
use super::buffers::Buffers;
use super::socket::{State, Type};
use super::{Kind, Use, event, found, get, lookup, of, peer, queue, timer, touched};
use symdpor_abi::op::{Op, OpKind};
use symdpor_abi::outside::What;

const MSG_OOB: usize = 1;
const MSG_PEEK: usize = 2;
const MSG_TRUNC: usize = 0x20;
const MSG_DONTWAIT: usize = 0x40;
const MSG_WAITALL: usize = 0x100;
const MSG_NOSIGNAL: usize = 0x4000;
/// What is written to a pipe in one piece.
const PIPE_BUF: usize = 4096;
const SIGPIPE: usize = 13;

/// Waits for the running thread's turn, and until `is_ready` unless it must not wait. Who finds nothing to wait for looks the
/// descriptor up when its turn comes, and may find it closed; who has to wait has done so before.
pub fn wait(
    fd: usize,
    description: usize,
    op: Op,
    nonblocking: bool,
    is_ready: &dyn Fn() -> bool,
) -> Result<(), isize> {
    let waits = !nonblocking && !is_ready();
    let is_gone = move || !waits && of(fd) != Some(description);
    let may_go_on = || is_gone() || is_ready();
    turn::take_when(op, if nonblocking { None } else { Some(&may_go_on) });
    if is_gone() {
        return Err(EBADF);
    }
    if is_ready() {
        turn::found();
        return Ok(());
    }
    turn::found_nothing();
    Err(EAGAIN)
}

/// Whom a message came from, and whether it was cut.
#[derive(Default)]
pub struct From {
    pub address: Address,
    pub was_cut: bool,
}

pub fn receive(fd: usize, buffers: &mut Buffers, flags: usize, from: Option<&mut From>) -> Result<isize, isize> {
    let description = found(fd)?;
    match get(description).kind {
        Kind::PipeReader => stream(fd, description, buffers, flags),
        Kind::Event => event::read(fd, description, buffers),
        Kind::Timer => timer::read(fd, description, buffers),
        Kind::Socket => from_socket(fd, description, buffers, flags, from),
        Kind::PipeWriter => Err(EBADF),
        Kind::Epoll | Kind::Free => Err(EINVAL),
    }
}

fn from_socket(
    fd: usize,
    description: usize,
    buffers: &mut Buffers,
    flags: usize,
    from: Option<&mut From>,
) -> Result<isize, isize> {
    if flags & MSG_OOB != 0 {
        return Err(EINVAL);
    }
    let d = get(description);
    if d.socket.kind == Type::Datagram {
        return datagram(fd, description, buffers, flags, from);
    }
    if d.socket.state != State::Connected {
        return Err(ENOTCONN);
    }
    if d.socket.kind == Type::Packets {
        return datagram(fd, description, buffers, flags, from);
    }
    stream(fd, description, buffers, flags)
}

/// Whether reading would not have to wait.
pub fn is_readable(description: usize, waits: bool) -> bool {
    peer::listen(description, waits);
    let d = get(description);
    d.socket.is_shut_for_reading || d.inbox().is_none_or(|q| !q.is_empty() || (q.writers == 0 && ends(description)))
}

/// Whether there is an end to what can be read: not for sockets that anybody may send to.
fn ends(description: usize) -> bool {
    get(description).socket.kind != Type::Datagram
}

fn may_not_wait(description: usize, flags: usize) -> bool {
    let d = get(description);
    d.nonblocking || flags & MSG_DONTWAIT != 0 || d.socket.receive_limit != 0
}

/// Time passes if a receiver had a time limit.
fn limited(description: usize, error: isize) -> isize {
    if !get(description).nonblocking {
        super::super::time::advance(get(description).socket.receive_limit);
    }
    error
}

fn stream(fd: usize, description: usize, buffers: &mut Buffers, flags: usize) -> Result<isize, isize> {
    let wanted = buffers.total();
    let _use = Use::new(description);
    let all = flags & MSG_WAITALL != 0 && flags & MSG_PEEK == 0;
    let mut done = 0;
    loop {
        let op = touched_inbox(description).op(OpKind::OutsideChange, What::Read, fd);
        let nonblocking = may_not_wait(description, flags);
        let is_ready = move || wanted == 0 || is_readable(description, !nonblocking);
        match wait(fd, description, op, nonblocking, &is_ready) {
            Err(_) if done > 0 => return Ok(done as isize),
            Err(error) => return Err(limited(description, error)),
            Ok(()) => {}
        }
        let d = get(description);
        let Some(queue) = d.inbox() else { return Ok(done as isize) };
        queue::acquire(d.inbox);
        let part = if d.socket.is_shut_for_reading { 0 } else { queue.len().min(wanted - done) };
        queue.copy_to(0, part, buffers)?;
        if flags & MSG_PEEK == 0 {
            queue.skip(part);
        }
        done += part;
        if done == 0 && wanted > 0 && d.socket.error != 0 {
            return Err(core::mem::take(&mut d.socket.error) as isize);
        }
        if !all || part == 0 || done == wanted {
            return Ok(done as isize);
        }
    }
}

fn touched_inbox(description: usize) -> super::Set {
    let mut set = super::Set::default();
    set.add(get(description).inbox);
    set
}

fn datagram(
    fd: usize,
    description: usize,
    buffers: &mut Buffers,
    flags: usize,
    from: Option<&mut From>,
) -> Result<isize, isize> {
    let _use = Use::new(description);
    let op = touched_inbox(description).op(OpKind::OutsideChange, What::Read, fd);
    let is_ready = move || is_readable(description, false) || get(description).socket.error != 0;
    wait(fd, description, op, may_not_wait(description, flags), &is_ready)
        .map_err(|error| limited(description, error))?;
    let d = get(description);
    let error = core::mem::take(&mut d.socket.error);
    if error != 0 {
        return Err(error as isize);
    }
    let Some(queue) = d.inbox() else { return Ok(0) };
    queue::acquire(d.inbox);
    if queue.is_empty() {
        return Ok(0);
    }
    let (len, sender) = queue.head();
    if let Some(from) = from {
        from.address = Address::read(queue, queue::HEAD, sender);
        from.was_cut = len > buffers.total();
    }
    let part = len.min(buffers.total());
    queue.copy_to(queue::HEAD + sender, part, buffers)?;
    if flags & MSG_PEEK == 0 {
        queue.skip(queue::HEAD + sender + len);
    }
    Ok(if flags & MSG_TRUNC != 0 { len } else { part } as isize)
}

pub fn send(fd: usize, buffers: &mut Buffers, flags: usize, to: Option<&Address>) -> Result<isize, isize> {
    let description = found(fd)?;
    let d = get(description);
    match d.kind {
        Kind::PipeWriter => write(fd, description, buffers, flags),
        Kind::Event => event::write(fd, description, buffers),
        Kind::Socket => to_socket(fd, description, buffers, flags, to),
        Kind::PipeReader => Err(EBADF),
        _ => Err(EINVAL),
    }
}

fn to_socket(
    fd: usize,
    description: usize,
    buffers: &mut Buffers,
    flags: usize,
    to: Option<&Address>,
) -> Result<isize, isize> {
    let d = get(description);
    if d.socket.kind == Type::Datagram && (to.is_some() || d.outbox == 0) {
        let to = match to {
            Some(to) => *to,
            None if d.socket.peer.is_empty() => return Err(EDESTADDRREQ),
            None => d.socket.peer,
        };
        return post(fd, description, buffers, &to);
    }
    if d.socket.state != State::Connected {
        return Err(ENOTCONN);
    }
    write(fd, description, buffers, flags)
}

/// Nobody will ever read it.
fn broken(flags: usize) -> isize {
    if flags & MSG_NOSIGNAL == 0 {
        signals::raise(SIGPIPE);
    }
    EPIPE
}

/// Whether so many bytes can be written, or never will be.
fn has_room(description: usize, len: usize) -> bool {
    let d = get(description);
    d.socket.is_shut_for_writing || d.outbox().is_none_or(|q| q.readers == 0 || q.space() >= len)
}

fn write(fd: usize, description: usize, buffers: &mut Buffers, flags: usize) -> Result<isize, isize> {
    let _use = Use::new(description);
    let d = get(description);
    let has_messages = d.outbox().is_some_and(|q| q.has_messages);
    let head = if has_messages { queue::HEAD } else { 0 };
    let total = buffers.total();
    if d.outbox().is_some_and(|q| has_messages && total + head > q.capacity) {
        return Err(EMSGSIZE);
    }
    let in_one_piece = has_messages || d.kind == Kind::PipeWriter && total <= PIPE_BUF;
    let nonblocking = d.nonblocking || flags & MSG_DONTWAIT != 0 || d.socket.send_limit != 0;
    let mut done = 0;
    loop {
        let mut set = super::Set::default();
        set.add(get(description).outbox);
        let needed = if in_one_piece { total + head } else { 1.min(total - done) };
        let is_ready = move || has_room(description, needed);
        match wait(fd, description, set.op(OpKind::OutsideChange, What::Write, fd), nonblocking, &is_ready) {
            Err(_) if done > 0 => return Ok(done as isize),
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        let d = get(description);
        let Some(queue) = d.outbox().filter(|q| q.readers > 0 && !d.socket.is_shut_for_writing) else {
            return if done > 0 { Ok(done as isize) } else { Err(broken(flags)) };
        };
        if has_messages {
            queue.push_head(total, &[]);
        }
        let part = queue.space().min(total - done);
        queue.push_from(part, buffers)?;
        queue.version += 1;
        queue::release(d.outbox);
        peer::said(description);
        done += part;
        if done == total {
            return Ok(done as isize);
        }
    }
}

/// A datagram to whoever is bound to an address.
fn post(fd: usize, description: usize, buffers: &mut Buffers, to: &Address) -> Result<isize, isize> {
    super::names::bind_if_needed(description);
    lookup::check_inside(description, to, "sends to")?;
    let total = buffers.total();
    if total > MOST_DATAGRAM {
        return Err(EMSGSIZE);
    }
    let _use = Use::new(description);
    let (own, to) = (get(description).socket, *to);
    let room = move || {
        lookup::bound(&own, &to)
            .and_then(|to| get(to).inbox())
            .is_none_or(|q| own.is_internet() || q.space() >= total + queue::HEAD + Address::MOST)
    };
    let nonblocking = get(description).nonblocking;
    turn::copies(to.words());
    wait(fd, description, to.set().op(OpKind::OutsideChange, What::Write, fd), nonblocking, &room)?;
    let Some(target) = lookup::bound(&own, &to) else {
        return if own.is_internet() { lost(description, total) } else { Err(ECONNREFUSED) };
    };
    let d = get(target);
    let Some(queue) = d.inbox() else { return Err(ECONNREFUSED) };
    if queue.space() < total + queue::HEAD + Address::MOST || !accepts(target, description) {
        return Ok(total as isize); // The network loses it.
    }
    queue.push_head(total, own.address.bytes());
    queue.push_from(total, buffers)?;
    queue.version += 1;
    queue::release(d.inbox);
    Ok(total as isize)
}

const MOST_DATAGRAM: usize = 65_507;

/// A socket that is connected takes datagrams from its peer only.
fn accepts(target: usize, sender: usize) -> bool {
    let peer = get(target).socket.peer;
    peer.is_empty() || peer.is_same(&get(sender).socket.address)
}

/// Nobody is there: a connected sender is told when it asks next.
fn lost(description: usize, total: usize) -> Result<isize, isize> {
    let socket = &mut get(description).socket;
    if !socket.peer.is_empty() {
        socket.error = ECONNREFUSED as i32;
    }
    Ok(total as isize)
}

fn on_socket(fd: usize) -> Result<(), isize> {
    match super::super::descriptors::kind(fd)? {
        super::DescriptorKind::Channel if get(found(fd)?).kind == Kind::Socket => Ok(()),
        _ => Err(ENOTSOCK),
    }
}

/// Real sockets from the program's start go on being real there.
fn real_or(call: usize, args: Args, emulated: impl FnOnce(usize) -> Result<isize, isize>) -> isize {
    super::socket::real_or(call, args, |fd| {
        on_socket(fd)?;
        emulated(fd)
    })
}

pub fn sendto(call: usize, args: Args) -> isize {
    real_or(call, args, |fd| {
        let to = if args[4] == 0 { None } else { Some(Address::load(args[4], args[5])?) };
        send(fd, &mut Buffers::one(args[1], args[2]), args[3], to.as_ref())
    })
}

pub fn recvfrom(call: usize, args: Args) -> isize {
    real_or(call, args, |fd| {
        let mut from = From::default();
        let got = receive(fd, &mut Buffers::one(args[1], args[2]), args[3], Some(&mut from))?;
        if args[4] != 0 {
            from.address.store(args[4], args[5])?;
        }
        Ok(got)
    })
}

/// `struct msghdr`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Message {
    name: usize,
    name_len: u32,
    pad: u32,
    buffers: usize,
    count: usize,
    control: usize,
    control_len: usize,
    flags: u32,
}

pub fn sendmsg(call: usize, args: Args) -> isize {
    real_or(call, args, |fd| {
        let message = load::<Message>(args[1]).ok_or(EFAULT)?;
        if message.control_len != 0 {
            crate::end::unsupported(format_args!(
                "the program calls sendmsg() with ancillary data (descriptors, credentials), which symdpor cannot control yet"
            ));
        }
        let to = if message.name == 0 { None } else { Some(Address::load(message.name, message.name_len as usize)?) };
        send(fd, &mut Buffers::many(message.buffers, message.count)?, args[2], to.as_ref())
    })
}

pub fn recvmsg(call: usize, args: Args) -> isize {
    real_or(call, args, |fd| {
        let mut message = load::<Message>(args[1]).ok_or(EFAULT)?;
        let mut from = From::default();
        let got = receive(fd, &mut Buffers::many(message.buffers, message.count)?, args[2], Some(&mut from))?;
        if message.name != 0 {
            let bytes = from.address.bytes();
            let room = (message.name_len as usize).min(bytes.len());
            super::super::kernel::bytes_mut(message.name, room).ok_or(EFAULT)?.copy_from_slice(&bytes[..room]);
        }
        message.name_len = from.address.bytes().len() as u32;
        message.control_len = 0;
        message.flags = if from.was_cut { MSG_TRUNC as u32 } else { 0 };
        if store(args[1], message) { Ok(got) } else { Err(EFAULT) }
    })
}

/// The descriptor in the first argument.
pub fn first(args: Args) -> usize {
    number(args[0])
}

/// The queues that a description is about, for others.
pub fn all_of(description: usize) -> super::Set {
    touched(description)
}
