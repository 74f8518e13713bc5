//! Data races: the detector, told of what the running thread does. Off until there is more than one thread.

use crate::cell::Global;
use crate::channel;
use crate::exec;
use crate::snapshot;
use crate::sys::pages;
use symdpor_abi::channel::options;
use symdpor_detect::Detector;

static DETECTOR: Global<Detector> = Global::new(Detector::new());
static ON: Global<bool> = Global::new(false);
static ALL: Global<bool> = Global::new(false);

pub fn init() {
    DETECTOR.get().init(pages::map);
}

pub fn begin_execution() {
    *ON.get() = !channel::says(options::IGNORE_RACES);
    *ALL.get() = *ON.get() && !channel::says(options::VISIBLE_ALL | options::WATCH | options::ACCESSES);
    DETECTOR.get().begin_execution();
}

/// Whether accesses are checked.
#[inline(always)]
pub fn is_on() -> bool {
    *ON.get()
}

/// Whether they are, and nothing else is to be done at an access. Never before the first execution begins.
#[inline(always)]
pub fn is_all() -> bool {
    *ALL.get()
}

#[inline(always)]
pub fn detector() -> &'static mut Detector {
    DETECTOR.get()
}

pub fn acquire(object: usize) {
    if snapshot::is_taken() {
        DETECTOR.get().acquire(exec::get().current, object);
    }
}

/// Adds to what others have released.
pub fn release_merge(object: usize) {
    if snapshot::is_taken() {
        DETECTOR.get().release_merge(exec::get().current, object);
    }
}

pub fn release(object: usize) {
    if snapshot::is_taken() {
        DETECTOR.get().release(exec::get().current, object);
    }
}
