//! Descriptions of suspension points for the runtime: see `symdpor_abi::local`.
//!
//! The runtime names the sites that it missed a description for; they are worked out from the IR digests of the modules
//! that have registered by then, and put into the channel.

use crate::bytes::{Damaged, Reader};
use crate::channel::Channel;
use symdpor_abi::channel::{self as layout, Header};
use symdpor_abi::local::{DESCRIPTION_WORDS, flags, item, name_hash};
use symdpor_residual::{FunctionEntry, Library, Live, LiveKind, ModuleTables, Point, Residual};

/// Functions that symdpor provides, and those of the C++ library that do nothing but call one of them with what they were
/// given: a thread that waits in one has nothing there that its caller does not know.
const PROVIDED: &[&str] = &[
    "pthread_create",
    "pthread_join",
    "pthread_detach",
    "pthread_exit",
    "pthread_once",
    "pthread_key_create",
    "pthread_key_delete",
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_mutex_unlock",
    "pthread_cond_wait",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "sched_yield",
    "pthread_yield",
    "thrd_create",
    "thrd_join",
    "thrd_detach",
    "thrd_exit",
    "thrd_yield",
    "thrd_sleep",
    "call_once",
    "tss_create",
    "tss_delete",
    "mtx_lock",
    "mtx_trylock",
    "mtx_unlock",
    "cnd_wait",
    "cnd_signal",
    "cnd_broadcast",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
    "pthread_mutex_timedlock",
    "pthread_mutex_clocklock",
    "mtx_timedlock",
    "cnd_timedwait",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_rwlock_tryrdlock",
    "pthread_rwlock_trywrlock",
    "pthread_rwlock_timedrdlock",
    "pthread_rwlock_timedwrlock",
    "pthread_rwlock_clockrdlock",
    "pthread_rwlock_clockwrlock",
    "pthread_rwlock_unlock",
    "sem_wait",
    "sem_trywait",
    "sem_timedwait",
    "sem_clockwait",
    "sem_post",
    "sem_getvalue",
    "sem_open",
    "sem_close",
    "sem_unlink",
    "pthread_barrier_wait",
    "pthread_spin_lock",
    "pthread_spin_trylock",
    "pthread_spin_unlock",
    "__cxa_guard_acquire",
    "__cxa_guard_release",
    "__cxa_guard_abort",
    "sleep",
    "usleep",
    "nanosleep",
    "clock_nanosleep",
    "read",
    "pread",
    "pread64",
    "write",
    "pwrite",
    "pwrite64",
    "lseek",
    "lseek64",
    "open",
    "open64",
    "openat",
    "openat64",
    "creat",
    "close",
    "ftruncate",
    "ftruncate64",
    "unlink",
    "mkdir",
    "rmdir",
    "recv",
    "recvfrom",
    "send",
    "sendto",
    "bind",
    "listen",
    "accept",
    "accept4",
    "connect",
    "shutdown",
    "poll",
    "select",
    "epoll_wait",
    "rand",
    "random",
    "lrand48",
    "mrand48",
    "drand48",
    "syscall",
    "_ZNSt6thread4joinEv",
    "_ZNSt6thread6detachEv",
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
    "_ZNSt18condition_variable10notify_oneEv",
    "_ZNSt18condition_variable10notify_allEv",
];

/// What a word of a frame is.
pub enum Local {
    Named(String),
    Unnamed,
    /// None of the frame's: it comes behind them all.
    Beyond,
}

#[derive(Default)]
pub struct Points {
    library: Library,
    /// How many modules the library has.
    modules: usize,
    modules_len: usize,
    /// The worker that the channel belongs to, and what is used of the region.
    worker: u32,
    used: usize,
}

