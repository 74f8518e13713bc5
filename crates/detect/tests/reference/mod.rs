//! A naive race detector: every access of the execution is kept, and happens-before is a set of accesses that each
//! thread, object and fence knows of. No clocks, no epochs, no granules in the checks.

use std::collections::HashMap;

/// At most this many accesses in an execution.
pub const MAX_EVENTS: usize = 512;

#[derive(Clone, Copy, Default)]
pub struct Known([u64; MAX_EVENTS / 64]);

impl Known {
    fn insert(&mut self, event: usize) {
        self.0[event / 64] |= 1 << (event % 64);
    }

    fn contains(&self, event: usize) -> bool {
        self.0[event / 64] & 1 << (event % 64) != 0
    }

    fn join(&mut self, other: &Known) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    pub thread: u16,
    pub start: usize,
    pub end: usize,
    pub writes: bool,
    pub atomic: bool,
}

impl Access {
    pub fn conflicts(&self, other: &Access, byte: usize) -> bool {
        let both = |a: &Access| a.start <= byte && byte < a.end;
        both(self) && both(other) && (self.writes || other.writes) && !(self.atomic && other.atomic)
    }
}

#[derive(Default)]
pub struct Reference {
    pub events: Vec<Access>,
    threads: HashMap<u16, Known>,
    /// By space (false: objects, true: atomics) and address.
    objects: HashMap<(bool, usize), Known>,
    released: HashMap<u16, Known>,
    seen: HashMap<u16, Known>,
}

impl Reference {
    pub fn new() -> Reference {
        let mut new = Reference::default();
        new.threads.insert(0, Known::default());
        new
    }

    pub fn is_full(&self) -> bool {
        self.events.len() == MAX_EVENTS
    }

    pub fn knows(&self, t: u16, event: usize) -> bool {
        self.threads[&t].contains(event)
    }

    /// The first byte of `access` with a race. An access is taken up only as far as the granules before the one that
    /// races.
    pub fn access(&mut self, access: Access) -> Option<usize> {
        let known = self.threads[&access.thread];
        let races =
            |byte: usize| self.events.iter().enumerate().any(|(i, e)| !known.contains(i) && e.conflicts(&access, byte));
        let race = (access.start..access.end).find(|&byte| races(byte));
        let end = race.map_or(access.end, |byte| byte & !7);
        if access.start < end {
            self.threads.get_mut(&access.thread).unwrap().insert(self.events.len());
            self.events.push(Access { end, ..access });
        }
        race
    }

    pub fn created(&mut self, parent: u16, child: u16) {
        self.threads.insert(child, self.threads[&parent]);
    }

    pub fn joined(&mut self, joiner: u16, ended: u16) {
        let ended = self.threads[&ended];
        self.threads.get_mut(&joiner).unwrap().join(&ended);
    }

    pub fn acquire(&mut self, t: u16, place: (bool, usize)) {
        let object = self.objects.get(&place).copied().unwrap_or_default();
        self.threads.get_mut(&t).unwrap().join(&object);
    }

    pub fn release(&mut self, t: u16, place: (bool, usize), merge: bool) {
        let mut known = self.threads[&t];
        if merge {
            known.join(&self.objects.get(&place).copied().unwrap_or_default());
        }
        self.objects.insert(place, known);
    }

    pub fn load(&mut self, t: u16, address: usize, order: u8) {
        match order {
            1 | 2 | 4 | 5 => self.acquire(t, (true, address)),
            _ => {
                let object = self.objects.get(&(true, address)).copied().unwrap_or_default();
                self.seen.entry(t).or_default().join(&object);
            }
        }
    }

    pub fn store(&mut self, t: u16, address: usize, order: u8) {
        if matches!(order, 3..=5) {
            return self.release(t, (true, address), false);
        }
        self.objects.insert((true, address), self.released.get(&t).copied().unwrap_or_default());
    }

    pub fn rmw(&mut self, t: u16, address: usize, order: u8) {
        self.load(t, address, order);
        if matches!(order, 3..=5) {
            return self.release(t, (true, address), true);
        }
        let released = self.released.get(&t).copied().unwrap_or_default();
        self.objects.entry((true, address)).or_default().join(&released);
    }

    pub fn fence(&mut self, t: u16, order: u8) {
        if matches!(order, 1 | 2 | 4 | 5) {
            let seen = self.seen.get(&t).copied().unwrap_or_default();
            self.threads.get_mut(&t).unwrap().join(&seen);
        }
        if matches!(order, 3..=5) {
            self.released.insert(t, self.threads[&t]);
        }
    }
}
