//! `fcntl` and `ioctl`: questions are passed on, duplicates kept track of, the rest is refused after the snapshot.

use super::alias::duplicate;
use super::descriptors::{Kind, about_to_change, kind, number};
use super::kernel::{real, store, writable};
use super::names::nr;
use super::refusal::{Reason, refuse};
use super::{Args, channels, errno, overlay, process, stdin};
use crate::end::unsupported;
use crate::snapshot::is_taken;

pub fn fcntl(call: usize, args: Args) -> isize {
    const F_DUPFD: usize = 0;
    const F_GETFD: usize = 1;
    const F_SETFD: usize = 2;
    const F_GETFL: usize = 3;
    const F_SETFL: usize = 4;
    const F_GETLK: usize = 5;
    const F_SETLK: usize = 6;
    const F_SETLKW: usize = 7;
    const F_GETOWN: usize = 9;
    const F_DUPFD_CLOEXEC: usize = 1030;
    const F_GETPIPE_SZ: usize = 1032;
    const F_GET_SEALS: usize = 1034;
    let (fd, command) = (number(args[0]), args[1]);
    if let Err(error) = kind(fd) {
        return error;
    }
    const O_APPEND: usize = 0o2000;
    if let Ok(Kind::Channel) = kind(fd)
        && !matches!(command, F_DUPFD | F_DUPFD_CLOEXEC | F_GETFD | F_SETFD)
    {
        return channels::fcntl(fd, command, args[2]);
    }
    match command {
        F_SETFL if is_taken() && args[2] & O_APPEND != 0 && matches!(kind(fd), Ok(Kind::Regular)) => {
            overlay::about_to_share(fd).map_or_else(|error| error, |()| real(call, args))
        }
        // Locks of the process itself never stand in its way.
        F_SETLK | F_SETLKW if is_taken() => 0,
        F_GETLK if is_taken() => answer(args[2], 2i16),
        F_DUPFD | F_DUPFD_CLOEXEC => duplicate(fd, |_| real(call, args)),
        F_GETFD | F_GETFL | F_GETOWN | F_GETPIPE_SZ | F_GET_SEALS => real(call, args),
        F_SETFD => {
            about_to_change(fd);
            real(call, args)
        }
        // Flags of the open file, which the standard descriptors share with the controller. Whether reading from what
        // is allowed here waits or not makes no difference: it never waits.
        F_SETFL if is_taken() || is_standard(fd) => 0,
        _ if !is_taken() => real(call, args),
        _ => refuse(call, args, Reason::ChangesDescriptor(0)),
    }
}

fn is_standard(fd: usize) -> bool {
    matches!(kind(fd), Ok(Kind::Stdin | Kind::Stdout | Kind::Stderr))
}

pub fn ioctl(_: usize, args: Args) -> isize {
    const TCGETS: usize = 0x5401;
    const TIOCGPGRP: usize = 0x540f;
    const TIOCGWINSZ: usize = 0x5413;
    const FIONREAD: usize = 0x541b;
    const FIONBIO: usize = 0x5421;
    const FIONCLEX: usize = 0x5450;
    const FIOCLEX: usize = 0x5451;
    let (fd, request, argument) = (number(args[0]), args[1] & 0xffff_ffff, args[2]);
    let kind = match kind(fd) {
        Ok(kind) => kind,
        Err(error) => return error,
    };
    if kind == Kind::Channel && !matches!(request, FIOCLEX | FIONCLEX) {
        return channels::ioctl(fd, request, argument);
    }
    match request {
        TCGETS => query(args, 36),
        TIOCGWINSZ => query(args, 8),
        FIONREAD if kind == Kind::Stdin => answer(argument, stdin::available(fd) as i32),
        FIONREAD => query(args, 4),
        TIOCGPGRP if matches!(kind, Kind::Terminal) || is_standard(fd) => answer(argument, process::PID as i32),
        FIONBIO if is_taken() || is_standard(fd) => 0,
        FIOCLEX | FIONCLEX => 0, // No program is ever executed.
        _ if !is_taken() && !is_standard(fd) => real(nr::ioctl, args),
        _ => unsupported(format_args!(
            "the program calls ioctl() with request {request:#x} on descriptor {fd}, which symdpor cannot control yet"
        )),
    }
}

fn query(args: Args, len: usize) -> isize {
    writable(args[2], len);
    real(nr::ioctl, args)
}

fn answer<T: Copy>(address: usize, value: T) -> isize {
    if store(address, value) { 0 } else { errno::EFAULT }
}
