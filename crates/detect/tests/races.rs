//! The detector against the naive reference, on random executions: the same verdict at every access, over many
//! executions of one detector, after races too.

mod common;
mod reference;

use common::{Random, map_pages};
use reference::{Access, Reference};
use symdpor_detect::{Detector, MAX_THREADS, Race};

/// Somewhere in user space: two places in one leaf of the shadow table, one elsewhere, one across a leaf's end.
const PLACES: [usize; 4] = [0x5555_0000_1000, 0x5555_0000_1020, 0x1003_0000_0280, 0x7fff_0003_fff0];

/// How the executions of a test look like.
struct Shape {
    threads: usize,
    /// Chance of a synchronisation instead of an access, one in so many.
    sync: usize,
    /// Bytes of each place that are used.
    spread: usize,
    longest: usize,
}

/// One execution, in the detector and in the reference.
struct Run<'a> {
    random: &'a mut Random,
    detector: &'a mut Detector,
    reference: Reference,
    alive: Vec<u16>,
    created: u16,
    races: usize,
}

impl Run<'_> {
    fn go(&mut self, shape: &Shape, steps: usize) {
        for _ in 0..steps {
            if self.reference.is_full() {
                return;
            }
            let t = self.random.pick(&self.alive);
            if (self.created as usize) < shape.threads && self.random.one_in(8) {
                self.create(t);
            } else if self.random.one_in(shape.sync) {
                self.synchronise(t);
            } else {
                self.access(t, shape);
            }
        }
    }

    fn create(&mut self, t: u16) {
        let child = self.created;
        self.created += 1;
        self.detector.thread_created(t, child);
        self.reference.created(t, child);
        self.alive.push(child);
    }

    fn join(&mut self, t: u16) {
        let ended = self.random.pick(&self.alive);
        if ended != t && ended != 0 {
            self.detector.thread_joined(t, ended);
            self.reference.joined(t, ended);
            self.alive.retain(|&other| other != ended);
        }
    }

    fn synchronise(&mut self, t: u16) {
        let object = self.random.pick(&PLACES) + 8 * self.random.below(2);
        let order = self.random.below(6) as u8;
        match self.random.below(16) {
            0 => self.join(t),
            1..=3 => {
                self.detector.acquire(t, object);
                self.reference.acquire(t, (false, object));
            }
            4..=5 => {
                self.detector.release(t, object);
                self.reference.release(t, (false, object), false);
            }
            6 => {
                self.detector.release_merge(t, object);
                self.reference.release(t, (false, object), true);
            }
            7..=9 => {
                self.detector.atomic_load(t, object, order);
                self.reference.load(t, object, order);
            }
            10..=11 => {
                self.detector.atomic_store(t, object, order);
                self.reference.store(t, object, order);
            }
            12..=13 => {
                self.detector.atomic_rmw(t, object, order);
                self.reference.rmw(t, object, order);
            }
            _ => {
                self.detector.fence(t, order);
                self.reference.fence(t, order);
            }
        }
    }

    fn access(&mut self, t: u16, shape: &Shape) {
        let start = self.random.pick(&PLACES) + self.random.below(shape.spread);
        let len = if self.random.one_in(4) { self.random.below(shape.longest + 1) } else { 1 << self.random.below(4) };
        let (writes, atomic) = (self.random.one_in(3), self.random.one_in(3));
        let access = Access { thread: t, start, end: start + len, writes, atomic };
        let race = match (writes, atomic) {
            (false, false) => self.detector.read(t, start, len),
            (true, false) => self.detector.write(t, start, len),
            (false, true) => self.detector.atomic_read(t, start, len),
            (true, true) => self.detector.atomic_write(t, start, len),
        };
        let expected = self.reference.access(access);
        assert_eq!(race.map(|r| r.address), expected, "{access:?}, found {race:?}");
        if let Some(race) = race {
            self.races += 1;
            self.verify(access, race);
        }
    }

    /// Whether there is an earlier access such as the report tells of.
    fn verify(&self, access: Access, race: Race) {
        assert_eq!(race.granule, race.address & !7);
        assert_eq!(race.mask.trailing_zeros() as usize, race.address - race.granule);
        assert_eq!((race.this_writes, race.this_atomic), (access.writes, access.atomic));
        let told = |i: usize, e: &Access| {
            !self.reference.knows(access.thread, i)
                && (e.thread, e.writes, e.atomic) == (race.other_thread, race.other_writes, race.other_atomic)
                && e.conflicts(&access, race.address)
        };
        assert!(self.reference.events.iter().enumerate().any(|(i, e)| told(i, e)), "{access:?}, found {race:?}");
    }
}

fn compare(seed: u64, shape: Shape, executions: usize, steps: usize) {
    let mut random = Random::new(seed);
    let mut detector = Box::new(Detector::new());
    detector.init(map_pages);
    let (mut races, mut accesses) = (0, 0);
    for _ in 0..executions {
        detector.begin_execution();
        let mut run = Run {
            random: &mut random,
            detector: &mut detector,
            reference: Reference::new(),
            alive: vec![0],
            created: 1,
            races: 0,
        };
        run.go(&shape, steps);
        races += run.races;
        accesses += run.reference.events.len();
    }
    println!("{accesses} accesses, {races} races");
    assert!(races > executions / 10 && accesses > races / 4);
    assert!(!detector.exhausted());
}

