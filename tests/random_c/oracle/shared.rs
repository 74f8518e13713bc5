//! Semaphores, a read-write lock and a barrier for the interpreter, with what they release and acquire.

use crate::program::THREADS;

pub type Clock = [u8; THREADS];

#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shared {
    /// What each post that is left released, the oldest first: that one is taken.
    posts: Vec<Clock>,
    writer: Option<usize>,
    readers: [bool; THREADS],
    /// What writers and what readers have released. Readers come after writers only, writers after both.
    written: Clock,
    read: Clock,
    /// Who waits at the barrier, and what they bring.
    arrived: Vec<usize>,
    brought: Clock,
}

pub fn join_clock(into: &mut Clock, from: &Clock) {
    for (mine, theirs) in into.iter_mut().zip(from) {
        *mine = (*mine).max(*theirs);
    }
}

impl Shared {
    pub fn can_take(&self) -> bool {
        !self.posts.is_empty()
    }

    pub fn post(&mut self, clock: &Clock) {
        self.posts.push(*clock);
    }

    pub fn take(&mut self, clock: &mut Clock) {
        join_clock(clock, &self.posts.remove(0));
    }

    pub fn can_read(&self) -> bool {
        self.writer.is_none()
    }

    pub fn can_write(&self) -> bool {
        self.writer.is_none() && !self.readers.contains(&true)
    }

    pub fn lock_to_read(&mut self, thread: usize, clock: &mut Clock) {
        self.readers[thread] = true;
        join_clock(clock, &self.written);
    }

    pub fn lock_to_write(&mut self, thread: usize, clock: &mut Clock) {
        self.writer = Some(thread);
        join_clock(clock, &self.written);
        join_clock(clock, &self.read);
    }

    pub fn unlock(&mut self, thread: usize, clock: &Clock) {
        if self.writer == Some(thread) {
            self.writer = None;
            self.written = *clock;
        } else {
            self.readers[thread] = false;
            join_clock(&mut self.read, clock);
        }
    }

    /// Comes to the barrier; those who go on together once the last has come, with what they acquire.
    pub fn arrive(&mut self, thread: usize, clock: &Clock) -> Option<(Vec<usize>, Clock)> {
        self.arrived.push(thread);
        join_clock(&mut self.brought, clock);
        (self.arrived.len() == 2).then(|| (std::mem::take(&mut self.arrived), std::mem::take(&mut self.brought)))
    }

    pub fn clocks(&mut self) -> impl Iterator<Item = &mut Clock> {
        self.posts.iter_mut().chain([&mut self.written, &mut self.read, &mut self.brought])
    }
}
