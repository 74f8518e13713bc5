//! Programs that misbehave: what cannot be controlled is named with exit code 4, what is wrong is an error, and what is
//! only unusual works.

use crate::{misbehaves, with_input};
use std::process::Stdio;

/// A program whose thread does `body`; `before` comes first in main.
fn threaded(includes: &str, before: &str, body: &str) -> String {
    format!(
        "#define _GNU_SOURCE\n#include <pthread.h>\n{includes}\nstatic void *work(void *unused)\n{{\n    {body}\n    \
         return unused;\n}}\n\nint main(void)\n{{\n    pthread_t threads[2];\n    {before}\n    \
         for (int i = 0; i < 2; i++)\n        pthread_create(&threads[i], NULL, work, NULL);\n    \
         for (int i = 0; i < 2; i++)\n        pthread_join(threads[i], NULL);\n    return 0;\n}}\n"
    )
}

#[test]
fn calls_fork() {
    let includes = "#include <sys/wait.h>\n#include <unistd.h>";
    let body = "if (fork() == 0) _exit(0);\n    wait(NULL);";
    misbehaves(&threaded(includes, "", body), 4, &["fork"]);
    misbehaves(&threaded(includes, body, ""), 4, &["fork"]);
}

#[test]
fn starts_other_programs() {
    let includes = "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>";
    misbehaves(&threaded(includes, "", "if (system(\"true\")) abort();"), 4, &["system"]);
    misbehaves(&threaded(includes, "", "pclose(popen(\"true\", \"r\"));"), 4, &["popen"]);
    misbehaves(&threaded(includes, "", "execl(\"/bin/true\", \"true\", (char *)0);"), 4, &["exec"]);
}

#[test]
fn calls_what_is_not_handled_yet() {
    let includes = "#include <mqueue.h>";
    let asynchronous = "pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);";
    let before = format!("{asynchronous} pthread_cancel(pthread_self());");
    let after = format!("pthread_cancel(pthread_self()); {asynchronous}");
    let calls = [
        (&*before, "pthread_setcanceltype"),
        (&*after, "pthread_setcanceltype"),
        ("mq_unlink(\"/symdpor\");", "mq_unlink"),
    ];
    for (call, name) in calls {
        misbehaves(&threaded(includes, "", call), 4, &[name]);
    }
}

#[test]
fn sends_signals_that_cannot_be_followed() {
    let includes = "#include <signal.h>\n#include <unistd.h>\nstatic void handler(int signal) { (void)signal; }";
    let body = "pause();\n    return unused;\n}\n\nstatic void *other(void *unused)\n{";
    let install = "signal(SIGUSR1, handler);\n    pthread_create(&threads[0], NULL, other, NULL);\n    \
                   pthread_create(&threads[1], NULL, work, NULL);\n    pthread_kill(threads[1], SIGUSR1);";
    misbehaves(&threaded(includes, install, body), 4, &["signal 10 to thread 2", "has a handler"]);
    let wait = "int signal; sigset_t set;\n    sigfillset(&set);\n    sigwait(&set, &signal);";
    misbehaves(&threaded(includes, "", wait), 4, &["waits for a signal that only another process could send"]);
}

#[test]
fn runs_forever_in_one_step() {
    misbehaves(&threaded("", "", "__asm__ volatile(\"1: jmp 1b\");"), 1, &["step-limit"]);
    misbehaves(&threaded("", "", "for (;;) __asm__ volatile(\"nop\");"), 1, &["long"]);
    misbehaves("int main(void) { for (;;) __asm__ volatile(\"\"); }\n", 1, &["long"]);
}

#[test]
fn closes_our_descriptors() {
    let close_all = "for (int i = 3; i < 4096; i++) close(i);\n    closefrom(3);";
    misbehaves(&threaded("#include <unistd.h>", close_all, close_all), 0, &["ok"]);
}

#[test]
fn closes_standard_output() {
    let close_all = "for (int i = 0; i < 3; i++) close(i);";
    misbehaves(&threaded("#include <unistd.h>", close_all, ""), 0, &["ok"]);
}

#[test]
fn has_a_handler_for_segmentation_faults() {
    let includes = "#include <signal.h>\n#include <unistd.h>\nstatic int *volatile wild = (int *)16;\n\
                    static void handler(int signal) { (void)signal; _exit(0); }";
    let install = "signal(SIGSEGV, handler);";
    misbehaves(&threaded(includes, install, ""), 0, &["ok"]);
    misbehaves(&threaded(includes, install, "*wild = 1;"), 4, &["SIGSEGV", "handles"]);
}

#[test]
fn overflows_its_stack() {
    let includes = "static int __attribute__((noinline)) deeper(int n)\n{\n    volatile char frame[4096];\n    \
                    frame[n % 4096] = 1;\n    return n < 0 ? 0 : deeper(n + 1) + frame[0];\n}";
    misbehaves(&threaded(includes, "", "deeper(0);"), 1, &["crash", "stack overflow"]);
    misbehaves(&threaded(includes, "deeper(0);", ""), 1, &["crash", "stack overflow"]);
}

#[test]
fn writes_through_wild_pointers() {
    let includes = "static volatile unsigned long seed = 1;";
    let body = "for (int i = 0; i < 100; i++) {\n        seed = seed * 6364136223846793005ul + 1;\n        \
                *(volatile char *)(seed & 0x7fffffffffff) = 1;\n    }";
    misbehaves(&threaded(includes, "", body), 1, &["crash", "SIGSEGV"]);
}

