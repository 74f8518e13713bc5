//! The worker's answer as data: steps, pending operations, errors, output.
//!
//! Everything is checked, since the program can write to the channel: numbers of threads, kinds of operations, lengths.
//! [`Trace`] keeps the bytes of the last execution. The next one repeats a prefix of it, which is compared byte by byte
//! and not decoded again; so the cost of an execution's decoding is that of its new part.

use crate::bytes::{Damaged, Reader};
use crate::channel::Channel;
use symdpor_abi::channel::{self as layout, Header, Outcome, StackRole};
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind};
use symdpor_abi::{MAX_THREADS, channel};
use symdpor_trace::{End, Execution, PendingOp, Step, ThreadId, ThreadSet};

/// An operation a thread was about to do at the end, with what only reports need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawPending {
    pub thread: ThreadId,
    pub enabled: bool,
    pub site: u32,
    pub op: Op,
    pub holder: Option<ThreadId>,
    pub held_since: u32,
}

/// The error region.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RawError {
    pub thread: u32,
    pub site: u32,
    pub object: ObjectId,
    pub mask: u32,
    pub other_thread: u32,
    pub access_bits: u32,
    pub address: u64,
    /// From the beginning of the program, or 0.
    pub instruction: u64,
    pub message: String,
    pub stacks: Vec<RawStack>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawStack {
    pub thread: ThreadId,
    pub role: StackRole,
    /// Site ids, innermost first.
    pub frames: Vec<u32>,
}

