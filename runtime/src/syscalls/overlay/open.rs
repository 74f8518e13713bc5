//! Opening files after the snapshot.

use super::super::descriptors::{Kind, Stat, opened as opened_as, stat_at};
use super::super::errno::{EACCES, EEXIST, EISDIR, ELOOP, ENOENT, ENOTDIR};
use super::super::kernel::{begins, real};
use super::super::names::nr;
use super::super::{refusal, turn};
use super::entries::{self, Found};
use super::files;
use super::paths::{Name, resolve, split};
use super::{NAMES, RENAMES, WHOLE, opened, silence};
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::OpKind;
use symdpor_abi::outside::What;

pub const O_ACCMODE: usize = 0o3;
pub const O_CREAT: usize = 0o100;
const O_EXCL: usize = 0o200;
const O_TRUNC: usize = 0o1000;
const O_DIRECTORY: usize = 0o200_000;
const O_NOFOLLOW: usize = 0o400_000;
/// Without the bit that it shares with `O_DIRECTORY`.
const O_TMPFILE: usize = 0o20_000_000;
const O_PATH: usize = 0o10_000_000;

/// Directories of the system: what is read there is no operation, and nothing can be written there.
const SYSTEM: [&[u8]; 11] = [
    b"/etc/",
    b"/usr/",
    b"/lib/",
    b"/lib64/",
    b"/proc/",
    b"/sys/",
    b"/dev/",
    b"/bin/",
    b"/sbin/",
    b"/run/",
    b"/var/run/",
];

/// Memory that POSIX calls shared is made by files there.
const SHARED_MEMORY: &[u8] = b"/dev/shm/";

fn is_system(path: &[u8]) -> bool {
    !begins(path, SHARED_MEMORY) && SYSTEM.iter().any(|prefix| begins(path, prefix))
}

/// Announces that a name is looked up.
pub fn look_up(name: &Name, what: What) {
    if !is_system(name.bytes()) {
        turn::take(turn::op(OpKind::OutsideLook, what, None, name.object(), (RENAMES, WHOLE)));
    }
}

/// Announces that a name may be created or removed.
pub fn change(name: &Name, what: What) {
    turn::take(turn::op(OpKind::OutsideChange, what, None, name.object(), name.group()));
}

/// Announces that names are exchanged.
pub fn rearrange() {
    turn::take(turn::op(OpKind::OutsideChange, What::Rename, None, (NAMES, WHOLE), (RENAMES, WHOLE)));
}

/// All names, for a listing.
pub const fn all_names() -> (ObjectId, u8) {
    (NAMES, WHOLE)
}

pub fn open(directory: usize, path: &[u8], flags: usize, mode: usize) -> isize {
    open_or_error(directory, path, flags, mode as u32).unwrap_or_else(|error| error)
}

fn open_or_error(directory: usize, path: &[u8], flags: usize, mode: u32) -> Result<isize, isize> {
    if flags & O_PATH == 0 && flags & O_TMPFILE != 0 {
        let file = files::create(None, mode)?;
        return Ok(open_file(file, flags & !(O_TMPFILE | O_DIRECTORY)));
    }
    let follow = flags & O_NOFOLLOW == 0 && flags & (O_CREAT | O_EXCL) != O_CREAT | O_EXCL;
    let name = resolve(directory, path, follow)?;
    if flags & O_CREAT != 0 && !is_system(name.bytes()) {
        change(&name, What::Create);
    } else {
        look_up(&name, What::Open);
    }
    match entries::find(&name) {
        Some(Found::File(_)) if flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL => Err(EEXIST),
        Some(Found::File(_)) if flags & O_DIRECTORY != 0 => Err(ENOTDIR),
        Some(Found::File(file)) => Ok(open_file(file, flags)),
        Some(Found::Directory(_)) if flags & O_CREAT != 0 || flags & O_ACCMODE != 0 => Err(EISDIR),
        Some(Found::Directory(file)) => Ok(open_file(file, flags)),
        Some(Found::Absent) => create(&name, flags, mode),
        None => open_on_disk(&name, path, flags, mode),
    }
}

fn open_file(file: usize, flags: usize) -> isize {
    given(files::reopen(files::get(file).hidden, flags))
}

/// A new descriptor with an offset of its own.
fn given(fd: isize) -> isize {
    let fd = opened_as(fd, Kind::Unknown);
    if fd >= 0 {
        opened(fd as usize);
    }
    fd
}

fn create(name: &Name, flags: usize, mode: u32) -> Result<isize, isize> {
    if flags & O_CREAT == 0 {
        return Err(ENOENT);
    }
    may_change_directory_of(name)?;
    let file = files::create(Some(name), mode)?;
    entries::set(name, Some(file));
    Ok(open_file(file, flags & !O_TRUNC))
}

/// Whether entries of the directory that a name is in may be changed.
pub fn may_change_directory_of(name: &Name) -> Result<(), isize> {
    const WRITE: usize = 2;
    let (directory, _) = split(name.bytes());
    let directory = Name::of(directory)?;
    if let Some(Found::Directory(_)) = entries::find(&directory) {
        return Ok(());
    }
    if is_system(name.bytes()) {
        refusal::opens_for_writing(name.bytes());
    }
    match real(nr::access, [directory.address(), WRITE, 0, 0, 0, 0]) {
        0 => Ok(()),
        error => Err(error),
    }
}

fn open_on_disk(name: &Name, path: &[u8], flags: usize, mode: u32) -> Result<isize, isize> {
    const REGULAR: u32 = 0o100_000;
    const LINK: u32 = 0o120_000;
    let stat = match stat_at(name.address()) {
        Ok(stat) => stat,
        Err(ENOENT) => return create(name, flags, mode),
        Err(error) => return Err(error),
    };
    if flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL {
        return Err(EEXIST);
    }
    let changes = flags & O_ACCMODE != 0 || flags & O_TRUNC != 0;
    match stat.mode & 0o170_000 {
        REGULAR => open_regular(name, &stat, flags, changes),
        LINK if flags & O_PATH == 0 => Err(ELOOP),
        _ if changes && flags & O_PATH == 0 => match real_open(name, flags) {
            // The kernel's own reason not to: a directory, a read-only file system.
            error if error < 0 => Err(error),
            fd => {
                real(nr::close, [fd as usize, 0, 0, 0, 0, 0]);
                refusal::opens_for_writing(path)
            }
        },
        _ => Ok(given(real_open(name, flags))),
    }
}

fn real_open(name: &Name, flags: usize) -> isize {
    const O_NONBLOCK: usize = 0o4000;
    real(nr::open, [name.address(), flags & !(O_CREAT | O_EXCL | O_TRUNC) | O_NONBLOCK, 0, 0, 0, 0])
}

/// A file that is on disk, under this name.
fn open_regular(name: &Name, stat: &Stat, flags: usize, changes: bool) -> Result<isize, isize> {
    if flags & O_PATH != 0 {
        return Ok(given(real_open(name, flags)));
    }
    if let Some(file) = files::copy_of(stat) {
        return Ok(open_file(file, flags));
    }
    if changes && is_system(name.bytes()) {
        refusal::opens_for_writing(name.bytes());
    }
    let fd = given(real_open(name, flags));
    if fd >= 0 && is_system(name.bytes()) {
        silence(fd as usize);
    }
    if fd >= 0 && flags & O_TRUNC != 0 {
        if flags & O_ACCMODE == 0 {
            return Err(EACCES);
        }
        // The descriptor itself becomes one of the empty file.
        files::take_over(fd as usize, false)?;
    }
    Ok(fd)
}
