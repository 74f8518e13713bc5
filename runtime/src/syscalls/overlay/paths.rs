//! Paths as the kernel would find them: absolute, without links, so that a file's name can be compared.

use super::super::descriptors::{self, Kind, kind};
use super::super::errno::{ENAMETOOLONG, ENOENT, ENOTDIR};
use super::super::kernel::real;
use super::super::names::nr;
use super::entries::{self, Found};
use super::{files, mix};
use symdpor_abi::object::ObjectId;

const MOST_BYTES: usize = 1024;
const AT_FDCWD: i32 = -100;

/// A path, always terminated.
#[derive(Clone, Copy)]
pub struct Name {
    bytes: [u8; MOST_BYTES],
    len: usize,
}

impl Name {
    pub const fn new() -> Name {
        Name { bytes: [0; MOST_BYTES], len: 0 }
    }

    pub fn of(bytes: &[u8]) -> Result<Name, isize> {
        let mut name = Name::new();
        name.push(bytes)?;
        Ok(name)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Its address, for the kernel.
    pub fn address(&self) -> usize {
        self.bytes.as_ptr() as usize
    }

    fn push(&mut self, part: &[u8]) -> Result<(), isize> {
        if self.len + part.len() >= MOST_BYTES {
            return Err(ENAMETOOLONG);
        }
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
        self.bytes[self.len] = 0;
        Ok(())
    }

    /// Adds a component to the path of a directory.
    pub fn join(&mut self, part: &[u8]) -> Result<(), isize> {
        if self.bytes().last() != Some(&b'/') {
            self.push(b"/")?;
        }
        self.push(part)
    }

    fn cut(&mut self, len: usize) {
        self.len = len;
        self.bytes[len] = 0;
    }

    /// Takes the last component off.
    fn pop(&mut self) {
        let at = self.bytes().iter().rposition(|&b| b == b'/').unwrap_or(0);
        self.cut(at.max(1));
    }

    pub fn hash(&self) -> u64 {
        self.bytes().iter().fold(7, |hash, &b| mix(hash, b as u64))
    }

    /// The entry as an object.
    pub fn object(&self) -> (ObjectId, u8) {
        (ObjectId::hashed(mix(4, self.hash())), super::WHOLE)
    }

    /// The group of names that it belongs to: the first eight that are used have one each.
    pub fn group(&self) -> (ObjectId, u8) {
        let hash = self.hash();
        let overlay = super::overlay();
        let known = overlay.names[..overlay.name_count].iter().position(|&name| name == hash);
        let index = known.unwrap_or_else(|| {
            if let Some(slot) = overlay.names.get_mut(overlay.name_count) {
                *slot = hash;
                overlay.name_count += 1;
                return overlay.name_count - 1;
            }
            hash as usize
        });
        (super::NAMES, 1 << (index & 7))
    }
}

/// Directory and last component of a path without slashes at its end.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&b| b == b'/') {
        Some(0) => (b"/", &path[1..]),
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// The path that a call means. `follow`: what a link at its end points to.
pub fn resolve(directory: usize, path: &[u8], follow: bool) -> Result<Name, isize> {
    if path.is_empty() {
        return Err(ENOENT);
    }
    let mut whole = if path[0] == b'/' { Name::of(b"/")? } else { base(directory as i32)? };
    whole.join(path)?;
    while whole.len > 1 && whole.bytes().last() == Some(&b'/') {
        whole.cut(whole.len - 1);
    }
    let (_, last) = split(whole.bytes());
    if matches!(last, b"." | b".." | b"") {
        return resolve_directory(&whole);
    }
    let (parent, last) = split(whole.bytes());
    let mut found = resolve_directory(&Name::of(parent)?)?;
    found.join(last)?;
    if follow
        && entries::find(&found).is_none()
        && let Some(target) = target(&found)
    {
        return Ok(target);
    }
    Ok(found)
}

/// Where relative paths begin.
fn base(directory: i32) -> Result<Name, isize> {
    let mut name = Name::new();
    if directory == AT_FDCWD {
        let got = real(nr::getcwd, [name.address(), MOST_BYTES - 1, 0, 0, 0, 0]);
        if got < 0 {
            return Err(got);
        }
        name.cut(got as usize - 1);
        return Ok(name);
    }
    let fd = directory as u32 as usize;
    if let Some(path) = files::directory_path(fd) {
        return Name::of(path);
    }
    match kind(fd)? {
        Kind::Directory => link_of(fd),
        _ => Err(ENOTDIR),
    }
}

fn link_of(fd: usize) -> Result<Name, isize> {
    let mut bytes = [0; MOST_BYTES];
    Name::of(descriptors::path_of(fd, &mut bytes))
}

/// The path of what a path leads to on disk, links followed.
fn target(path: &Name) -> Option<Name> {
    opened(path, 0).ok()
}

fn opened(path: &Name, flags: usize) -> Result<Name, isize> {
    const O_PATH: usize = 0o10_000_000;
    const O_CLOEXEC: usize = 0o2_000_000;
    let fd = real(nr::open, [path.address(), O_PATH | O_CLOEXEC | flags, 0, 0, 0, 0]);
    if fd < 0 {
        return Err(fd);
    }
    let name = link_of(fd as usize);
    real(nr::close, [fd as usize, 0, 0, 0, 0, 0]);
    name
}

fn resolve_directory(path: &Name) -> Result<Name, isize> {
    const O_DIRECTORY: usize = 0o200_000;
    let (name, error) = match opened(path, O_DIRECTORY) {
        Ok(name) => (name, 0),
        Err(error) => (without_dots(path)?, error),
    };
    match (entries::find(&name), error) {
        (Some(Found::Directory(_)), _) => Ok(name),
        (Some(Found::Absent), _) => Err(ENOENT),
        (Some(Found::File(_)), _) => Err(ENOTDIR),
        (None, 0) => Ok(name),
        (None, error) => Err(error),
    }
}

/// The same path without `.` and `..`, for directories that are not on disk.
fn without_dots(path: &Name) -> Result<Name, isize> {
    let mut name = Name::of(b"/")?;
    for part in path.bytes().split(|&b| b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => name.pop(),
            _ => name.join(part)?,
        }
    }
    Ok(name)
}
