//! Residual code of compiled functions: what is the same compares equal, what is not does not.

use crate::harness::{Log, Workshop};
use std::collections::BTreeSet;
use symdpor_residual::{FunctionEntry, Library, LiveKind, ModuleTables, ObjectKind, Point};

const LEVELS: [&str; 3] = ["-O0", "-O1", "-O2"];

/// The modules of a program, and one more than its last site.
fn library(log: &Log) -> (Library, u32) {
    let mut library = Library::default();
    let mut first_site = 1;
    for tables in log.tables() {
        let functions: Vec<FunctionEntry> =
            tables.functions.iter().map(|&[symbol, slots]| FunctionEntry { symbol, slots }).collect();
        let (digest, strings) = (&tables.digest[..], &tables.strings[..]);
        let module = ModuleTables { digest, strings, functions: &functions, first_site, site_count: tables.sites };
        library.add_module(module).expect("the pass writes a good digest");
        first_site += tables.sites;
    }
    (library, first_site)
}

/// All points of a program, by site.
fn points(log: &Log) -> Vec<Point> {
    let (mut library, end) = library(log);
    (1..end).filter_map(|site| library.point(site).cloned()).collect()
}

/// The first call of `visit` in a function.
fn visit<'a>(points: &'a [Point], function: &str) -> &'a Point {
    let visits = |p: &&Point| p.function.symbol == function && p.callee.as_deref() == Some("visit");
    points.iter().find(visits).unwrap_or_else(|| panic!("{function} calls visit"))
}

const PRELUDE: &str = "#include <stdatomic.h>\n#include <stdlib.h>\nextern volatile int g, h; extern atomic_int a, b;\n\
    void visit(void); void other(void); int ask(int); void tell(int *); extern int (*pointer)(int);\n\
    struct pair { int x, y; };\n";

const SUPPORT: &str = "#include <stdatomic.h>\nvolatile int g, h; atomic_int a, b;\n\
    void visit(void) { a++; } void other(void) { b++; } int ask(int x) { return x + a; } void tell(int *x) { *x = a; }\n\
    int (*pointer)(int) = ask;\n int main() { return 0; }\n";

/// Two functions, `one` and `two`, in two files.
fn pair(level: &str, one: &str, two: &str) -> (Point, Point) {
    let (one, two) = (format!("{PRELUDE}{one}"), format!("{PRELUDE}{two}"));
    let shop = Workshop::new(&[("one.c", &one), ("two.c", &two), ("support.c", SUPPORT)]);
    shop.build(&["one.c", "two.c", "support.c", level, "-o", "program"]);
    let points = points(&shop.observe("program", &[]).1);
    (visit(&points, "one").clone(), visit(&points, "two").clone())
}

fn same(one: &str, two: &str) {
    for level in LEVELS {
        let (one_point, two_point) = pair(level, one, two);
        assert!(one_point.before.comparable && two_point.before.comparable, "{level}: {one}");
        assert_eq!(one_point.before.code, two_point.before.code, "{level}: {one} and {two}");
        let shape = |p: &Point| p.before.live.iter().map(|l| l.kind).collect::<Vec<_>>();
        assert_eq!(shape(&one_point), shape(&two_point), "{level}: {one} and {two}");
        assert_eq!(one_point.after.unwrap().code, two_point.after.unwrap().code, "{level}: {one} and {two}");
    }
}

fn different(one: &str, two: &str) {
    for level in LEVELS {
        let (one_point, two_point) = pair(level, one, two);
        assert_ne!(one_point.before.code, two_point.before.code, "{level}: {one} and {two}");
        assert_ne!(one_point.after.unwrap().code, two_point.after.unwrap().code, "{level}: {one} and {two}");
    }
}

#[test]
fn names_do_not_matter() {
    same(
        "void one(int x) { int y = ask(x); visit(); g = x + y; }",
        "void two(int p) { int q = ask(p); visit(); g = p + q; }",
    );
    same(
        "int one(int x) { again: visit(); if (ask(x)) goto again; return x; }",
        "int two(int y) { more: visit(); if (ask(y)) goto more; return y; }",
    );
}