/// Overwrites all writable memory but its own, past the instrumentation: the runtime, its tables, the channel.
#[test]
fn overwrites_the_runtime() {
    let includes = "#include <stdio.h>\n#include <string.h>\nstatic unsigned long from[4096], to[4096];\nstatic int n;";
    let look = "FILE *maps = fopen(\"/proc/self/maps\", \"r\");\n    char line[512], rights[8];\n    \
                while (fgets(line, sizeof line, maps)) {\n        unsigned long a, b;\n        \
                if (sscanf(line, \"%lx-%lx %7s\", &a, &b, rights) == 3 && rights[1] == 'w' && !strstr(line, \"prog\") && \
                !strstr(line, \"stack\"))\n            from[n] = a, to[n] = b, n++;\n    }\n    fclose(maps);";
    let body = "for (int i = 0; i < n; i++) {\n        void *at = (void *)from[i];\n        \
                unsigned long left = to[i] - from[i];\n        __asm__ volatile(\"rep stosb\" : \"+D\"(at), \"+c\"(left) \
                : \"a\"(0x41) : \"memory\");\n    }";
    misbehaves(&threaded(includes, look, body), 1, &["crash"]);
}

#[test]
fn sends_signals() {
    let includes = "#include <signal.h>\n#include <unistd.h>";
    misbehaves(&threaded(includes, "", "kill(getpid(), SIGKILL);"), 1, &["crash", "signal"]);
    misbehaves(&threaded(includes, "", "kill(getppid(), SIGKILL);"), 4, &["kill"]);
}

#[test]
fn reads_past_the_end_of_its_input() {
    let includes = "#include <stdio.h>\n#include <stdlib.h>";
    let body = "while (getchar() != EOF)\n        ;\n    if (getchar() != EOF)\n        abort();";
    with_input(&threaded(includes, "", body), Stdio::null(), 0, &["ok"]);
    let file = std::fs::File::open(crate::common::tool::root().join("README.md")).expect("it is there");
    with_input(&threaded(includes, "", body), file.into(), 0, &["ok"]);
}

#[test]
fn reads_from_a_pipe_that_nobody_writes_to() {
    let includes = "#include <stdio.h>";
    let (reader, writer) = std::io::pipe().expect("pipes can be made");
    drop(writer);
    with_input(&threaded(includes, "", "getchar();"), reader.into(), 0, &["ok"]);
}

#[test]
fn prints_megabytes() {
    let includes = "#include <stdio.h>\nstatic pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;";
    let body = "pthread_mutex_lock(&mutex);\n    for (int i = 0; i < 40000; i++)\n        printf(\"%0100d\\n\", i);\n    \
                pthread_mutex_unlock(&mutex);";
    misbehaves(&threaded(includes, "", body), 0, &["ok", "1 execution"]);
}

#[test]
fn changes_its_user() {
    let includes = "#include <unistd.h>";
    misbehaves(&threaded(includes, "", "setuid(getuid());"), 4, &["user or group"]);
    misbehaves(&threaded(includes, "setuid(getuid());", ""), 0, &["ok"]);
}

/// The program's own code, which was there before its first thread.
#[test]
fn unmaps_the_code_that_runs() {
    let body = "munmap((void *)((unsigned long)work & ~4095ul), 4096);";
    misbehaves(&threaded("#include <sys/mman.h>", "", body), 1, &["SIGSEGV"]);
}

/// Nothing is seen of these functions but that they crash: the instruction tells where.
#[test]
fn crashes_where_nothing_is_shared() {
    let functions = "static __attribute__((noinline)) int divide(int a, int b) { return a / b; }\n\
                     static __attribute__((noinline)) int recurse(int n)\n\
                     { volatile char frame[4096]; frame[n % 4096] = 1; return recurse(n + 1) + frame[0]; }\n\
                     static __attribute__((noinline)) void large(void)\n\
                     { volatile char frame[64 << 20]; for (int i = 0; i < 64 << 20; i += 4096) frame[i] = 1; }\n";
    misbehaves(&threaded(functions, "", "volatile int n = 0; n = divide(7, n);"), 1, &["SIGFPE", "in divide\n"]);
    misbehaves(&threaded(functions, "", "recurse(0);"), 1, &["stack overflow", "in recurse\n"]);
    misbehaves(&threaded(functions, "recurse(0);", ""), 1, &["stack overflow", "in recurse\n"]);
    misbehaves(&threaded(functions, "", "large();"), 1, &["stack overflow", "in large\n"]);
}

/// The processor does not say which address it was.
#[test]
fn uses_a_pointer_that_was_overwritten() {
    let includes = "static int *volatile pointer = (int *)0x4141414141414141;";
    misbehaves(&threaded(includes, "", "*(volatile int *)pointer = 1;"), 1, &["SIGSEGV", "cannot be one", "in work"]);
}

#[test]
fn sends_itself_any_signal() {
    let includes = "#include <signal.h>";
    for (signal, name) in [("SIGHUP", "SIGHUP"), ("SIGKILL", "SIGKILL"), ("SIGUSR1", "SIGUSR1")] {
        misbehaves(&threaded(includes, "", &format!("raise({signal});")), 1, &["crash", name]);
    }
}
