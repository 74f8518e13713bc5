//! A search that is put aside and taken up again after every execution goes the same way.

use crate::compare::number;
use crate::generate::{Kind, Rng, program};
use crate::local::Table;
use crate::program::Program;
use crate::run::run_with;
use symdpor_explore::{AllInterleavings, Checked, Dpor, Explorer, Resume, Rule, SourceSets};
use symdpor_trace::saved::Reader;

const LIMIT: usize = 120;

fn saved(explorer: &impl Resume) -> Vec<u8> {
    let mut bytes = Vec::new();
    explorer.save(&mut bytes);
    bytes
}

/// Taken up by a new explorer, which would be put aside as the same bytes.
fn taken_up<E: Resume>(bytes: &[u8], new: impl Fn() -> E) -> Checked<E> {
    let mut explorer = Checked::new(new());
    let mut reader = Reader::new(bytes);
    explorer.load(&mut reader).expect("what was saved");
    assert!(reader.is_empty(), "something is left");
    assert!(saved(&explorer) == bytes, "not the same state");
    explorer
}

/// Executions that were run, some with their search interrupted `every` so many.
fn interrupted<E: Resume>(program: &Program, every: usize, new: impl Fn() -> E) -> usize {
    let table = Table::new(program);
    let mut straight = Checked::new(new());
    let mut resumed = Checked::new(new());
    let mut plan = straight.first();
    assert_eq!(resumed.first(), plan);
    for number in 0..LIMIT {
        if number % every == 0 {
            resumed = taken_up(&saved(&resumed), &new);
            assert_eq!(resumed.plan(), &plan);
        }
        let (execution, _) = run_with(program, &table, &plan);
        let (next, again) = (straight.next(&execution), resumed.next(&execution));
        assert_eq!(again, next, "after execution {number} of\n{program}");
        assert_eq!(resumed.statistics(), straight.statistics());
        assert_eq!(resumed.symmetry(), straight.symmetry());
        match next {
            Some(next) => plan = next,
            None => return number + 1,
        }
    }
    LIMIT
}

#[test]
fn random_programs_go_the_same_way_again() {
    let programs = number("SYMDPOR_PROGRAMS", 600);
    let mut rng = Rng::new(number("SYMDPOR_SEED", 11));
    let mut executions = 0;
    for (kind, i) in Kind::ALL.into_iter().cycle().zip(0..programs) {
        let program = program(&mut rng, if i % 2 == 0 { Kind::Twins } else { kind });
        let every = 1 + (i % 3) as usize;
        executions += interrupted(&program, every, AllInterleavings::new);
        executions += interrupted(&program, every, Dpor::new);
        executions += interrupted(&program, every, SourceSets::new);
        executions += interrupted(&program, every, || Dpor::with_symmetry(Rule::SOUND));
        executions += interrupted(&program, every, || SourceSets::with_symmetry(Rule::SOUND));
    }
    println!("{programs} programs, {executions} executions");
}

/// What another kind of search has left, or half of it, is not taken for one's own.
#[test]
fn other_states_are_refused() {
    let program = program(&mut Rng::new(3), Kind::Twins);
    let mut explorer = SourceSets::with_symmetry(Rule::SOUND);
    let first = explorer.first();
    let _ = explorer.next(&run_with(&program, &Table::new(&program), &first).0);
    let bytes = saved(&explorer);
    assert!(SourceSets::new().load(&mut Reader::new(&bytes)).is_none());
    assert!(Dpor::with_symmetry(Rule::SOUND).load(&mut Reader::new(&bytes)).is_none());
    for len in 0..bytes.len() {
        assert!(SourceSets::with_symmetry(Rule::SOUND).load(&mut Reader::new(&bytes[..len])).is_none(), "{len}");
    }
}
