//! Random numbers with a state that is nowhere in the program.
//!
//! libc protects that of `rand` with a lock: no race, but who calls first gets the first number, so a call is a visible
//! operation. That of `drand48` is not protected.

use super::{Hidden, around, before, hidden, write};
use crate::footprint;
use crate::names;
use crate::sched;
use crate::snapshot;
use symdpor_abi::op::{Op, OpKind};

fn take_turn() {
    if snapshot::is_taken() {
        sched::visible(Op::new(OpKind::AtomicRmw, names::object(hidden(Hidden::Random))), 0, 0);
    }
}

fn learnt(value: usize) -> usize {
    footprint::learnt(value);
    value
}

around! {
    fn rand() via real {
        take_turn();
        learnt(real())
    }

    fn random() via real {
        take_turn();
        learnt(real())
    }

    fn srand(seed) via real {
        take_turn();
        real(seed)
    }

    fn srandom(seed) via real {
        take_turn();
        real(seed)
    }
}

fn unprotected() {
    write(hidden(Hidden::Drand48), 8);
}

before! {
    drand48: |_| unprotected();
    lrand48: |_| unprotected();
    mrand48: |_| unprotected();
    srand48: |_| unprotected();
    rand_r: |a| write(a.word(0), 4);
}
