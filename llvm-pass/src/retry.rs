//! Loops that exchange what they have found: `old = load(x); while (!exchange(x, &old, f(old)));`.
//!
//! A failed exchange puts what it has found into `old`, so that the thread comes round in another state each time, and none of its turns
//! looks as if it were in vain. But it could as well load again: here the loop is made to go back to the load when the exchange has failed. No
//! behaviour is lost or won by that.
//!
//! - What the exchange has found the load may find as well, right after it.
//! - If the load finds something else, which has come since, the thread might have been slow and its exchange have found that. If it is again what
//!   the exchange was to find, the thread might not have come to its exchange at all yet.
//!
//! It has to be the same order for both, and nothing else may be different in the next turn: of what the turn computes only `old` is taken
//! over to the next one, the way from a failed exchange to the next has no side effects and depends on nothing but the failure, and neither has or
//! does the way from the load to the first one.
//!
//! Covered: loops of one block, and what Clang makes of C at -O0, with the variables in memory. Not covered: `std::atomic` at -O0, whose
//! exchanges are calls; loops that do more.

use std::collections::{HashMap, HashSet};

use inkwell::llvm_sys::LLVMAtomicOrdering;
use inkwell::llvm_sys::core::*;

use crate::ir::{Block, Module, Opcode, Type, Value, llvm};
use crate::locals::scalars;
use crate::shims::{redirect, split_before};

/// Longer ways are not looked at.
const MOST: usize = 60;

/// Goes through all exchanges of a function.
pub fn go_back_to_loads(module: Module, function: Value) {
    let all: Vec<Value> = function.blocks().into_iter().flat_map(|b| b.instructions()).collect();
    let is_plain = |i: &Value| llvm!(LLVMGetVolatile(i.0)) == 0 && llvm!(LLVMIsAtomicSingleThread(i.0)) == 0;
    let exchanges: Vec<Value> =
        all.iter().copied().filter(|i| i.is(Opcode::LLVMAtomicCmpXchg) && is_plain(i)).collect();
    if exchanges.is_empty() {
        return;
    }
    let loads: Vec<Value> = all.into_iter().filter(|i| i.is(Opcode::LLVMLoad) && is_plain(i)).collect();
    let scalars = scalars(module, function);
    for exchange in exchanges {
        let Some(found) = Exchange::of(exchange, &scalars) else { continue };
        if let Some(load) = loads.iter().copied().find(|&load| found.may_go_back_to(load)) {
            let target = split_before(load);
            redirect(exchange.block().terminator(), FAILED, target);
        }
    }
}

/// The second successor of the branch behind an exchange.
const FAILED: u32 = 1;

/// A part of an exchange's result.
fn part(of: Value, index: u32) -> impl Fn(&Value) -> bool {
    move |value: &Value| {
        value.is(Opcode::LLVMExtractValue)
            && value.operand(0) == of
            && llvm!(LLVMGetNumIndices(value.0)) == 1
            // SAFETY: there is one.
            && unsafe { *LLVMGetIndices(value.0) } == index
    }
}

/// What is known of a value on a way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It is what was found.
    Found,
    /// It is computed from that.
    Derived,
    /// It is a truth value that follows from the failure.
    Is(bool),
    /// It has to do with none of these.
    Other,
}

/// A way through the function, instruction by instruction.
struct Way<'a> {
    scalars: &'a HashMap<Value, Type>,
    known: HashMap<Value, Known>,
    /// What has been stored to variables on the way.
    stored: HashMap<Value, Known>,
    /// Variables that were loaded before anything was stored to them.
    loaded_first: HashSet<Value>,
    instructions: Vec<Value>,
    blocks: Vec<Block>,
    /// What the phis on the way take over.
    taken_over: HashMap<Value, Value>,
}