/// The first step of a repeated prefix that was not as before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// Counted from 0.
    pub step: usize,
    pub before: channel::Step,
    /// None if the execution ended there.
    pub now: Option<channel::Step>,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TraceError {
    #[error(transparent)]
    Damaged(#[from] Damaged),
    #[error("step {} is not as before", .0.step)]
    Differs(Box<Divergence>),
}

/// The steps of the last execution: as bytes, and decoded.
#[derive(Clone, Default)]
pub struct Trace {
    bytes: Vec<u8>,
    /// Where each step begins in `bytes`, and one more for the end.
    starts: Vec<usize>,
}

impl Trace {
    /// Number of steps.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The record of a step.
    pub fn step(&self, index: usize) -> channel::Step {
        let mut reader = Reader::new(&self.bytes[self.starts[index]..self.starts[index + 1]]);
        read_step(&mut reader).expect("was checked when it came in").0
    }

    /// Takes over the steps of an answer. `same` says how many choices the plan had in common with the execution
    /// before: so many steps must be as they were, and the state before the next one too. `execution` gets the new
    /// steps in place of the old ones beyond that.
    pub fn update(
        &mut self,
        channel: &Channel,
        header: &Header,
        same: usize,
        execution: &mut Execution,
    ) -> Result<(), TraceError> {
        let len = header.trace_len as usize;
        if len > layout::TRACE_BYTES || !len.is_multiple_of(8) || header.thread_count as usize > MAX_THREADS {
            return Err(Damaged("the length of the trace").into());
        }
        let same = same.min(self.len());
        let branch = (same < self.len()).then(|| execution.steps[same].enabled.clone());
        let branch_step = (same < self.len()).then(|| self.step(same));
        self.keep_prefix(channel, len, same, header.thread_count)?;
        let kept = self.bytes.len();
        channel.copy_out(layout::TRACE_OFFSET + kept, len - kept, &mut self.bytes);
        execution.steps.truncate(same);
        self.decode_from(kept, header, execution)?;
        match (branch, branch_step) {
            (Some(enabled), Some(before)) => self.check_branch(same, &enabled, before, execution),
            _ => Ok(()),
        }
    }

    /// Compares the steps of an answer with the first `steps` of the last execution.
    pub fn check(&self, channel: &Channel, header: &Header, steps: usize) -> Result<(), TraceError> {
        let len = header.trace_len as usize;
        if len > layout::TRACE_BYTES || header.thread_count as usize > MAX_THREADS {
            return Err(Damaged("the length of the trace").into());
        }
        let steps = steps.min(self.len());
        let kept = self.starts.get(steps).copied().unwrap_or(0);
        if kept != len || !channel.equals(layout::TRACE_OFFSET, &self.bytes[..kept]) {
            let now = channel.bytes(layout::TRACE_OFFSET, len);
            self.compare(&now, steps, header.thread_count)?;
        }
        Ok(())
    }

    /// Cuts the kept bytes to the steps that must be the same, having compared them.
    fn keep_prefix(&mut self, channel: &Channel, len: usize, same: usize, threads: u32) -> Result<(), TraceError> {
        let kept = self.starts.get(same).copied().unwrap_or(0);
        if kept > len || !channel.equals(layout::TRACE_OFFSET, &self.bytes[..kept]) {
            let now = channel.bytes(layout::TRACE_OFFSET, len);
            self.compare(&now, same, threads)?;
            self.bytes = now;
        }
        self.bytes.truncate(kept);
        self.starts.truncate(same + 1);
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        Ok(())
    }

    /// Values may differ between worker processes (addresses do), operations may not.
    fn compare(&self, now: &[u8], same: usize, threads: u32) -> Result<(), TraceError> {
        let mut reader = Reader::new(now);
        for step in 0..same {
            let before = &self.bytes[self.starts[step]..self.starts[step + 1]];
            let (old, old_enabled) = read_step(&mut Reader::new(before))?;
            if reader.is_at_end() {
                return Err(TraceError::Differs(Box::new(Divergence { step, before: old, now: None })));
            }
            let (new, new_enabled) = read_checked_step(&mut reader, threads)?;
            let without_values = |s: channel::Step| channel::Step { old_value: 0, new_value: 0, flags: 0, ..s };
            if without_values(old) != without_values(new) || old_enabled != new_enabled {
                return Err(TraceError::Differs(Box::new(Divergence { step, before: old, now: Some(new) })));
            }
        }
        Ok(())
    }

    fn decode_from(&mut self, start: usize, header: &Header, execution: &mut Execution) -> Result<(), Damaged> {
        let mut reader = Reader::new(&self.bytes[start..]);
        while !reader.is_at_end() {
            let (raw, enabled) = read_checked_step(&mut reader, header.thread_count)?;
            self.starts.push(start + reader.position());
            execution.steps.push(step_of(&raw, enabled));
        }
        if execution.steps.len() != header.step_count as usize {
            return Err(Damaged("the number of steps"));
        }
        Ok(())
    }

    /// The state before the first new step is an old one: the same threads must be enabled in it.
    fn check_branch(
        &self,
        at: usize,
        enabled: &ThreadSet,
        before: channel::Step,
        execution: &Execution,
    ) -> Result<(), TraceError> {
        match execution.steps.get(at) {
            Some(step) if step.enabled != *enabled => {
                Err(TraceError::Differs(Box::new(Divergence { step: at, before, now: Some(self.step(at)) })))
            }
            _ => Ok(()),
        }
    }
}

fn step_of(raw: &channel::Step, enabled: ThreadSet) -> Step {
    Step {
        thread: ThreadId(raw.thread),
        op: raw.op,
        alternatives: raw.alternatives,
        alternative: raw.alternative,
        enabled,
    }
}

fn read_checked_step(reader: &mut Reader<'_>, threads: u32) -> Result<(channel::Step, ThreadSet), Damaged> {
    let (raw, enabled) = read_step(reader)?;
    let sensible = u32::from(raw.thread) < threads
        && raw.alternative < raw.alternatives
        && enabled.last().is_none_or(|t| u32::from(t.0) < threads);
    if sensible { Ok((raw, enabled)) } else { Err(Damaged("a step")) }
}

fn read_step(reader: &mut Reader<'_>) -> Result<(channel::Step, ThreadSet), Damaged> {
    let step = read_fixed_part(&mut Reader::new(reader.take(size_of::<channel::Step>())?))?;
    if step.enabled_words as usize > MAX_THREADS / 64 {
        return Err(Damaged("a set of threads"));
    }
    if step.enabled_words == 1 {
        return Ok((step, ThreadSet::from_words(&[reader.u64()?])));
    }
    let mut words = [0; MAX_THREADS / 64];
    let words = &mut words[..step.enabled_words as usize];
    for word in words.iter_mut() {
        *word = reader.u64()?;
    }
    Ok((step, ThreadSet::from_words(words)))
}

/// Inlined where the length is known, so that it is checked once.
#[inline(always)]
fn read_fixed_part(reader: &mut Reader<'_>) -> Result<channel::Step, Damaged> {
    Ok(channel::Step {
        thread: reader.u16()?,
        enabled_words: reader.u16()?,
        alternatives: reader.u16()?,
        alternative: reader.u16()?,
        site: reader.u32()?,
        flags: reader.u32()?,
        op: read_op(reader)?,
        old_value: reader.u64()?,
        new_value: reader.u64()?,
    })
}

#[inline(always)]
fn read_op(reader: &mut Reader<'_>) -> Result<Op, Damaged> {
    Ok(Op {
        kind: OpKind::from_u8(reader.u8()?).ok_or(Damaged("a kind of operation"))?,
        mask: reader.u8()?,
        mask2: reader.u8()?,
        order: reader.u8()?,
        arg: reader.u32()?,
        object: ObjectId(reader.u64()?),
        object2: ObjectId(reader.u64()?),
    })
}

/// The pending operations, by thread number.
pub fn pending(channel: &Channel, header: &Header) -> Result<Vec<RawPending>, Damaged> {
    let count = header.pending_count as usize;
    if count > header.thread_count as usize || header.thread_count as usize > MAX_THREADS {
        return Err(Damaged("the number of pending operations"));
    }
    let bytes = channel.bytes(layout::PENDING_OFFSET, count * size_of::<channel::Pending>());
    let mut reader = Reader::new(&bytes);
    let mut all: Vec<RawPending> = (0..count).map(|_| read_pending(&mut reader)).collect::<Result<_, _>>()?;
    all.sort_by_key(|p| p.thread);
    if all.iter().any(|p| u32::from(p.thread.0) >= header.thread_count)
        || all.windows(2).any(|w| w[0].thread == w[1].thread)
    {
        return Err(Damaged("a pending operation"));
    }
    Ok(all)
}

fn read_pending(reader: &mut Reader<'_>) -> Result<RawPending, Damaged> {
    Ok(RawPending {
        thread: ThreadId(reader.u16()?),
        enabled: reader.u16()? != 0,
        site: reader.u32()?,
        op: read_op(reader)?,
        holder: thread_below_max(reader.u32()?),
        held_since: reader.u32()?,
    })
}

fn thread_below_max(raw: u32) -> Option<ThreadId> {
    ((raw as usize) < MAX_THREADS).then_some(ThreadId(raw as u16))
}

impl From<&RawPending> for PendingOp {
    fn from(raw: &RawPending) -> PendingOp {
        PendingOp { thread: raw.thread, op: raw.op, enabled: raw.enabled }
    }
}

/// What the end of the execution means to the search.
pub fn end_of(outcome: Outcome) -> End {
    match outcome {
        Outcome::Exited | Outcome::Deadlock | Outcome::Dropped => End::Complete,
        Outcome::SleepBlocked => End::SleepBlocked,
        Outcome::InVain => End::InVain,
        Outcome::Asked => End::Asked,
        _ => End::Cut,
    }
}

/// The error region, if anything was written to it.
pub fn error(channel: &Channel, header: &Header) -> Result<Option<RawError>, Damaged> {
    let len = header.error_len as usize;
    if len > layout::ERROR_BYTES {
        return Err(Damaged("the length of the error"));
    }
    if len == 0 {
        return Ok(None);
    }
    let bytes = channel.bytes(layout::ERROR_OFFSET, len);
    read_error(&mut Reader::new(&bytes)).map(Some)
}

fn read_error(reader: &mut Reader<'_>) -> Result<RawError, Damaged> {
    let mut error = RawError {
        thread: reader.u32()?,
        site: reader.u32()?,
        object: ObjectId(reader.u64()?),
        mask: reader.u32()?,
        other_thread: reader.u32()?,
        access_bits: reader.u32()?,
        ..RawError::default()
    };
    let message_len = reader.u32()? as usize;
    let stack_count = reader.u32()?;
    reader.u32()?;
    error.address = reader.u64()?;
    error.instruction = reader.u64()?;
    error.message = String::from_utf8_lossy(reader.take_padded(message_len)?).into_owned();
    for _ in 0..stack_count {
        error.stacks.push(read_stack(reader)?);
    }
    Ok(error)
}

/// The stacks of the steps, in order; as many as there was room for.
pub fn step_stacks(channel: &Channel, header: &Header) -> Result<Vec<RawStack>, Damaged> {
    let len = header.stacks_len as usize;
    if len > layout::STACKS_BYTES {
        return Err(Damaged("the length of the stacks"));
    }
    let bytes = channel.bytes(layout::STACKS_OFFSET, len);
    let mut reader = Reader::new(&bytes);
    let mut stacks = Vec::new();
    while !reader.is_at_end() {
        stacks.push(read_stack(&mut reader)?);
    }
    Ok(stacks)
}

fn read_stack(reader: &mut Reader<'_>) -> Result<RawStack, Damaged> {
    let thread = thread_below_max(reader.u32()?).ok_or(Damaged("the thread of a stack"))?;
    let role = stack_role(reader.u32()?).ok_or(Damaged("the role of a stack"))?;
    let count = reader.u32()? as usize;
    reader.u32()?;
    let bytes = reader.take_padded(count.checked_mul(4).ok_or(Damaged("the length of a stack"))?)?;
    let frames = bytes.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().expect("four bytes"))).collect();
    Ok(RawStack { thread, role, frames })
}

fn stack_role(raw: u32) -> Option<StackRole> {
    use StackRole::*;
    [Error, Earlier, Other, Allocated, Freed].get(raw as usize).copied()
}

/// What the program wrote: descriptor and bytes, in order, neighbours of the same descriptor joined.
pub fn output(channel: &Channel, header: &Header) -> Result<Vec<(u8, Vec<u8>)>, Damaged> {
    let len = header.output_len as usize;
    if len > layout::OUTPUT_BYTES {
        return Err(Damaged("the length of the output"));
    }
    let bytes = channel.bytes(layout::OUTPUT_OFFSET, len);
    let mut reader = Reader::new(&bytes);
    let mut all: Vec<(u8, Vec<u8>)> = Vec::new();
    while !reader.is_at_end() {
        let descriptor = reader.u32()? as u8;
        let length = reader.u32()? as usize;
        let written = reader.take_padded(length)?;
        match all.last_mut() {
            Some((last, bytes)) if *last == descriptor => bytes.extend(written),
            _ => all.push((descriptor, written.to_vec())),
        }
    }
    Ok(all)
}
