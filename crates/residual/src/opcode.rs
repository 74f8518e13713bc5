//! LLVM's C enumerations `LLVMOpcode`, `LLVMIntPredicate` and `LLVMRealPredicate`, as far as they matter here.

pub const BR: u32 = 2;
pub const SWITCH: u32 = 3;
pub const INVOKE: u32 = 5;
pub const ADD: u32 = 8;
pub const FADD: u32 = 9;
pub const MUL: u32 = 12;
pub const FMUL: u32 = 13;
pub const FDIV: u32 = 16;
pub const FREM: u32 = 19;
pub const SHL: u32 = 20;
pub const AND: u32 = 23;
pub const OR: u32 = 24;
pub const XOR: u32 = 25;
pub const LOAD: u32 = 27;
pub const GET_ELEMENT_PTR: u32 = 29;
pub const TRUNC: u32 = 30;
pub const BIT_CAST: u32 = 41;
pub const ICMP: u32 = 42;
pub const FCMP: u32 = 43;
pub const PHI: u32 = 44;
pub const CALL: u32 = 45;
pub const SELECT: u32 = 46;
pub const EXTRACT_ELEMENT: u32 = 50;
pub const INSERT_VALUE: u32 = 54;
pub const ADDR_SPACE_CAST: u32 = 60;
pub const FNEG: u32 = 66;
pub const CALL_BR: u32 = 67;
pub const FREEZE: u32 = 68;
pub const PTR_TO_ADDR: u32 = 69;

pub fn is_call(opcode: u32) -> bool {
    matches!(opcode, CALL | INVOKE | CALL_BR)
}

/// The result follows from the operands alone and nothing else happens, not even a trap (so no integer division).
pub fn is_pure(opcode: u32) -> bool {
    matches!(
        opcode,
        ADD..=FMUL
            | FDIV
            | FREM
            | SHL..=XOR
            | GET_ELEMENT_PTR
            | TRUNC..=BIT_CAST
            | ICMP
            | FCMP
            | SELECT
            | EXTRACT_ELEMENT..=INSERT_VALUE
            | ADDR_SPACE_CAST
            | FNEG
            | FREEZE
            | PTR_TO_ADDR
    )
}

/// The detail that the instruction has with its two operands exchanged; None if they cannot be.
pub fn exchanged(opcode: u32, detail: u64) -> Option<u64> {
    match opcode {
        ADD | FADD | MUL | FMUL | AND | OR | XOR => Some(detail),
        ICMP => exchanged_integer(detail),
        FCMP => exchanged_real(detail & 0xff).map(|predicate| predicate | detail & !0xff),
        _ => None,
    }
}

/// Of a comparison of integers that holds of equal ones, and of inequality: the one that holds exactly when it does
/// not.
pub fn opposite(predicate: u64) -> Option<u64> {
    match predicate {
        33 => Some(32),
        35 | 39 => Some(predicate + 1),
        37 | 41 => Some(predicate - 3),
        _ => None,
    }
}

/// How an instruction is described so that writing its operands the other way round makes no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    pub detail: u64,
    order: Order,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    AsWritten,
    Exchanged,
    /// The operands have equal roles.
    None,
}

impl Manner {
    /// Of `a > b` and `b < a` the one with the lower predicate.
    pub fn of(opcode: u32, detail: u64) -> Manner {
        match exchanged(opcode, detail) {
            Some(other) if other == detail => Manner { detail, order: Order::None },
            Some(other) if other < detail => Manner { detail: other, order: Order::Exchanged },
            _ => Manner { detail, order: Order::AsWritten },
        }
    }

    /// The role of the operand at a position.
    pub fn role(self, position: usize) -> u64 {
        match self.order {
            Order::AsWritten => position as u64,
            Order::Exchanged => position as u64 ^ 1,
            Order::None => 0,
        }
    }
}

/// eq, ne, then ugt uge ult ule sgt sge slt sle.
fn exchanged_integer(predicate: u64) -> Option<u64> {
    match predicate {
        32 | 33 => Some(predicate),
        34 | 35 | 38 | 39 => Some(predicate + 2),
        36 | 37 | 40 | 41 => Some(predicate - 2),
        _ => None,
    }
}

/// false oeq ogt oge olt ole one ord uno ueq ugt uge ult ule une true.
fn exchanged_real(predicate: u64) -> Option<u64> {
    match predicate {
        0 | 1 | 6..=9 | 14 | 15 => Some(predicate),
        2 | 3 | 10 | 11 => Some(predicate + 2),
        4 | 5 | 12 | 13 => Some(predicate - 2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanging_twice_changes_nothing() {
        for opcode in [ADD, SHL, ICMP, FCMP] {
            for detail in (0..64).chain([0x102, 0x10c]) {
                let twice = exchanged(opcode, detail).and_then(|d| exchanged(opcode, d));
                assert!(twice.is_none() || twice == Some(detail), "{opcode} {detail}");
            }
        }
        assert_eq!(exchanged(ICMP, 34), Some(36), "a > b is b < a");
        assert_eq!(exchanged(FCMP, 0x105), Some(0x103), "flags stay");
        assert_eq!(exchanged(SHL, 0), None);
    }

    #[test]
    fn opposites() {
        let found: Vec<(u64, u64)> = (0..64).filter_map(|p| opposite(p).map(|o| (p, o))).collect();
        assert_eq!(found, [(33, 32), (35, 36), (37, 34), (39, 40), (41, 38)], "ne, uge, ule, sge, sle");
    }

    #[test]
    fn roles_do_not_depend_on_how_it_is_written() {
        let (greater, less) = (Manner::of(ICMP, 34), Manner::of(ICMP, 36));
        assert_eq!(greater.detail, less.detail);
        assert_eq!((greater.role(0), greater.role(1)), (less.role(1), less.role(0)));
        assert_ne!(greater.role(0), greater.role(1));
        assert_eq!(Manner::of(ADD, 0).role(0), Manner::of(ADD, 0).role(1));
        assert_ne!(Manner::of(SHL, 0).role(0), Manner::of(SHL, 0).role(1));
    }
}
