//! Reading, writing and moving in files after the snapshot, as operations.
//!
//! A file is an object with a byte for each of eight groups of open files. What goes by the offset takes the whole of it
//! and changes the offset; what names its place takes the group of its open file and, as an object of its own, the range
//! of the file, so that threads which write to different parts of a file do not depend on each other.

use super::super::descriptors::{Kind, is_open, kind, moves};
use super::super::errno::EBADF;
use super::super::kernel::{real, writable};
use super::super::names::nr;
use super::super::turn;
use super::{MOST_RANGES, WHOLE, files, mix, number_of, offset_object, overlay};
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::OpKind;
use symdpor_abi::outside::What;

/// A part of a file that was read or written at its place.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Range {
    file: u64,
    start: u64,
    end: u64,
}

fn whole(fd: usize) -> (ObjectId, u8) {
    (ObjectId::hashed(files::object(fd)), WHOLE)
}

/// The file, as far as this open file of it is concerned.
fn group(fd: usize) -> (ObjectId, u8) {
    (ObjectId::hashed(files::object(fd)), 1 << (number_of(fd) & 7))
}

/// A range of the file as an object: one that is known and meets it, or a new one. None if several do.
fn range(fd: usize, offset: u64, len: u64) -> Option<(ObjectId, u8)> {
    if let Some(placed) = overlay().placed.get_mut(fd) {
        *placed = true;
    }
    let (file, end) = (files::object(fd), offset.saturating_add(len.max(1)));
    let overlay = overlay();
    let known = &mut overlay.ranges[..overlay.range_count];
    let mut meeting = known.iter_mut().enumerate().filter(|(_, r)| r.file == file && offset < r.end && r.start < end);
    let index = match (meeting.next(), meeting.next()) {
        (Some((index, range)), None) => {
            (range.start, range.end) = (range.start.min(offset), range.end.max(end));
            index
        }
        (None, _) if overlay.range_count < MOST_RANGES => {
            overlay.ranges[overlay.range_count] = Range { file, start: offset, end };
            overlay.range_count += 1;
            overlay.range_count - 1
        }
        _ => return None,
    };
    Some((ObjectId::hashed(mix(mix(8, file), index as u64)), WHOLE))
}

/// Whether the descriptor still stands for a file after the thread had to wait for its turn.
fn still(fd: usize) -> bool {
    matches!(kind(fd), Ok(Kind::Regular)) && is_open(fd)
}

pub fn read(fd: usize, buffer: usize, len: usize) -> isize {
    turn::take(turn::op(OpKind::OutsideTake, What::Read, Some(fd), whole(fd), offset_object(fd)));
    if !still(fd) {
        return EBADF;
    }
    moves();
    writable(buffer, len);
    real(nr::read, [fd, buffer, len, 0, 0, 0])
}

pub fn read_at(fd: usize, buffer: usize, len: usize, offset: usize) -> isize {
    let op = match range(fd, offset as u64, len as u64) {
        Some(range) => turn::op(OpKind::OutsideLook, What::Read, Some(fd), range, group(fd)),
        None => turn::op(OpKind::OutsideLook, What::Read, Some(fd), whole(fd), (ObjectId::NONE, 0)),
    };
    turn::take(op);
    if !still(fd) {
        return EBADF;
    }
    writable(buffer, len);
    real(nr::pread64, [fd, buffer, len, offset, 0, 0])
}

/// Does something that changes a file, once the file is one that may be changed.
fn change(fd: usize, what: What, call: impl FnOnce() -> isize) -> isize {
    turn::take(turn::op(OpKind::OutsideChange, what, Some(fd), whole(fd), offset_object(fd)));
    changed(fd, call)
}

fn changed(fd: usize, call: impl FnOnce() -> isize) -> isize {
    if !still(fd) {
        return EBADF;
    }
    moves();
    match files::take_over(fd, true) {
        Ok(_) => call(),
        Err(error) => error,
    }
}

pub fn write(fd: usize, buffer: usize, len: usize) -> isize {
    change(fd, What::Write, || real(nr::write, [fd, buffer, len, 0, 0, 0]))
}

pub fn write_at(fd: usize, buffer: usize, len: usize, offset: usize) -> isize {
    let call = || real(nr::pwrite64, [fd, buffer, len, offset, 0, 0]);
    match range(fd, offset as u64, len as u64) {
        Some(range) => {
            turn::take(turn::op(OpKind::OutsidePut, What::Write, Some(fd), range, group(fd)));
            changed(fd, call)
        }
        None => change(fd, What::Write, call),
    }
}

pub fn truncate_opened(fd: usize, len: usize) -> isize {
    change(fd, What::Resize, || real(nr::ftruncate, [fd, len, 0, 0, 0, 0]))
}

pub fn allocate(fd: usize, mode: usize, offset: usize, len: usize) -> isize {
    change(fd, What::Resize, || real(nr::fallocate, [fd, mode, offset, len, 0, 0]))
}

/// `sendfile`, `copy_file_range` and their like, to this descriptor.
pub fn copy(to: usize, call: impl FnOnce() -> isize) -> isize {
    change(to, What::Write, call)
}

/// `lseek` on a file; how long the file is matters only if it is asked for.
pub fn move_in(fd: usize, offset: usize, whence: usize) -> isize {
    const SEEK_CUR: usize = 1;
    let op = match whence {
        0 | SEEK_CUR => turn::op(OpKind::OutsideChange, What::Seek, Some(fd), offset_object(fd), (ObjectId::NONE, 0)),
        _ => turn::op(OpKind::OutsideTake, What::Seek, Some(fd), whole(fd), offset_object(fd)),
    };
    turn::take(op);
    if !still(fd) {
        return EBADF;
    }
    moves();
    real(nr::lseek, [fd, offset, whence, 0, 0, 0])
}

/// Somebody asks for the file's length, or looks at it as a whole.
pub fn end_of(fd: usize) {
    turn::take(turn::op(OpKind::OutsideLook, What::Ask, Some(fd), whole(fd), (ObjectId::NONE, 0)));
}

/// A directory's offset goes back.
pub fn about_to_seek(fd: usize) {
    if let Some(listed) = overlay().listed.get_mut(fd) {
        *listed = 0;
    }
}

/// A descriptor of a file is about to be closed or replaced.
pub fn about_to_close(fd: usize) {
    let placed = overlay().placed.get(fd).is_some_and(|placed| *placed);
    let file = if placed { group(fd) } else { (ObjectId::NONE, 0) };
    turn::take(turn::op(OpKind::OutsideChange, What::Close, Some(fd), offset_object(fd), file));
}

/// A descriptor that was a file's is used after it was closed: who closed it came before by chance, perhaps.
pub fn is_closed(fd: usize) {
    if overlay().opened.get(fd).is_some_and(|&number| number != 0) {
        turn::take(turn::op(OpKind::OutsideLook, What::Ask, Some(fd), offset_object(fd), (ObjectId::NONE, 0)));
    }
}

/// The file is about to be mapped, shared and for writing.
pub fn about_to_share(fd: usize) -> Result<(), isize> {
    turn::take(turn::op(OpKind::OutsideChange, What::Write, Some(fd), whole(fd), (ObjectId::NONE, 0)));
    files::take_over(fd, true).map(|_| ())
}
