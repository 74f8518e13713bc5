//! What the hooks report: places, names, sizes, shapes, stacks.

use crate::harness::{Event, LEVELS, Workshop};

const RELAXED: u64 = 0;
const ACQUIRE: u64 = 2;
const RELEASE: u64 = 3;
const ACQ_REL: u64 = 4;
const SEQ_CST: u64 = 5;

fn shape(size: u64, kind: u64, order: u64, failure: u64) -> u64 {
    size | kind << 8 | order << 16 | failure << 24
}

#[test]
fn places_and_names() {
    let source = "#include <stdlib.h>\nstruct node { int v; struct node *next; };\nint counter, table[10], grid[3][4];\n\
        static struct node *head;\nint main(int n, char **a) {\n  struct node *p = malloc(sizeof *p);\n  p->v = n;\n  \
        p->next = head;\n  head = p;\n  counter = 1;\n  table[3] = 4;\n  table[n] = 5;\n  table[4] = 6;\n  \
        grid[1][2] = n;\n  return 0;\n}\n";
    let shop = Workshop::single("a.c", source);
    let expected = [
        ("store", "p->v", 4, 7),
        ("store", "p->next", 8, 8),
        ("load", "head", 8, 8),
        ("store", "head", 8, 9),
        ("store", "counter", 4, 10),
        ("store", "table[3]", 4, 11),
        ("store", "table[i]", 4, 12),
        ("store", "grid[1]", 4, 14),
    ];
    for level in LEVELS {
        let log = shop.log_of("a.c", &[level, "-g"], &[]);
        for (what, name, size, line) in expected {
            let found = log.on(what, name);
            assert!(found.iter().any(|e| e.number == size && e.line == line), "{level} {what} {name}: {found:?}");
        }
        let file = shop.path("a.c").canonicalize().unwrap();
        assert!(log.events().iter().all(|e| e.file == file.to_str().unwrap()), "{level}: absolute paths");
        assert!(log.events().iter().all(|e| e.column != 0 && e.function == "main"), "{level}");
    }
}

#[test]
fn without_debug_info() {
    let shop =
        Workshop::single("a.cpp", "int g; static int h; void f() { g = 1; h++; } int main() { f(); return h - 1; }");
    for level in ["-O0", "-O2"] {
        let log = shop.log_of("a.cpp", &[level], &[]);
        let store = &log.on("store", "g")[0];
        assert_eq!(store.line, 0);
        assert!(store.function == "_Z1fv" || store.function == "main", "{}", store.function);
    }
}

#[test]
fn atomic_shapes() {
    let source = r#"
#include <atomic>
struct alignas(16) Pair { long a, b; };
std::atomic<int> i; std::atomic<char> c; std::atomic<long> l; std::atomic<Pair> pair; std::atomic<bool> b;
int main() {
  i.store(1, std::memory_order_release);
  int x = i.load(std::memory_order_acquire);
  l.fetch_add(2, std::memory_order_relaxed);
  c.exchange(1);
  int e = 1; i.compare_exchange_strong(e, 4, std::memory_order_acq_rel, std::memory_order_acquire);
  e = 9; i.compare_exchange_strong(e, 5);
  pair.store(Pair{1, 2}); Pair p = pair.load();
  std::atomic_thread_fence(std::memory_order_acquire);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return x - 1 + p.b - 2;
}"#;
    let shop = Workshop::single("a.cpp", source);
    for level in LEVELS {
        shop.build(&["a.cpp", level, "-g", "-latomic", "-o", "program"]);
        let (behaviour, log) = shop.observe("program", &[]);
        assert_eq!(behaviour.status, Some(0), "{level}");
        let shapes: Vec<u64> = log.of_kind("atomic").iter().map(|e| e.number).collect();
        let cas = shape(4, 3, ACQ_REL, ACQUIRE);
        let strong = shape(4, 3, SEQ_CST, SEQ_CST);
        let (store, load) = (shape(4, 1, RELEASE, 0), shape(4, 0, ACQUIRE, 0));
        let (add, exchange) = (shape(8, 2, RELAXED, 0), shape(1, 2, SEQ_CST, 0));
        let (wide_store, wide_load) = (shape(16, 1, SEQ_CST, 0), shape(16, 0, SEQ_CST, 0));
        assert_eq!(shapes, [store, load, add, exchange, cas, strong, wide_store, wide_load], "{level}");
        let outcomes = [(store, 1), (add, 1), (exchange, 1), (cas, 1), (strong, 0), (wide_store, 1)];
        assert_eq!(log.outcomes(), outcomes, "{level}");
        let fences: Vec<u64> = log.of_kind("fence").iter().map(|e| e.number).collect();
        assert_eq!(fences, [ACQUIRE], "{level}: a signal fence is none");
    }
}