#[test]
fn operands_of_commutative_operators_in_any_order() {
    same("void one(int x, int y) { visit(); g = x * 2 + y; }", "void two(int x, int y) { visit(); g = y + x * 2; }");
    same(
        "void one(int x, int y) { visit(); g = x & y; h = x; }",
        "void two(int x, int y) { visit(); g = y & x; h = x; }",
    );
    same(
        "void one(int x, int y) { visit(); g = x < y; h = x; }",
        "void two(int x, int y) { visit(); g = y > x; h = x; }",
    );
    same(
        "void one(double x, double y) { visit(); g = x * y < 1.5; h = x; }",
        "void two(double x, double y) { visit(); g = 1.5 > y * x; h = x; }",
    );
    different(
        "void one(int x, int y) { visit(); g = x - y; h = x; }",
        "void two(int x, int y) { visit(); g = y - x; h = x; }",
    );
}

#[test]
fn what_lies_behind_does_not_matter() {
    same(
        "void one(int x) { g = x; visit(); h = 2; }",
        "void two(int x, int y) { if (ask(y)) other(); visit(); h = 2; }",
    );
    same(
        "void one(void) { for (int i = ask(3); i < 10; i++) { visit(); g = i; } }",
        "void two(int n) { g = n; for (int i = n; i < 10; i++) { visit(); g = i; } }",
    );
    same("int one(int dead, int x) { g = dead; visit(); return x; }", "int two(int x) { visit(); return x; }");
}

#[test]
fn constants_callees_and_variables_matter() {
    different("void one(void) { visit(); g = 1; }", "void two(void) { visit(); g = 2; }");
    different("void one(void) { visit(); g = 1; }", "void two(void) { visit(); h = 1; }");
    different("void one(void) { visit(); visit(); }", "void two(void) { visit(); other(); }");
    different("int one(int x) { visit(); return ask(x); }", "int two(int x) { visit(); return pointer(x); }");
    different("int one(struct pair *p) { visit(); return p->x; }", "int two(struct pair *p) { visit(); return p->y; }");
    different("int one(int *p) { visit(); return p[1]; }", "int two(int *p) { visit(); return p[2]; }");
    different(
        "extern int v[4]; int v[4]; int one(void) { visit(); return v[1]; }",
        "extern int v[]; int two(void) { visit(); return v[2]; }",
    );
    different(
        "extern char v[16]; char v[16]; void one(void) { visit(); v[2] = 1; }",
        "extern short v[]; void two(void) { visit(); *(char *)(v + 2) = 1; }",
    );
}

#[test]
fn control_flow_matters() {
    different(
        "void one(void) { visit(); for (int i = 0; i < 10; i++) g = i; }",
        "void two(void) { visit(); for (int i = 0; i < 11; i++) g = i; }",
    );
    different(
        "void one(int x) { visit(); if (x) other(); else g = 1; }",
        "void two(int x) { visit(); if (x) g = 1; else other(); }",
    );
    different("void one(int x) { visit(); if (x < 5) other(); }", "void two(int x) { visit(); if (x < 6) other(); }");
    different(
        "void one(int x, int y) { visit(); if (x < y) other(); g = x; }",
        "void two(int x, int y) { visit(); if (x <= y) other(); g = x; }",
    );
    different(
        "void one(int x, int y) { visit(); if (x < y) other(); g = x; }",
        "void two(unsigned x, unsigned y) { visit(); if (x < y) other(); g = x; }",
    );
    different(
        "void one(int n) { visit(); for (int i = 0; i < n; i++) { g = i; } }",
        "void two(int n) { for (int i = 0; i < n; i++) { visit(); g = i; } }",
    );
}

#[test]
fn phis_matter_by_what_they_take_over() {
    let code = |name, first, second| {
        format!(
            "int {name}(int x) {{ visit(); int r; if (x) {{ other(); r = {first}; }} else {{ visit(); r = {second}; }} return r; }}"
        )
    };
    same(&code("one", 1, 2), &code("two", 1, 2));
    different(&code("one", 1, 2), &code("two", 1, 3));
    different(&code("one", 1, 2), &code("two", 2, 1));
}

#[test]
fn switches() {
    let code = |name, case| {
        format!(
            "void {name}(int x) {{ visit(); switch (x) {{ case 1: other(); break; case {case}: visit(); break; case 300: g = 1; break; default: h = 2; }} }}"
        )
    };
    same(&code("one", 20), &code("two", 20));
    different(&code("one", 20), &code("two", 21));
}

