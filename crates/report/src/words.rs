//! Operations in words.

use crate::place;
use symdpor_trace::failure::{Event, PlainAccessEvent};
use symdpor_trace::{NO_THREAD, OpKind, TRIED, ThreadId, ValueType};

/// One step: `lock m`, `load flag = 0`, `store x: 0 -> 1`, `signal cv, wakes thread 2`.
pub fn event(event: &Event) -> String {
    event_of(event, &place::thread)
}

/// The same with other names for threads.
pub fn event_of(event: &Event, name: &dyn Fn(ThreadId) -> String) -> String {
    let mut text = plain(event, name);
    if event.alternatives > 1 {
        text.push_str(&format!(" (one of {})", event.alternatives));
    }
    text
}

fn plain(event: &Event, name: &dyn Fn(ThreadId) -> String) -> String {
    let object = named(&event.object);
    let other = || name(ThreadId(event.arg as u16));
    match event.op {
        OpKind::AtomicLoad | OpKind::PlainLoad | OpKind::AtomicStore | OpKind::PlainStore | OpKind::AtomicRmw => {
            access(event)
        }
        OpKind::AtomicCas => format!("compare and exchange{object}"),
        OpKind::MutexLock if event.arg == TRIED => format!("trylock{object}, taken"),
        OpKind::MutexLock => format!("lock{object}"),
        OpKind::TryLock => format!("trylock{object}"),
        OpKind::TryLockFailed => format!("trylock{object}, fails"),
        OpKind::MutexUnlock => format!("unlock{object}"),
        OpKind::CondWait => format!("wait{object}{}", released(&event.object2)),
        OpKind::CondSignal if event.arg == NO_THREAD => format!("signal{object}, nobody waits"),
        OpKind::CondSignal => format!("signal{object}, wakes {}", other()),
        OpKind::CondBroadcast => format!("broadcast{object}"),
        OpKind::Once => format!("once{object}"),
        OpKind::OnceBegin => format!("once{object}: begins"),
        OpKind::OnceEnd => format!("once{object}: ends"),
        OpKind::OnceDone => format!("once{object}: already done"),
        OpKind::ThreadCreate => format!("create {}", other()),
        OpKind::ThreadJoin => format!("join {}", other()),
        OpKind::ProcessExit => format!("exit with status {}", event.arg),
        OpKind::Input => "read from a shared file".to_owned(),
        OpKind::OutsideLook | OpKind::OutsideTake | OpKind::OutsidePut | OpKind::OutsideChange => event.object.clone(),
        OpKind::KeyTable => "create or delete a key".to_owned(),
        OpKind::AtomicSection => "atomic section".to_owned(),
        OpKind::Choose => event.values.map_or("choose".to_owned(), |(_, value)| format!("choose {value}")),
        OpKind::Yield => "yield".to_owned(),
        OpKind::Waiting => format!("wait{object}"),
        OpKind::CondTimeout => format!("wait{object}: the time is up"),
        OpKind::RwRead if event.arg == TRIED => format!("try to read-lock{object}, taken"),
        OpKind::RwRead => format!("read-lock{object}"),
        OpKind::RwWrite if event.arg == TRIED => format!("try to write-lock{object}, taken"),
        OpKind::RwWrite => format!("write-lock{object}"),
        OpKind::RwTryRead => format!("try to read-lock{object}"),
        OpKind::RwTryWrite => format!("try to write-lock{object}"),
        OpKind::RwReadFailed => format!("try to read-lock{object}, fails"),
        OpKind::RwWriteFailed => format!("try to write-lock{object}, fails"),
        OpKind::RwUnlockRead => format!("unlock{object} after reading"),
        OpKind::RwUnlockWrite => format!("unlock{object} after writing"),
        OpKind::SemPost => format!("post semaphore{object}{}", counted(event)),
        OpKind::SemWait | OpKind::SemTaken => format!("take semaphore{object}{}", counted(event)),
        OpKind::SemTry => format!("try to take semaphore{object}"),
        OpKind::SemTryFailed => format!("try to take semaphore{object}, fails"),
        OpKind::SemValue => format!("value of semaphore{object} = {}", event.arg),
        OpKind::BarrierArrive | OpKind::BarrierMeet if event.arg != 0 => {
            format!("arrive at barrier{object} as the last")
        }
        OpKind::BarrierArrive | OpKind::BarrierMeet => format!("arrive at barrier{object}"),
        OpKind::BarrierPass => format!("go on after barrier{object}"),
        OpKind::FutexWait => format!("futex wait{object}"),
        OpKind::FutexMismatch => format!("futex wait{object}, has another value"),
        OpKind::FutexWake if event.arg == NO_THREAD => format!("futex wake{object}, nobody waits"),
        OpKind::FutexWake => format!("futex wake{object}, wakes {}", other()),
        OpKind::FutexWakeAll => format!("futex wake{object}, wakes all"),
        OpKind::FutexWakeSet => format!("futex wake{object}, wakes {}", place::threads(event.arg)),
        OpKind::FutexRequeue => format!("futex requeue{object}, wakes {}", place::threads(event.arg)),
        OpKind::FutexWakeOp => format!("futex change and wake{object}, wakes {}", place::threads(event.arg)),
        OpKind::FutexTimeout => format!("futex wait{object}, time is up"),
        OpKind::FutexWoken => format!("woken{object}"),
        OpKind::ThreadEnd => "end".to_owned(),
        OpKind::TryJoin => format!("try to join {}", other()),
        OpKind::TryJoinFailed => format!("try to join {}, which has not ended", other()),
        OpKind::ThreadCancel => format!("cancel {}", other()),
        OpKind::CondCancel if event.values.is_some_and(|(_, cancelled)| cancelled != 0) => {
            format!("wait{object}: is cancelled")
        }
        OpKind::CondCancel => format!("wait{object}: is woken"),
        OpKind::CancelPoint if event.arg != 0 => "is cancelled".to_owned(),
        OpKind::CancelPoint => "look whether to be cancelled".to_owned(),
    }
}