impl<'a> Way<'a> {
    fn new(scalars: &'a HashMap<Value, Type>, found: Value) -> Way<'a> {
        Way {
            scalars,
            known: HashMap::from([(found, Known::Found)]),
            stored: HashMap::new(),
            loaded_first: HashSet::new(),
            instructions: Vec::new(),
            blocks: Vec::new(),
            taken_over: HashMap::new(),
        }
    }

    fn of(&self, value: Value) -> Known {
        match (truth(value), self.known.get(&value)) {
            (Some(truth), _) => Known::Is(truth),
            (None, known) => known.copied().unwrap_or(Known::Other),
        }
    }

    /// Follows the way from an instruction to another one. False if it has side effects or depends on something.
    fn lead(&mut self, from: Value, to: Value) -> bool {
        let mut next = Some(from);
        while let Some(instruction) = next {
            if instruction == to {
                return true;
            }
            if self.instructions.len() == MOST {
                return false;
            }
            self.instructions.push(instruction);
            next = match self.step(instruction) {
                Step::On => instruction.next(),
                Step::To(block) => {
                    self.blocks.push(block);
                    self.take_over(instruction.block(), block);
                    block.instructions().into_iter().find(|i| !i.is(Opcode::LLVMPHI))
                }
                Step::No => return false,
            };
        }
        false
    }

    /// The way goes from one block to another.
    fn take_over(&mut self, from: Block, to: Block) {
        let values: Vec<(Value, Value)> = phis(to).filter_map(|phi| Some((phi, incoming(phi, from)?))).collect();
        let known: Vec<(Value, Known)> = values.iter().map(|&(phi, value)| (phi, self.of(value))).collect();
        self.known.extend(known);
        self.taken_over.extend(values);
    }

    fn step(&mut self, instruction: Value) -> Step {
        use Opcode::*;
        match instruction.opcode() {
            LLVMBr => return self.branch(instruction),
            LLVMLoad if self.is_variable(instruction, 0, instruction.ty()) => {
                let variable = instruction.operand(0);
                let known = self.stored.get(&variable).copied().unwrap_or_else(|| {
                    self.loaded_first.insert(variable);
                    Known::Other
                });
                self.known.insert(instruction, known);
            }
            LLVMStore if self.is_variable(instruction, 1, instruction.operand(0).ty()) => {
                self.stored.insert(instruction.operand(1), self.of(instruction.operand(0)));
            }
            LLVMExtractValue if self.known.contains_key(&instruction) => {}
            LLVMZExt | LLVMTrunc | LLVMFreeze if matches!(self.of(instruction.operand(0)), Known::Is(_)) => {
                self.known.insert(instruction, self.of(instruction.operand(0)));
            }
            LLVMXor => {
                let known = match (self.of(instruction.operand(0)), self.of(instruction.operand(1))) {
                    (Known::Is(one), Known::Is(other)) => Known::Is(one ^ other),
                    _ => self.computed(instruction),
                };
                self.known.insert(instruction, known);
            }
            LLVMAdd | LLVMSub | LLVMMul | LLVMAnd | LLVMOr | LLVMShl | LLVMLShr | LLVMAShr | LLVMZExt | LLVMSExt
            | LLVMTrunc | LLVMFreeze | LLVMICmp | LLVMSelect | LLVMGetElementPtr | LLVMPtrToInt | LLVMIntToPtr
            | LLVMBitCast | LLVMExtractValue => {
                let known = self.computed(instruction);
                self.known.insert(instruction, known);
            }
            _ => return Step::No,
        }
        Step::On
    }

    fn computed(&self, instruction: Value) -> Known {
        let derived = instruction.operands().into_iter().any(|o| !matches!(self.of(o), Known::Other | Known::Is(_)));
        if derived { Known::Derived } else { Known::Other }
    }

    fn branch(&self, branch: Value) -> Step {
        let ways = branch.block().successors();
        match ways[..] {
            [only] => Step::To(only),
            [taken, not_taken] => match self.of(branch.operand(0)) {
                Known::Is(truth) => Step::To(if truth { taken } else { not_taken }),
                _ => Step::No,
            },
            _ => Step::No,
        }
    }

    /// Whether all of a variable is accessed that nobody else can see.
    fn is_variable(&self, access: Value, operand: u32, ty: Type) -> bool {
        let plain = ordering(access) == LLVMAtomicOrdering::LLVMAtomicOrderingNotAtomic;
        plain && llvm!(LLVMGetVolatile(access.0)) == 0 && self.scalars.get(&access.operand(operand)) == Some(&ty)
    }
}

enum Step {
    On,
    To(Block),
    No,
}

fn phis(block: Block) -> impl Iterator<Item = Value> {
    block.instructions().into_iter().take_while(|i| i.is(Opcode::LLVMPHI))
}

fn incoming(phi: Value, from: Block) -> Option<Value> {
    let all = 0..llvm!(LLVMCountIncoming(phi.0));
    let edge = all.into_iter().find(|&i| llvm!(LLVMGetIncomingBlock(phi.0, i)) == from.0)?;
    Some(Value(llvm!(LLVMGetIncomingValue(phi.0, edge))))
}

fn ordering(access: Value) -> LLVMAtomicOrdering {
    llvm!(LLVMGetOrdering(access.0))
}

fn failure_ordering(exchange: Value) -> LLVMAtomicOrdering {
    llvm!(LLVMGetCmpXchgFailureOrdering(exchange.0))
}

/// An exchange that is made again with what it has found if it has failed.
struct Exchange<'a> {
    exchange: Value,
    again: Way<'a>,
}

