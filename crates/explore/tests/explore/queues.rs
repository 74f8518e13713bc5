//! Queues between threads, as pipes are: putting waits while there is no room, taking while there is nothing, looking until
//! one of several has something. All are bytes of one object, so that looking can name more than one.

use crate::machine::{Clock, join};
use crate::program::{Instr, QUEUES};
use symdpor_trace::{ObjectId, Op, OpKind};

const ROOM: usize = 2;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Queue {
    items: Vec<i8>,
    is_closed: bool,
    clock: Clock,
}

pub type Queues = [Queue; QUEUES];

fn op(kind: OpKind, mask: u8) -> Op {
    let mut op = Op::new(kind, ObjectId::channels(0));
    op.mask = mask;
    op
}

/// The operation of an instruction on queues.
pub fn pending(instr: Instr) -> Option<Op> {
    Some(match instr {
        Instr::Put(q, _) | Instr::Take(_, q) | Instr::TakeNow(_, q) | Instr::Close(q) => {
            op(OpKind::OutsideChange, 1 << q)
        }
        Instr::Look(_) => op(OpKind::OutsideLook, (1 << QUEUES) - 1),
        _ => return None,
    })
}

fn has_something(queue: &Queue) -> bool {
    queue.is_closed || !queue.items.is_empty()
}

/// Whether it can go on.
pub fn enabled(queues: &Queues, instr: Instr) -> bool {
    match instr {
        Instr::Put(q, _) => queues[q as usize].is_closed || queues[q as usize].items.len() < ROOM,
        Instr::Take(_, q) => has_something(&queues[q as usize]),
        Instr::Look(_) => queues.iter().any(has_something),
        _ => true,
    }
}

/// Does it for a thread with this clock; returns the register that changes, and to what.
pub fn operate(queues: &mut Queues, instr: Instr, clock: &mut Clock) -> Option<(u8, i8)> {
    match instr {
        Instr::Put(q, value) => {
            let queue = &mut queues[q as usize];
            if !queue.is_closed {
                queue.items.push(value);
                join(&mut queue.clock, clock);
            }
            None
        }
        Instr::Take(r, q) | Instr::TakeNow(r, q) => {
            let queue = &mut queues[q as usize];
            if !has_something(queue) {
                return Some((r, -1));
            }
            join(clock, &queue.clock);
            Some((r, if queue.items.is_empty() { -2 } else { queue.items.remove(0) }))
        }
        Instr::Close(q) => {
            queues[q as usize].is_closed = true;
            join(&mut queues[q as usize].clock, clock);
            None
        }
        Instr::Look(r) => {
            let mut seen = 0;
            for (i, queue) in queues.iter().enumerate().filter(|(_, q)| has_something(q)) {
                seen |= 1 << i;
                join(clock, &queue.clock);
            }
            Some((r, seen))
        }
        _ => None,
    }
}

/// What can be seen of them.
pub fn visible(queues: &Queues) -> impl Iterator<Item = i8> {
    queues.iter().flat_map(|q| [q.is_closed as i8, q.items.len() as i8].into_iter().chain(q.items.iter().copied()))
}
