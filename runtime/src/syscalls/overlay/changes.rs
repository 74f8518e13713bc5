//! Calls that change what names stand for, and files by name.

use super::super::Args;
use super::super::descriptors::{self, Kind, kind, number, stat_at};
use super::super::errno::{EEXIST, EFAULT, EINVAL, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY};
use super::super::kernel::{self, real};
use super::super::names::{name as call_name, nr};
use super::super::refusal::{self, Reason, refuse};
use super::entries::{self, Found};
use super::open::{change, look_up, may_change_directory_of, rearrange};
use super::paths::{Name, resolve};
use super::{contents, files, opened};
use crate::snapshot::is_taken;
use symdpor_abi::outside::What;

const AT_FDCWD: usize = -100isize as usize;

/// Runs a call that changes names: for real before the snapshot.
fn after_start(call: usize, args: Args, change: impl FnOnce() -> Result<isize, isize>) -> isize {
    if !is_taken() {
        return real(call, args);
    }
    change().unwrap_or_else(|error| error)
}

fn name_at(directory: usize, path: usize, follow: bool) -> Result<Name, isize> {
    resolve(directory, kernel::path(path).ok_or(EFAULT)?, follow)
}

/// What there is under a name, all told.
enum There {
    Nothing,
    /// A file that is one of ours.
    File(usize),
    Directory(usize),
    /// On disk: its mode.
    Disk(u32),
}

fn there(name: &Name) -> There {
    match entries::find(name) {
        Some(Found::Absent) => There::Nothing,
        Some(Found::File(file)) => There::File(file),
        Some(Found::Directory(file)) => There::Directory(file),
        None => stat_at(name.address()).map_or(There::Nothing, |s| There::Disk(s.mode & 0o170_000)),
    }
}

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

pub fn mkdir(call: usize, args: Args) -> isize {
    let (directory, path, mode) =
        if call == nr::mkdir { (AT_FDCWD, args[0], args[1]) } else { (args[0], args[1], args[2]) };
    after_start(call, args, || {
        let name = name_at(directory, path, false)?;
        change(&name, What::Create);
        let There::Nothing = there(&name) else { return Err(EEXIST) };
        may_change_directory_of(&name)?;
        files::create_directory(&name, mode as u32).map(|_| 0)
    })
}

pub fn rmdir(call: usize, args: Args) -> isize {
    after_start(call, args, || remove_directory(AT_FDCWD, args[0], call))
}

fn remove_directory(directory: usize, path: usize, call: usize) -> Result<isize, isize> {
    let name = name_at(directory, path, false)?;
    change(&name, What::Remove);
    match there(&name) {
        There::Nothing => Err(ENOENT),
        There::Directory(_) if entries::has_members(&name) => Err(ENOTEMPTY),
        There::Directory(_) => {
            entries::set(&name, None);
            Ok(0)
        }
        There::Disk(DIRECTORY) => refusal::changes_file(call_name(call), name.bytes()),
        _ => Err(ENOTDIR),
    }
}

/// `unlink` and `unlinkat`.
pub fn unlink(call: usize, args: Args) -> isize {
    const AT_REMOVEDIR: usize = 0x200;
    let (directory, path, flags) =
        if call == nr::unlink { (AT_FDCWD, args[0], 0) } else { (args[0], args[1], args[2]) };
    after_start(call, args, || {
        if flags & AT_REMOVEDIR != 0 {
            return remove_directory(directory, path, call);
        }
        let name = name_at(directory, path, false)?;
        change(&name, What::Remove);
        match there(&name) {
            There::Nothing => return Err(ENOENT),
            There::Directory(_) | There::Disk(DIRECTORY) => return Err(EISDIR),
            _ => {}
        }
        may_change_directory_of(&name)?;
        entries::set(&name, None);
        Ok(0)
    })
}

/// The file under a name, as one of ours: what is on disk is copied.
fn taken_over(name: &Name, call: usize) -> Result<usize, isize> {
    const O_CLOEXEC: usize = 0o2_000_000;
    match there(name) {
        There::Nothing => Err(ENOENT),
        There::File(file) => Ok(file),
        There::Disk(REGULAR) => {
            let fd = real(nr::open, [name.address(), O_CLOEXEC, 0, 0, 0, 0]);
            if fd < 0 {
                return Err(fd);
            }
            // Hidden while it is copied: it is none of the program's.
            let file = files::take_over(fd as usize, true);
            real(nr::close, [fd as usize, 0, 0, 0, 0, 0]);
            file
        }
        _ => refusal::changes_file(call_name(call), name.bytes()),
    }
}

/// `rename`, `renameat`, `renameat2`.
pub fn rename(call: usize, args: Args) -> isize {
    const RENAME_NOREPLACE: usize = 1;
    let (from, to, flags) = match call {
        nr::rename => ((AT_FDCWD, args[0]), (AT_FDCWD, args[1]), 0),
        nr::renameat => ((args[0], args[1]), (args[2], args[3]), 0),
        _ => ((args[0], args[1]), (args[2], args[3]), args[4]),
    };
    after_start(call, args, || {
        if flags & !RENAME_NOREPLACE != 0 {
            refuse(call, args, Reason::Yet);
        }
        let (from, to) = (name_at(from.0, from.1, false)?, name_at(to.0, to.1, false)?);
        rearrange();
        let target = there(&to);
        match target {
            There::Nothing => {}
            _ if flags & RENAME_NOREPLACE != 0 => return Err(EEXIST),
            There::Directory(_) | There::Disk(DIRECTORY) => return Err(EISDIR),
            _ => {}
        }
        let file = taken_over(&from, call)?;
        may_change_directory_of(&from)?;
        may_change_directory_of(&to)?;
        if !kernel::same(from.bytes(), to.bytes()) && !matches!(target, There::File(other) if other == file) {
            entries::set(&from, None);
            entries::set(&to, Some(file));
        }
        Ok(0)
    })
}

