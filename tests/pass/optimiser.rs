//! The optimiser neither hides accesses nor makes some up: at every level the hooks report what the source says.

use crate::harness::{LEVELS, Log, Workshop};

fn logs(source: &str, arguments: &[&str]) -> Vec<(&'static str, Log)> {
    let shop = Workshop::single("a.c", source);
    LEVELS.into_iter().map(|level| (level, shop.log_of("a.c", &[level, "-g"], arguments))).collect()
}

/// An argument makes the program wait for a flag that nobody sets; the stand-in ends it after many rounds.
#[test]
fn a_loop_that_waits_for_a_plain_flag_stays() {
    let source = "int flag;\nint main(int n, char **a) {\n  if (n > 1)\n    while (!flag);\n  return 0;\n}";
    let shop = Workshop::single("a.c", source);
    for level in ["-O1", "-O2", "-O3"] {
        shop.build(&["a.c", level, "-g", "-o", "program"]);
        let (behaviour, log) = shop.observe("program", &["wait"]);
        assert_eq!(behaviour.status, Some(99), "{level}: the loop is still there");
        let reads = log.on("load", "flag");
        assert!(reads.iter().any(|e| e.line == 4), "{level}: {reads:?}");
        assert!(log.of_kind("loop").iter().all(|e| e.line == 4), "{level}");
        assert_eq!(log.on("load", "flag").len(), reads.len());
        assert_eq!(shop.observe("program", &[]).1.on("load", "flag").len(), 0, "{level}: not read when not waiting");
    }
}

#[test]
fn a_branch_not_taken_reads_nothing() {
    let source = "int c, g, h;\nint pick(int n) { int r = 0; if (n > 3) r = g; return r + (n > 4 ? h : c); }\n\
                  int main(int n, char **a) { return pick(n); }";
    for (level, log) in logs(source, &[]) {
        assert_eq!(log.on("load", "g").len(), 0, "{level}");
        assert_eq!(log.on("load", "h").len(), 0, "{level}");
        assert_eq!(log.on("load", "c").len(), 1, "{level}");
    }
}

#[test]
fn a_branch_not_taken_writes_nothing() {
    let source = "int g, total;\nint main(int n, char **a) {\n  for (int i = 0; i < 4; i++) if (n > 5) g = i;\n\
                  total = n; return 0; }";
    for (level, log) in logs(source, &[]) {
        assert_eq!(log.on("store", "g").len(), 0, "{level}");
        assert_eq!(log.on("store", "total").len(), 1, "{level}");
    }
}

/// Kept in a register through the loop, the variable would be read before it.
#[test]
fn a_loop_that_does_not_read_reads_nothing() {
    let source = "static int d; int n, other;\nint main(int k, char **a) {\n  for (int i = 0; i < 1 + (k & 1); i++) {\n    \
        if (other > k + 7) d = d + 5;\n    n += i;\n  }\n  return 0;\n}";
    for (level, log) in logs(source, &[]) {
        assert_eq!(log.on("load", "d").len(), 0, "{level}");
        assert_eq!(log.on("store", "d").len(), 0, "{level}");
    }
}

#[test]
fn a_read_without_use_stays_also_when_inlined() {
    let source = "int g, h; struct s { int x; } s;\nstatic int get(int *p) { return *p; }\n\
                  int main() {\n  (void)g;\n  get(&h);\n  s.x;\n  return 0;\n}";
    for (level, log) in logs(source, &[]) {
        assert_eq!(log.on("load", "g").len(), 1, "{level}");
        let from_get: Vec<_> = log.of_kind("load").into_iter().filter(|e| e.function == "get").collect();
        assert_eq!(from_get.len(), 1, "{level}");
        assert_eq!(log.on("load", "s.x").len(), 1, "{level}");
    }
}

#[test]
fn a_variable_that_is_only_written_stays() {
    let source = "static int w; int main() { static int calls; w = 1; calls++; return 0; }";
    for (level, log) in logs(source, &[]) {
        assert_eq!(log.on("store", "w").len(), 1, "{level}");
        assert_eq!(log.on("store", "calls").len(), 1, "{level}");
    }
}

/// The load moves out of the loop and loses its line; the report must not.
#[test]
fn moved_accesses_keep_their_line() {
    let source = "int counter;\nstatic void add(int x) {\n  counter += x;\n}\n\
                  int main(int n, char **a) {\n  for (int i = 0; i < 8 * n; i++) add(i);\n  return 0;\n}";
    for (level, log) in logs(source, &[]) {
        for event in log.on("load", "counter").into_iter().chain(log.on("store", "counter")) {
            assert_eq!((event.line, event.function.as_str()), (3, "add"), "{level}");
        }
        assert!(!log.on("store", "counter").is_empty(), "{level}");
    }
}

#[test]
fn locals_need_no_hooks_until_they_escape() {
    let source = "void *volatile sink; const int table[4] = {1, 2, 3, 4}; struct p { int a, b; };\n\
                  int main(int n, char **v) { int quiet[4]; struct p p = {n, n}; for (int i = 0; i < 4; i++) quiet[i] = n + p.a;\n\
                  int seen = quiet[n] + table[n]; sink = &seen; seen++; __asm__ volatile(\"\" ::: \"memory\"); return p.b - n; }";
    for (level, log) in logs(source, &[]) {
        assert!(log.events().iter().all(|e| !e.name.starts_with("quiet") && !e.name.starts_with('p')), "{level}");
        assert!(log.events().iter().all(|e| !e.name.starts_with("table")), "{level}: constants");
        assert!(!log.on("store", "seen").is_empty(), "{level}");
        assert_eq!(log.on("store", "sink").len(), 1, "{level}");
    }
}

/// One member of the copy is needed, but all of the original is read.
#[test]
fn a_copy_reads_all_of_it() {
    let source =
        "struct s { int x, y; long z[3]; } g;\nint main(int n, char **a) {\n  struct s copy = g;\n  return copy.y;\n}";
    for (level, log) in logs(source, &[]) {
        let reads = log.events().into_iter().filter(|e| e.what.starts_with("load") && e.name.starts_with('g'));
        assert_eq!(reads.filter(|e| e.line == 3).map(|e| e.number).sum::<u64>(), 32, "{level}");
    }
}

/// Blocks that do not leave their function, with errors that must be seen at every level.
#[test]
fn the_heap_is_not_optimised_away() {
    let source = "#include <stdlib.h>\n#include <string.h>\nchar text[32];\nint main(int n, char **a) {\n  \
        char *block = malloc(16);\n  memcpy(block, text, 15 + n);\n  block[3] = 1;\n  free(block);\n  \
        int *other = calloc(n, 4);\n  other[0] = 5;\n  (void)other[0];\n  free(other);\n  free(malloc(n));\n  return 0;\n}";
    for (level, log) in logs(source, &[]) {
        let lines = |what: &str| log.of_kind(what).iter().map(|e| e.line).collect::<Vec<_>>();
        assert_eq!(lines("store_range"), [6], "{level}");
        assert_eq!(lines("store"), [7, 10], "{level}");
    }
    let cpp = "struct S { int x; S() : x(1) {} ~S() { x = 2; } };\nint main() {\n  S *s = new S;\n  s->x = 4;\n  delete s;\n}";
    let shop = Workshop::single("a.cpp", cpp);
    for level in LEVELS {
        let log = shop.log_of("a.cpp", &[level, "-g"], &[]);
        assert!(log.of_kind("store").iter().any(|e| e.line == 1 && e.function == "S::~S"), "{level}");
    }
}
