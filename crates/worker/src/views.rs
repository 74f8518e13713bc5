//! Local states word by word, for explanations: see `symdpor_abi::local::memory`.

use crate::bytes::{Damaged, Reader};
use crate::channel::Channel;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::channel::{self as layout, Header};
use symdpor_abi::local::memory;
use symdpor_trace::ThreadId;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    Code(u64),
    Value(u64),
    /// An address in a live object of the own stack: its number and the offset.
    OwnObject(u64),
    /// An address in a block of its own.
    OwnBlock(u64),
    /// An address elsewhere on the own stack, as an offset.
    OwnStack(u64),
}

/// A frame, from the innermost outwards. What comes before the first frame has site 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FrameView {
    pub site: u32,
    /// The innermost: its operation is still to be done.
    pub before: bool,
    pub words: Vec<Word>,
}

/// A thread as symmetry sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadView {
    pub thread: ThreadId,
    /// Why it is like no other, and where: see `symdpor_abi::local::why`.
    pub unlike: Option<(u64, u32)>,
    pub hash: u128,
    /// Nobody else has an address of its stack.
    pub stack: bool,
    pub frames: Vec<FrameView>,
}

/// Reads what all threads told of themselves.
pub fn read(channel: &Channel, header: &Header) -> Result<Vec<ThreadView>, Damaged> {
    let len = header.memory_len as usize;
    if len > layout::MEMORY_BYTES {
        return Err(Damaged("the length of the memory"));
    }
    let bytes = channel.bytes(layout::MEMORY_OFFSET, len);
    let mut reader = Reader::new(&bytes);
    let mut views: Vec<ThreadView> = Vec::new();
    while !reader.is_at_end() {
        let word = reader.u64()?;
        if word & 0xff == memory::BLOCK {
            reader.u64()?;
            reader.u64()?;
            continue;
        }
        let number = (word >> 8) as u16;
        if number as usize >= MAX_THREADS {
            return Err(Damaged("the thread of a view"));
        }
        record(word, view_of(&mut views, ThreadId(number)), &mut reader)?;
    }
    Ok(views)
}

fn view_of(views: &mut Vec<ThreadView>, thread: ThreadId) -> &mut ThreadView {
    if views.last().is_none_or(|v| v.thread != thread) {
        views.push(ThreadView { thread, unlike: None, hash: 0, stack: true, frames: vec![FrameView::default()] });
    }
    let last = views.len() - 1;
    &mut views[last]
}

fn record(word: u64, view: &mut ThreadView, reader: &mut Reader<'_>) -> Result<(), Damaged> {
    let detail = word >> 24 & 0xff;
    match word & 0xff {
        memory::THREAD => {
            view.stack = detail & 1 != 0;
            view.hash = u128::from(reader.u64()?) | u128::from(reader.u64()?) << 64;
        }
        memory::WHY => view.unlike = Some((detail, reader.u64()? as u32)),
        memory::FRAME => {
            let site = reader.u64()? as u32;
            view.frames.push(FrameView { site, before: detail & 1 != 0, words: vec![] });
        }
        memory::WORD => {
            let value = reader.u64()?;
            let kinds = [Word::Code, Word::Value, Word::OwnObject, Word::OwnBlock, Word::OwnStack];
            let kind = kinds.get(detail as usize).ok_or(Damaged("a kind of word"))?;
            let word = kind(value);
            view.frames.last_mut().ok_or(Damaged("a word without a frame"))?.words.push(word);
        }
        _ => return Err(Damaged("a record of memory")),
    }
    Ok(())
}
