//! The memory files behind what an execution writes.

use super::super::descriptors::{self, Stat, stat_of};
use super::super::errno::{EACCES, EFBIG};
use super::super::kernel::{Text, real};
use super::super::names::nr;
use super::entries;
use super::origin;
use super::paths::Name;
use super::{MOST_COPIED, MOST_FILES, mix, overlay};
use crate::end::unsupported;

const S_IFREG: u32 = 0o100_000;
const S_IFDIR: u32 = 0o040_000;

/// A file or directory that is not, or not any more, what is on disk.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct File {
    pub is_directory: bool,
    /// Descriptor of the memory file, which the program cannot see. A directory has one too, which is empty.
    pub hidden: usize,
    /// What the kernel says of the memory file.
    own: (u64, u64),
    /// The file on disk that this is a copy of, or zeros.
    pub disk: (u64, u64),
    pub mode: u32,
    /// Its name as an object.
    pub object: u64,
    /// For a directory: the number of its entry.
    pub entry: usize,
}

pub fn get(index: usize) -> &'static mut File {
    &mut overlay().files[index]
}

pub fn is_empty() -> bool {
    overlay().file_count == 0
}

fn find(good: impl Fn(&File) -> bool) -> Option<usize> {
    let overlay = overlay();
    overlay.files[..overlay.file_count].iter().position(good)
}

/// The file behind a descriptor of the program, if it is one of these.
pub fn behind(fd: usize) -> Option<usize> {
    if is_empty() {
        return None;
    }
    let stat = stat_of(fd).ok()?;
    find(|f| f.own == (stat.device, stat.inode))
}

/// The copy of a file on disk.
pub fn copy_of(stat: &Stat) -> Option<usize> {
    find(|f| f.disk != (0, 0) && f.disk == (stat.device, stat.inode))
}

/// The path of a directory that is not on disk, from a descriptor of it.
pub fn directory_path(fd: usize) -> Option<&'static [u8]> {
    let file = get(behind(fd)?);
    file.is_directory.then(|| entries::all()[file.entry].path())
}

/// The name of the file behind a descriptor, as an object.
pub fn object(fd: usize) -> u64 {
    match behind(fd) {
        Some(file) => get(file).object,
        None => stat_of(fd).map_or(0, |s| disk_object(&s)),
    }
}

fn disk_object(stat: &Stat) -> u64 {
    match origin::place(stat) {
        Some(place) => mix(8, place),
        None => mix(mix(5, stat.device), stat.inode),
    }
}

/// An empty memory file of the runtime's own.
fn make(mode: u32, object: u64) -> Result<usize, isize> {
    const MFD_CLOEXEC: usize = 1;
    let overlay = overlay();
    if overlay.file_count == MOST_FILES {
        unsupported(format_args!(
            "the program writes to more than {MOST_FILES} files after its first thread was created"
        ));
    }
    let fd = real(nr::memfd_create, [c"symdpor".as_ptr() as usize, MFD_CLOEXEC, 0, 0, 0, 0]);
    if fd < 0 {
        return Err(fd);
    }
    let hidden = descriptors::hide_until_undone(fd as usize);
    real(nr::close, [fd as usize, 0, 0, 0, 0, 0]);
    let Some(hidden) = hidden else {
        unsupported(format_args!(
            "the program writes to a file, and there are too few free descriptors to keep it in memory"
        ));
    };
    let stat = stat_of(hidden)?;
    overlay.files[overlay.file_count] =
        File { is_directory: false, hidden, own: (stat.device, stat.inode), disk: (0, 0), mode, object, entry: 0 };
    overlay.file_count += 1;
    Ok(overlay.file_count - 1)
}

/// A new file.
pub fn create(name: Option<&Name>, mode: u32) -> Result<usize, isize> {
    let count = overlay().file_count as u64;
    let object = name.map_or(mix(6, count), |name| mix(mix(7, name.hash()), count));
    make(S_IFREG | mode & 0o7777 & !umask(), object)
}

/// A new directory.
pub fn create_directory(name: &Name, mode: u32) -> Result<usize, isize> {
    let index = create(Some(name), mode)?;
    let file = get(index);
    file.is_directory = true;
    file.mode = S_IFDIR | file.mode & 0o7777;
    file.entry = entries::set(name, Some(index));
    Ok(index)
}

/// Sets the mask for modes of new files; returns what it was.
pub fn set_umask(mask: u32) -> u32 {
    let before = umask();
    super::super::state().umask = Some(mask & 0o777);
    before
}

