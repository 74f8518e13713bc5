//! Points of small functions, written out.

use crate::support::{Arg, Fun, Ins, Layout, Local, Ty, op, point_of};
use symdpor_residual::{FunctionEntry, Library, LiveKind, ModuleTables, ObjectKind, Point};

fn value(id: usize) -> Arg {
    Arg::Value(id)
}

fn call(callee: &'static str, args: &[Arg]) -> Ins {
    Ins::new(op::CALL, Ty::Void, [args, &[Arg::Symbol(callee)]].concat())
}

fn ret(arg: Arg) -> Ins {
    Ins::new(op::RET, Ty::Void, vec![arg])
}

fn fun(args: usize, blocks: Vec<Vec<Ins>>) -> Fun {
    Fun { args: (0..args).map(|id| (id, Ty::I32)).collect(), objects: vec![], blocks }
}

fn point(fun: &Fun) -> Point {
    fun.point(&Layout::default(), 0).expect("a point")
}

fn locals(point: &Point) -> Vec<u32> {
    point.before.live.iter().map(|l| l.local).collect()
}

#[test]
fn live_locals_come_as_they_are_met() {
    let live = [0, 1, 2].map(Local::Value);
    let code = vec![call("f", &[value(2)]).point(0, &live), call("g", &[value(0)]), ret(value(1))];
    let point = point(&fun(3, vec![code]));
    assert_eq!(locals(&point), [2, 0, 1]);
    assert_eq!(point.callee.as_deref(), Some("f"));
    assert!(point.before.comparable);
}

/// What a call through a pointer goes to is read where the pointer is kept.
#[test]
fn a_call_through_a_pointer() {
    let ins = Ins::new(op::CALL, Ty::I32, vec![value(0), value(1)]).result(2).point(0, &[0, 1].map(Local::Value));
    let point = point(&fun(2, vec![vec![ins, ret(value(2))]]));
    let pointer = point.before.live.iter().find(|l| l.local == 1).expect("the call needs it");
    assert_eq!((point.callee, point.target), (None, Some(pointer.slot)));
}

/// Behind the call its arguments are no longer needed, and its result is new.
#[test]
fn a_call_under_way() {
    let mut ins = Ins::new(op::CALL, Ty::I32, vec![value(1), Arg::Symbol("f")]).result(2);
    ins.sites.push(0);
    ins.live = vec![(Local::Value(0), true), (Local::Value(1), false)];
    let point = point(&fun(2, vec![vec![ins, call("g", &[value(0)]), ret(value(2))]]));
    assert_eq!(locals(&point), [1, 0]);
    let after = point.after.expect("it is a call");
    assert!(after.comparable);
    assert_eq!(after.live.len(), 1);
    assert_eq!((after.live[0].local, after.live[0].kind), (0, LiveKind::Value { words: 1 }));
    assert_ne!(after.code, point.before.code);
}

/// What the callee was given makes no difference once it runs; what it is called neither.
#[test]
fn calls_under_way_compare_by_what_follows() {
    let code = |callee, argument| {
        let ins =
            Ins::new(op::CALL, Ty::I32, vec![Arg::Constant(argument), Arg::Symbol(callee)]).result(0).point(0, &[]);
        point(&fun(0, vec![vec![ins, ret(value(0))]])).after.expect("it is a call").code
    };
    assert_eq!(code("f", 1), code("g", 2));
}

#[test]
fn atomic_accesses_have_no_after() {
    let ins = Ins::new(op::ATOMIC_RMW, Ty::I32, vec![Arg::Symbol("x"), Arg::Constant(1)]).result(0).point(0, &[]);
    let point = point(&fun(0, vec![vec![ins, ret(Arg::Constant(0))]]));
    assert_eq!((point.after, point.callee), (None, None));
}

/// The code after the loop's entry is the same whatever the variable began with.
#[test]
fn edges_that_cannot_be_taken_any_more_do_not_count() {
    let code = |first: u64, step: u64| {
        let mut phi = Ins::new(op::PHI, Ty::I32, vec![Arg::Constant(first), value(1)]).result(0);
        phi.incoming = vec![0, 1];
        let entry = vec![Ins::new(op::BR, Ty::Void, vec![Arg::Block(1)])];
        let add = Ins::new(op::ADD, Ty::I32, vec![value(0), Arg::Constant(step)]).result(1);
        let again = Ins::new(op::BR, Ty::Void, vec![value(1), Arg::Block(1), Arg::Block(2)]);
        let body = vec![phi, call("f", &[]).point(0, &[Local::Value(0)]), add, again];
        point(&fun(0, vec![entry, body, vec![ret(value(1))]])).before
    };
    assert_eq!(code(1, 5).code, code(2, 5).code);
    assert_ne!(code(1, 5).code, code(1, 6).code);
    assert_eq!(code(1, 5).live.len(), 1);
    assert!(code(1, 5).comparable);
}

/// Objects that the code does not mention: escaped ones, by kind, size and slot.
#[test]
fn objects_nobody_mentions_come_last() {
    let with = |objects: &[(u8, u64)]| {
        let allocas = (0..objects.len()).map(|id| Ins::new(op::ALLOCA, Ty::Pointer, vec![Arg::Constant(1)]).result(id));
        let live: Vec<Local> = (0..objects.len()).map(Local::Object).collect();
        let code = allocas.chain([call("f", &[]).point(0, &live), ret(Arg::Constant(0))]).collect();
        let objects = objects.iter().enumerate().map(|(id, &(kind, size))| (id, kind, size)).collect();
        point(&Fun { args: vec![], objects, blocks: vec![code] }).before
    };
    let some = with(&[(2, 16), (2, 8)]);
    let kinds: Vec<LiveKind> = some.live.iter().map(|l| l.kind).collect();
    assert_eq!(kinds, [8, 16].map(|size| LiveKind::Object { kind: ObjectKind::Escaped, size }));
    assert_eq!(some.code, with(&[(2, 8), (2, 16)]).code);
    assert_ne!(some.code, with(&[(2, 8), (2, 24)]).code);
    assert_ne!(some.code, with(&[(2, 8)]).code);
    assert!(some.comparable);
    assert!(!with(&[(2, 0)]).comparable, "its size is not known");
}