/// Atomics too large for the processor go through the library.
#[test]
fn atomic_library_calls() {
    let source = "#include <stdatomic.h>\nstruct big { int x[10]; }; _Atomic struct big big;\n\
        int main() { struct big b = atomic_load(&big); b.x[2] = 4; atomic_store_explicit(&big, b, memory_order_release);\n\
        struct big d = b; return atomic_compare_exchange_strong(&big, &b, d) ? 0 : 1; }";
    let shop = Workshop::single("a.c", source);
    for level in ["-O0", "-O2"] {
        shop.build(&["a.c", level, "-g", "-latomic", "-o", "program"]);
        let (behaviour, log) = shop.observe("program", &[]);
        assert_eq!(behaviour.status, Some(0), "{level}");
        let shapes: Vec<u64> = log.of_kind("atomic").iter().map(|e| e.number).collect();
        let (load, store) = (shape(40, 0, SEQ_CST, 0), shape(40, 1, RELEASE, 0));
        let cas = shape(40, 3, SEQ_CST, SEQ_CST);
        assert_eq!(shapes, [load, store, cas], "{level}");
        assert_eq!(log.outcomes(), [(store, 1), (cas, 1)], "{level}");
        assert!(log.of_kind("atomic").iter().all(|e| e.name == "big"), "{level}");
    }
}

#[test]
fn ranges() {
    let source = "#include <string.h>\nstruct big { long a[8]; } x, y, z; struct odd { char c[3]; } m, n; char buf[100], from[100];\n\
        __attribute__((noinline)) long take(struct big b) { return b.a[0]; }\n\
        int main(int k, char **v) {\n  x = y;\n  m = n;\n  memset(buf, 0, 50 + k);\n  memmove(buf, from, 60 + k);\n  \
        return take(z) + memcmp(buf, from, 10 + k);\n}";
    let shop = Workshop::single("a.c", source);
    for level in ["-O0", "-O1", "-O2"] {
        let log = shop.log_of("a.c", &[level, "-g"], &[]);
        let has = |what, name, size, line| log.on(what, name).iter().any(|e| e.number == size && e.line == line);
        assert!(has("load_range", "y", 64, 5) && has("store_range", "x", 64, 5), "{level}: struct copy");
        assert!(has("load_range", "n", 3, 6) && has("store_range", "m", 3, 6), "{level}: odd size");
        assert!(has("store_range", "buf", 51, 7), "{level}: memset");
        assert!(has("load_range", "from", 61, 8) && has("store_range", "buf", 61, 8), "{level}: memmove");
        assert!(has("load_range", "z", 64, 9), "{level}: an argument passed by value is copied by the caller");
        assert!(has("load_range", "buf", 11, 9) && has("load_range", "from", 11, 9), "{level}: memcmp");
    }
}

