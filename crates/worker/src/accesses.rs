//! Plain accesses, names of threads and heap blocks of an execution that was run again for a report.

use crate::bytes::{Damaged, Reader};
use crate::channel::Channel;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::channel::{self as layout, AccessRecord, BlockRecord, Header, NameRecord, access_flags};
use symdpor_abi::object::ObjectId;
use symdpor_trace::ThreadId;

/// What reports need and ordinary executions do not keep.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Particulars {
    pub accesses: Vec<RawAccess>,
    pub names: Vec<(ThreadId, String)>,
    pub blocks: Vec<RawBlock>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawAccess {
    /// How many steps had begun.
    pub step: u32,
    pub thread: ThreadId,
    pub writes: bool,
    /// It frees the block.
    pub frees: bool,
    pub site: u32,
    pub len: u32,
    pub object: ObjectId,
    pub mask: u8,
    pub values: Option<(u64, u64)>,
}

/// A block of the heap, with the site of its allocation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RawBlock {
    pub base: u64,
    pub size: u64,
    pub site: u32,
}

pub fn read(channel: &Channel, header: &Header) -> Result<Particulars, Damaged> {
    let region = |offset, len: u32, capacity, record: usize| {
        let len = len as usize;
        if len > capacity || !len.is_multiple_of(record) {
            return Err(Damaged("the length of what a report needs"));
        }
        Ok((channel.bytes(offset, len), len / record))
    };
    let (bytes, count) =
        region(layout::ACCESSES_OFFSET, header.accesses_len, layout::ACCESSES_BYTES, size_of::<AccessRecord>())?;
    let mut reader = Reader::new(&bytes);
    let accesses = (0..count).map(|_| read_access(&mut reader)).collect::<Result<_, _>>()?;
    let (bytes, count) = region(layout::NAMES_OFFSET, header.names_len, layout::NAMES_BYTES, size_of::<NameRecord>())?;
    let mut reader = Reader::new(&bytes);
    let names = (0..count).map(|_| read_name(&mut reader)).collect::<Result<_, _>>()?;
    let (bytes, count) =
        region(layout::BLOCKS_OFFSET, header.blocks_len, layout::BLOCKS_BYTES, size_of::<BlockRecord>())?;
    let mut reader = Reader::new(&bytes);
    let blocks = (0..count).map(|_| read_block(&mut reader)).collect::<Result<_, _>>()?;
    Ok(Particulars { accesses, names, blocks })
}

fn read_access(reader: &mut Reader<'_>) -> Result<RawAccess, Damaged> {
    let step = reader.u32()?;
    let thread = known_thread(u32::from(reader.u16()?))?;
    let flags = reader.u16()?;
    let (site, len) = (reader.u32()?, reader.u32()?);
    let object = ObjectId(reader.u64()?);
    let mask = reader.u32()? as u8;
    reader.u32()?;
    let values = (reader.u64()?, reader.u64()?);
    let values = (flags & access_flags::VALUES != 0).then_some(values);
    let (writes, frees) = (flags & access_flags::WRITES != 0, flags & access_flags::FREES != 0);
    Ok(RawAccess { step, thread, writes, frees, site, len, object, mask, values })
}

fn read_name(reader: &mut Reader<'_>) -> Result<(ThreadId, String), Damaged> {
    let thread = known_thread(reader.u32()?)?;
    reader.u32()?;
    let bytes = reader.take(16)?;
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    Ok((thread, String::from_utf8_lossy(&bytes[..end]).into_owned()))
}

fn read_block(reader: &mut Reader<'_>) -> Result<RawBlock, Damaged> {
    let (base, size, site) = (reader.u64()?, reader.u64()?, reader.u32()?);
    reader.u32()?;
    Ok(RawBlock { base, size, site })
}

fn known_thread(raw: u32) -> Result<ThreadId, Damaged> {
    if (raw as usize) < MAX_THREADS { Ok(ThreadId(raw as u16)) } else { Err(Damaged("the thread of an access")) }
}
