//! Questions about files by name or descriptor: `stat`, `access`, `readlink`.

use super::super::descriptors::{self, Kind, Stat, kind, number};
use super::super::errno::{EACCES, EFAULT, EINVAL, ENOENT};
use super::super::kernel::{self, bytes_mut, real, writable};
use super::super::names::nr;
use super::super::{Args, channels, files as kernel_files};
use super::entries::{self, Found};
use super::open::look_up;
use super::paths::resolve;
use super::{contents, files};
use crate::snapshot::is_taken;
use symdpor_abi::outside::What;

const AT_FDCWD: usize = -100isize as usize;
const AT_SYMLINK_NOFOLLOW: usize = 0x100;
const AT_EMPTY_PATH: usize = 0x1000;

/// How an answer is written: as `struct stat` or as `struct statx`.
#[derive(Clone, Copy)]
enum Form {
    Stat,
    Statx,
}

/// `stat`, `lstat`, `newfstatat` and `statx`.
pub fn stat(call: usize, args: Args) -> isize {
    let (directory, path, flags, output, form) = match call {
        nr::stat => (AT_FDCWD, args[0], 0, args[1], Form::Stat),
        nr::lstat => (AT_FDCWD, args[0], AT_SYMLINK_NOFOLLOW, args[1], Form::Stat),
        nr::newfstatat => (args[0], args[1], args[3], args[2], Form::Stat),
        _ => (args[0], args[1], args[2], args[4], Form::Statx),
    };
    if path == 0 && call == nr::statx || kernel::path(path).is_some_and(|p| p.is_empty()) && flags & AT_EMPTY_PATH != 0
    {
        return of_descriptor(call, args, number(directory), output, form);
    }
    let Some(path) = kernel::path(path) else { return EFAULT };
    if !is_taken() {
        return passed(call, args, output, form);
    }
    let name = match resolve(directory, path, flags & AT_SYMLINK_NOFOLLOW == 0) {
        Ok(name) => name,
        Err(error) => return error,
    };
    look_up(&name, What::Ask);
    match entries::find(&name) {
        Some(Found::Absent) => ENOENT,
        Some(Found::File(file) | Found::Directory(file)) => answer(file, output, form),
        None => match descriptors::stat_at(name.address()).ok().and_then(|s| files::copy_of(&s)) {
            Some(file) => answer(file, output, form),
            None => passed(call, args, output, form),
        },
    }
}

fn passed(call: usize, args: Args, output: usize, form: Form) -> isize {
    writable(output, size(form));
    real(call, args)
}

fn size(form: Form) -> usize {
    match form {
        Form::Stat => kernel_files::STAT_BYTES,
        Form::Statx => kernel_files::STATX_BYTES,
    }
}

/// `fstat`.
pub fn fstat(call: usize, args: Args) -> isize {
    of_descriptor(call, args, number(args[0]), args[1], Form::Stat)
}

fn of_descriptor(call: usize, args: Args, fd: usize, output: usize, form: Form) -> isize {
    match kind(fd) {
        Err(error) => return error,
        Ok(Kind::Channel) => return told(channels::stat(fd), output, form),
        Ok(Kind::Regular) if is_taken() => contents::end_of(fd),
        Ok(_) => {}
    }
    match files::behind(fd).filter(|_| is_taken()) {
        Some(file) => answer(file, output, form),
        None => passed(call, args, output, form),
    }
}

fn answer(file: usize, output: usize, form: Form) -> isize {
    told(files::describe(file), output, form)
}

fn told(stat: Result<Stat, isize>, output: usize, form: Form) -> isize {
    let stat = match stat {
        Ok(stat) => stat,
        Err(error) => return error,
    };
    let Some(bytes) = bytes_mut(output, size(form)) else { return EFAULT };
    match form {
        // SAFETY: a record of plain numbers, at least as long as what the kernel writes.
        Form::Stat => bytes.copy_from_slice(unsafe {
            core::slice::from_raw_parts((&raw const stat).cast::<u8>(), kernel_files::STAT_BYTES)
        }),
        Form::Statx => fill_statx(bytes, &stat),
    }
    0
}

/// `struct statx`: the fields that `struct stat` has too.
fn fill_statx(bytes: &mut [u8], stat: &Stat) {
    const STATX_BASIC_STATS: u32 = 0x7ff;
    bytes.fill(0);
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &STATX_BASIC_STATS.to_le_bytes());
    put(4, &4096u32.to_le_bytes());
    put(16, &(stat.links as u32).to_le_bytes());
    put(20, &stat.user.to_le_bytes());
    put(24, &stat.group.to_le_bytes());
    put(28, &(stat.mode as u16).to_le_bytes());
    put(32, &stat.inode.to_le_bytes());
    put(40, &stat.size.to_le_bytes());
    put(48, &stat.rest[1].to_le_bytes());
    for at in [64, 96, 112] {
        put(at, &super::super::time::START_SECONDS.to_le_bytes());
    }
    put(136, &((stat.device >> 8) as u32).to_le_bytes());
    put(140, &(stat.device as u32 & 0xff).to_le_bytes());
}

/// `access`, `faccessat`, `faccessat2`.
pub fn access(call: usize, args: Args) -> isize {
    let (directory, path, wanted) =
        if call == nr::access { (AT_FDCWD, args[0], args[1]) } else { (args[0], args[1], args[2]) };
    let Some(path) = kernel::path(path) else { return EFAULT };
    if !is_taken() || path.is_empty() {
        return real(call, args);
    }
    let name = match resolve(directory, path, true) {
        Ok(name) => name,
        Err(error) => return error,
    };
    look_up(&name, What::Ask);
    match entries::find(&name) {
        Some(Found::Absent) => ENOENT,
        Some(Found::File(file)) if wanted & 1 != 0 && files::get(file).mode & 0o111 == 0 => EACCES,
        Some(_) => 0,
        None => real(call, args),
    }
}

/// `readlink` and `readlinkat`: no link is ever one of ours.
pub fn readlink(call: usize, args: Args) -> isize {
    let (directory, path, output, len) = match call {
        nr::readlink => (AT_FDCWD, args[0], args[1], args[2]),
        _ => (args[0], args[1], args[2], args[3]),
    };
    let Some(path) = kernel::path(path) else { return EFAULT };
    if is_taken() && !path.is_empty() && !path.starts_with(b"/proc/") {
        match resolve(directory, path, false) {
            Err(error) => return error,
            Ok(name) => {
                look_up(&name, What::Ask);
                match entries::find(&name) {
                    Some(Found::Absent) => return ENOENT,
                    Some(_) => return EINVAL,
                    None => {}
                }
            }
        }
    }
    writable(output, len);
    real(call, args)
}
