//! What most programs never do: inline assembly, vectors with masks, coroutines, resolvers, naked functions.

use crate::harness::{LEVELS, Workshop};
use symdpor_abi::module::function_flags::{RETURNS_ARGUMENT, RETURNS_CONSTANT};

const INLINE_ASSEMBLY: u32 = 1;
const COROUTINE: u32 = 2;
const UNINSTRUMENTED: u32 = 4;

#[test]
fn inline_assembly() {
    let source = r#"
int locked, plain, in; long wide;
int quiet(void) { __asm__ volatile("pause"); __asm__ volatile("" ::: "memory"); __asm__ volatile("nop"); return 0; }
int loud(void) {
  int out;
  __asm__ volatile("lock addl $2, %0" : "+m"(locked) : : "memory", "cc");
  __asm__ volatile("movl %1, %0" : "=r"(out) : "m"(in));
  __asm__ volatile("movl $5, %0" : "=m"(plain));
  __asm__ volatile("xchgq %0, %1" : "+m"(wide), "+r"((long){3}));
  return out;
}
int opaque(int *p) { int out; __asm__ volatile("movl (%1), %0; bsfl %0, %0" : "=r"(out) : "r"(p)); return out; }
int main() { return quiet() + loud() + opaque(&locked) + locked - 3; }
"#;
    let source = source.replace("\"+r\"((long){3})", "\"+r\"(three)").replace("int out;", "int out; long three = 3;");
    let shop = Workshop::single("a.c", &source);
    for level in LEVELS {
        shop.build(&["a.c", level, "-g", "-fno-inline", "-o", "program"]);
        let (behaviour, log) = shop.observe("program", &[]);
        assert_eq!(behaviour.status, Some(0), "{level}");
        let atomics: Vec<(String, u64)> = log.of_kind("atomic").into_iter().map(|e| (e.name, e.number)).collect();
        let rmw = |size: u64| size | 2 << 8 | 5 << 16;
        assert_eq!(atomics, [("locked".to_owned(), rmw(4)), ("wide".to_owned(), rmw(8))], "{level}");
        assert_eq!(log.on("load", "in").len(), 1, "{level}");
        assert_eq!(log.on("store", "plain").len(), 1, "{level}");
        assert_eq!(log.flags("opaque"), Some(INLINE_ASSEMBLY), "{level}");
        assert_eq!(log.flags("loud"), Some(0), "{level}");
        assert_eq!(log.flags("quiet"), Some(0), "{level}");
    }
}

/// Only lanes that the mask enables are accessed. AVX is checked when the program runs.
#[test]
fn masked_vectors() {
    let source = r#"
#include <immintrin.h>
float from[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[8];
__attribute__((target("avx2"), noinline)) void copy(void) {
  __m256i mask = _mm256_setr_epi32(-1, 0, 0, -1, 0, 0, 0, 0);
  _mm256_maskstore_ps(to, mask, _mm256_maskload_ps(from, mask));
}
__attribute__((noinline)) void vectorised(int *p, int *q, int *mask) {
  for (int i = 0; i < 8; i++) if (mask[i]) p[i] += q[i];
}
int main() {
  int p[8] = {0}, q[8] = {1, 1, 1, 1, 1, 1, 1, 1}, mask[8] = {1, 0, 1, 0, 0, 0, 0, 1};
  vectorised(p, q, mask);
  int sum = 0; for (int i = 0; i < 8; i++) sum += p[i];
  if (__builtin_cpu_supports("avx2")) copy(); else to[3] = 4;
  return sum == 3 && to[3] == 4 ? 0 : 1;
}"#;
    let shop = Workshop::single("a.c", source);
    for options in [&["-O0"][..], &["-O3"], &["-O3", "-mavx2"]] {
        if options.contains(&"-mavx2") && !std::is_x86_feature_detected!("avx2") {
            continue;
        }
        shop.same_behaviour("a.c", options);
        let log = shop.log_of("a.c", &[options, &["-g"]].concat(), &[]);
        let stores = log.of_kind("store").into_iter().filter(|e| e.function == "vectorised").count();
        assert_eq!(stores, 3, "{options:?}: one per enabled lane");
    }
}

#[test]
fn coroutines_are_instrumented_after_splitting() {
    let source = r#"
#include <coroutine>
#include <cstdio>
struct Gen {
  struct promise_type {
    int v; Gen get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; } std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int x) { v = x; return {}; } void return_void() {} void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> h; ~Gen() { h.destroy(); }
};
int shared;
__attribute__((noinline)) Gen count(int n) { for (int i = 0; i < n; i++) { shared += i; co_yield i; } }
int main() { Gen g = count(4); int s = 0; for (g.h.resume(); !g.h.done(); g.h.resume()) s += g.h.promise().v; printf("%d\n", s); }
"#;
    let shop = Workshop::single("a.cpp", source);
    for level in LEVELS {
        shop.same_behaviour("a.cpp", &[level, "-g", "-std=c++20"]);
        let log = shop.log_of("a.cpp", &[level, "-g", "-std=c++20"], &[]);
        assert!(log.flags("count").is_none_or(|f| f & COROUTINE == 0), "{level}");
        let updates = log.events().into_iter().filter(|e| e.name == "shared").count();
        assert!(updates >= 4, "{level}: {updates}, one in each turn");
    }
}

