//! Files, pipes and sockets by direct calls of the program: the same as the system calls, which would be seen anyway, but
//! without a signal for each, and with nothing that is not instrumented between the call and the transition.

use super::io::result;
use crate::cancel;
use crate::syscalls::{emulate, nr};

macro_rules! calls {
    ($($name:ident($($arg:ident: $kind:ty),*) = $number:ident($($passed:expr),*);)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name($($arg: $kind),*) -> isize {
                crate::init::ensure();
                let passed = [$($passed as usize),*];
                let mut args = [0; 6];
                args[..passed.len()].copy_from_slice(&passed);
                result(call(nr::$number, args))
            }
        )*
    };
}

/// The calls within which a thread can be cancelled.
fn is_point(number: usize) -> bool {
    matches!(
        number,
        nr::openat
            | nr::creat
            | nr::close
            | nr::writev
            | nr::accept
            | nr::accept4
            | nr::connect
            | nr::sendmsg
            | nr::recvmsg
            | nr::poll
            | nr::select
            | nr::epoll_wait
            | nr::ppoll
            | nr::epoll_pwait
    )
}

fn call(number: usize, args: [usize; 6]) -> isize {
    if is_point(number) { cancel::within(|| emulate(number, args)) } else { emulate(number, args) }
}

/// A set of signals, for the kernel.
const SET: usize = 8;
const AT_FDCWD: isize = -100;

calls! {
    open(path: usize, flags: i32, mode: u32) = openat(AT_FDCWD, path, flags, mode);
    open64(path: usize, flags: i32, mode: u32) = openat(AT_FDCWD, path, flags, mode);
    openat(fd: i32, path: usize, flags: i32, mode: u32) = openat(fd, path, flags, mode);
    openat64(fd: i32, path: usize, flags: i32, mode: u32) = openat(fd, path, flags, mode);
    creat(path: usize, mode: u32) = creat(path, mode);
    close(fd: i32) = close(fd);
    writev(fd: i32, buffers: usize, count: i32) = writev(fd, buffers, count);
    ftruncate(fd: i32, len: usize) = ftruncate(fd, len);
    ftruncate64(fd: i32, len: usize) = ftruncate(fd, len);
    unlink(path: usize) = unlink(path);
    rename(from: usize, to: usize) = rename(from, to);
    mkdir(path: usize, mode: u32) = mkdir(path, mode);
    rmdir(path: usize) = rmdir(path);
    dup(fd: i32) = dup(fd);
    dup2(from: i32, to: i32) = dup2(from, to);
    pipe(ends: usize) = pipe(ends);
    pipe2(ends: usize, flags: i32) = pipe2(ends, flags);
    eventfd(count: u32, flags: i32) = eventfd2(count, flags);
    socket(family: i32, kind: i32, protocol: i32) = socket(family, kind, protocol);
    socketpair(family: i32, kind: i32, protocol: i32, ends: usize) = socketpair(family, kind, protocol, ends);
    bind(fd: i32, address: usize, len: u32) = bind(fd, address, len);
    listen(fd: i32, backlog: i32) = listen(fd, backlog);
    accept(fd: i32, address: usize, len: usize) = accept(fd, address, len);
    accept4(fd: i32, address: usize, len: usize, flags: i32) = accept4(fd, address, len, flags);
    connect(fd: i32, address: usize, len: u32) = connect(fd, address, len);
    shutdown(fd: i32, how: i32) = shutdown(fd, how);
    sendmsg(fd: i32, message: usize, flags: i32) = sendmsg(fd, message, flags);
    recvmsg(fd: i32, message: usize, flags: i32) = recvmsg(fd, message, flags);
    poll(entries: usize, count: usize, timeout: i32) = poll(entries, count, timeout);
    select(count: i32, read: usize, write: usize, except: usize, timeout: usize) = select(count, read, write, except, timeout);
    epoll_create1(flags: i32) = epoll_create1(flags);
    epoll_ctl(fd: i32, operation: i32, other: i32, event: usize) = epoll_ctl(fd, operation, other, event);
    epoll_wait(fd: i32, events: usize, most: i32, timeout: i32) = epoll_wait(fd, events, most, timeout);
    ppoll(entries: usize, count: usize, timeout: usize, mask: usize) = ppoll(entries, count, timeout, mask, SET);
    epoll_pwait(fd: i32, events: usize, most: i32, timeout: i32, mask: usize) = epoll_pwait(fd, events, most, timeout, mask, SET);
    timerfd_create(clock: i32, flags: i32) = timerfd_create(clock, flags);
    timerfd_settime(fd: i32, flags: i32, new: usize, old: usize) = timerfd_settime(fd, flags, new, old);
    timerfd_gettime(fd: i32, now: usize) = timerfd_gettime(fd, now);
}
