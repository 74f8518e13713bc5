//! Pipes, sockets, event and timer descriptors, and `epoll`, as the program makes them: kept here, never by the kernel, so
//! that they are the same in every execution and are put back with the program's memory.
//!
//! A *descriptor* leads to a [`Description`] (what the kernel calls an open file), which reads from and writes to
//! [`Queue`]s: a pipe is one queue, a connection two. The kernel knows a descriptor as an empty one of its own, which keeps
//! the number.
//!
//! What is done to a queue is an operation on it. Queues are the bytes of two objects: queue *n* is byte *n* modulo 16, so
//! that an operation can name any set of them (`poll`), and more than 16 of them are told apart only in part, which costs
//! executions and nothing else. What was written happens before it is read.
//!
//! Of what is outside of this process, streams to other processes are covered ([`peer`]).
//!
//! Not covered: descriptors sent through sockets, urgent data, datagrams to and from others.

mod address;
mod buffers;
mod epoll;
mod event;
mod lookup;
mod message;
mod names;
mod options;
mod peer;
mod pipe;
mod queue;
mod ready;
mod socket;
mod timer;

pub use epoll::{epoll_create, epoll_ctl, epoll_wait};
pub use event::eventfd;
pub use lookup::lonely;
pub use message::{recvfrom, recvmsg, sendmsg, sendto};
pub use names::{bind, getpeername, getsockname};
pub use options::{getsockopt, setsockopt};
pub use peer::{silent, undo};
pub use pipe::pipe;
pub use queue::Set;
pub use ready::{Entry, look, objects, seen};
pub use socket::{accept, connect, listen, shutdown, socket, socketpair};
pub use timer::{timerfd_create, timerfd_gettime, timerfd_settime};

use super::descriptors::{self, Kind as DescriptorKind, LIMIT, Stat};
use super::errno::{EBADF, EFAULT, EINVAL, EMFILE, ENFILE, ENOTTY};
use super::kernel::{real, store};
use super::names::nr;
use super::turn;
use buffers::Buffers;
use queue::Queue;
use symdpor_abi::op::OpKind;
use symdpor_abi::outside::What;

const MOST_DESCRIPTIONS: usize = 512;
const MOST_QUEUES: usize = 768;

/// All zero: nothing was made.
#[repr(C)]
pub struct Channels {
    /// By descriptor: one more than the number of its description.
    of: [u16; LIMIT],
    /// By descriptor: the queues of what was last closed under this number.
    closed: [Set; LIMIT],
    descriptions: [Description; MOST_DESCRIPTIONS],
    queues: [Queue; MOST_QUEUES],
    epolls: epoll::Watches,
    /// How many queues were made, and ports given out.
    made: u32,
    ports: u16,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Free = 0,
    PipeReader,
    PipeWriter,
    Event,
    Timer,
    Epoll,
    Socket,
}

/// What a descriptor and its duplicates stand for.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Description {
    kind: Kind,
    nonblocking: bool,
    /// Descriptors, and calls under way.
    uses: u16,
    /// One more than the number of the queue that it reads from, and of the one that it writes to.
    inbox: u16,
    outbox: u16,
    socket: socket::Socket,
    timer: timer::Timer,
    is_semaphore: bool,
}

fn channels() -> &'static mut Channels {
    &mut super::world::world().channels
}

fn get(description: usize) -> &'static mut Description {
    &mut channels().descriptions[description % MOST_DESCRIPTIONS]
}

/// The description of a descriptor, if the runtime keeps it.
fn of(fd: usize) -> Option<usize> {
    channels().of.get(fd).and_then(|&number| (number as usize).checked_sub(1))
}

impl Description {
    fn inbox(&self) -> Option<&'static mut Queue> {
        queue::get(self.inbox)
    }

    fn outbox(&self) -> Option<&'static mut Queue> {
        queue::get(self.outbox)
    }
}

/// A description of its own, used by nobody yet.
fn describe(kind: Kind, nonblocking: bool) -> Result<usize, isize> {
    let free = channels().descriptions.iter().position(|d| d.kind == Kind::Free).ok_or(ENFILE)?;
    let description = get(free);
    // SAFETY: plain numbers, for which zeros are valid.
    *description = unsafe { core::mem::zeroed() };
    (description.kind, description.nonblocking) = (kind, nonblocking);
    Ok(free)
}

const O_NONBLOCK: usize = 0o4000;
const O_CLOEXEC: usize = 0o2_000_000;

/// A descriptor for a description.
fn give(description: usize, flags: usize) -> Result<usize, isize> {
    let fd = real(nr::eventfd2, [0, flags & O_CLOEXEC, 0, 0, 0, 0]);
    give_kernels(description, fd)
}

/// The same where the kernel has made the descriptor.
fn give_kernels(description: usize, fd: isize) -> Result<usize, isize> {
    let fd = descriptors::opened(fd, DescriptorKind::Channel);
    if fd < 0 {
        abandon(description);
        return Err(if fd == EBADF { EMFILE } else { fd });
    }
    channels().of[fd as usize] = description as u16 + 1;
    get(description).uses += 1;
    Ok(fd as usize)
}

/// Frees a description that was never used.
fn abandon(description: usize) {
    get(description).uses += 1;
    drop_use(description);
}

pub fn duplicated(from: usize, to: usize) {
    let Some(description) = of(from) else { return };
    channels().of[to] = description as u16 + 1;
    get(description).uses += 1;
}