fn umask() -> u32 {
    let state = super::super::state();
    *state.umask.get_or_insert_with(|| {
        let mask = real(nr::umask, [0o22, 0, 0, 0, 0, 0]);
        real(nr::umask, [mask as usize, 0, 0, 0, 0, 0]);
        mask as u32
    })
}

/// Opens a memory file once more, with an offset and flags of its own.
pub fn reopen(hidden: usize, flags: usize) -> isize {
    const KEPT: usize = 0o3 | 0o1000 | 0o2000 | 0o4000 | 0o2_000_000;
    let path = descriptors::link_path(hidden);
    real(nr::open, [path.as_ptr() as usize, flags & KEPT, 0, 0, 0, 0])
}

/// The file on disk behind `fd` becomes one of these, with its contents or without. All descriptors of it follow.
pub fn take_over(fd: usize, with_contents: bool) -> Result<usize, isize> {
    if let Some(index) = behind(fd) {
        return Ok(index);
    }
    let stat = stat_of(fd)?;
    if let Some(index) = copy_of(&stat) {
        return Ok(index);
    }
    let index = make(stat.mode, disk_object(&stat))?;
    get(index).disk = (stat.device, stat.inode);
    if with_contents {
        copy(fd, stat.size, get(index).hidden)?;
    }
    redirect(&stat, get(index).hidden);
    Ok(index)
}

fn copy(from: usize, len: u64, to: usize) -> Result<(), isize> {
    if len > MOST_COPIED {
        let mut path = [0; 256];
        unsupported(format_args!(
            "the program changes '{}' after its first thread was created; its {len} bytes are more than symdpor copies",
            Text(descriptors::path_of(from, &mut path))
        ));
    }
    let source = reopen(from, 0);
    if source < 0 {
        return Err(EACCES);
    }
    let mut done = 0u64;
    while done < len {
        let got = real(nr::sendfile, [to, source as usize, 0, (len - done) as usize, 0, 0]);
        if got <= 0 {
            break;
        }
        done += got as u64;
    }
    real(nr::close, [source as usize, 0, 0, 0, 0, 0]);
    if done == len { Ok(()) } else { Err(EFBIG) }
}

/// Lets all descriptors of a file on disk be ones of the memory file, with the offsets and flags they have. Which of them share
/// an offset is found by moving one.
fn redirect(stat: &Stat, hidden: usize) {
    const F_GETFL: usize = 3;
    const SEEK_SET: usize = 0;
    descriptors::moves();
    let mut all = descriptors::of_file(stat);
    while let Some(fd) = all.pop() {
        let offset = tell(fd);
        let new = reopen(hidden, real(nr::fcntl, [fd, F_GETFL, 0, 0, 0, 0]) as usize & !0o1000);
        if new < 0 {
            continue;
        }
        real(nr::lseek, [new as usize, offset, SEEK_SET, 0, 0, 0]);
        let mut others = all;
        while let Some(other) = others.pop() {
            if shares(fd, other, offset) {
                descriptors::replace(new as usize, other);
                all.remove(other);
            }
        }
        descriptors::replace(new as usize, fd);
        real(nr::close, [new as usize, 0, 0, 0, 0, 0]);
    }
}

fn tell(fd: usize) -> usize {
    const SEEK_CUR: usize = 1;
    real(nr::lseek, [fd, 0, SEEK_CUR, 0, 0, 0]).max(0) as usize
}

fn shares(fd: usize, other: usize, offset: usize) -> bool {
    const SEEK_SET: usize = 0;
    if tell(other) != offset {
        return false;
    }
    real(nr::lseek, [fd, offset + 1, SEEK_SET, 0, 0, 0]);
    let moved = tell(other) == offset + 1;
    real(nr::lseek, [fd, offset, SEEK_SET, 0, 0, 0]);
    moved
}

/// What `stat` says of one of these files.
pub fn describe(index: usize) -> Result<Stat, isize> {
    let file = get(index);
    let mut stat = stat_of(file.hidden)?;
    (stat.device, stat.inode) = if file.disk == (0, 0) { (0x53, 1_000_000 + index as u64) } else { file.disk };
    stat.mode = file.mode;
    stat.links = if file.is_directory { 2 } else { entries::links(file).max((file.disk != (0, 0)) as u64) };
    // Times stand still: seconds and nanoseconds of access, change and creation.
    for time in &mut stat.rest[2..8] {
        *time = 0;
    }
    for seconds in [2, 4, 6] {
        stat.rest[seconds] = super::super::time::START_SECONDS;
    }
    Ok(stat)
}