#[test]
fn atomic_orders_matter() {
    let code =
        |name, order| format!("void {name}(int x) {{ visit(); atomic_store_explicit(&a, x, memory_order_{order}); }}");
    same(&code("one", "release"), &code("two", "release"));
    different(&code("one", "release"), &code("two", "relaxed"));
    different(
        "void one(void) { visit(); atomic_fetch_add(&a, 1); }",
        "void two(void) { visit(); atomic_fetch_sub(&a, 1); }",
    );
    different(
        "void one(void) { visit(); atomic_thread_fence(memory_order_acquire); g = 1; }",
        "void two(void) { visit(); atomic_signal_fence(memory_order_acquire); g = 1; }",
    );
}

/// A function that calls itself stands for itself, as every other.
#[test]
fn recursion() {
    different(
        "int one(int n) { visit(); return n ? n * one(n - 1) + ask(n) : 1; }",
        "int two(int n) { visit(); return n ? n * two(n - 1) + ask(n) : 1; }",
    );
    let code = "void walk(int n) { if (n) { visit(); walk(n - 1); g = n; } }";
    same(
        &format!("{code} void one(int n) {{ visit(); walk(n); }}"),
        "void walk(int); void two(int m) { visit(); walk(m); }",
    );
}

/// A module's own symbols are not those of the same name in another.
#[test]
fn private_symbols_belong_to_their_module() {
    let code = |name| format!("static volatile int mine; void {name}(void) {{ visit(); mine = 1; }}");
    different(&code("one"), &code("two"));
}

/// From anywhere in such a function control may return to where setjmp was called: the rest is not all there is.
#[test]
fn setjmp_makes_incomparable() {
    let code =
        |name, more| format!("#include <setjmp.h>\n jmp_buf place; void {name}(void) {{ {more} visit(); g = 1; }}");
    for level in LEVELS {
        let (one, two) =
            pair(level, &code("one", "if (setjmp(place)) g = 2;"), &code("two", "").replace("place", "other_place"));
        assert!(!one.before.comparable && two.before.comparable, "{level}");
    }
}

/// Names of live locals at the first visit.
fn live(level: &str, code: &str) -> Vec<String> {
    let code = format!("{PRELUDE}{code}");
    let shop = Workshop::new(&[("one.c", &code), ("support.c", SUPPORT)]);
    shop.build(&["one.c", "support.c", level, "-g", "-o", "program"]);
    let points = points(&shop.observe("program", &[]).1);
    let before = &visit(&points, "one").before;
    assert!(before.comparable);
    before.live.iter().map(|l| l.name.clone().unwrap_or_default()).collect()
}

#[test]
fn live_locals_have_names() {
    for level in LEVELS {
        assert_eq!(live(level, "int one(int dead, int x) { g = dead; visit(); return x; }"), ["x"], "{level}");
        assert!(live(level, "int one(int x) { g = x; visit(); x = ask(1); return x; }").is_empty(), "{level}");
        assert_eq!(live(level, "int one(int x) { int y; tell(&y); visit(); return x; }"), ["x", "y"], "{level}");
        assert_eq!(live(level, "int one(int x, int y) { visit(); g = y; return x; }"), ["y", "x"], "{level}");
    }
}

#[test]
fn kinds_of_live_locals() {
    let code = format!("{PRELUDE}long one(long x) {{ struct pair y; tell(&y.x); visit(); return x; }}");
    let shop = Workshop::new(&[("one.c", &code), ("support.c", SUPPORT)]);
    shop.build(&["one.c", "support.c", "-O2", "-o", "program"]);
    let points = points(&shop.observe("program", &[]).1);
    let point = visit(&points, "one");
    let kinds: Vec<LiveKind> = point.before.live.iter().map(|l| l.kind).collect();
    assert_eq!(kinds, [LiveKind::Value { words: 1 }, LiveKind::Object { kind: ObjectKind::Escaped, size: 8 }]);
    assert_eq!(point.before.live[0].name, None, "there is no debug info");
    assert_eq!(point.after.as_ref().unwrap().live, point.before.live);
}

