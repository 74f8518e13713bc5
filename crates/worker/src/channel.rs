//! The controller's side of the shared memory: a sealed memory file, mapped whole.
//!
//! The other process may write to it at any time and anything (it is the program under test), so no reference to this
//! memory is ever made: words are read and written through atomics or raw pointers, regions are copied out before
//! anybody looks at them. The file is sealed against shrinking, because reading a mapping beyond the end of its file
//! would kill the controller.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use symdpor_abi::channel::{Header, MAGIC, SIZE};

pub struct Channel {
    base: NonNull<u8>,
    file: OwnedFd,
}

/// A word of the header that both sides use while the other one runs.
#[derive(Clone, Copy)]
pub enum Word {
    Command,
    ControllerSleeps,
    Answer,
    WorkerSleeps,
    Heartbeat,
    Attached,
}

impl Word {
    const fn offset(self) -> usize {
        match self {
            Word::Command => std::mem::offset_of!(Header, command),
            Word::ControllerSleeps => std::mem::offset_of!(Header, controller_sleeps),
            Word::Answer => std::mem::offset_of!(Header, answer),
            Word::WorkerSleeps => std::mem::offset_of!(Header, worker_sleeps),
            Word::Heartbeat => std::mem::offset_of!(Header, heartbeat),
            Word::Attached => std::mem::offset_of!(Header, attached),
        }
    }
}

impl Channel {
    /// A new memory file with an empty header.
    pub fn new(waiting: u32) -> io::Result<Channel> {
        let file = memory_file()?;
        let base = map(file.as_raw_fd())?;
        let mut channel = Channel { base, file };
        channel.change_header(|header| {
            header.magic = MAGIC;
            header.version = symdpor_abi::CHANNEL_VERSION;
            header.waiting = waiting;
        });
        Ok(channel)
    }

    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// A copy of the header, without the heartbeat. Words that are being written may be old or new.
    pub fn header(&self) -> Header {
        self.beginning::<{ std::mem::offset_of!(Header, heartbeat) / 8 }>()
    }

    /// A header of which the first `WORDS` words of eight bytes are copied, and the rest is 0.
    fn beginning<const WORDS: usize>(&self) -> Header {
        const { assert!(8 * WORDS <= size_of::<Header>()) }
        // SAFETY: every bit pattern is a valid `Header`, zeros too.
        let mut header: Header = unsafe { std::mem::zeroed() };
        let from = self.base.as_ptr().cast::<[u64; WORDS]>();
        // SAFETY: the header is at the beginning of the mapping, aligned, and has at least so many words.
        unsafe { ptr::from_mut(&mut header).cast::<[u64; WORDS]>().write(ptr::read_volatile(from)) };
        header
    }

    /// Changes the controller's part of the header (all before `answer`): before a worker uses the channel, or between
    /// its answer and the next command. Only words that differ are written.
    pub fn change_header(&mut self, change: impl FnOnce(&mut Header)) {
        const WORDS: usize = std::mem::offset_of!(Header, answer) / 4;
        let before = self.beginning::<{ WORDS / 2 }>();
        let mut after = before;
        change(&mut after);
        // SAFETY: `Header` consists of integers without padding, so its beginning can be seen as words.
        let words = |h: &Header| unsafe { ptr::read(ptr::from_ref(h).cast::<[u32; WORDS]>()) };
        let (before, after) = (words(&before), words(&after));
        for i in (0..WORDS).filter(|&i| before[i] != after[i]) {
            // SAFETY: a word of the header, which is at the beginning of the writable mapping.
            unsafe { ptr::write_volatile(self.base.as_ptr().cast::<u32>().add(i), after[i]) }
        }
    }

    pub fn word(&self, word: Word) -> &AtomicU32 {
        // SAFETY: the word is inside the mapping and aligned, lives as long as `self`, and both sides use it
        // as an atomic only.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(word.offset()).cast()) }
    }

    /// Appends `len` bytes from `offset` to `out`.
    ///
    /// # Panics
    /// If the range is not inside the channel.
    pub fn copy_out(&self, offset: usize, len: usize, out: &mut Vec<u8>) {
        check_range(offset, len);
        out.reserve(len);
        // SAFETY: the range was checked, the target has room for `len` bytes and cannot overlap the mapping.
        unsafe {
            ptr::copy_nonoverlapping(self.base.as_ptr().add(offset), out.as_mut_ptr().add(out.len()), len);
            out.set_len(out.len() + len);
        }
    }

