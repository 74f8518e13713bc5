//! Answers as bytes: read as they were meant, and refused when they were not meant at all.

use symdpor_abi::channel::{self as layout, Header, Outcome};
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::OpKind;
use symdpor_trace::{End, Execution, ThreadId};
use symdpor_worker::channel::Channel;
use symdpor_worker::decode::{self, Trace, TraceError};

/// A step of `thread` on `object` with the value `value`, two threads enabled.
fn step(thread: u16, kind: OpKind, object: u64, value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for half in [thread, 1, 1, 0] {
        bytes.extend(half.to_le_bytes());
    }
    bytes.extend(11u32.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    bytes.extend([kind as u8, 0xff, 0, 5]);
    bytes.extend(0u32.to_le_bytes());
    for word in [object, 0, 0, value, 0b11] {
        bytes.extend(u64::to_le_bytes(word));
    }
    bytes
}

fn put(channel: &mut Channel, offset: usize, bytes: &[u8]) {
    let words: Vec<u32> = bytes.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
    channel.write_words(offset, words.into_iter());
}

struct Bench {
    channel: Channel,
    trace: Trace,
    execution: Execution,
}

impl Bench {
    fn new() -> Bench {
        let execution = Execution {
            steps: vec![],
            pending: vec![],
            end: End::Cut,
            dropped: false,
            footprints: Default::default(),
            memory: vec![],
        };
        Bench { channel: Channel::new(0).unwrap(), trace: Trace::default(), execution }
    }

    fn header(&self, bytes: usize, steps: u32) -> Header {
        let mut header = self.channel.header();
        (header.trace_len, header.step_count, header.thread_count) = (bytes as u32, steps, 2);
        header
    }

    /// Puts an answer of these steps into the channel and takes it over.
    fn answer(&mut self, same: usize, steps: &[Vec<u8>]) -> Result<(), TraceError> {
        let bytes = steps.concat();
        put(&mut self.channel, layout::TRACE_OFFSET, &bytes);
        let header = self.header(bytes.len(), steps.len() as u32);
        self.trace.update(&self.channel, &header, same, &mut self.execution)
    }
}

fn objects(execution: &Execution) -> Vec<u64> {
    execution.steps.iter().map(|s| s.op.object.0).collect()
}

#[test]
fn steps_are_read_and_prefixes_kept() {
    let mut bench = Bench::new();
    let lock = |object| step(0, OpKind::MutexLock, object, 0);
    assert_eq!(step(0, OpKind::Yield, 0, 0).len(), size_of::<layout::Step>() + 8);
    bench.answer(0, &[lock(1), lock(2), lock(3)]).unwrap();
    assert_eq!(objects(&bench.execution), [1, 2, 3]);
    assert_eq!(bench.execution.steps[0].enabled.iter().collect::<Vec<_>>(), [ThreadId(0), ThreadId(1)]);
    bench.answer(1, &[lock(1), lock(8), lock(9), lock(10)]).unwrap();
    assert_eq!(objects(&bench.execution), [1, 8, 9, 10]);
    assert_eq!(bench.trace.len(), 4);
    assert_eq!(bench.trace.step(2).op.object, ObjectId(9));
    bench.answer(4, &[lock(1), lock(8), lock(9), lock(10)]).unwrap();
    bench.answer(0, &[]).unwrap();
    assert!(bench.trace.is_empty() && bench.execution.steps.is_empty());
}

#[test]
fn another_operation_in_the_prefix_is_a_divergence() {
    let mut bench = Bench::new();
    let lock = |object| step(0, OpKind::MutexLock, object, 0);
    bench.answer(0, &[lock(1), lock(2), lock(3)]).unwrap();
    let Err(TraceError::Differs(what)) = bench.answer(2, &[lock(1), lock(7), lock(3)]) else { panic!() };
    assert_eq!((what.step, what.before.op.object.0, what.now.unwrap().op.object.0), (1, 2, 7));
    let Err(TraceError::Differs(what)) = bench.answer(3, &[lock(1), lock(2)]) else { panic!() };
    assert_eq!((what.step, what.now), (2, None));
}

#[test]
fn another_value_in_the_prefix_is_none() {
    let mut bench = Bench::new();
    bench.answer(0, &[step(0, OpKind::AtomicLoad, 1, 5), step(1, OpKind::AtomicLoad, 1, 5)]).unwrap();
    bench.answer(1, &[step(0, OpKind::AtomicLoad, 1, 6), step(0, OpKind::AtomicLoad, 2, 5)]).unwrap();
    assert_eq!(objects(&bench.execution), [1, 2]);
    assert_eq!(bench.trace.step(0).new_value, 6);
}

#[test]
fn other_enabled_threads_at_the_branch_are_a_divergence() {
    let mut bench = Bench::new();
    bench.answer(0, &[step(0, OpKind::Yield, 0, 0), step(0, OpKind::Yield, 0, 0)]).unwrap();
    let mut alone = step(1, OpKind::Yield, 0, 0);
    let end = alone.len();
    alone[end - 8] = 0b10;
    let Err(TraceError::Differs(what)) = bench.answer(1, &[step(0, OpKind::Yield, 0, 0), alone]) else { panic!() };
    assert_eq!(what.step, 1);
}

/// Changes one byte of a step and expects it to be noticed.
fn refuse(at: usize, value: u8) {
    let mut bytes = step(0, OpKind::MutexLock, 1, 0);
    bytes[at] = value;
    let answer = Bench::new().answer(0, &[bytes]);
    assert!(matches!(answer, Err(TraceError::Damaged(_))), "byte {at} = {value}: {answer:?}");
}

#[test]
fn steps_without_sense_are_refused() {
    refuse(0, 2);
    refuse(2, 17);
    refuse(3, 0xff);
    refuse(4, 0);
    refuse(6, 1);
    refuse(16, OpKind::ALL.len() as u8);
    refuse(56, 0b100);
}

#[test]
fn lengths_without_sense_are_refused() {
    let mut bench = Bench::new();
    for (bytes, steps) in [(layout::TRACE_BYTES + 8, 1), (60, 1), (64, 2), (0, 1), (4, 0)] {
        let header = bench.header(bytes, steps);
        let answer = bench.trace.update(&bench.channel, &header, 0, &mut bench.execution);
        assert!(matches!(answer, Err(TraceError::Damaged(_))), "{bytes} bytes, {steps} steps");
        bench = Bench::new();
    }
    let mut header = bench.header(0, 0);
    header.thread_count = symdpor_abi::MAX_THREADS as u32 + 1;
    assert!(bench.trace.update(&bench.channel, &header, 0, &mut bench.execution).is_err());
    header.thread_count = 2;
    header.pending_count = 3;
    assert!(decode::pending(&bench.channel, &header).is_err());
    header.error_len = u32::MAX;
    assert!(decode::error(&bench.channel, &header).is_err());
    header.output_len = u32::MAX;
    assert!(decode::output(&bench.channel, &header).is_err());
}

fn pending(thread: u16, holder: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(thread.to_le_bytes());
    bytes.extend(0u16.to_le_bytes());
    bytes.extend(3u32.to_le_bytes());
    bytes.extend([OpKind::MutexLock as u8, 0xff, 0, 5, 0, 0, 0, 0]);
    bytes.extend([0; 16]);
    bytes.extend(holder.to_le_bytes());
    bytes.extend(4u32.to_le_bytes());
    bytes
}

#[test]
fn pending_operations_come_by_thread() {
    let mut bench = Bench::new();
    let mut header = bench.header(0, 0);
    header.pending_count = 2;
    put(&mut bench.channel, layout::PENDING_OFFSET, &[pending(1, 0), pending(0, u32::MAX)].concat());
    let all = decode::pending(&bench.channel, &header).unwrap();
    assert_eq!(all.iter().map(|p| p.thread.0).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((all[0].holder, all[1].holder), (None, Some(ThreadId(0))));
    put(&mut bench.channel, layout::PENDING_OFFSET, &[pending(1, 0), pending(1, 0)].concat());
    assert!(decode::pending(&bench.channel, &header).is_err(), "one thread twice");
}

#[test]
fn errors_have_a_message_and_stacks() {
    let mut bench = Bench::new();
    let mut bytes = Vec::new();
    for word in [1u32, 42, 0x40, 0x2000_0000, 0xf, 0, 0b11, 5, 1, 0, 0xbad, 0, 0x1150, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(b"hello\0\0\0");
    for word in [1u32, 1, 3, 0, 7, 8, 9, 0] {
        bytes.extend(word.to_le_bytes());
    }
    put(&mut bench.channel, layout::ERROR_OFFSET, &bytes);
    let mut header = bench.header(0, 0);
    assert_eq!(decode::error(&bench.channel, &header), Ok(None));
    header.error_len = bytes.len() as u32;
    let error = decode::error(&bench.channel, &header).unwrap().unwrap();
    assert_eq!((error.message.as_str(), error.site, error.address), ("hello", 42, 0xbad));
    assert_eq!(error.instruction, 0x1150);
    assert_eq!(error.stacks[0].frames, [7, 8, 9]);
    for len in 1..bytes.len() as u32 {
        header.error_len = len;
        assert!(decode::error(&bench.channel, &header).is_err(), "{len}");
    }
}

#[test]
fn output_is_joined_by_descriptor() {
    let mut bench = Bench::new();
    let mut bytes = Vec::new();
    for (descriptor, text) in [(1u32, b"ab\0\0\0\0\0\0"), (1, b"cd\0\0\0\0\0\0"), (2, b"ef\0\0\0\0\0\0")] {
        bytes.extend(descriptor.to_le_bytes());
        bytes.extend(2u32.to_le_bytes());
        bytes.extend(text);
    }
    put(&mut bench.channel, layout::OUTPUT_OFFSET, &bytes);
    let mut header = bench.header(0, 0);
    header.output_len = bytes.len() as u32;
    let output = decode::output(&bench.channel, &header).unwrap();
    assert_eq!(output, [(1, b"abcd".to_vec()), (2, b"ef".to_vec())]);
}

#[test]
fn ends_mean_the_right_thing_to_the_search() {
    assert_eq!(decode::end_of(Outcome::Exited), End::Complete);
    assert_eq!(decode::end_of(Outcome::Deadlock), End::Complete);
    assert_eq!(decode::end_of(Outcome::SleepBlocked), End::SleepBlocked);
    assert_eq!(decode::end_of(Outcome::Error), End::Cut);
    assert_eq!(decode::end_of(Outcome::StepLimit), End::Cut);
}
