//! Atomic sections: nobody else runs before they end.
//!
//! For the search a section is one operation that depends on everything ([`OpKind::AtomicSection`]); what is done in it is part
//! of that transition and not recorded. For data races sections are ordered with each other, as if a lock protected them, and
//! with nothing else.

use crate::end::{self, Details};
use crate::exec;
use crate::library::{self, Hidden};
use crate::races;
use crate::sched;
use crate::snapshot;
use crate::spin;
use crate::stack;
use symdpor_abi::channel::ErrorKind;
use symdpor_abi::object::ObjectId;
use symdpor_abi::op::{Op, OpKind};

/// Stands for all sections in the eyes of the race detector.
fn order() -> usize {
    library::hidden(Hidden::Sections)
}

pub fn begin() {
    let exec = exec::get();
    if exec.section == 0 {
        if snapshot::is_taken() {
            sched::visible(Op::new(OpKind::AtomicSection, ObjectId::NONE), 0, 0);
        }
        races::acquire(order());
        spin::changed();
    }
    exec::get().section += 1;
}

pub fn end() {
    let exec = exec::get();
    if exec.section == 0 {
        let text = format_args!("an atomic section is ended where none was begun");
        end::error(ErrorKind::LockMisuse, &Details::at(0), text);
    }
    exec.section -= 1;
    if exec.section == 0 {
        races::release(order());
        spin::changed();
    }
}

/// The running thread ends, and its sections with it.
pub fn leave() {
    if exec::get().section > 0 {
        exec::get().section = 1;
        end();
    }
}

/// An operation within a section: done at once, if it can be.
pub fn operation(op: Op, address: usize, site: usize) -> u16 {
    let what = match op.kind {
        OpKind::ThreadCreate => "creates a thread",
        OpKind::ThreadJoin => "joins a thread",
        OpKind::CondSignal | OpKind::CondBroadcast => "signals a condition variable",
        OpKind::CondWait => "waits for a condition variable",
        _ => "",
    };
    if !what.is_empty() {
        end::unsupported(format_args!("the program {what} inside an atomic section, which is not supported"));
    }
    let (exec, thread) = (exec::get(), exec::me());
    thread.pending = op;
    thread.pending_address = address;
    thread.pending_site = stack::innermost(site);
    exec.outside &= !1;
    if !sched::can_go_on(exec.current) {
        blocked(thread.pending_site);
    }
    0
}

/// The running thread is about to wait.
pub fn check_blocking() {
    if exec::get().section > 0 {
        blocked(0);
    }
}

fn blocked(site: usize) -> ! {
    let text = format_args!("thread {} waits inside an atomic section, where no other can run", exec::get().current);
    end::error(ErrorKind::LockMisuse, &Details::at(site), text)
}