/// Threads of C++ programs wait in calls that may throw.
#[test]
fn invokes() {
    let code = |name: &str, caught: &str| {
        format!(
            "extern \"C\" void visit(); extern \"C\" int ask(int); extern volatile int g;\n\
             struct guard {{ int x; ~guard() {{ g = x; }} }};\n\
             void {name}(int n) {{ guard mine{{n}}; try {{ visit(); g = ask(n); }} catch (int e) {{ g = {caught}; }} }}\n"
        )
    };
    let support = "volatile int g; extern \"C\" void visit() { if (g) throw 1; } extern \"C\" int ask(int x) { return x; }\n\
        void one(int); void two(int); void three(int);\n int main() { one(1); two(2); three(3); }";
    for level in LEVELS {
        let (one, two, three) = (code("one", "e"), code("two", "e"), code("three", "e + 1"));
        let sources = [("one.cpp", &one[..]), ("two.cpp", &two), ("three.cpp", &three), ("support.cpp", support)];
        let shop = Workshop::new(&sources);
        shop.build(&["one.cpp", "two.cpp", "three.cpp", "support.cpp", level, "-o", "program"]);
        let points = points(&shop.observe("program", &[]).1);
        let [one, two, three] = ["_Z3onei", "_Z3twoi", "_Z5threei"].map(|f| visit(&points, f));
        assert_eq!((one.before.code, true), (two.before.code, one.before.comparable), "{level}");
        assert_ne!(one.before.code, three.before.code, "{level}");
        let after = |p: &Point| p.after.as_ref().map(|a| a.code).expect("a call");
        assert_eq!(after(one), after(two), "{level}");
        assert_ne!(after(one), after(three), "{level}");
        assert_ne!(after(one), one.before.code, "{level}");
    }
}

/// Nearly all points of a real program can be compared, and its damaged digest does no harm.
#[test]
fn a_large_program() {
    let shop = Workshop::single("a.cpp", include_str!("large.cpp"));
    shop.build(&["a.cpp", "-O2", "-g", "-std=c++20", "-o", "program"]);
    let (_, log) = shop.observe("program", &[]);
    let points = points(&log);
    let comparable = points.iter().filter(|p| p.before.comparable).count();
    assert!(points.len() > 500 && comparable * 100 > points.len() * 98, "{comparable} of {}", points.len());
    let tables = &log.tables()[0];
    let functions: Vec<FunctionEntry> =
        tables.functions.iter().map(|&[symbol, slots]| FunctionEntry { symbol, slots }).collect();
    for round in 0..40usize {
        let mut digest = tables.digest.clone();
        for place in (round * 37..digest.len()).step_by(4001 + round) {
            digest[place] = digest[place].wrapping_mul(31).wrapping_add(round as u8);
        }
        let (strings, functions) = (&tables.strings[..], &functions[..]);
        let module = ModuleTables { digest: &digest, strings, functions, first_site: 1, site_count: tables.sites };
        let mut library = Library::default();
        if library.add_module(module).is_ok() {
            (1..=tables.sites).step_by(50).for_each(|site| _ = library.point(site));
        }
    }
}

/// Workers of `std::thread`, as they are usually written: two lambdas with equal bodies and other captures.
#[test]
fn lambdas_of_equal_body() {
    let source = "#include <mutex>\n#include <thread>\n#include <vector>\nstd::mutex m; long sum; std::vector<long> all;\n\
        int main() {\n  long first = 1, second = 2;\n\
        std::thread a([first] { for (long i = 0; i < first; i++) { std::lock_guard<std::mutex> hold(m); sum += i; all.push_back(i); } });\n\
        std::thread b([=] { for (long k = 0; k < second; k++) { std::lock_guard<std::mutex> hold(m); sum += k; all.push_back(k); } });\n\
        std::thread c([=] { for (long k = 0; k < second; k++) { std::lock_guard<std::mutex> hold(m); sum -= k; all.push_back(k); } });\n\
        a.join(); b.join(); c.join();\n}";
    let shop = Workshop::single("a.cpp", source);
    for level in LEVELS {
        shop.build(&["a.cpp", level, "-g", "-pthread", "-o", "program"]);
        let points = points(&shop.observe("program", &[]).1);
        // With optimisation, the body is in the function that the thread begins with.
        let named = |part: String| points.iter().filter(move |p| p.function.symbol.contains(&part));
        let of = |lambda: &str| {
            let run = format!("6thread11_State_implINS_8_InvokerISt5tupleIJZ4mainE3${lambda}EEEEE6_M_runEv");
            let own = named(format!("mainENK3${lambda}clEv"));
            let found: Vec<&Point> = if level == "-O0" { own.collect() } else { own.chain(named(run)).collect() };
            let codes = |p: &Point| (p.before.code, p.after.as_ref().map(|a| a.code), p.before.comparable);
            found.into_iter().map(codes).collect::<Vec<_>>()
        };
        assert!(!of("_0").is_empty() && of("_0").iter().all(|p| p.2), "{level}");
        assert_eq!(of("_0"), of("_1"), "{level}");
        assert_ne!(of("_0"), of("_2"), "{level}");
    }
}