/// The address of an object whose content is dead is no live local, but says which object is meant.
#[test]
fn overwritten_objects_are_not_live() {
    let code = |size| {
        let alloca = Ins::new(op::ALLOCA, Ty::Pointer, vec![Arg::Constant(1)]).result(0);
        let store = Ins::new(op::STORE, Ty::Void, vec![Arg::Constant(1), value(0)]);
        let load = Ins::new(op::LOAD, Ty::I32, vec![value(0)]).result(1);
        let blocks = vec![vec![alloca, call("f", &[]).point(0, &[]), store, load, ret(value(1))]];
        point(&Fun { args: vec![], objects: vec![(0, 0, size)], blocks }).before
    };
    assert!(code(4).live.is_empty() && code(4).comparable);
    assert_ne!(code(4).code, code(8).code);
}

/// A use of something that is not live: the digest contradicts itself.
#[test]
fn contradictions_are_not_comparable() {
    let point = point(&fun(1, vec![vec![call("f", &[]).point(0, &[]), ret(value(0))]]));
    assert!(!point.before.comparable);
}

/// `if (a != b) f() else g()` is `if (a == b) g() else f()`, wherever the blocks are and however one gets to them.
#[test]
fn conditions_the_other_way_round() {
    let code = |predicate, [no, yes]: [usize; 2], through: bool| {
        let compare = Ins::new(op::ICMP, Ty::I32, vec![value(0), value(1)]).detail(predicate).result(2);
        let branch = Ins::new(op::BR, Ty::Void, vec![value(2), Arg::Block(no), Arg::Block(yes)]);
        let start = call("start", &[]).point(0, &[0, 1].map(Local::Value));
        let jump = vec![Ins::new(op::BR, Ty::Void, vec![Arg::Block(2)])];
        let [f, g] = ["f", "g"].map(|name| vec![call(name, &[]), ret(value(0))]);
        let blocks = vec![vec![start, compare, branch], f, g, jump];
        let blocks = if through { blocks } else { blocks[..3].to_vec() };
        point(&fun(2, blocks)).before.code
    };
    for (predicate, opposite) in [(32, 33), (34, 37), (35, 36), (38, 41), (39, 40)] {
        let one = code(predicate, [1, 2], false);
        assert_eq!(one, code(opposite, [2, 1], false), "{predicate}");
        assert_eq!(one, code(predicate, [1, 3], true), "{predicate}");
        assert_ne!(one, code(opposite, [1, 2], false), "{predicate}");
        assert_ne!(one, code(predicate, [2, 1], false), "{predicate}");
    }
}

/// A loop without an end, before it and in it.
#[test]
fn endless_loops() {
    let jump = |to| Ins::new(op::BR, Ty::Void, vec![Arg::Block(to)]);
    let peeled = |name, at: usize| {
        let mut blocks = vec![
            vec![call("f", &[value(0)]), call(name, &[]), jump(1)],
            vec![call("f", &[value(0)]), call("g", &[]), jump(1)],
        ];
        let ins = blocks[at].remove(0).point(0, &[Local::Value(0)]);
        blocks[at].insert(0, ins);
        point(&fun(1, blocks)).before.code
    };
    assert_eq!(peeled("g", 0), peeled("g", 1));
    assert_eq!(peeled("h", 1), peeled("g", 1));
    assert_ne!(peeled("h", 0), peeled("h", 1), "the code before the loop does something else");
    let idle = |to| point(&fun(0, vec![vec![call("f", &[]).point(0, &[]), jump(1)], vec![jump(to)], vec![jump(1)]]));
    assert_eq!(idle(1).before.code, idle(2).before.code);
}

#[test]
fn other_versions_and_other_sites() {
    let mut built = fun(0, vec![vec![call("f", &[]).point(3, &[]), ret(Arg::Constant(0))]]).build(&Layout::default());
    assert!(point_of(&built.digest, &built.strings, 3).is_some());
    assert!(point_of(&built.digest, &built.strings, 2).is_none());
    built.digest[0] = 1;
    let tables = ModuleTables {
        digest: &built.digest,
        strings: &built.strings,
        functions: &[FunctionEntry { symbol: 0, slots: 0 }],
        first_site: 1,
        site_count: 4,
    };
    assert!(Library::default().add_module(tables).is_err());
}

/// Sites of several modules follow one another; site 0 is none.
#[test]
fn modules_have_their_own_sites() {
    let built = fun(0, vec![vec![call("f", &[]).point(1, &[]), ret(Arg::Constant(0))]]).build(&Layout::default());
    let mut library = Library::default();
    for first_site in [1, 3] {
        let functions = [FunctionEntry { symbol: 0, slots: 0 }];
        let (digest, strings) = (&built.digest[..], &built.strings[..]);
        let tables = ModuleTables { digest, strings, functions: &functions, first_site, site_count: 2 };
        library.add_module(tables).expect("a good digest");
    }
    assert!(library.point(0).is_none() && library.point(1).is_none() && library.point(5).is_none());
    let first = library.point(2).expect("a point").clone();
    let second = library.point(4).expect("a point");
    assert_eq!((first.function.module, second.function.module), (0, 1));
    assert_eq!(first.before.code, second.before.code);
}