impl<'a> Exchange<'a> {
    fn of(exchange: Value, scalars: &'a HashMap<Value, Type>) -> Option<Exchange<'a>> {
        let rest = || std::iter::successors(exchange.next(), |i| i.next());
        let (old, done) = (rest().find(part(exchange, 0))?, rest().find(part(exchange, 1))?);
        let branch = exchange.block().terminator();
        if !branch.is(Opcode::LLVMBr) || branch.operands().len() != 3 || branch.operand(0) != done {
            return None;
        }
        let mut again = Way::new(scalars, old);
        again.known.insert(exchange, Known::Derived);
        again.known.extend(rest().filter(part(exchange, 0)).map(|copy| (copy, Known::Found)));
        again.known.extend(rest().filter(part(exchange, 1)).map(|copy| (copy, Known::Is(false))));
        let found = again.lead(exchange.next()?, exchange) && again.of(exchange.operand(1)) == Known::Found;
        (found && again.takes_over_only_what_was_found()).then_some(Exchange { exchange, again })
    }

    /// Whether the load begins a way to the exchange that does the same as that from the failed exchange to the next.
    fn may_go_back_to(&self, load: Value) -> bool {
        let exchange = self.exchange;
        let same = ordering(load) == failure_ordering(exchange)
            && load.ty() == exchange.operand(1).ty()
            && self.is_same_address(load.operand(0), exchange.operand(0), MOST);
        let Some(next) = load.next().filter(|_| same && load.block() != exchange.block()) else { return false };
        let mut first = Way::new(self.again.scalars, load);
        if !first.lead(next, exchange) || first.of(exchange.operand(1)) != Known::Found {
            return false;
        }
        self.is_entered_by(&first, load.block()) && self.is_redone_by(&first)
    }

    /// Whether nobody comes to the exchange but by the two ways, and to the first part of the one from the load only.
    fn is_entered_by(&self, first: &Way, start: Block) -> bool {
        let again: HashSet<Block> = self.again.blocks.iter().copied().collect();
        let before: HashSet<Block> = first.blocks.iter().copied().filter(|b| !again.contains(b)).collect();
        self.exchange.block().function().blocks().into_iter().all(|from| {
            let on_first = from == start || before.contains(&from);
            let to = from.successors();
            let enters = |blocks: &HashSet<Block>| to.iter().any(|b| blocks.contains(b));
            (on_first || !enters(&before)) && (on_first || again.contains(&from) || !enters(&again))
        }) && before.iter().all(|b| phis(*b).next().is_none())
    }

    /// Whether to begin with the load again leaves all as it is, except for what was found.
    fn is_redone_by(&self, first: &Way) -> bool {
        let again: HashSet<Value> = self.again.instructions.iter().copied().collect();
        let only_first: HashSet<Value> = first.instructions.iter().copied().filter(|i| !again.contains(i)).collect();
        let is_derived = |known: Known| matches!(known, Known::Found | Known::Derived);
        let found_by_both = |phi: Value| first.of(phi) == Known::Found && self.again.of(phi) == Known::Found;
        // What is computed from what was found, before the two ways meet, is used nowhere else.
        let stays = |user: Value| only_first.contains(&user) || user.is(Opcode::LLVMPHI) && found_by_both(user);
        let mut before = first.known.iter().filter(|(value, _)| !again.contains(value) && !value.is(Opcode::LLVMPHI));
        let local = before.all(|(value, known)| !is_derived(*known) || value.users().into_iter().all(stays));
        // Where the two ways meet, both take over what was found, or both the same.
        let same = |phi: Value| match (self.again.taken_over.get(&phi), first.taken_over.get(&phi)) {
            (Some(again), Some(first)) => again == first || *again == phi,
            _ => false,
        };
        let meeting = self.again.blocks.iter().filter(|b| first.blocks.contains(b)).flat_map(|b| phis(*b));
        let taken_over = meeting.into_iter().all(|phi| found_by_both(phi) || same(phi));
        // Variables hold what they hold after the other way, or nobody looks at them.
        let stored = first.stored.iter().all(|(variable, known)| match self.again.stored.get(variable) {
            Some(Known::Found) => *known == Known::Found,
            Some(_) => self.is_stored_where_they_meet(first, *variable),
            None => !is_derived(*known) || variable.users().into_iter().all(|u| only_first.contains(&u)),
        });
        let left_out = self.again.stored.keys().filter(|variable| !first.stored.contains_key(variable));
        let unseen = left_out.into_iter().all(|variable| is_local_to_blocks(*variable));
        // What is computed anew is computed from the same.
        let unchanged = first.loaded_first.iter().all(|variable| !self.again.stored.contains_key(variable));
        local && taken_over && stored && unseen && unchanged
    }

    /// Whether both ways, from where they meet on, store to a variable.
    fn is_stored_where_they_meet(&self, first: &Way, variable: Value) -> bool {
        let both = first.instructions.iter().filter(|i| self.again.instructions.contains(i));
        both.into_iter().any(|i| i.is(Opcode::LLVMStore) && i.operand(1) == variable)
    }

    /// Whether two addresses are computed in the same way from what does not change.
    fn is_same_address(&self, one: Value, other: Value, depth: usize) -> bool {
        if one == other {
            return !self.again.known.contains_key(&one);
        }
        if depth == 0 || one.kind() != other.kind() || one.ty() != other.ty() {
            return false;
        }
        let same_operands = || {
            let (mine, theirs) = (one.operands(), other.operands());
            mine.len() == theirs.len() && mine.iter().zip(theirs).all(|(a, b)| self.is_same_address(*a, b, depth - 1))
        };
        if one.is(Opcode::LLVMLoad) {
            let variable = one.operand(0);
            let is_variable = self.again.is_variable(one, 0, one.ty()) && self.again.is_variable(other, 0, one.ty());
            // Stored to once, when the function begins.
            let stores = variable.users().into_iter().filter(|u| u.is(Opcode::LLVMStore)).count();
            return is_variable && other.operand(0) == variable && stores == 1;
        }
        one.is(Opcode::LLVMGetElementPtr) && source_type(one) == source_type(other) && same_operands()
    }
}

fn source_type(gep: Value) -> Type {
    Type(llvm!(LLVMGetGEPSourceElementType(gep.0)))
}

impl Way<'_> {
    /// Whether the next turn has nothing of this one but what was found.
    fn takes_over_only_what_was_found(&self) -> bool {
        let stored_later = self.loaded_first.iter().any(|variable| self.stored.contains_key(variable));
        !stored_later
    }
}

/// Whether each load of a variable comes after a store to it in the same block.
fn is_local_to_blocks(variable: Value) -> bool {
    let users = variable.users();
    let stores = |block: Block, load: Value| {
        let before = block.instructions().into_iter().take_while(move |i| *i != load);
        before.filter(|i| i.is(Opcode::LLVMStore)).any(|store| store.operand(1) == variable)
    };
    users.into_iter().filter(|u| u.is(Opcode::LLVMLoad)).all(|load| stores(load.block(), load))
}

/// Zero and one are truth values of any width.
fn truth(value: Value) -> Option<bool> {
    value.constant_int().filter(|&bits| bits <= 1).map(|bits| bits == 1)
}