#[test]
fn few_threads_much_synchronisation() {
    compare(1, Shape { threads: 3, sync: 2, spread: 12, longest: 24 }, 2000, 200);
}

#[test]
fn single_bytes() {
    compare(2, Shape { threads: 4, sync: 3, spread: 16, longest: 1 }, 1000, 200);
}

#[test]
fn eight_threads_in_long_executions() {
    compare(3, Shape { threads: 8, sync: 2, spread: 24, longest: 40 }, 400, 900);
}

#[test]
fn two_threads_rarely_synchronised() {
    compare(4, Shape { threads: 2, sync: 6, spread: 16, longest: 16 }, 2000, 60);
}

#[test]
fn hundred_threads() {
    compare(5, Shape { threads: 100, sync: 2, spread: 16, longest: 16 }, 100, 1200);
}

#[test]
fn thousand_threads() {
    compare(6, Shape { threads: MAX_THREADS, sync: 2, spread: 16, longest: 16 }, 10, 9000);
}

#[test]
fn the_limit_is_the_contracts() {
    assert_eq!(MAX_THREADS, symdpor_abi::MAX_THREADS);
}

#[test]
fn long_ranges() {
    let mut detector = Box::new(Detector::new());
    detector.init(map_pages);
    detector.thread_created(0, 1);
    let (start, len) = (0x6000_0000_0003, 1 << 20);
    assert_eq!(detector.write(0, start, len), None);
    let race = detector.read(1, start + len - 1, 100).expect("the last byte is shared");
    assert_eq!((race.address, race.other_thread), (start + len - 1, 0));
    assert_eq!(detector.read(1, start + len, 1), None);
    detector.forget(start, len);
    assert_eq!(detector.write(1, start, len), None);
}

#[test]
fn strange_input_does_nothing() {
    let mut detector = Box::new(Detector::new());
    assert_eq!(detector.write(0, 0x1000, 8), None);
    detector.begin_execution();
    detector.init(map_pages);
    for address in [0, 1, 7, 1 << 47, usize::MAX - 7, usize::MAX] {
        for len in [0, 1, 8, 16] {
            assert_eq!(detector.write(u16::MAX, address, len), None);
            assert_eq!(detector.read(u16::MAX, address, len), None);
            detector.forget(address, len);
        }
    }
    detector.thread_created(u16::MAX, 1);
    detector.thread_joined(u16::MAX, u16::MAX);
    detector.atomic_rmw(u16::MAX, usize::MAX, u8::MAX);
    detector.fence(u16::MAX, u8::MAX);
}

#[test]
fn without_memory_it_says_so() {
    let mut detector = Box::new(Detector::new());
    detector.init(|_| std::ptr::null_mut());
    assert!(detector.exhausted());
    assert_eq!(detector.write(0, 0x1000, 8), None);
    detector.release(0, 0x1000);
    assert_eq!(detector.epoch(0), 0);
}

/// Accesses repeated in later steps, which begin epochs of their own, are known until something is released.
#[test]
fn what_was_made_before() {
    let mut detector = Box::new(Detector::new());
    detector.init(map_pages);
    detector.begin_execution();
    detector.thread_created(0, 1);
    let at = PLACES[0];
    assert!(!detector.has_made(1, at, 4, false));
    assert_eq!(detector.read(1, at, 4), None);
    detector.new_epoch(1);
    assert!(detector.has_made(1, at, 4, false) && detector.has_made(1, at + 1, 2, false));
    assert!(!detector.has_made(1, at, 8, false) && !detector.has_made(1, at, 4, true));
    assert!(!detector.has_made(0, at, 4, false));
    assert_eq!(detector.write(1, at, 4), None);
    detector.new_epoch(1);
    assert!(detector.has_made(1, at, 4, true) && detector.has_made(1, at, 4, false));
    detector.release(1, PLACES[2]);
    assert!(!detector.has_made(1, at, 4, true) && !detector.has_made(1, at, 4, false));
    detector.begin_execution();
    assert!(!detector.has_made(1, at, 4, true));
    assert_eq!(detector.write(0, at + 4, 16), None);
    assert!(detector.has_made(0, at + 4, 16, true) && !detector.has_made(0, at, 16, true));
    assert!(!detector.has_made(0, at + 4, 0, true) && !detector.has_made(0, usize::MAX, 8, true));
    // The longest ones are not looked for.
    assert_eq!(detector.write(0, at, 72), None);
    assert!(detector.has_made(0, at, 64, true) && !detector.has_made(0, at, 72, true));
}

/// It makes no difference where memory is: leaves share the lines of a cache. Nor who else has read it.
#[test]
fn what_was_made_before_is_known_wherever_it_was() {
    let mut detector = Box::new(Detector::new());
    detector.init(map_pages);
    detector.begin_execution();
    let leaves = |number: usize| PLACES[0] + (number << 18);
    for number in 0..1000 {
        assert_eq!(detector.read(0, leaves(number), 4), None);
    }
    assert!((0..1000).all(|number| detector.has_made(0, leaves(number), 4, false)));
    for t in 1..20 {
        detector.thread_created(0, t);
        assert_eq!(detector.read(t, PLACES[0], 4), None);
    }
    assert!((1..20).all(|t| detector.has_made(t, PLACES[0], 4, false) && !detector.has_made(t, PLACES[0], 4, true)));
}
