//! A program built with the pass and run alone behaves as if the pass had not been there.

use crate::harness::{LEVELS, Workshop};

/// Every way out of a function, and what moves the stack about.
const CONTROL: &str = r#"
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
static int g;
static jmp_buf buf;
struct Guard { ~Guard() { g++; } };
struct Early { Early() { printf("constructed %d\n", ++g); } ~Early() { printf("destroyed %d\n", g); } } early;
__attribute__((noinline)) void thrower(int n) { Guard d; if (n == 0) throw std::runtime_error("x"); thrower(n - 1); g--; }
__attribute__((noinline)) void jumper(int n) { if (n == 0) longjmp(buf, 3); jumper(n - 1); g++; }
__attribute__((noinline)) int sum(int n, ...) {
  va_list ap; va_start(ap, n); int s = 0; while (n--) s += va_arg(ap, int); va_end(ap); return s;
}
__attribute__((noinline)) int vla(int n) { int a[n]; for (int i = 0; i < n; i++) a[i] = i; g += a[n - 1]; return a[n / 2]; }
thread_local int tl = 4;
thread_local std::string ts = "tls";
int even(unsigned n);
int odd(unsigned n) { if (!n) return 0; [[clang::musttail]] return even(n - 1); }
__attribute__((noinline)) int even(unsigned n) { if (!n) return 1; [[clang::musttail]] return odd(n - 1); }
__attribute__((noinline)) long deep(long n) { volatile char pad[64]; pad[n % 64] = 1; return n ? deep(n - 1) + pad[n % 64] : 0; }
int main() {
  for (int i = 0; i < 3; i++)
    try { thrower(3); } catch (std::exception &e) { printf("caught %s g=%d\n", e.what(), g); }
  int r = setjmp(buf);
  if (!r) jumper(4);
  printf("setjmp %d\n", r);
  printf("%d %d %d %s\n", sum(3, 1, 2, 3), vla(9), ++tl, ts.c_str());
  printf("even %d deep %ld\n", even(200), deep(500));
  std::vector<std::string> v;
  for (int i = 0; i < 50; i++) v.push_back(std::to_string(i) + " long enough to be on the heap");
  size_t t = 0;
  for (auto &s : v) t += s.size();
  printf("%zu\n", t);
  try { try { throw 5; } catch (int) { throw; } } catch (int x) { printf("rethrown %d\n", x); }
  try { std::string s = v.at(1000); } catch (std::out_of_range &) { printf("out of range\n"); }
  return 7;
}
"#;

#[test]
fn every_way_out_of_a_function() {
    let shop = Workshop::single("a.cpp", CONTROL);
    for level in LEVELS {
        shop.same_behaviour("a.cpp", &[level, "-g"]);
    }
    shop.same_behaviour("a.cpp", &["-Os"]);
}

#[test]
fn linked_in_every_way() {
    let shop = Workshop::single("a.cpp", CONTROL);
    let sections = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"];
    let variants: [&[&str]; 7] = [
        &["-fno-pie", "-no-pie"],
        &["-fno-pie", "-no-pie", "-fuse-ld=lld"],
        &sections,
        &["-fuse-ld=lld", "-Wl,--icf=all", "-ffunction-sections", "-Wl,--gc-sections"],
        &["-fuse-ld=lld", "-flto"],
        &["-fuse-ld=lld", "-flto=thin", "-g"],
        &["-Wl,-z,now", "-Wl,-z,relro", "-fstack-protector-all"],
    ];
    for options in variants {
        shop.same_behaviour("a.cpp", &[options, &["-O2"]].concat());
    }
}

const SHARED_HEADER: &str = r#"
#include <cstdio>
#include <vector>
template <class T> struct Stack {
  std::vector<T> items;
  static inline int pushes = 0;
  void push(T t) { items.push_back(t); pushes++; }
};
inline int counter() { static int n; return ++n; }
int other();
"#;