#[test]
fn stacks_and_inlining() {
    let source = "int g;\nnamespace n { struct C {\n  __attribute__((noinline)) void out() {\n    g++;\n  }\n\
        __attribute__((always_inline)) void in() {\n    g = 2;\n  } };\n}\nint main() {\n  n::C c;\n  c.out();\n  c.in();\n}";
    let shop = Workshop::single("a.cpp", source);
    for level in LEVELS {
        let log = shop.log_of("a.cpp", &[level, "-g"], &[]);
        let find = |line: u32| -> Event {
            let found = log.on("store", "g").into_iter().find(|e| e.line == line);
            found.unwrap_or_else(|| panic!("{level}: no store in line {line}"))
        };
        let out = find(4);
        assert_eq!((out.function.as_str(), out.stack.as_str()), ("n::C::out", "n::C::out:0,main:12,"), "{level}");
        let inlined = find(7);
        assert_eq!((inlined.function.as_str(), inlined.inlined.as_str()), ("n::C::in", "main:13,"), "{level}");
        assert_eq!(inlined.stack, "main:0,", "{level}");
        assert!(log.functions().contains(&("_ZN1n1C3outEv".into(), "n::C::out".into())), "{level}");
    }
}

#[test]
fn lambdas_have_a_name() {
    let source = "int g;\nint main() {\n  auto f = [](int x) __attribute__((noinline)) { g = x; };\n  f(3);\n}";
    let shop = Workshop::single("a.cpp", source);
    for level in ["-O0", "-O2"] {
        let log = shop.log_of("a.cpp", &[level, "-g"], &[]);
        assert_eq!(log.on("store", "g")[0].function, "main::{lambda}", "{level}");
    }
}

/// Frames that an exception or a jump leaves behind are dropped by whoever goes on.
#[test]
fn frames_after_exceptions_and_jumps() {
    let source = r#"
#include <csetjmp>
int g, h, k; jmp_buf buf;
struct Guard { ~Guard() { h++; } };
__attribute__((noinline)) void fall(int n) { Guard guard; if (!n) throw 1; fall(n - 1); g++; }
__attribute__((noinline)) void jump(int n) { if (!n) longjmp(buf, 1); jump(n - 1); g++; }
__attribute__((noinline)) void middle() { try { fall(3); } catch (int) { g = 1; } g = 2; }
int main() {
  middle();
  g = 3;
  if (!setjmp(buf)) jump(3);
  g = 4;
  try { try { fall(2); } catch (int) { g = 5; throw; } } catch (int) { g = 6; }
  try { middle(); fall(0); } catch (...) { g = 7; }
}"#;
    let shop = Workshop::single("a.cpp", source);
    for level in LEVELS {
        let log = shop.log_of("a.cpp", &[level, "-g"], &[]);
        let functions = |e: &Event| e.stack.split(',').map(|f| f.split(':').next().unwrap_or("").to_owned()).collect();
        for event in log.on("store", "g") {
            let stack: Vec<String> = functions(&event);
            match event.function.as_str() {
                "main" => assert_eq!(stack, ["main", ""], "{level} line {}", event.line),
                "middle" => assert_eq!(stack, ["middle", "main", ""], "{level} line {}", event.line),
                other => panic!("{level}: {other} was left"),
            }
        }
        let cleanups: Vec<usize> = log.on("store", "h").iter().map(|e| e.stack.matches("fall").count()).collect();
        let (first, rest) = ([4, 3, 2, 1], [3, 2, 1, 4, 3, 2, 1, 1]);
        assert_eq!(cleanups, [&first[..], &rest[..]].concat(), "{level}: destructors run in the frames they belong to");
        assert_eq!(log.depth_at_end(), 0, "{level}");
    }
}

#[test]
fn loops_without_hooks_get_one() {
    let source = "volatile int stop; int main(int n, char **a) { unsigned x = n; int i = 0;\n  \
        do { x = x * 1664525u + 1013904223u; i++; } while (x % 1000 != 7 && i < 50);\n  return x == 12345; }";
    let shop = Workshop::single("a.c", source);
    for level in LEVELS {
        let loops = shop.log_of("a.c", &[level, "-g"], &[]).of_kind("loop");
        assert!(!loops.is_empty() && loops.len() <= 50, "{level}: {}", loops.len());
        assert!(loops.iter().all(|e| e.line == 2), "{level}");
    }
}