/// A call that may wait uses the description, whoever closes the descriptor meanwhile.
struct Use(usize);

impl Use {
    fn new(description: usize) -> Use {
        get(description).uses += 1;
        Use(description)
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        drop_use(self.0);
    }
}

fn drop_use(description: usize) {
    let d = get(description);
    d.uses -= 1;
    if d.uses > 0 {
        return;
    }
    epoll::forget(description);
    socket::closing(description);
    peer::closing(description);
    if let Some(inbox) = d.inbox() {
        inbox.readers = inbox.readers.saturating_sub(1);
        queue::changed(d.inbox);
    }
    if let Some(outbox) = d.outbox() {
        outbox.writers = outbox.writers.saturating_sub(1);
        queue::changed(d.outbox);
    }
    get(description).kind = Kind::Free;
}

/// The queues that a description is about.
fn touched(description: usize) -> Set {
    let d = get(description);
    let mut set = Set::default();
    set.add(d.inbox);
    set.add(d.outbox);
    set.join(socket::address_set(description));
    set
}

/// `close`, before the kernel closes the number.
pub fn close(fd: usize) {
    let Some(description) = of(fd) else { return };
    turn::take(touched(description).op(OpKind::OutsideChange, What::Close, fd));
    let Some(description) = of(fd) else { return };
    channels().of[fd] = 0;
    channels().closed[fd] = touched(description);
    queue::release_all(description);
    drop_use(description);
}

/// A descriptor is used that is not open: who closed it came before by chance, perhaps.
pub fn is_closed(fd: usize) {
    if let Some(set) = channels().closed.get(fd).filter(|set| !set.is_empty()) {
        turn::take(set.op(OpKind::OutsideLook, What::Ask, fd));
    }
}

fn found(fd: usize) -> Result<usize, isize> {
    of(fd).ok_or(EBADF)
}

pub fn read(fd: usize, buffer: usize, len: usize) -> isize {
    message::receive(fd, &mut Buffers::one(buffer, len), 0, None).unwrap_or_else(|error| error)
}

pub fn write(fd: usize, buffer: usize, len: usize) -> isize {
    message::send(fd, &mut Buffers::one(buffer, len), 0, None).unwrap_or_else(|error| error)
}

pub fn readv(fd: usize, array: usize, count: usize) -> isize {
    Buffers::many(array, count).and_then(|mut b| message::receive(fd, &mut b, 0, None)).unwrap_or_else(|error| error)
}

pub fn writev(fd: usize, array: usize, count: usize) -> isize {
    Buffers::many(array, count).and_then(|mut b| message::send(fd, &mut b, 0, None)).unwrap_or_else(|error| error)
}

pub fn fcntl(fd: usize, command: usize, argument: usize) -> isize {
    const F_GETFL: usize = 3;
    const F_SETFL: usize = 4;
    const F_SETPIPE_SZ: usize = 1031;
    const F_GETPIPE_SZ: usize = 1032;
    let Some(description) = of(fd) else { return EBADF };
    let d = get(description);
    match command {
        F_GETFL => flags(d),
        F_SETFL => {
            d.nonblocking = argument & O_NONBLOCK != 0;
            0
        }
        F_GETPIPE_SZ | F_SETPIPE_SZ => pipe::size(d, (command == F_SETPIPE_SZ).then_some(argument)),
        _ => super::refusal::refuse(nr::fcntl, [fd, command, argument, 0, 0, 0], super::refusal::Reason::Yet),
    }
}

fn flags(d: &Description) -> isize {
    let access = match d.kind {
        Kind::PipeReader => 0,
        Kind::PipeWriter => 1,
        _ => 2,
    };
    access | if d.nonblocking { O_NONBLOCK as isize } else { 0 }
}

pub fn ioctl(fd: usize, request: usize, argument: usize) -> isize {
    const TCGETS: usize = 0x5401;
    const TIOCGWINSZ: usize = 0x5413;
    const FIONREAD: usize = 0x541b;
    const FIONBIO: usize = 0x5421;
    let Some(description) = of(fd) else { return EBADF };
    let d = get(description);
    match request {
        TCGETS | TIOCGWINSZ => ENOTTY,
        FIONREAD => {
            turn::take(touched(description).op(OpKind::OutsideLook, What::Ask, fd));
            let waiting = d.inbox().map_or(0, |q| q.next_len());
            if store(argument, waiting as i32) { 0 } else { EFAULT }
        }
        FIONBIO => match super::kernel::load::<i32>(argument) {
            Some(on) => {
                d.nonblocking = on != 0;
                0
            }
            None => EFAULT,
        },
        _ => crate::end::unsupported(format_args!(
            "the program calls ioctl() with request {request:#x} on a pipe or socket, which symdpor cannot control yet"
        )),
    }
}

/// What `stat` says of a descriptor: what matters is the type.
pub fn stat(fd: usize) -> Result<Stat, isize> {
    const FIFO: u32 = 0o010_600;
    const SOCKET: u32 = 0o140_777;
    let description = found(fd)?;
    let mode = match get(description).kind {
        Kind::PipeReader | Kind::PipeWriter => FIFO,
        Kind::Socket => SOCKET,
        _ => 0o600,
    };
    Ok(Stat::new(2_000_000 + description as u64, mode))
}

fn no_such_flags(flags: usize, known: usize) -> Result<(), isize> {
    if flags & !known != 0 { Err(EINVAL) } else { Ok(()) }
}
