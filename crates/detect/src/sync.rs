//! Happens-before: who released what, who acquired it, by the declared memory orders.
//!
//! Release and acquire follow C11 and C++20: a store begins a release sequence (or ends the one before it), a
//! read-modify-write continues it, a release fence makes later relaxed stores releases of what came before the fence, an
//! acquire fence makes earlier relaxed loads acquires. Consume is treated as acquire. Two deviations from the older
//! texts: a relaxed store of the releasing thread itself ends its release sequence (C++20; C11 let it continue), and
//! sequentially consistent fences order nothing by themselves that acquire-release fences would not (in both texts they
//! only constrain which values may be read, and here the interleaving decides that).

use crate::MAX_THREADS;
use crate::clock::{Arena, Clock, Span, Threads};
use crate::objects::{Objects, Space};
use crate::pages::{Pages, clear_words};

/// C11's memory orders as numbers: 0 relaxed, 1 consume, 2 acquire, 3 release, 4 acquire-release, 5 sequentially
/// consistent. What is above counts as the last.
fn acquires(order: u8) -> bool {
    !matches!(order, 0 | 3)
}

fn releases(order: u8) -> bool {
    order >= 3
}

/// What a thread's fences will do or have done.
#[repr(C)]
struct Fences {
    /// Its clock at its last release fence: what its relaxed stores release.
    released: Clock,
    /// What its relaxed loads have seen: what its next acquire fence acquires.
    seen: Clock,
}

pub(crate) struct Sync {
    objects: Objects,
    arena: Arena,
    fences: *mut Fences,
}

impl Sync {
    pub(crate) const fn new() -> Sync {
        Sync { objects: Objects::new(), arena: Arena::new(), fences: core::ptr::null_mut() }
    }

    pub(crate) fn init(&mut self, pages: &mut Pages) -> bool {
        self.fences = pages.take(MAX_THREADS);
        !self.fences.is_null() && self.objects.init(pages) && self.arena.init(pages)
    }

    pub(crate) fn begin_execution(&mut self) {
        self.objects.begin_execution();
        self.arena.begin_execution();
    }

    pub(crate) fn clear(&mut self) {
        self.objects.clear();
        self.arena.clear();
        // SAFETY: the whole table; zeroed clocks are not valid.
        unsafe { clear_words(self.fences.cast(), MAX_THREADS * size_of::<Fences>() / 8) };
    }

    fn fences(&mut self, t: usize) -> &mut Fences {
        // SAFETY: one per thread, made by `init`.
        unsafe { &mut *self.fences.add(t % MAX_THREADS) }
    }

    pub(crate) fn acquire(&mut self, threads: &Threads, t: usize, space: Space, address: usize) {
        if let Some(clock) = self.objects.get(space, address, threads.base()) {
            clock.join_into(threads.row(t));
        }
    }

    /// Sets the object's clock to the thread's, or joins the thread's into it.
    pub(crate) fn release(
        &mut self,
        threads: &mut Threads,
        t: usize,
        (space, address): (Space, usize),
        merge: bool,
        pages: &mut Pages,
    ) {
        let from = Span::of_thread(threads, t);
        self.publish((space, address), from, merge, threads.base(), pages);
        threads.tick(t);
    }

    fn publish(&mut self, place: (Space, usize), from: Span, merge: bool, execution: u32, pages: &mut Pages) {
        let Some(clock) = self.objects.get_or_insert(place.0, place.1, execution, pages) else { return };
        if merge {
            self.arena.merge(clock, from, pages);
        } else {
            self.arena.assign(clock, from, pages);
        }
    }

    pub(crate) fn load(&mut self, threads: &Threads, t: usize, address: usize, order: u8, pages: &mut Pages) {
        if acquires(order) {
            return self.acquire(threads, t, Space::Atomic, address);
        }
        let execution = threads.base();
        let Some(clock) = self.objects.get(Space::Atomic, address, execution) else { return };
        let from = Span::of_clock(clock);
        let seen = &mut self.fences(t).seen;
        if !seen.is_valid(execution) {
            *seen = Clock::empty(execution);
        }
        let mut seen = *seen;
        self.arena.merge(&mut seen, from, pages);
        self.fences(t).seen = seen;
    }

    pub(crate) fn store(&mut self, threads: &mut Threads, t: usize, address: usize, order: u8, pages: &mut Pages) {
        if releases(order) {
            return self.release(threads, t, (Space::Atomic, address), false, pages);
        }
        let execution = threads.base();
        let released = self.fences(t).released;
        if let Some(clock) = self.objects.get(Space::Atomic, address, execution) {
            clock.reset();
        }
        if released.is_valid(execution) {
            let from = Span::of_clock(&released);
            self.publish((Space::Atomic, address), from, false, execution, pages);
        }
    }

    pub(crate) fn rmw(&mut self, threads: &mut Threads, t: usize, address: usize, order: u8, pages: &mut Pages) {
        self.load(threads, t, address, order, pages);
        if releases(order) {
            return self.release(threads, t, (Space::Atomic, address), true, pages);
        }
        let released = self.fences(t).released;
        if released.is_valid(threads.base()) {
            let from = Span::of_clock(&released);
            self.publish((Space::Atomic, address), from, true, threads.base(), pages);
        }
    }

    pub(crate) fn fence(&mut self, threads: &mut Threads, t: usize, order: u8, pages: &mut Pages) {
        let execution = threads.base();
        let seen = self.fences(t).seen;
        if acquires(order) && seen.is_valid(execution) {
            seen.join_into(threads.row(t));
        }
        if releases(order) {
            let mut released = self.fences(t).released;
            if !released.is_valid(execution) {
                released = Clock::empty(execution);
            }
            self.arena.assign(&mut released, Span::of_thread(threads, t), pages);
            self.fences(t).released = released;
            threads.tick(t);
        }
    }
}
