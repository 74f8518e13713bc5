//! Reading, writing and moving in files after the snapshot, as operations.
//!
//! A file is an object of eight bytes. What goes by the offset takes all of it, and changes the offset; what names its place
//! takes the byte that stands for that range of the file, so that threads which write to different parts of a file do not
//! depend on each other. Reading where a write has made, or could make, the file longer takes all of it too.

use super::super::descriptors::{Kind, is_open, kind, moves, size};
use super::super::errno::EBADF;
use super::super::kernel::{real, writable};
use super::super::names::nr;
use super::super::turn;
use super::{MOST_RANGES, WHOLE, files, is_quiet, offset_object, overlay};
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind};
use symdpor_abi::outside::What;

/// A part of a file that was read or written at its place.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Range {
    file: u64,
    start: u64,
    end: u64,
    /// Writing it made the file longer.
    grew: bool,
}

fn whole(fd: usize) -> (ObjectId, u8) {
    (ObjectId::hashed(files::object(fd)), WHOLE)
}

/// The file as far as a range of it is concerned: the bytes of the ranges that are known and meet it, or of a new one.
fn range(fd: usize, offset: usize, len: usize, writes: bool) -> (ObjectId, u8) {
    let (file, start) = (files::object(fd), offset as u64);
    let end = start.saturating_add(len.max(1) as u64);
    let beyond = end > size(fd);
    let overlay = overlay();
    let grows = overlay.ranges[..overlay.range_count].iter().any(|r| r.file == file && r.grew);
    let mut mask = 0;
    for (i, range) in overlay.ranges[..overlay.range_count].iter_mut().enumerate() {
        if range.file == file && start < range.end && range.start < end {
            if mask == 0 {
                (range.start, range.end) = (range.start.min(start), range.end.max(end));
                range.grew |= writes && beyond;
            }
            mask |= 1 << (i & 7);
        }
    }
    if mask == 0 && overlay.range_count < MOST_RANGES {
        overlay.ranges[overlay.range_count] = Range { file, start, end, grew: writes && beyond };
        mask = 1 << (overlay.range_count & 7);
        overlay.range_count += 1;
    }
    let all = mask == 0 || !writes && (beyond || grows);
    (ObjectId::hashed(file), if all { WHOLE } else { mask })
}

/// Whether the descriptor still stands for a file after the thread had to wait for its turn.
fn still(fd: usize) -> bool {
    matches!(kind(fd), Ok(Kind::Regular)) && is_open(fd)
}

/// Announces an operation, unless the file is one that nobody can change.
fn take(fd: usize, op: impl FnOnce() -> Op) {
    if !is_quiet(fd) {
        turn::take(op());
    }
}

pub fn read(fd: usize, buffer: usize, len: usize) -> isize {
    take(fd, || turn::op(OpKind::OutsideTake, What::Read, Some(fd), whole(fd), offset_object(fd)));
    if !still(fd) {
        return EBADF;
    }
    moves();
    writable(buffer, len);
    real(nr::read, [fd, buffer, len, 0, 0, 0])
}

pub fn read_at(fd: usize, buffer: usize, len: usize, offset: usize) -> isize {
    let range = || range(fd, offset, len, false);
    take(fd, || turn::op(OpKind::OutsideLook, What::Read, Some(fd), range(), offset_object(fd)));
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
    let range = range(fd, offset, len, true);
    turn::take(turn::op(OpKind::OutsidePut, What::Write, Some(fd), range, offset_object(fd)));
    changed(fd, || real(nr::pwrite64, [fd, buffer, len, offset, 0, 0]))
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
    let op = || match whence {
        0 | SEEK_CUR => turn::op(OpKind::OutsideChange, What::Seek, Some(fd), offset_object(fd), (ObjectId::NONE, 0)),
        _ => turn::op(OpKind::OutsideTake, What::Seek, Some(fd), whole(fd), offset_object(fd)),
    };
    take(fd, op);
    if !still(fd) {
        return EBADF;
    }
    moves();
    real(nr::lseek, [fd, offset, whence, 0, 0, 0])
}

/// Somebody asks for the file's length, or looks at it as a whole.
pub fn end_of(fd: usize) {
    take(fd, || turn::op(OpKind::OutsideLook, What::Ask, Some(fd), whole(fd), (ObjectId::NONE, 0)));
}

/// A directory's offset goes back.
pub fn about_to_seek(fd: usize) {
    if let Some(listed) = overlay().listed.get_mut(fd) {
        *listed = 0;
    }
}

/// A descriptor of a file is about to be closed or replaced.
pub fn about_to_close(fd: usize) {
    take(fd, || turn::op(OpKind::OutsideChange, What::Close, Some(fd), offset_object(fd), (ObjectId::NONE, 0)));
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