/// How a semaphore's value changes.
fn counted(event: &Event) -> String {
    event.values.map_or_else(String::new, |(old, new)| format!(": {old} -> {new}"))
}

fn access(event: &Event) -> String {
    let object = named(&event.object);
    let verb = match event.op {
        OpKind::AtomicLoad => "load",
        OpKind::PlainLoad => "read",
        OpKind::AtomicStore => "store",
        OpKind::PlainStore => "write",
        _ => "update",
    };
    let change = match (event.values, event.op) {
        (None, _) => String::new(),
        (Some((_, new)), OpKind::AtomicLoad | OpKind::PlainLoad) => format!(" = {}", value(new, event.size, &event.ty)),
        (Some((old, new)), _) => {
            format!(": {} -> {}", value(old, event.size, &event.ty), value(new, event.size, &event.ty))
        }
    };
    let plain = matches!(event.op, OpKind::PlainLoad | OpKind::PlainStore);
    let order = if plain { "" } else { order_words(event.order) };
    format!("{verb}{object}{change}{order}")
}

/// A plain access between steps.
pub fn plain_access(access: &PlainAccessEvent) -> String {
    let object = named(&access.object);
    let size = access.size.min(8) as u8;
    if access.frees {
        return format!("free{object}");
    }
    match (access.write, access.values) {
        (false, Some((_, new))) => format!("read{object} = {}", value(new, size, &access.ty)),
        (false, None) => format!("read{object}"),
        (true, Some((old, new))) => {
            format!("write{object}: {} -> {}", value(old, size, &access.ty), value(new, size, &access.ty))
        }
        (true, None) => format!("write{object}"),
    }
}

fn named(object: &str) -> String {
    match object {
        "" => String::new(),
        // Nobody can do anything with where it is.
        library if library.starts_with("library+0x") => " of a library".to_owned(),
        name => format!(" {}", place::demangled(name)),
    }
}

fn released(mutex: &str) -> String {
    if mutex.is_empty() { String::new() } else { format!(", releases {}", place::demangled(mutex)) }
}

/// Sequential consistency is what people expect, so only weaker orders are mentioned.
fn order_words(order: u8) -> &'static str {
    match order {
        0 => " (relaxed)",
        1 => " (consume)",
        2 => " (acquire)",
        3 => " (release)",
        4 => " (acq_rel)",
        _ => "",
    }
}

/// A value in the terms of its type.
pub fn value(raw: u64, size: u8, ty: &ValueType) -> String {
    let bits = 8 * u32::from(size.clamp(1, 8));
    let signed = ((raw << (64 - bits)) as i64) >> (64 - bits);
    let unsigned = raw << (64 - bits) >> (64 - bits);
    match (ty, size) {
        (ValueType::Signed, _) => signed.to_string(),
        (ValueType::Unsigned, _) if unsigned < 1 << 48 => unsigned.to_string(),
        (ValueType::Bool, _) if unsigned < 2 => (unsigned == 1).to_string(),
        (ValueType::Char, _) if (0x20..0x7f).contains(&unsigned) => format!("'{}'", unsigned as u8 as char),
        (ValueType::Float, 4) => f32::from_bits(unsigned as u32).to_string(),
        (ValueType::Float, 8) => f64::from_bits(unsigned).to_string(),
        (ValueType::Pointer, _) if unsigned == 0 => "null".to_owned(),
        (ValueType::Pointer, _) => format!("{unsigned:#x}"),
        (ValueType::Enum(names), _) => {
            let is_meant = |v: i64| v == signed || v == unsigned as i64;
            let name = names.iter().find(|(v, _)| is_meant(*v)).map(|(_, name)| name.clone());
            name.unwrap_or_else(|| signed.to_string())
        }
        _ => number(raw, size),
    }
}

/// Small negative numbers are shown as such, large ones in hexadecimal: they are addresses or bit patterns.
pub fn number(value: u64, size: u8) -> String {
    let bits = 8 * u32::from(size.clamp(1, 8));
    let signed = ((value << (64 - bits)) as i64) >> (64 - bits);
    let unsigned = value << (64 - bits) >> (64 - bits);
    match signed {
        -99_999..0 => signed.to_string(),
        _ if unsigned < 100_000_000 => unsigned.to_string(),
        _ => format!("{unsigned:#x}"),
    }
}