/// `link` and `linkat`.
pub fn link(call: usize, args: Args) -> isize {
    let (from, to, flags) = match call {
        nr::link => ((AT_FDCWD, args[0]), (AT_FDCWD, args[1]), 0),
        _ => ((args[0], args[1]), (args[2], args[3]), args[4]),
    };
    const AT_SYMLINK_FOLLOW: usize = 0x400;
    after_start(call, args, || {
        if flags & !AT_SYMLINK_FOLLOW != 0 || kernel::path(from.1).is_some_and(|p| p.starts_with(b"/proc/")) {
            refuse(call, args, Reason::Yet);
        }
        let (from, to) = (name_at(from.0, from.1, flags != 0)?, name_at(to.0, to.1, false)?);
        rearrange();
        let There::Nothing = there(&to) else { return Err(EEXIST) };
        let file = taken_over(&from, call)?;
        may_change_directory_of(&to)?;
        // Once it has a second name here, the first has to be known here too.
        entries::set(&from, Some(file));
        entries::set(&to, Some(file));
        Ok(0)
    })
}

pub fn symlink(call: usize, args: Args) -> isize {
    let path = if call == nr::symlink { 1 } else { 2 };
    after_start(call, args, || refuse(call, args, Reason::ChangesFile(path)))
}

pub fn truncate(call: usize, args: Args) -> isize {
    after_start(call, args, || {
        let name = name_at(AT_FDCWD, args[0], true)?;
        change(&name, What::Resize);
        let file = taken_over(&name, call)?;
        Ok(real(nr::ftruncate, [files::get(file).hidden, args[1], 0, 0, 0, 0]))
    })
}

/// A call on the file of a descriptor: for real before the snapshot.
fn on_descriptor(call: usize, args: Args, change: impl FnOnce(usize) -> isize) -> isize {
    let fd = number(args[0]);
    match kind(fd) {
        Err(error) => error,
        Ok(_) if !is_taken() => real(call, args),
        Ok(Kind::Regular) => change(fd),
        Ok(_) => EINVAL,
    }
}

pub fn ftruncate(call: usize, args: Args) -> isize {
    on_descriptor(call, args, |fd| match call {
        nr::ftruncate if !descriptors::is_writable(fd) => EINVAL,
        nr::ftruncate => contents::truncate_opened(fd, args[1]),
        _ => contents::allocate(fd, args[1], args[2], args[3]),
    })
}

/// `chmod`, `fchmodat`, `fchmodat2`.
pub fn chmod(call: usize, args: Args) -> isize {
    let (directory, path, mode) =
        if call == nr::chmod { (AT_FDCWD, args[0], args[1]) } else { (args[0], args[1], args[2]) };
    after_start(call, args, || {
        let name = name_at(directory, path, true)?;
        change(&name, What::Write);
        if let There::Directory(file) = there(&name) {
            set_mode(file, mode);
            return Ok(0);
        }
        set_mode(taken_over(&name, call)?, mode);
        Ok(0)
    })
}

fn set_mode(file: usize, mode: usize) {
    let file = files::get(file);
    file.mode = file.mode & 0o170_000 | mode as u32 & 0o7777;
}

pub fn fchmod(call: usize, args: Args) -> isize {
    on_descriptor(call, args, |fd| match files::take_over(fd, true) {
        Ok(file) => {
            set_mode(file, args[1]);
            0
        }
        Err(error) => error,
    })
}

/// Changing the owner has no effect, on what is there.
pub fn owner(call: usize, args: Args) -> isize {
    match call {
        nr::fchown => on_descriptor(call, args, |_| 0),
        nr::fchownat => touch(call, args, args[0], args[1]),
        _ => touch(call, args, AT_FDCWD, args[0]),
    }
}

/// Times of files stand still: setting them has no effect, on what is there.
pub fn times(call: usize, args: Args) -> isize {
    match call {
        nr::utime | nr::utimes => touch(call, args, AT_FDCWD, args[0]),
        _ if args[1] == 0 => on_descriptor(call, args, |_| 0),
        _ => touch(call, args, args[0], args[1]),
    }
}

fn touch(call: usize, args: Args, directory: usize, path: usize) -> isize {
    after_start(call, args, || {
        let name = name_at(directory, path, true)?;
        look_up(&name, What::Ask);
        if let There::Nothing = there(&name) { Err(ENOENT) } else { Ok(0) }
    })
}

/// A memory file of the program's own.
pub fn memfd_create(call: usize, args: Args) -> isize {
    const MFD_CLOEXEC: usize = 1;
    const O_RDWR: usize = 2;
    const O_CLOEXEC: usize = 0o2_000_000;
    after_start(call, args, || {
        if args[1] & !(MFD_CLOEXEC | 2) != 0 {
            refuse(call, args, Reason::Yet);
        }
        let file = files::create(None, 0o777)?;
        let cloexec = if args[1] & MFD_CLOEXEC != 0 { O_CLOEXEC } else { 0 };
        let fd = descriptors::opened(files::reopen(files::get(file).hidden, O_RDWR | cloexec), Kind::Unknown);
        if fd >= 0 {
            opened(fd as usize);
        }
        Ok(fd)
    })
}
