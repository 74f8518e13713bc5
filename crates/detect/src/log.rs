//! The plain accesses of the transition under way, neighbours joined, each granule once per epoch.

use crate::MAX_THREADS;

/// More are not told apart: [`AccessLog::is_full`].
const CAPACITY: usize = 1024;

/// So many of the last entries are looked at: loops read here and write there in turn.
const RECENT: usize = 4;

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

    #[inline]
    pub fn add(&mut self, thread: u16, granule: usize, mask: u8, write: bool) {
        let thread = thread % MAX_THREADS as u16;
        self.added = self.added.saturating_add(1);
        // In most cases it is the last but one at most: a copy reads and writes in turn.
        let recent = self.len.saturating_sub(RECENT);
        let mut at = self.len.min(CAPACITY);
        while at > recent {
            at -= 1;
            let entry = &mut self.entries[at];
            if entry.thread == thread && entry.write == write && entry.takes_in(granule, mask) {
                return;
            }
        }
        self.begin(Logged { thread, granule, granules: 1, mask, write });
    }

    fn begin(&mut self, entry: Logged) {
        match self.entries.get_mut(self.len) {
            Some(free) => {
                *free = entry;
                self.len += 1;
            }
            None => self.full = true,
        }
    }
}

impl Logged {
    /// Joins an access of the same thread and kind to this one, if it is to the same granules or the next one.
    #[inline]
    fn takes_in(&mut self, granule: usize, mask: u8) -> bool {
        let ahead = granule.wrapping_sub(self.granule);
        let (bytes, one) = (8 * self.granules as usize, self.granules == 1);
        if ahead == bytes {
            (self.granules, self.mask) = (self.granules + 1, 0xff);
        } else if one && ahead == 0 {
            self.mask |= mask;
        }
        ahead <= bytes
    }
}

impl Default for AccessLog {
    fn default() -> Self {
        AccessLog::new()
    }
}
