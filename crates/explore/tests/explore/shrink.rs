//! Makes a failing program smaller for as long as it fails.

use crate::program::{Instr, Program};

/// Deletes single instructions, then pairs, until nothing can go.
pub fn shrink(program: &Program, fails: impl Fn(&Program) -> bool) -> Program {
    let mut program = program.clone();
    while let Some(smaller) = candidates(&program).find(&fails) {
        program = smaller;
    }
    program
}

/// All programs that lack one instruction, then those that lack two of the same code (a lock and its unlock).
fn candidates(program: &Program) -> impl Iterator<Item = Program> + use<> {
    let singles = |p: &Program, c: usize| -> Vec<Program> { (0..p.codes[c].len()).map(|i| without(p, c, i)).collect() };
    let codes = 0..program.codes.len();
    let single: Vec<Program> = codes.clone().flat_map(|c| singles(program, c)).collect();
    let origin = program.clone();
    let pairs = codes.flat_map(move |c| singles(&origin, c).into_iter().map(move |p| (c, p)));
    single.into_iter().chain(pairs.flat_map(move |(c, p)| singles(&p, c)))
}

/// The program without one instruction; what spans it is shortened.
fn without(program: &Program, code: usize, at: usize) -> Program {
    let mut smaller = program.clone();
    smaller.codes[code].remove(at);
    for (j, instr) in smaller.codes[code].iter_mut().enumerate() {
        // `j` is the position after the removal.
        let spans_forward = |span: u8| j < at && at <= j + span as usize;
        let spans_back = |span: u8| j >= at && at + span as usize > j;
        match instr {
            Instr::If(_, _, n) | Instr::Once(_, n) if spans_forward(*n) => *n -= 1,
            Instr::Loop(n, _) | Instr::Again(_, _, n) if spans_back(*n) => *n -= 1,
            _ => {}
        }
    }
    smaller
}
