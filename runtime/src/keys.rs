//! Thread-specific keys. Values are kept per thread; destructors run when a thread ends.

use crate::exec;
use crate::sched;
use symdpor_abi::MAX_THREADS;
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind};

pub const MAX_KEYS: usize = 1024;
const EAGAIN: i32 = 11;
const EINVAL: i32 = 22;
/// How often the destructors of a thread are run while they leave values behind: PTHREAD_DESTRUCTOR_ITERATIONS.
const ROUNDS: usize = 4;

type Destructor = extern "C" fn(usize);

#[derive(Clone, Copy)]
struct Key {
    used: bool,
    /// Raised when the key is deleted: values of an earlier use are not seen.
    generation: u32,
    destructor: usize,
}

#[derive(Clone, Copy)]
struct Value {
    value: usize,
    generation: u32,
}

/// All zero: no key is in use.
pub struct Keys {
    /// Keys from here on were never in use.
    end: u32,
    keys: [Key; MAX_KEYS],
    values: [[Value; MAX_KEYS]; MAX_THREADS],
}

/// The values that a thread has set, by key.
pub fn for_each(number: u16, mut each: impl FnMut(usize, usize)) {
    let keys = &exec::get().keys;
    for key in 0..keys.end as usize {
        let value = keys.values[number as usize][key];
        if keys.keys[key].used && value.generation == keys.keys[key].generation && value.value != 0 {
            each(key, value.value);
        }
    }
}

/// For other tables of the process too, named semaphores.
pub fn visible() {
    if crate::snapshot::is_taken() {
        sched::visible(Op::new(OpKind::KeyTable, ObjectId::KEYS), 0, 0);
    }
}

pub fn create(out: usize, destructor: usize) -> i32 {
    visible();
    let keys = &mut exec::get().keys.keys;
    let Some(number) = keys.iter().position(|k| !k.used) else { return EAGAIN };
    keys[number].used = true;
    keys[number].destructor = destructor;
    exec::get().keys.end = exec::get().keys.end.max(number as u32 + 1);
    crate::access::write(out, 4);
    // SAFETY: the program says that it is room for a key.
    unsafe { *(out as *mut u32) = number as u32 };
    0
}

pub fn delete(number: u32) -> i32 {
    visible();
    let Some(key) = exec::get().keys.keys.get_mut(number as usize).filter(|k| k.used) else { return EINVAL };
    key.used = false;
    key.generation += 1;
    0
}

pub fn get(number: u32) -> usize {
    let exec = exec::get();
    let Some(key) = exec.keys.keys.get(number as usize).filter(|k| k.used) else { return 0 };
    let value = &exec.keys.values[exec.current as usize][number as usize];
    if value.generation == key.generation { value.value } else { 0 }
}

pub fn set(number: u32, value: usize) -> i32 {
    crate::spin::changed();
    let exec = exec::get();
    let Some(key) = exec.keys.keys.get(number as usize).filter(|k| k.used) else { return EINVAL };
    exec.keys.values[exec.current as usize][number as usize] = Value { value, generation: key.generation };
    0
}

/// Runs the destructors of the running thread's values.
pub fn run_destructors() {
    for _ in 0..ROUNDS {
        if !run_round() {
            return;
        }
    }
}

fn run_round() -> bool {
    let mut any = false;
    for number in 0..exec::get().keys.end {
        let destructor = exec::get().keys.keys[number as usize].destructor;
        let value = get(number);
        if value == 0 || destructor == 0 {
            continue;
        }
        set(number, 0);
        any = true;
        // SAFETY: the program registered this function as the key's destructor.
        let destructor: Destructor = unsafe { core::mem::transmute(destructor) };
        destructor(value);
    }
    any
}
