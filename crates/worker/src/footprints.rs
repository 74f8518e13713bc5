//! The footprints of an execution's new steps, and the memory of its threads: see `symdpor_abi::local`.

use crate::bytes::{Damaged, Reader};
use crate::channel::Channel;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::channel::{self as layout, Header};
use symdpor_abi::local::{footprint, memory};
use symdpor_abi::object::ObjectId;
use symdpor_trace::{Fence, Footprints, LocalState, PlainAccess, ThreadId, ThreadMemory};

/// Reads the footprints of the steps from `first` on.
pub fn read(channel: &Channel, header: &Header, first: usize, prints: &mut Footprints) -> Result<(), Damaged> {
    prints.clear();
    prints.first = first;
    let len = header.footprints_len as usize;
    if len > layout::FOOTPRINTS_BYTES {
        return Err(Damaged("the length of the footprints"));
    }
    let bytes = channel.bytes(layout::FOOTPRINTS_OFFSET, len);
    let mut reader = Reader::new(&bytes);
    while !reader.is_at_end() {
        record(&mut reader, prints)?;
    }
    Ok(())
}

fn record(reader: &mut Reader<'_>, prints: &mut Footprints) -> Result<(), Damaged> {
    let word = reader.u64()?;
    match word & 0xff {
        footprint::ACCESS => prints.accesses.push(PlainAccess {
            thread: thread(word)?,
            object: ObjectId(reader.u64()?),
            granules: (word >> 33) as u32,
            mask: (word >> 24) as u8,
            write: word >> 32 & 1 != 0,
        }),
        footprint::LOCAL => {
            let local = local_state(reader)?;
            prints.locals.push((thread(word)?, local));
        }
        footprint::ORDERED => {
            let object = ObjectId(reader.u64()?);
            prints.ordered.push((thread(word)?, object));
        }
        footprint::BLOCK => prints.blocks.push((ObjectId(reader.u64()?), reader.u64()?)),
        footprint::FENCE => prints.fences.push(Fence {
            thread: thread(word)?,
            order: (word >> 24) as u8,
            first: word >> 32 & 1 != 0,
            last: word >> 33 & 1 != 0,
            several: word >> 34 & 1 != 0,
        }),
        kind if kind > footprint::OF_MEMORY => {
            let of_memory = word - footprint::OF_MEMORY;
            memory_record(of_memory, reader, &mut prints.memory)?;
        }
        footprint::END => {
            let result = reader.u64()?;
            prints.end_step(word >> 8 & 1 != 0, (word >> 9 & 1 != 0).then_some(result));
        }
        _ => return Err(Damaged("a footprint")),
    }
    Ok(())
}

fn thread(word: u64) -> Result<ThreadId, Damaged> {
    let number = (word >> 8) as u16;
    if (number as usize) < MAX_THREADS { Ok(ThreadId(number)) } else { Err(Damaged("the thread of a footprint")) }
}

fn local_state(reader: &mut Reader<'_>) -> Result<LocalState, Damaged> {
    let (low, high) = (reader.u64()?, reader.u64()?);
    Ok(LocalState(u128::from(low) | u128::from(high) << 64))
}

/// Reads what the threads have to themselves.
pub fn read_memory(channel: &Channel, header: &Header) -> Result<Vec<ThreadMemory>, Damaged> {
    let len = header.memory_len as usize;
    if len > layout::MEMORY_BYTES {
        return Err(Damaged("the length of the memory"));
    }
    let bytes = channel.bytes(layout::MEMORY_OFFSET, len);
    let mut reader = Reader::new(&bytes);
    let mut threads: Vec<ThreadMemory> = Vec::new();
    while !reader.is_at_end() {
        memory_record(reader.u64()?, &mut reader, &mut threads)?;
    }
    Ok(threads)
}

fn memory_record(word: u64, reader: &mut Reader<'_>, threads: &mut Vec<ThreadMemory>) -> Result<(), Damaged> {
    match (word & 0xff, threads.last_mut()) {
        (memory::THREAD, _) => {
            let local = local_state(reader)?;
            let [stack, settled] = [24, 25].map(|bit| word >> bit & 1 != 0);
            threads.push(ThreadMemory { thread: thread(word)?, local, stack, settled, blocks: vec![] });
        }
        (memory::BLOCK, Some(last)) => last.blocks.push((ObjectId(reader.u64()?), reader.u64()?)),
        _ => return Err(Damaged("a record of memory")),
    }
    Ok(())
}