    pub fn bytes(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut out = Vec::new();
        self.copy_out(offset, len, &mut out);
        out
    }

    /// Whether the bytes at `offset` are these.
    ///
    /// # Panics
    /// If the range is not inside the channel.
    pub fn equals(&self, offset: usize, expected: &[u8]) -> bool {
        check_range(offset, expected.len());
        // SAFETY: both ranges are readable for the given length.
        unsafe { libc::memcmp(self.base.as_ptr().add(offset).cast(), expected.as_ptr().cast(), expected.len()) == 0 }
    }

    /// Writes words one after the other from `offset` on, and says how many. What is there already is not written again:
    /// plans have most in common with the one before, and that stays in the worker's cache.
    ///
    /// # Panics
    /// If a word is not inside the channel.
    pub fn write_words(&mut self, offset: usize, words: impl Iterator<Item = u32>) -> usize {
        let mut count = 0;
        for word in words {
            check_range(offset + 4 * count, 4);
            // SAFETY: inside the range that was checked; the worker reads it after the command only.
            unsafe {
                let place = self.base.as_ptr().add(offset + 4 * count).cast::<u32>();
                if ptr::read_volatile(place) != word {
                    ptr::write_volatile(place, word);
                }
            }
            count += 1;
        }
        count
    }

    /// Wakes the worker if it sleeps on the command word.
    pub fn wake_worker(&self) {
        if self.word(Word::WorkerSleeps).load(Ordering::SeqCst) != 0 {
            let word = self.word(Word::Command).as_ptr();
            // SAFETY: a futex call on a word of the mapping.
            unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
        }
    }

    /// Sleeps until the answer word is no longer `seen`, a signal arrives, or the time is over.
    pub fn sleep_for_answer(&self, seen: u32, timeout: Duration) {
        let timeout = libc::timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos() as i64 };
        self.word(Word::ControllerSleeps).store(1, Ordering::SeqCst);
        let word = self.word(Word::Answer);
        // SAFETY: a futex call on a word of the mapping, with a timeout that outlives it. Not the private kind: the
        // waker is another process.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, &timeout) };
        self.word(Word::ControllerSleeps).store(0, Ordering::SeqCst);
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped; nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), SIZE) };
    }
}

fn check_range(offset: usize, len: usize) {
    assert!(len <= SIZE && offset <= SIZE - len, "a range of {len} bytes at {offset} is outside of the channel");
}

fn memory_file() -> io::Result<OwnedFd> {
    // SAFETY: a system call with a constant string.
    let fd = unsafe { libc::memfd_create(c"symdpor-channel".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and belongs to nobody else.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: system calls on our own descriptor.
    let failed =
        unsafe { libc::ftruncate(fd, SIZE as libc::off_t) != 0 || libc::fcntl(fd, libc::F_ADD_SEALS, seals) != 0 };
    if failed { Err(io::Error::last_os_error()) } else { Ok(file) }
}

fn map(fd: RawFd) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
    // SAFETY: a new mapping of a file that is `SIZE` bytes long and cannot shrink.
    let address = unsafe { libc::mmap(ptr::null_mut(), SIZE, protection, flags, fd, 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(address.cast()).expect("a mapping is not at address 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let mut channel = Channel::new(1).unwrap();
        channel.write_words(64 << 10, [1u32, 2, 3].into_iter());
        assert_eq!(channel.bytes(64 << 10, 12), [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
        assert!(channel.equals(64 << 10, &[1, 0, 0, 0, 2]));
        assert!(!channel.equals(64 << 10, &[1, 0, 0, 0, 3]));
        assert_eq!(channel.header().waiting, 1);
        assert_eq!(channel.header().magic, MAGIC);
    }

    #[test]
    fn the_file_cannot_be_shrunk_under_us() {
        let channel = Channel::new(0).unwrap();
        // SAFETY: a system call on our own descriptor.
        assert_ne!(unsafe { libc::ftruncate(channel.descriptor(), 0) }, 0);
    }

    #[test]
    #[should_panic(expected = "outside of the channel")]
    fn ranges_are_checked() {
        Channel::new(0).unwrap().bytes(SIZE - 4, 5);
    }
}