/// Points of a function that call a symbol.
fn calls_of<'a>(points: &'a [Point], function: &str, callee: &str) -> Vec<&'a Point> {
    points.iter().filter(|p| p.function.symbol == function && p.callee.as_deref() == Some(callee)).collect()
}

fn codes(points: &[&Point]) -> BTreeSet<u128> {
    assert!(points.iter().all(|p| p.before.comparable), "{points:?}");
    points.iter().map(|p| p.before.code).collect()
}

/// The optimiser makes a copy of `take` before the loop and one at its end.
#[test]
fn copies_of_a_rotated_loop() {
    let code = format!(
        "{PRELUDE}#include <pthread.h>\n struct item {{ struct item *next; int n; }}; extern struct item *list;\n\
         struct item *list; pthread_mutex_t m; void work(struct item *x) {{ tell(&x->n); }}\n\
         static struct item *take(void) {{ pthread_mutex_lock(&m); struct item *i = list; if (i) list = i->next;\n\
           pthread_mutex_unlock(&m); return i; }}\n\
         void one(void) {{ struct item *x; while ((x = take()) != NULL) work(x); }}\n\
         void two(int n) {{ struct item *x; while ((x = take()) != NULL) {{ g = n; work(x); }} other(); }}\n"
    );
    for level in ["-O1", "-O2", "-O3"] {
        let shop = Workshop::new(&[("one.c", &code), ("support.c", SUPPORT)]);
        shop.build(&["one.c", "support.c", level, "-pthread", "-o", "program"]);
        let points = points(&shop.observe("program", &[]).1);
        for function in ["one", "two"] {
            let locks = calls_of(&points, function, "pthread_mutex_lock");
            assert_eq!((locks.len(), codes(&locks).len()), (2, 1), "{level} {function}");
            let kinds = |p: &Point| p.before.live.iter().map(|l| l.kind).collect::<Vec<_>>();
            assert_eq!(kinds(locks[0]), kinds(locks[1]), "{level} {function}");
        }
        let first = |function| codes(&calls_of(&points, function, "pthread_mutex_lock"));
        assert_ne!(first("one"), first("two"), "{level}");
    }
}

/// Unrolled, each round has another number of rounds to go. In a loop, the rounds to go are in a live local.
#[test]
fn counted_rounds() {
    let code = format!(
        "{PRELUDE}#include <pthread.h>\n pthread_mutex_t m; int x;\n\
         static void count(void) {{ pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m); }}\n\
         void one(void) {{ for (int i = 0; i < 3; i++) count(); }}\n\
         void two(int n) {{ for (int i = 0; i < n; i++) count(); }}\n\
         void three(void) {{ count(); count(); }}\n"
    );
    for level in ["-O1", "-O2", "-O3"] {
        let shop = Workshop::new(&[("one.c", &code), ("support.c", SUPPORT)]);
        shop.build(&["one.c", "support.c", level, "-pthread", "-o", "program"]);
        let points = points(&shop.observe("program", &[]).1);
        let locks = |function| calls_of(&points, function, "pthread_mutex_lock");
        let counted: usize = locks("two").iter().map(|p| usize::from(!p.before.live.is_empty())).sum();
        assert_eq!((locks("two").len(), counted), (1, 1), "{level}: the counter is live");
        let unrolled = locks("one");
        assert_eq!(codes(&unrolled).len(), unrolled.len(), "{level}");
        if unrolled.len() == 3 {
            assert!(codes(&unrolled).is_superset(&codes(&locks("three"))), "{level}: the last two");
        }
    }
}