#[test]
fn resolvers_and_naked_functions() {
    let source = r#"
static int calls;
static int one(void) { return 1; }
static int (*resolve(void))(void) { calls++; return one; }
int chosen(void) __attribute__((ifunc("resolve")));
__attribute__((naked, noinline)) int bare(void) { __asm__("movl $2, %eax\n ret"); }
int main() { return chosen() + bare() - 3; }
"#;
    let shop = Workshop::single("a.c", source);
    for level in ["-O0", "-O2"] {
        shop.same_behaviour("a.c", &[level, "-g"]);
        let log = shop.log_of("a.c", &[level, "-g"], &[]);
        assert_eq!(log.flags("resolve"), Some(UNINSTRUMENTED), "{level}");
        assert!(log.flags("bare").is_some_and(|f| f & UNINSTRUMENTED != 0), "{level}");
    }
}

/// What a function always returns, at every level.
#[test]
fn results_that_are_always_the_same() {
    let source = r#"
        extern int rand(void);
        int always(int x) { rand(); return x > 3 ? 7 : 7; }
        void *nothing(void *x) { rand(); (void)x; return 0; }
        void *given(void *x) { rand(); return x; }
        int second(int x, int y) { rand(); return y + 0 * x; }
        int changed(int x) { rand(); x += rand(); return x; }
        int either(int x) { if (rand()) return 1; return 2; }
        int main(void) { return always(1) - 7 + !!nothing(0) + !!given(0) + second(1, 0) + 0 * (changed(1) + either(1)); }
    "#;
    let shop = Workshop::single("a.c", source);
    for level in LEVELS {
        let log = shop.log_of("a.c", &[level, "-g", "-fno-inline"], &[]);
        let expected = [
            ("always", RETURNS_CONSTANT),
            ("nothing", RETURNS_CONSTANT),
            ("given", RETURNS_ARGUMENT),
            ("second", 0),
            ("changed", 0),
            ("either", 0),
        ];
        for (function, flags) in expected {
            let optional = level == "-O0" && function == "always";
            let found = log.returns(function);
            assert!(found == Some(flags) || optional && found == Some(0), "{level}: {function} {found:?}");
        }
    }
}

/// The section by which the controller tells an instrumented file.
#[test]
fn the_descriptor_is_in_its_section() {
    let shop = Workshop::single("a.c", "int main() { return 0; }");
    for options in [&["-O0"][..], &["-O2", "-flto", "-fuse-ld=lld", "-Wl,--gc-sections"], &["-O2", "-s"]] {
        shop.build(&[&["a.c", "-o", "program"], options].concat());
        let file = std::fs::read(shop.path("program")).unwrap();
        let has = |needle: &[u8]| file.windows(needle.len()).any(|w| w == needle);
        assert!(has(b".symdpor\0"), "{options:?}");
        assert!(has(b"SYMDPOR1\x07\0\0\0"), "{options:?}: magic and version");
    }
}
