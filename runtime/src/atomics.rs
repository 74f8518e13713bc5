//! Atomic accesses. The instruction itself is the program's own, executed between the two hooks: nothing else runs then.

use crate::access;
use crate::cell::Global;
use crate::exec;
use crate::names;
use crate::races;
use crate::sched;
use crate::snapshot;
use crate::spin;
use crate::watch;
use symdpor_abi::module::{ATOMIC_IN_LOOP, AtomicKind};
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind};

/// A decoded `shape` argument.
struct Shape {
    size: usize,
    kind: AtomicKind,
    order: u8,
    failure_order: u8,
    in_loop: bool,
}

impl Shape {
    fn decode(raw: u32) -> Shape {
        let kind = match raw >> 8 & 0xff {
            0 => AtomicKind::Load,
            1 => AtomicKind::Store,
            2 => AtomicKind::Rmw,
            _ => AtomicKind::Cas,
        };
        let in_loop = raw & ATOMIC_IN_LOOP != 0;
        let (order, failure_order) = ((raw & !ATOMIC_IN_LOOP) >> 16, raw >> 24);
        Shape { size: (raw & 0xff) as usize, kind, order: order as u8, failure_order: failure_order as u8, in_loop }
    }
}

/// The value before the atomic access under way.
static OLD: Global<u64> = Global::new(0);

fn value(address: usize, size: usize) -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the program is about to access this memory itself, or just did.
    unsafe { core::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), size.min(8)) };
    u64::from_le_bytes(bytes)
}

fn op(address: usize, shape: &Shape) -> Op {
    let kind = match shape.kind {
        AtomicKind::Load => OpKind::AtomicLoad,
        AtomicKind::Store => OpKind::AtomicStore,
        AtomicKind::Rmw => OpKind::AtomicRmw,
        AtomicKind::Cas => OpKind::AtomicCas,
    };
    let mut op = Op::new(kind, names::object(address));
    op.mask = names::mask(address, shape.size);
    op.order = shape.order;
    let in_first = 8 - (address & 7);
    if shape.size > in_first {
        op.object2 = names::object(address + in_first);
        op.mask2 = names::mask(address + in_first, shape.size - in_first);
    } else {
        op.object2 = ObjectId::NONE;
    }
    op
}

/// The first hook. `registers`: address of the saved registers, with the stack above them. Says whether the stack below has
/// to be wiped.
pub extern "C" fn before_hook(address: usize, raw: u32, site: usize, registers: usize) -> bool {
    before(address, raw, site, registers);
    spin::is_idle()
}

/// The second hook.
pub extern "C" fn after_hook(address: usize, raw: u32, success: u32) -> bool {
    after(address, raw, success != 0);
    spin::is_idle()
}

fn before(address: usize, raw: u32, site: usize, registers: usize) {
    let shape = Shape::decode(raw);
    let writes = shape.kind != AtomicKind::Load;
    access::check_place(address, shape.size, site, writes);
    if !snapshot::is_taken() {
        return;
    }
    if shape.kind != AtomicKind::Store {
        spin::arrive(registers, Some(site), shape.in_loop);
    }
    sched::visible(op(address, &shape), 0, site);
    // Another thread may have freed the block meanwhile.
    access::check_place(address, shape.size, site, writes);
    // The first to touch it is not the program's own instruction: a crash here is the program's all the same.
    exec::get().last_site = site;
    exec::get().last_atomic = address.wrapping_add(1);
    let old = value(address, shape.size);
    *OLD.get() = old;
    if shape.kind == AtomicKind::Load {
        sched::values(old, old);
        spin::read(address, shape.size);
        touch(address, shape.size, site, false);
        races::detector().atomic_load(exec::get().current, address, shape.order);
    } else {
        crate::repeat::store(address, shape.size);
        // Whether it writes is known afterwards; what it reads or writes must not race in any case.
        touch(address, shape.size, site, shape.kind != AtomicKind::Cas);
    }
}

fn after(address: usize, raw: u32, success: bool) {
    if !snapshot::is_taken() {
        return;
    }
    let shape = Shape::decode(raw);
    let me = exec::get().current;
    let detector = races::detector();
    match shape.kind {
        AtomicKind::Load => return,
        AtomicKind::Store => detector.atomic_store(me, address, shape.order),
        AtomicKind::Rmw => detector.atomic_rmw(me, address, shape.order),
        AtomicKind::Cas if success => {
            touch(address, shape.size, 0, true);
            detector.atomic_rmw(me, address, shape.order);
            sched::executed(OpKind::AtomicRmw);
        }
        AtomicKind::Cas => {
            detector.atomic_load(me, address, shape.failure_order);
            sched::executed(OpKind::AtomicLoad);
            sched::failed_with(shape.failure_order);
        }
    }
    let new = value(address, shape.size);
    sched::values(*OLD.get(), new);
    let same = shape.kind != AtomicKind::Store && shape.size <= 8 && *OLD.get() == new;
    if same || shape.kind == AtomicKind::Cas && !success {
        spin::read(address, shape.size);
    } else {
        spin::wrote(address, shape.size);
    }
}

/// An atomic access that code of a library makes, or the runtime in its place: the caller makes it right after this.
pub fn announce(address: usize, size: usize, kind: OpKind, order: u8) {
    if !snapshot::is_taken() {
        return;
    }
    let mut op = Op::new(kind, names::object(address));
    op.mask = names::mask(address, size);
    op.order = order;
    sched::visible(op, address, 0);
    spin::wrote(address, size);
    let (me, detector) = (exec::get().current, races::detector());
    match kind {
        OpKind::AtomicStore => detector.atomic_store(me, address, order),
        _ => detector.atomic_rmw(me, address, order),
    }
}

/// Mixed with plain accesses that are not ordered, an atomic one is part of a race.
fn touch(address: usize, size: usize, site: usize, writes: bool) {
    if watch::is_on() {
        watch::note(address, size, writes, true, site);
    }
    if !races::is_on() {
        return;
    }
    let me = exec::get().current;
    let detector = races::detector();
    let race = if writes { detector.atomic_write(me, address, size) } else { detector.atomic_read(me, address, size) };
    if let Some(race) = race {
        access::report_race(&race, site);
    }
}
