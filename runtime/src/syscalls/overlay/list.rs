//! Listing directories: what is on disk, without what was removed, and then what was created.

use super::super::descriptors::{moves, path_of};
use super::super::errno::{EBADF, EFAULT, EINVAL};
use super::super::kernel::{bytes_mut, real, same, writable};
use super::super::names::nr;
use super::super::{refusal, turn};
use super::entries::{self, Found};
use super::open::all_names;
use super::paths::{Name, split};
use super::{files, offset_object, overlay};
use symdpor_abi::op::OpKind;
use symdpor_abi::outside::What;

/// Before the name: inode, offset, length, type.
const HEAD: usize = 19;

/// `getdents` and `getdents64`.
pub fn getdents(call: usize, fd: usize, buffer: usize, len: usize) -> isize {
    turn::take(turn::op(OpKind::OutsideTake, What::List, Some(fd), all_names(), offset_object(fd)));
    let mut path = [0; 1024];
    let path = match files::directory_path(fd) {
        Some(path) => path,
        None => path_of(fd, &mut path),
    };
    if entries::is_empty() || !entries::concerns(path) {
        return if files::behind(fd).is_some() { 0 } else { from_disk(call, fd, buffer, len) };
    }
    if call == nr::getdents {
        refusal::changes_file("getdents", path);
    }
    if files::behind(fd).is_some() {
        return created(fd, path, buffer, len);
    }
    loop {
        let got = from_disk(call, fd, buffer, len);
        if got < 0 {
            return got;
        }
        if got == 0 {
            return created(fd, path, buffer, len);
        }
        let left = without_removed(path, buffer, got as usize);
        if left != 0 {
            return left as isize;
        }
    }
}

fn from_disk(call: usize, fd: usize, buffer: usize, len: usize) -> isize {
    moves();
    writable(buffer, len);
    real(call, [fd, buffer, len, 0, 0, 0])
}

/// Takes those out whose names stand for something else now; they come with the created ones. Returns how much is left.
fn without_removed(directory: &[u8], buffer: usize, len: usize) -> usize {
    let Some(bytes) = bytes_mut(buffer, len) else { return len };
    let (mut from, mut to) = (0, 0);
    while from + HEAD < len {
        let size = u16::from_le_bytes([bytes[from + 16], bytes[from + 17]]) as usize;
        if size < HEAD || from + size > len {
            break;
        }
        let name = &bytes[from + HEAD..from + size];
        let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
        if !is_known(directory, &name[..end]) {
            bytes.copy_within(from..from + size, to);
            to += size;
        }
        from += size;
    }
    to
}

fn is_known(directory: &[u8], last: &[u8]) -> bool {
    let mut name = Name::new();
    if let Ok(start) = Name::of(directory) {
        name = start;
    }
    name.join(last).is_ok() && entries::find(&name).is_some()
}

/// The created ones, from where the descriptor stands.
fn created(fd: usize, directory: &[u8], buffer: usize, len: usize) -> isize {
    let Some(bytes) = bytes_mut(buffer, len) else { return EFAULT };
    let Some(listed) = overlay().listed.get_mut(fd) else { return EBADF };
    let mut used = 0;
    while let Some(entry) = entries::all().get(*listed as usize) {
        let (parent, last) = split(entry.path());
        let file = match entry.found() {
            Found::File(file) => Some((file, 8u8)),
            Found::Directory(file) => Some((file, 4u8)),
            Found::Absent => None,
        };
        if let (Some((file, kind)), true) = (file, same(parent, directory)) {
            let size = (HEAD + last.len() + 1 + 7) & !7;
            if used + size > len {
                return if used == 0 { EINVAL } else { used as isize };
            }
            let place = &mut bytes[used..used + size];
            place.fill(0);
            place[..8].copy_from_slice(&(1_000_000 + file as u64).to_le_bytes());
            place[8..16].copy_from_slice(&i64::MAX.to_le_bytes());
            place[16..18].copy_from_slice(&(size as u16).to_le_bytes());
            place[18] = kind;
            place[HEAD..HEAD + last.len()].copy_from_slice(last);
            used += size;
        }
        *listed += 1;
    }
    used as isize
}
