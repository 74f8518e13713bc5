//! Libraries that were not compiled with the pass, and do what cannot be controlled: they are named.

use crate::Place;
use crate::common::build::With;
use crate::common::{process, tool};
use std::process::Command;

/// Waits in the library until a thread, which needs a lock first, has been there too.
const PROGRAM: &str = "#include <pthread.h>\nvoid library_wait(void);\nvoid library_set(void);\n\
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;\n\
    static void *work(void *unused)\n{\n    pthread_mutex_lock(&mutex);\n    library_set();\n    \
    pthread_mutex_unlock(&mutex);\n    return unused;\n}\n\n\
    int main(void)\n{\n    pthread_t thread;\n    pthread_create(&thread, NULL, work, NULL);\n    library_wait();\n    \
    pthread_join(thread, NULL);\n    return 0;\n}\n";

/// Runs the program with a library of this source; what must be said besides exit code 4.
#[track_caller]
fn refuses(library: &str, parts: &[&str]) {
    let place = Place::new();
    let source = place.path("library.c");
    std::fs::write(&source, library).expect("the directory is writable");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(place.path("liboutside.so")).arg(&source);
    let ran = process::run(&mut compile, tool::LIMIT);
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
    let directory = place.directory.path().display();
    let (search, run) = (format!("-L{directory}"), format!("-Wl,-rpath,{directory}"));
    let program = place.build(PROGRAM, With::Pass, &["-pthread", &search, &run, "-loutside"]);
    let ran = place.run(&program);
    let said = ran.output() + &ran.errors();
    assert!(ran.code() == Some(4) && parts.iter().all(|p| said.contains(p)), "expected {parts:?}: {}", ran.describe());
}

#[test]
fn spins() {
    let library = "static volatile int set;\nstatic __attribute__((noinline)) void inner(void) { while (!set); }\n\
                   void library_wait(void) { inner(); set = 2; }\nvoid library_set(void) { set = 1; }\n";
    refuses(library, &["does not come back from library_wait of liboutside.so"]);
}

#[test]
fn is_called_back_for_ever() {
    let library = "#include <stdlib.h>\nstatic int compare(const void *a, const void *b)\n\
                   { volatile int on = 1; while (on); return a < b; }\n\
                   void library_wait(void) { int n[3] = {3, 2, 1}; qsort(n, 3, sizeof *n, compare); }\n\
                   void library_set(void) {}\n";
    refuses(library, &["does not come back from", "liboutside.so"]);
}

#[test]
fn starts_kernel_threads() {
    let library = "#define _GNU_SOURCE\n#include <sched.h>\nstatic char stack[65536];\nstatic int run(void *p) { return p != 0; }\n\
                   void library_wait(void) { clone(run, stack + 65536, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, 0); }\n\
                   void library_set(void) {}\n";
    refuses(library, &["liboutside.so calls clone()"]);
}

/// Part of the program itself: the verdict says what it does not cover. Files of data alone are no such part.
#[test]
fn is_a_file_that_was_forgotten() {
    let place = Place::new();
    let object = |name: &str, source: &str, with: With| {
        let built = place.build(source, with, &["-c", "-O1"]);
        let named = place.path(name);
        std::fs::rename(built, &named).expect("it was just built");
        named.display().to_string()
    };
    let data = object("data.o", "int table[2] = {1, 2};\n", With::Pass);
    let code = "extern int table[2];\nint sum(void) { return table[0] + table[1]; }\n";
    let main = "int sum(void);\nint main(void) { return sum() - 3; }\n";
    for (with, forgotten) in [(With::Pass, false), (With::Plain, true)] {
        let code = object("code.o", code, with);
        let program = place.build(main, With::Pass, &["-O1", &code, &data]);
        let ran = place.finish(place.run_command().arg(program));
        assert_eq!(ran.code(), Some(0), "{}", ran.describe());
        assert_eq!(ran.output().contains("was not compiled with symdpor"), forgotten, "{}", ran.describe());
    }
}

/// A thread still runs in it, or comes to it.
#[test]
fn is_closed_while_it_is_needed() {
    let place = Place::new();
    let source = "int library(int n) { return n + 1; }\n";
    let library = place.build(source, With::Pass, &["-shared", "-fPIC"]);
    let named = place.path("libneeded.so");
    std::fs::rename(&library, &named).expect("it was just built");
    let text = format!(
        "#include <dlfcn.h>\n#include <pthread.h>\nstatic void *handle;\nstatic int (*function)(int);\n\
         static void *work(void *unused)\n{{\n    if (NEEDED)\n        dlclose(handle);\n    return unused;\n}}\n\n\
         int main(void)\n{{\n    pthread_t thread;\n    handle = dlopen(\"{}\", RTLD_NOW);\n    \
         function = (int (*)(int))dlsym(handle, \"library\");\n    pthread_create(&thread, NULL, work, NULL);\n    \
         pthread_join(thread, NULL);\n    int n = function(1);\n    dlclose(handle);\n    return n - 2;\n}}\n",
        named.display()
    );
    for (needed, code) in [("-DNEEDED=1", 1), ("-DNEEDED=0", 0)] {
        let program = place.build(&text, With::Pass, &["-pthread", "-ldl", needed]);
        let ran = place.run(&program);
        assert_eq!(ran.code(), Some(code), "{}", ran.describe());
        assert!(code == 0 || ran.output().contains("SIGSEGV"), "{}", ran.describe());
    }
}
