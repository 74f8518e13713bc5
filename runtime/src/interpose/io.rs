//! Reading and writing by direct calls of the program.
//!
//! As system calls they would be seen anyway; as functions more can be said of them. The program's buffer takes part in
//! race detection, and reading from standard input is a transition. Neither holds for system calls that libc makes itself:
//! its buffers are protected by locks that nobody sees. (What is done to files, pipes and sockets is a transition whoever
//! makes the call.)
//!
//! Not covered: the order in which threads read from or write to the buffer of one stream of `<stdio.h>`.

use crate::access;
use crate::cancel;
use crate::snapshot::is_taken;
use crate::syscalls::{self, errno, nr};
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind};

/// A call within which the thread can be cancelled.
fn emulate(number: usize, args: [usize; 6]) -> isize {
    const STANDARD: usize = 3;
    if args[0] < STANDARD {
        // What is done to these is no operation of the search.
        cancel::test(None);
    }
    cancel::within(|| syscalls::emulate(number, args))
}

/// `errno` and -1, or the result.
pub fn result(value: isize) -> isize {
    if value < 0 { errno::result(value) as isize } else { value }
}

/// Reading from this descriptor is a choice if others may read from it too.
fn announce(fd: i32) {
    crate::init::ensure();
    if !is_taken() {
        return;
    }
    if let Some(shared) = syscalls::shared(fd as u32 as usize) {
        crate::sched::visible(Op::new(OpKind::Input, ObjectId::descriptor(shared)), 0, 0);
    }
}

pub fn filled(buffer: usize, got: isize) -> isize {
    if got > 0 {
        access::write(buffer, got as usize);
    }
    result(got)
}

pub fn taken(buffer: usize, put: isize) -> isize {
    if put > 0 {
        access::read(buffer, put as usize);
    }
    result(put)
}

#[unsafe(no_mangle)]
extern "C" fn read(fd: i32, buffer: usize, len: usize) -> isize {
    announce(fd);
    filled(buffer, emulate(nr::read, [fd as usize, buffer, len, 0, 0, 0]))
}

#[unsafe(no_mangle)]
extern "C" fn pread(fd: i32, buffer: usize, len: usize, offset: usize) -> isize {
    crate::init::ensure();
    filled(buffer, emulate(nr::pread64, [fd as usize, buffer, len, offset, 0, 0]))
}

#[unsafe(no_mangle)]
extern "C" fn pread64(fd: i32, buffer: usize, len: usize, offset: usize) -> isize {
    pread(fd, buffer, len, offset)
}

#[unsafe(no_mangle)]
extern "C" fn readv(fd: i32, buffers: usize, count: i32) -> isize {
    announce(fd);
    result(emulate(nr::readv, [fd as usize, buffers, count as usize, 0, 0, 0]))
}

#[unsafe(no_mangle)]
extern "C" fn write(fd: i32, buffer: usize, len: usize) -> isize {
    crate::init::ensure();
    taken(buffer, emulate(nr::write, [fd as usize, buffer, len, 0, 0, 0]))
}

#[unsafe(no_mangle)]
extern "C" fn pwrite(fd: i32, buffer: usize, len: usize, offset: usize) -> isize {
    crate::init::ensure();
    taken(buffer, emulate(nr::pwrite64, [fd as usize, buffer, len, offset, 0, 0]))
}

#[unsafe(no_mangle)]
extern "C" fn pwrite64(fd: i32, buffer: usize, len: usize, offset: usize) -> isize {
    pwrite(fd, buffer, len, offset)
}

#[unsafe(no_mangle)]
extern "C" fn recv(fd: i32, buffer: usize, len: usize, flags: i32) -> isize {
    recvfrom(fd, buffer, len, flags, 0, 0)
}

#[unsafe(no_mangle)]
extern "C" fn recvfrom(fd: i32, buffer: usize, len: usize, flags: i32, from: usize, room: usize) -> isize {
    crate::init::ensure();
    filled(buffer, emulate(nr::recvfrom, [fd as usize, buffer, len, flags as usize, from, room]))
}

#[unsafe(no_mangle)]
extern "C" fn send(fd: i32, buffer: usize, len: usize, flags: i32) -> isize {
    sendto(fd, buffer, len, flags, 0, 0)
}

#[unsafe(no_mangle)]
extern "C" fn sendto(fd: i32, buffer: usize, len: usize, flags: i32, to: usize, to_len: u32) -> isize {
    crate::init::ensure();
    taken(buffer, emulate(nr::sendto, [fd as usize, buffer, len, flags as usize, to, to_len as usize]))
}

#[unsafe(no_mangle)]
extern "C" fn lseek(fd: i32, offset: isize, whence: i32) -> isize {
    announce(fd);
    result(syscalls::emulate(nr::lseek, [fd as usize, offset as usize, whence as usize, 0, 0, 0]))
}

#[unsafe(no_mangle)]
extern "C" fn lseek64(fd: i32, offset: isize, whence: i32) -> isize {
    lseek(fd, offset, whence)
}
