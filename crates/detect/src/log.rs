//! The plain accesses of the transition under way, neighbours joined, each granule once per epoch.

use crate::MAX_THREADS;

/// More are not told apart: [`AccessLog::is_full`].
const CAPACITY: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Logged {
    pub thread: u16,
    /// Address of the first granule.
    pub granule: usize,
    pub granules: u32,
    pub mask: u8,
    pub write: bool,
}

/// Off until it is switched on.
pub struct AccessLog {
    on: bool,
    len: usize,
    full: bool,
    added: u32,
    entries: [Logged; CAPACITY],
}

impl AccessLog {
    pub const fn new() -> AccessLog {
        let nothing = Logged { thread: 0, granule: 0, granules: 0, mask: 0, write: false };
        AccessLog { on: false, len: 0, full: false, added: 0, entries: [nothing; CAPACITY] }
    }

    pub fn switch(&mut self, on: bool) {
        (self.on, self.len, self.full, self.added) = (on, 0, false, 0);
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }

    pub fn clear(&mut self) {
        (self.len, self.full, self.added) = (0, false, 0);
    }

    /// How often something was added, joined to another entry or not: between two moments without an access it is the same.
    pub fn added(&self) -> u32 {
        self.added
    }

    /// Whether there were more accesses than it holds.
    pub fn is_full(&self) -> bool {
        self.full
    }

    pub fn entries(&self) -> &[Logged] {
        self.entries.get(..self.len).unwrap_or(&[])
    }

    pub fn add(&mut self, thread: u16, granule: usize, mask: u8, write: bool) {
        let thread = thread % MAX_THREADS as u16;
        self.added = self.added.saturating_add(1);
        // Loops read here and write there in turn.
        let recent = self.len.saturating_sub(4);
        let entries = self.entries.iter_mut().take(self.len).skip(recent).rev();
        let alike = entries.filter(|e| e.thread == thread && e.write == write);
        for last in alike {
            if last.granule == granule && last.granules == 1 {
                last.mask |= mask;
                return;
            }
            let end = last.granule + 8 * last.granules as usize;
            if last.granule <= granule && granule < end {
                return;
            }
            if granule == end {
                (last.granules, last.mask) = (last.granules + 1, 0xff);
                return;
            }
        }
        match self.entries.get_mut(self.len) {
            Some(free) => {
                *free = Logged { thread, granule, granules: 1, mask, write };
                self.len += 1;
            }
            None => self.full = true,
        }
    }
}

impl Default for AccessLog {
    fn default() -> Self {
        AccessLog::new()
    }
}