/// What a thread that cannot go on waits for.
pub fn waiting(op: OpKind, object: &str, joined: Option<ThreadId>, name: &dyn Fn(ThreadId) -> String) -> String {
    let object = named(object);
    match (op, joined) {
        (OpKind::ThreadJoin, Some(thread)) => format!("waits for {} to end", name(thread)),
        (OpKind::ThreadJoin, None) => "waits for a thread to end".to_owned(),
        (OpKind::MutexLock, _) => format!("waits for mutex{object}"),
        (OpKind::Waiting, _) => {
            format!("waits for a signal{}", if object.is_empty() { object } else { format!(" on{object}") })
        }
        (OpKind::Once | OpKind::OnceBegin, _) => format!("waits for another thread's once{object}"),
        (OpKind::Yield, _) => "spins".to_owned(),
        (OpKind::RwRead, _) => format!("waits to read-lock{object}"),
        (OpKind::RwWrite, _) => format!("waits to write-lock{object}"),
        (OpKind::SemWait, _) => format!("waits for semaphore{object}"),
        (OpKind::BarrierArrive | OpKind::BarrierMeet | OpKind::BarrierPass, _) => {
            format!("waits for others at barrier{object}")
        }
        (OpKind::CondCancel, _) => format!("waits for a signal on{object}"),
        (OpKind::CondTimeout, _) => format!("waits for a signal on{object}, with a time limit"),
        (OpKind::OutsideLook | OpKind::OutsideTake | OpKind::OutsidePut | OpKind::OutsideChange, _) => {
            format!("waits to{object}")
        }
        (OpKind::AtomicLoad | OpKind::PlainLoad, _) => format!("reads{object} again and again"),
        (OpKind::FutexWait, _) => format!("waits on futex{object}"),
        (OpKind::AtomicCas | OpKind::AtomicRmw, _) => format!("tries to change{object} again and again"),
        (OpKind::TryLock, _) => format!("tries to lock{object} again and again"),
        _ => format!("is about to act on{object}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(op: OpKind) -> Event {
        Event {
            thread: ThreadId(1),
            op,
            order: 5,
            arg: 2,
            size: 4,
            object: "x".into(),
            object2: String::new(),
            values: None,
            alternatives: 1,
            location: 0,
            id: 0,
            id2: 0,
            mask: 0xff,
            ty: ValueType::Unknown,
        }
    }

    #[test]
    fn accesses_show_their_values() {
        let load = Event { values: Some((0, 7)), ..sample(OpKind::AtomicLoad) };
        assert_eq!(event(&load), "load x = 7");
        let store = Event { values: Some((0, 0xffff_ffff)), order: 3, ..sample(OpKind::AtomicStore) };
        assert_eq!(event(&store), "store x: 0 -> -1 (release)");
        assert_eq!(event(&sample(OpKind::PlainStore)), "write x");
    }

    #[test]
    fn synchronisation_names_its_objects() {
        assert_eq!(event(&sample(OpKind::MutexLock)), "lock x");
        let wait = Event { object2: "m".into(), ..sample(OpKind::CondWait) };
        assert_eq!(event(&wait), "wait x, releases m");
        let signal = Event { alternatives: 2, ..sample(OpKind::CondSignal) };
        assert_eq!(event(&signal), "signal x, wakes thread 2 (one of 2)");
        let nobody = Event { arg: u32::MAX, ..sample(OpKind::CondSignal) };
        assert_eq!(event(&nobody), "signal x, nobody waits");
        assert_eq!(event(&sample(OpKind::ThreadCreate)), "create thread 2");
    }

    #[test]
    fn values_are_of_their_type() {
        assert_eq!(value(200, 1, &ValueType::Unsigned), "200");
        assert_eq!(value(200, 1, &ValueType::Signed), "-56");
        assert_eq!(value(1, 1, &ValueType::Bool), "true");
        assert_eq!(value(7, 1, &ValueType::Bool), "7");
        assert_eq!(value(65, 1, &ValueType::Char), "'A'");
        assert_eq!(value(10, 1, &ValueType::Char), "10");
        assert_eq!(value(0x4049_0000, 4, &ValueType::Float), "3.140625");
        assert_eq!(value(0, 8, &ValueType::Pointer), "null");
        assert_eq!(value(0x1000, 8, &ValueType::Pointer), "0x1000");
        let modes = ValueType::Enum(vec![(0, "OFF".into()), (-1, "BROKEN".into())]);
        assert_eq!(value(0, 4, &modes), "OFF");
        assert_eq!(value(0xffff_ffff, 4, &modes), "BROKEN");
        assert_eq!(value(5, 4, &modes), "5");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(number(5, 8), "5");
        assert_eq!(number(0xff, 1), "-1");
        assert_eq!(number(u64::MAX, 8), "-1");
        assert_eq!(number(0x7fff_ffff_0000, 8), "0x7fffffff0000");
    }
}