impl Points {
    /// Describes the sites that the last execution missed. Says whether there were any that had not been described.
    pub fn describe(&mut self, channel: &mut Channel, header: &Header, worker: u32) -> Result<bool, Damaged> {
        let count = (header.wanted_len as usize).min(layout::WANTED_CAPACITY);
        if count == 0 {
            return Ok(false);
        }
        if self.worker != worker {
            // The first words stand for "not known" and "cannot be described".
            (self.worker, self.used) = (worker, 2);
        }
        self.add_modules(channel, header)?;
        let bytes = channel.bytes(layout::WANTED_OFFSET, 4 * count);
        let mut new = false;
        for site in bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])) {
            new |= self.put(channel, site);
        }
        Ok(new)
    }

    /// What is known of a site.
    pub fn point(&mut self, site: u32) -> Option<&Point> {
        self.library.point(site)
    }

    /// The local that a word of a frame belongs to, counted from the first word behind its code.
    pub fn local_at(&mut self, site: u32, before: bool, word: usize) -> Local {
        let Some(point) = self.library.point(site) else { return Local::Beyond };
        let residual = if before { Some(&point.before) } else { point.after.as_ref() };
        let mut end = 0;
        for live in residual.map_or(&[][..], |r| &r.live) {
            end += match live.kind {
                LiveKind::Value { words } => words as usize,
                LiveKind::Object { .. } if live.weak => 0,
                LiveKind::Object { size, .. } => (size as usize).div_ceil(8),
            };
            if word < end {
                return live.name.clone().map_or(Local::Unnamed, Local::Named);
            }
        }
        Local::Beyond
    }

    fn add_modules(&mut self, channel: &Channel, header: &Header) -> Result<(), Damaged> {
        let len = header.modules_len as usize;
        if len == self.modules_len {
            return Ok(());
        }
        if len > layout::MODULES_BYTES {
            return Err(Damaged("the length of the modules"));
        }
        let bytes = channel.bytes(layout::MODULES_OFFSET, len);
        let mut rest = &bytes[..];
        let mut number = 0;
        while !rest.is_empty() {
            let len = Reader::new(rest).u32()? as usize;
            if len < size_of::<layout::ModuleRecord>() || len > rest.len() {
                return Err(Damaged("the length of a module"));
            }
            let (record, after) = rest.split_at(len);
            if number >= self.modules {
                add_module(&mut self.library, &mut Reader::new(record))?;
            }
            number += 1;
            rest = after;
        }
        (self.modules, self.modules_len) = (number, len);
        Ok(())
    }

    /// Says whether it is new.
    fn put(&mut self, channel: &mut Channel, site: u32) -> bool {
        let place = layout::POINTS_OFFSET + 4 * site as usize;
        if site as usize >= layout::POINTS_CAPACITY || channel.bytes(place, 4).iter().any(|b| *b != 0) {
            return false;
        }
        let words = self.library.point(site).and_then(encode);
        let fits = |words: &Vec<u64>| 8 * (self.used + words.len()) <= layout::DESCRIPTIONS_BYTES;
        let at = match words.filter(fits) {
            None => 1,
            Some(words) => {
                let at = self.used;
                let halves: Vec<u32> = words.iter().flat_map(|w| [*w as u32, (*w >> 32) as u32]).collect();
                channel.write_words(layout::DESCRIPTIONS_OFFSET + 8 * at, halves.into_iter());
                self.used += words.len();
                at as u32
            }
        };
        channel.write_words(place, [at].into_iter());
        true
    }
}

fn add_module(library: &mut Library, reader: &mut Reader<'_>) -> Result<(), Damaged> {
    let mut next = || reader.u32();
    let [_, first_site, site_count, function_count, strings_len, digest_len] =
        [next()?, next()?, next()?, next()?, next()?, next()?];
    reader.take_padded(site_count as usize * size_of::<symdpor_abi::module::Site>())?;
    let mut functions = Vec::new();
    for _ in 0..function_count {
        let mut next = || reader.u32();
        let [symbol, _, _, _, slots, _] = [next()?, next()?, next()?, next()?, next()?, next()?];
        functions.push(FunctionEntry { symbol, slots });
    }
    if function_count % 2 == 1 && !size_of::<symdpor_abi::module::Function>().is_multiple_of(8) {
        reader.u32()?;
    }
    let strings = reader.take_padded(strings_len as usize)?;
    let digest = reader.take_padded(digest_len as usize)?;
    // A digest that cannot be read means points that cannot be described.
    let tables = ModuleTables { digest, strings, functions: &functions, first_site, site_count };
    if library.add_module(tables).is_err() {
        let nothing = ModuleTables { digest: &[3, 0, 0], ..tables };
        library.add_module(nothing).map_err(|_| Damaged("a digest"))?;
    }
    Ok(())
}

fn encode(point: &Point) -> Option<Vec<u64>> {
    let (mut flags, before) = (0, items(&point.before));
    let after = point.after.as_ref().and_then(items);
    flags |= before.is_some() as u64 * flags::BEFORE;
    flags |= after.is_some() as u64 * flags::AFTER;
    let provided = point.callee.as_ref().is_some_and(|c| PROVIDED.contains(&c.as_str()));
    flags |= (point.after.is_none() || provided) as u64 * flags::DIRECT;
    let code = |r: Option<&Residual>| r.map_or([0, 0], |r| [r.code as u64, (r.code >> 64) as u64]);
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let counts = before.len() as u64 | (after.len() as u64) << 32;
    let callee = point.callee.as_ref().map_or(0, |c| name_hash(c.as_bytes()));
    let target = point.target.map_or(0, |slot| u64::from(slot) + 1);
    let [b0, b1] = code(Some(&point.before));
    let [a0, a1] = code(point.after.as_ref());
    let mut words = vec![b0, b1, a0, a1, callee, target, counts, flags];
    debug_assert_eq!(words.len(), DESCRIPTION_WORDS);
    words.extend(before);
    words.extend(after);
    Some(words)
}

/// The live locals, if all can be read.
fn items(residual: &Residual) -> Option<Vec<u64>> {
    residual.live.iter().map(encode_live).collect::<Option<Vec<u64>>>().filter(|_| residual.comparable)
}

fn encode_live(live: &Live) -> Option<u64> {
    match live.kind {
        LiveKind::Value { words } => Some(item::pack(live.slot, item::VALUE, words.into())),
        LiveKind::Object { size, .. } => {
            let kind = if live.weak { item::WEAK } else { item::OBJECT };
            (size <= item::MAX_SIZE).then(|| item::pack(live.slot, kind, size))
        }
    }
}
