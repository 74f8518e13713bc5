//! n equal threads cost one order of them, whatever n is; and the command that explains why others are not equal.

mod common;

use common::build::{self, With};
use common::process;
use common::tool::{self, Request};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A fixture's header with a number of threads.
fn program(header: &str, macro_name: &str, n: u64, level: &str) -> PathBuf {
    let name = format!("{macro_name}-{n}{level}");
    let path = tool::scratch("symmetry").join(name);
    let include = tool::root().join("fixtures").join(header);
    let source = format!("#define {macro_name} {n}\n#include \"{}\"\n", include.display());
    build::text(&source, false, &[level], &path, With::Pass).unwrap_or_else(|e| panic!("{e}"));
    path
}

fn executions(program: &Path, reduction: &str) -> u64 {
    let options = ["--reduction", reduction, "--symmetry", "on"].map(str::to_owned).into();
    let request = Request { options, ..Request::default() };
    let verification = tool::verify(program, &request).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(verification.summary.verdict, "ok", "{}", verification.ran.describe());
    verification.summary.executions
}

#[test]
fn n_threads_on_one_mutex_have_one_order() {
    for n in (2..=12).chain([18, 33, 65]) {
        for level in ["-O0", "-O2"] {
            let program = program("mutex/counter.h", "THREADS", n, level);
            assert_eq!([executions(&program, "dpor"), executions(&program, "source")], [1, 1], "{n} threads, {level}");
        }
    }
}

#[test]
fn one_writer_and_n_readers_have_n_plus_one_orders() {
    for n in [1, 3, 6, 10, 40] {
        for level in ["-O0", "-O2"] {
            let program = program("litmus/readers.h", "READERS", n, level);
            assert_eq!(executions(&program, "source"), n + 1, "{n} readers, {level}");
        }
    }
}

/// The check explores all that was left out, and finds that nothing was lost.
#[test]
fn the_check_finds_nothing_lost() {
    let program = program("mutex/counter.h", "THREADS", 4, "-O1");
    let request = Request { options: vec!["--symmetry".to_owned(), "check".to_owned()], ..Request::default() };
    let verification = tool::verify(&program, &request).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((verification.summary.verdict.as_str(), verification.summary.executions), ("ok", 24));
}

/// std::lock of mutexes of two types in opposite orders. Its turns leave variables of functions that have returned behind on the
/// stack: they are no part of the state that the threads come back to, and what is in them depends on what else ran there.
#[test]
fn what_lies_dead_on_the_stack_is_no_part_of_a_state() {
    const SOURCE: &str = "#include <mutex>\n#include <thread>\n\
        std::recursive_timed_mutex timed; std::recursive_mutex plain;\n\
        static void take_both(bool timed_first) {\n\
            std::unique_lock<std::recursive_mutex> a(plain, std::defer_lock);\n\
            std::unique_lock<std::recursive_timed_mutex> b(timed, std::defer_lock);\n\
            if (timed_first) std::lock(b, a); else std::lock(a, b);\n\
        }\n\
        int main() { std::thread one(take_both, true), two(take_both, false); one.join(); two.join(); }\n";
    for level in ["-O0", "-O1", "-O2"] {
        let path = tool::scratch("symmetry").join(format!("two-kinds{level}"));
        build::text(SOURCE, true, &[level], &path, With::Pass).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(executions(&path, "source"), 30, "{level}");
    }
}

/// Whom the worker runs beyond the plan depends on who is like a sleeping thread. That is not known before the points where threads stand
/// are described, so an execution that is run again for that may go another way, and end otherwise. The program repeats itself all the same.
#[test]
fn an_execution_that_goes_another_way_when_more_is_known_has_not_changed() {
    const SOURCE: &str = "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n\
        static atomic_int a[3];\n\
        static void *one(void *p) { atomic_fetch_add(&a[1], 1); atomic_fetch_add(&a[2], 1); return p; }\n\
        static void *three(void *p) { atomic_fetch_add(&a[0], 1); atomic_fetch_add(&a[2], 1); return p; }\n\
        static void *two(void *p) {\n\
            int none = 0;\n\
            assert(!atomic_compare_exchange_strong(&a[0], &none, 1));\n\
            atomic_store_explicit(&a[2], 3, memory_order_release);\n\
            return p;\n\
        }\n\
        int main(void) {\n\
            pthread_t t[3];\n\
            pthread_create(&t[0], NULL, one, NULL);\n\
            pthread_create(&t[1], NULL, two, NULL);\n\
            pthread_create(&t[2], NULL, three, NULL);\n\
            pthread_join(t[2], NULL);\n\
            pthread_join(t[1], NULL);\n\
            exit(1 + 25 * atomic_load(&a[0]) + 5 * atomic_load(&a[1]) + atomic_load(&a[2]));\n\
        }\n";
    for level in ["-O0", "-O2"] {
        let path = tool::scratch("symmetry").join(format!("another-way{level}"));
        build::text(SOURCE, false, &[level], &path, With::Pass).unwrap_or_else(|e| panic!("{e}"));
        let request = Request { options: vec!["--keep-going".to_owned()], ..Request::default() };
        let verification = tool::verify(&path, &request).unwrap_or_else(|e| panic!("{e}"));
        let summary = &verification.summary;
        assert_eq!((&summary.reason, summary.errors.len(), summary.executions), (&None, 7, 21), "{level}");
    }
}

fn explain(source: &str) -> String {
    let path = tool::scratch("symmetry").join(format!("explained-{}", tool::unique()));
    build::text(source, false, &["-O0"], &path, With::Pass).unwrap_or_else(|e| panic!("{e}"));
    let ran = process::run(tool::symdpor().arg("explain-symmetry").arg(&path), Duration::from_secs(60));
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
    ran.output()
}

/// Two workers that lock and then use their argument.
fn workers(first: &str, second: &str) -> String {
    format!(
        "#include <pthread.h>\nstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic long x;\n\
         static void *worker(void *p)\n{{\n    long number = (long)p;\n    pthread_mutex_lock(&m);\n    \
         x += number;\n    pthread_mutex_unlock(&m);\n    return 0;\n}}\n\
         int main(void)\n{{\n    pthread_t t[2];\n    pthread_create(&t[0], 0, worker, (void *){first});\n    \
         pthread_create(&t[1], 0, worker, (void *){second});\n    pthread_join(t[0], 0);\n    pthread_join(t[1], 0);\n    \
         return 0;\n}}\n"
    )
}

#[test]
fn the_difference_is_named() {
    assert!(explain(&workers("3L", "3L")).contains("Threads 1, 2 are alike."));
    let said = explain(&workers("3L", "4L"));
    assert!(said.contains("local `number` is 3 in thread 1 and 4 in thread 2"), "{said}");
}