/// The same templates, inline functions and static names in two files.
#[test]
fn two_files_with_the_same_names() {
    let shop = Workshop::new(&[
        ("shared.h", SHARED_HEADER),
        (
            "a.cpp",
            "#include \"shared.h\"\nstatic int twin() { return 1; }\nstatic int value = 10;\nint main() { Stack<int> s; s.push(1); printf(\"%d %d %d %d\\n\", twin() + value, other(), counter(), Stack<int>::pushes); }",
        ),
        (
            "b.cpp",
            "#include \"shared.h\"\nstatic int twin() { return 2; }\nstatic int value = 20;\nint other() { Stack<int> s; s.push(1); s.push(2); return twin() + value + counter(); }",
        ),
    ]);
    for options in
        [&["-O0", "-g"][..], &["-O2"], &["-O2", "-flto", "-fuse-ld=lld"], &["-O2", "-flto=thin", "-fuse-ld=lld"]]
    {
        shop.build_plain(&[&["a.cpp", "b.cpp", "-o", "plain"], options].concat());
        shop.build(&[&["a.cpp", "b.cpp", "-o", "instrumented"], options].concat());
        let expected = shop.run("plain", &[]);
        assert_eq!(shop.run("instrumented", &[]), expected, "{options:?}");
        let (seen, log) = shop.observe("instrumented", &[]);
        assert_eq!(seen, expected, "{options:?}");
        assert_eq!(log.modules(), 2, "each file registers once, {options:?}");
    }
}

/// Only one of two files is instrumented: they share inline functions, and either copy may win.
#[test]
fn half_instrumented() {
    let main = "#include \"shared.h\"\nint main() { printf(\"%d %d\\n\", counter(), other()); }";
    let shop = Workshop::new(&[
        ("shared.h", SHARED_HEADER),
        ("a.cpp", main),
        ("b.cpp", "#include \"shared.h\"\nint other() { Stack<int> s; s.push(3); return counter() + s.items[0]; }"),
    ]);
    shop.build(&["a.cpp", "-c", "-O0", "-o", "a.o"]);
    shop.build_plain(&["b.cpp", "-c", "-O0", "-o", "b.o"]);
    for order in [["a.o", "b.o"], ["b.o", "a.o"]] {
        shop.build_plain(&[order[0], order[1], "-lstdc++", "-o", "program"]);
        assert_eq!(shop.run("program", &[]).output, "1 5\n");
    }
}

#[test]
fn libraries_of_the_program_s_own() {
    let shop = Workshop::new(&[
        (
            "a.c",
            "#include <dlfcn.h>\n#include <stdio.h>\nint twice(int);\nint main() { void *h = dlopen(\"./libplug.so\", RTLD_NOW); int (*f)(int) = h ? dlsym(h, \"thrice\") : 0; printf(\"%d %d\\n\", twice(4), f ? f(4) : -1); return dlclose(h); }",
        ),
        ("lib.c", "static int calls; int twice(int x) { calls++; return 2 * x; }"),
        ("plug.c", "static int calls; int thrice(int x) { calls++; return 3 * x; }"),
    ]);
    shop.build(&["lib.c", "-O2", "-shared", "-fPIC", "-o", "libown.so"]);
    shop.build(&["plug.c", "-O0", "-shared", "-fPIC", "-o", "libplug.so"]);
    shop.build(&["a.c", "-O1", "-L.", "-lown", "-ldl", "-o", "program"]);
    assert_eq!(shop.run("program", &[]).output, "8 12\n");
    let (seen, log) = shop.observe("program", &[]);
    assert_eq!(seen.output, "8 12\n");
    assert_eq!(log.modules(), 3);
    assert_eq!(log.on("store", "calls").len(), 2, "a symbol's name needs no debug info");
}

/// Much of the standard library, threads and all (which the stand-in could not follow).
#[test]
fn a_large_program() {
    let shop = Workshop::single("a.cpp", include_str!("large.cpp"));
    shop.build_plain(&["a.cpp", "-O0", "-std=c++20", "-o", "plain"]);
    for level in ["-O0", "-O3"] {
        shop.build(&["a.cpp", level, "-g", "-std=c++20", "-o", "instrumented"]);
        assert_eq!(shop.run("instrumented", &[]), shop.run("plain", &[]), "{level}");
    }
}
