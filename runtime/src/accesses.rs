//! The plain accesses of an execution with their values, for reports: on request only, when a failing plan is run again.
//!
//! The hook comes before the access, so what a store wrote is looked up when the thread is heard of next. Until then nobody
//! else has run.

use crate::cell::Global;
use crate::channel::{self, Writer};
use crate::exec;
use crate::names;
use crate::sched;
use crate::stack;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::channel::{
    ACCESSES_BYTES, ACCESSES_OFFSET, AccessRecord, BLOCKS_BYTES, BLOCKS_OFFSET, BlockRecord, NAMES_BYTES, NAMES_OFFSET,
    NameRecord, access_flags, options,
};
use symdpor_abi::object::{ObjectId, Region};
use symdpor_detect::heap::Heap;

/// The store whose value is not known yet: where its record is, and the address.
static OPEN: Global<Option<(usize, usize)>> = Global::new(None);

/// The block that was noted last.
static LAST_BLOCK: Global<usize> = Global::new(0);

pub fn is_on() -> bool {
    channel::says(options::ACCESSES)
}

pub fn reset() {
    *OPEN.get() = None;
    *LAST_BLOCK.get() = 0;
}

/// Notes an access that the running thread is about to make.
pub fn note(address: usize, len: usize, writes: bool, site: usize) {
    settle();
    block(address);
    let header = channel::header();
    let value = value(address, len);
    let mut record = AccessRecord {
        step: sched::step_number(),
        thread: exec::get().current,
        flags: 0,
        site: stack::site_id(stack::innermost(site)),
        len: len.min(u32::MAX as usize) as u32,
        object: names::object(address).0,
        mask: names::mask(address, len) as u32,
        reserved: 0,
        old_value: value.unwrap_or(0),
        new_value: value.unwrap_or(0),
    };
    if writes {
        record.flags |= access_flags::WRITES;
    }
    if value.is_some() {
        record.flags |= access_flags::VALUES;
    }
    let at = channel::region(ACCESSES_OFFSET) + header.accesses_len as usize;
    let mut writer = Writer::resume(ACCESSES_OFFSET, ACCESSES_BYTES, header.accesses_len as usize);
    if writer.record(&record) {
        header.accesses_len = writer.used() as u32;
        if writes && value.is_some() {
            *OPEN.get() = Some((at, address));
        }
    }
}

/// The write that was noted last frees a block.
pub fn frees() {
    let used = channel::header().accesses_len as usize;
    if is_on() && used >= size_of::<AccessRecord>() && used <= ACCESSES_BYTES {
        *OPEN.get() = None;
        let at = channel::region(ACCESSES_OFFSET) + used - size_of::<AccessRecord>();
        // SAFETY: the last record that was written.
        let record = unsafe { &mut *(at as *mut AccessRecord) };
        record.flags = access_flags::WRITES | access_flags::FREES;
    }
}

/// A step is about to be made on this object.
pub fn step(object: ObjectId) {
    settle();
    if is_on() && object.region() == Region::Heap {
        block(object.payload() as usize);
    }
}

/// Notes the heap block of an address, if it is in one.
fn block(address: usize) {
    if !Heap::contains(address) {
        return;
    }
    let Some(block) = exec::get().heap.describe(address).filter(|b| b.base != *LAST_BLOCK.get()) else { return };
    *LAST_BLOCK.get() = block.base;
    let header = channel::header();
    let mut writer = Writer::resume(BLOCKS_OFFSET, BLOCKS_BYTES, header.blocks_len as usize);
    let (base, size) = (block.base as u64, block.size as u64);
    writer.record(&BlockRecord { base, size, site: block.alloc_site, thread: block.thread as u32 });
    header.blocks_len = writer.used() as u32;
}

/// The last store has been made by now.
pub fn settle() {
    if let Some((at, address)) = OPEN.get().take() {
        // SAFETY: the record was written there by `note`.
        let record = unsafe { &mut *(at as *mut AccessRecord) };
        if let Some(value) = value(address, record.len as usize) {
            record.new_value = value;
        }
    }
}

/// Up to eight bytes. Memory that may not be mapped is not touched: the program shall crash of it, and not we.
fn value(address: usize, len: usize) -> Option<u64> {
    let safe = match names::object(address).region() {
        Region::Heap | Region::Module | Region::MainStack => true,
        Region::Stack => names::is_stack(address & !7),
        _ => false,
    };
    if !safe || !matches!(len, 1 | 2 | 4 | 8) {
        return None;
    }
    let mut bytes = [0; 8];
    // SAFETY: the access that is about to be made touches the same bytes, in memory that is mapped.
    unsafe { core::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), len) };
    Some(u64::from_le_bytes(bytes))
}

/// At the end of the execution: the last value, and the names that the program gave to its threads.
pub fn finish() {
    if !is_on() {
        return;
    }
    settle();
    let mut writer = Writer::new(NAMES_OFFSET, NAMES_BYTES);
    for number in 0..(exec::get().thread_count as usize).min(MAX_THREADS) {
        if let Some(name) = crate::syscalls::given_name(number) {
            writer.record(&NameRecord { thread: number as u32, reserved: 0, name });
        }
    }
    channel::header().names_len = writer.used() as u32;
}
