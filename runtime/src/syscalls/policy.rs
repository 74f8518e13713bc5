//! Which rule each system call has. Anything not named here happens before the snapshot and is refused after it.

use super::Args;
use super::errno::{ECHILD, ENOSYS, EPERM};
use super::files::{self, STATFS_BYTES};
use super::kernel::{Len, Output};
use super::names::{HIGHEST, nr};
use super::refusal::Reason;
use super::{
    alias, channels, fcntl, futex, memory, openat, overlay, poll, process, random, signal_waits, signals, time,
};

pub enum Rule {
    /// Always the same answer, without the kernel.
    Answer(isize),
    /// Made for real: it only asks. What it writes to is made writable first.
    Pass(&'static [Output]),
    /// Carried out by this function.
    Do(fn(usize, Args) -> isize),
    /// Made for real in the program's start, refused afterwards.
    Start(Reason),
    Never(Reason),
}

use Rule::{Answer, Do, Never, Pass, Start};

const fn out(argument: usize, len: usize) -> Output {
    Output { argument, len: Len::Bytes(len) }
}

const fn sized(argument: usize, len: usize) -> Output {
    Output { argument, len: Len::Argument(len) }
}

/// Most groups that a process can be in would fit into this many bytes for any sensible machine.
const GROUPS_BYTES: usize = 4 * 1024;
const UNAME_BYTES: usize = 390;

pub fn rule(number: usize) -> Rule {
    if number > HIGHEST {
        return Never(Reason::Yet);
    }
    descriptors(number)
        .or_else(|| sockets(number))
        .or_else(|| questions(number))
        .or_else(|| memory(number))
        .or_else(|| time_and_chance(number))
        .or_else(|| signals(number))
        .or_else(|| process(number))
        .or_else(|| changes(number))
        .unwrap_or(Start(Reason::Yet))
}

fn descriptors(number: usize) -> Option<Rule> {
    Some(match number {
        nr::read => Do(files::read),
        nr::write => Do(files::write),
        nr::pread64 => Do(files::pread),
        nr::pwrite64 => Do(files::pwrite),
        nr::readv => Do(files::readv),
        nr::writev => Do(files::writev),
        nr::lseek => Do(files::lseek),
        nr::getdents | nr::getdents64 => Do(files::getdents),
        nr::fstat => Do(overlay::fstat),
        nr::fstatfs => Do(files::fstatfs),
        nr::preadv | nr::pwritev | nr::preadv2 | nr::pwritev2 => Do(files::vector_at),
        nr::sendfile | nr::copy_file_range => Do(files::transfer),
        nr::fsync | nr::fdatasync | nr::syncfs | nr::sync_file_range => Do(files::sync),
        nr::sync | nr::fadvise64 | nr::readahead => Answer(0),
        nr::open => Do(openat::open),
        nr::creat => Do(openat::creat),
        nr::openat => Do(openat::openat),
        nr::openat2 => Do(openat::openat2),
        nr::close => Do(alias::close),
        nr::close_range => Do(alias::close_range),
        nr::dup => Do(alias::dup),
        nr::dup2 => Do(alias::dup2),
        nr::dup3 => Do(alias::dup3),
        nr::fcntl => Do(fcntl::fcntl),
        nr::ioctl => Do(fcntl::ioctl),
        nr::poll | nr::ppoll => Do(poll::poll),
        nr::select | nr::pselect6 => Do(poll::select),
        nr::epoll_create | nr::epoll_create1 => Do(channels::epoll_create),
        nr::epoll_ctl => Do(channels::epoll_ctl),
        nr::epoll_wait | nr::epoll_pwait | nr::epoll_pwait2 => Do(channels::epoll_wait),
        nr::pipe | nr::pipe2 => Do(channels::pipe),
        nr::eventfd | nr::eventfd2 => Do(channels::eventfd),
        nr::timerfd_create => Do(channels::timerfd_create),
        nr::timerfd_settime => Do(channels::timerfd_settime),
        nr::timerfd_gettime => Do(channels::timerfd_gettime),
        _ => return None,
    })
}

fn sockets(number: usize) -> Option<Rule> {
    Some(match number {
        nr::socket => Do(channels::socket),
        nr::socketpair => Do(channels::socketpair),
        nr::bind => Do(channels::bind),
        nr::listen => Do(channels::listen),
        nr::accept | nr::accept4 => Do(channels::accept),
        nr::connect => Do(channels::connect),
        nr::shutdown => Do(channels::shutdown),
        nr::sendto => Do(channels::sendto),
        nr::recvfrom => Do(channels::recvfrom),
        nr::sendmsg => Do(channels::sendmsg),
        nr::recvmsg => Do(channels::recvmsg),
        nr::getsockname => Do(channels::getsockname),
        nr::getpeername => Do(channels::getpeername),
        nr::getsockopt => Do(channels::getsockopt),
        nr::setsockopt => Do(channels::setsockopt),
        _ => return None,
    })
}

/// Calls that only ask the kernel, and whose answers do not change from one execution to the next.
fn questions(number: usize) -> Option<Rule> {
    Some(match number {
        nr::stat | nr::lstat | nr::newfstatat | nr::statx => Do(files::stat),
        nr::statfs => Pass(const { &[out(1, STATFS_BYTES)] }),
        nr::access | nr::faccessat | nr::faccessat2 => Do(overlay::access),
        nr::readlink | nr::readlinkat => Do(overlay::readlink),
        nr::getcwd => Pass(const { &[sized(0, 1)] }),
        nr::getxattr | nr::lgetxattr | nr::fgetxattr => Pass(const { &[sized(2, 3)] }),
        nr::listxattr | nr::llistxattr | nr::flistxattr => Pass(const { &[sized(1, 2)] }),
        nr::uname => Pass(const { &[out(0, UNAME_BYTES)] }),
        nr::getuid | nr::geteuid | nr::getgid | nr::getegid => Pass(&[]),
        nr::getresuid | nr::getresgid => Pass(const { &[out(0, 4), out(1, 4), out(2, 4)] }),
        nr::getgroups => Pass(const { &[out(1, GROUPS_BYTES)] }),
        nr::capget => Pass(const { &[out(0, 8), out(1, 24)] }),
        nr::sched_get_priority_max | nr::sched_get_priority_min => Pass(&[]),
        nr::mincore => Pass(const { &[sized(2, 1)] }),
        _ => return None,
    })
}

fn memory(number: usize) -> Option<Rule> {
    Some(match number {
        nr::mmap => Do(memory::mmap),
        nr::munmap => Do(memory::munmap),
        nr::mprotect | nr::pkey_mprotect => Do(memory::mprotect),
        nr::mremap => Do(memory::mremap),
        nr::madvise => Do(memory::madvise),
        nr::brk => Do(memory::brk),
        nr::mlock | nr::mlock2 | nr::munlock | nr::mlockall | nr::munlockall | nr::msync => Answer(0),
        nr::membarrier => Do(process::membarrier),
        nr::userfaultfd | nr::mseal | nr::map_shadow_stack | nr::remap_file_pages => Never(Reason::Interferes),
        _ => return None,
    })
}

fn time_and_chance(number: usize) -> Option<Rule> {
    Some(match number {
        nr::clock_gettime => Do(time::clock_gettime),
        nr::clock_getres => Do(time::clock_getres),
        nr::gettimeofday => Do(time::gettimeofday),
        nr::time => Do(time::time),
        nr::times => Do(time::times),
        nr::getrusage => Do(time::getrusage),
        nr::nanosleep | nr::clock_nanosleep => Do(time::nanosleep),
        nr::sched_yield => Do(time::sched_yield),
        nr::getrandom => Do(random::getrandom),
        nr::alarm | nr::setitimer => Do(process::timer),
        nr::getitimer => Do(process::getitimer),
        nr::timer_create | nr::timer_settime | nr::timer_gettime | nr::timer_getoverrun | nr::timer_delete => {
            Never(Reason::Signal)
        }
        nr::settimeofday | nr::clock_settime | nr::clock_adjtime | nr::adjtimex => Answer(EPERM),
        _ => return None,
    })
}

fn signals(number: usize) -> Option<Rule> {
    Some(match number {
        nr::rt_sigaction => Do(signals::rt_sigaction),
        nr::rt_sigprocmask => Do(signals::rt_sigprocmask),
        nr::rt_sigpending => Do(signals::rt_sigpending),
        nr::sigaltstack => Do(signals::sigaltstack),
        nr::kill => Do(signals::kill),
        nr::tkill => Do(signals::tkill),
        nr::tgkill => Do(signals::tgkill),
        nr::rt_sigqueueinfo => Do(signals::rt_sigqueueinfo),
        nr::rt_tgsigqueueinfo => Do(signals::rt_tgsigqueueinfo),
        nr::rt_sigtimedwait => Do(signal_waits::rt_sigtimedwait),
        nr::rt_sigsuspend => Do(signal_waits::rt_sigsuspend),
        nr::pause => Do(signal_waits::pause),
        nr::signalfd | nr::signalfd4 => Never(Reason::Signal),
        nr::rt_sigreturn => Never(Reason::Interferes),
        _ => return None,
    })
}

fn process(number: usize) -> Option<Rule> {
    Some(match number {
        nr::getpid | nr::getpgrp | nr::setsid => Answer(process::PID),
        nr::getppid => Answer(process::PARENT),
        nr::gettid => Do(process::gettid),
        nr::getpgid | nr::getsid => Do(process::group),
        nr::setpgid => Answer(0),
        nr::set_tid_address => Do(process::set_tid_address),
        nr::set_robust_list => Do(process::set_robust_list),
        nr::rseq => Answer(ENOSYS),
        nr::exit => Do(process::exit_thread),
        nr::exit_group => Do(process::exit),
        nr::prctl => Do(process::prctl),
        nr::arch_prctl => Do(process::arch_prctl),
        nr::getrlimit | nr::setrlimit | nr::prlimit64 => Do(process::limits),
        nr::sysinfo => Do(process::sysinfo),
        nr::getcpu => Do(process::getcpu),
        nr::personality => Do(process::personality),
        nr::futex => Do(futex::futex),
        nr::futex_wake => Answer(0),
        nr::sched_getaffinity => Do(process::affinity),
        nr::sched_setaffinity | nr::sched_setscheduler | nr::sched_setparam | nr::sched_setattr => Answer(0),
        nr::sched_getscheduler => Answer(0),
        nr::sched_getparam => Do(process::priority_parameter),
        nr::getpriority => Answer(20), // the kernel's way to say 0
        nr::setpriority | nr::ioprio_set | nr::ioprio_get => Answer(0),
        nr::wait4 | nr::waitid => Answer(ECHILD),
        nr::fork | nr::vfork | nr::clone | nr::clone3 => Do(process::clone),
        nr::execve | nr::execveat => Never(Reason::Process),
        nr::ptrace | nr::seccomp | nr::set_thread_area | nr::modify_ldt | nr::iopl | nr::ioperm | nr::unshare => {
            Never(Reason::Interferes)
        }
        nr::setns | nr::process_vm_writev | nr::process_vm_readv | nr::process_madvise | nr::pidfd_getfd => {
            Never(Reason::Interferes)
        }
        nr::pidfd_open | nr::pidfd_send_signal | nr::kcmp => Never(Reason::Process),
        nr::io_uring_setup | nr::io_uring_enter | nr::io_uring_register | nr::io_setup => Never(Reason::Yet),
        _ => return None,
    })
}

/// Calls that change files.
fn changes(number: usize) -> Option<Rule> {
    Some(match number {
        nr::mkdir | nr::mkdirat => Do(overlay::mkdir),
        nr::rmdir => Do(overlay::rmdir),
        nr::unlink | nr::unlinkat => Do(overlay::unlink),
        nr::rename | nr::renameat | nr::renameat2 => Do(overlay::rename),
        nr::link | nr::linkat => Do(overlay::link),
        nr::symlink | nr::symlinkat => Do(overlay::symlink),
        nr::truncate => Do(overlay::truncate),
        nr::ftruncate | nr::fallocate => Do(overlay::ftruncate),
        nr::chmod | nr::fchmodat | nr::fchmodat2 => Do(overlay::chmod),
        nr::fchmod => Do(overlay::fchmod),
        nr::chown | nr::lchown | nr::fchown | nr::fchownat => Do(overlay::owner),
        nr::utime | nr::utimes | nr::utimensat | nr::futimesat => Do(overlay::times),
        nr::umask => Do(overlay::umask),
        nr::memfd_create => Do(overlay::memfd_create),
        nr::mknod | nr::setxattr | nr::lsetxattr | nr::removexattr | nr::lremovexattr => Start(Reason::ChangesFile(0)),
        nr::mknodat => Start(Reason::ChangesFile(1)),
        nr::fsetxattr | nr::fremovexattr | nr::flock => Start(Reason::ChangesDescriptor(0)),
        nr::splice | nr::tee | nr::vmsplice => Start(Reason::ChangesDescriptor(0)),
        _ => return None,
    })
}
