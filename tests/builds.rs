//! Other ways to build: the plain clang line without `symdpor cc`, and flags that change what the linker sees. The
//! verdicts and counts are those of the fixtures.

mod common;

use common::build::{self, With};
use common::fixture::{self, Fixture};
use common::process;
use common::tool::{self, Request};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const FIXTURES: [&str; 4] =
    ["mutex/counter_3.c", "races/unused_read.c", "multi/same_names.c", "cpp/exceptions_interleaved.cpp"];

const FLAGS: [&[&str]; 13] = [
    &["-Os"],
    &["-Oz"],
    &["-O2", "-g0"],
    &["-O1", "-no-pie"],
    &["-O1", "-fno-plt", "-Wl,-z,now"],
    &["-O2", "-fstack-protector-all", "-fno-omit-frame-pointer"],
    &["-O2", "-fcf-protection=full"],
    &["-O2", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"],
    &["-O2", "-fuse-ld=lld", "-ffunction-sections", "-Wl,--icf=all"],
    &["-O2", "-fuse-ld=lld", "-flto"],
    &["-O2", "-fuse-ld=lld", "-flto=thin"],
    &["-O1", "-static-libgcc"],
    &["-O2", "-march=x86-64-v3"],
];

/// `clang-22 -fpass-plugin=libsymdpor.so -g FLAGS SOURCES -o PROGRAM`, as in the README.
fn compile(fixture: &Fixture, flags: &[&str]) -> PathBuf {
    let program = tool::scratch("builds").join(format!("{}-{}", fixture.name.replace(['/', '.'], "-"), tool::unique()));
    let mut command = Command::new(if fixture.is_cxx() { "clang++-22" } else { "clang-22" });
    command.arg(format!("-fpass-plugin={}", tool::directory().join("libsymdpor.so").display()));
    command.arg("-g").args(flags).args(&fixture.header.flags).arg(&fixture.path);
    command.args(fixture.header.sources.iter().map(|s| fixture.directory().join(s))).arg("-o").arg(&program);
    let ran = process::run(&mut command, Duration::from_secs(120));
    build::succeeded(&ran, &command).unwrap_or_else(|e| panic!("{e}"));
    program
}

fn check(fixture: &Fixture, flags: &[&str]) {
    let program = compile(fixture, flags);
    let request = Request { options: vec!["--symmetry".to_owned(), "off".to_owned()], ..Request::default() };
    let verification = tool::verify(&program, &request);
    let verification = verification.unwrap_or_else(|e| panic!("{} {flags:?}: {e}", fixture.name));
    let summary = &verification.summary;
    let found = summary.errors.first().map_or(summary.verdict.as_str(), |e| e.kind.as_str());
    assert_eq!(found, fixture.header.verdict, "{} {flags:?}: {}", fixture.name, verification.ran.describe());
    assert_eq!(Some(&summary.executions), fixture.header.executions.get("source"), "{} {flags:?}", fixture.name);
    std::fs::remove_file(program).expect("it was built");
}

#[test]
fn flags_do_not_change_the_verdict() {
    for name in FIXTURES {
        let fixture = fixture::named(name);
        for flags in FLAGS {
            check(&fixture, flags);
        }
    }
}

/// With libc++, where it is installed and goes with the compiler: what is compiled into that library is not what libstdc++ has there.
#[test]
fn the_other_cxx_library() {
    let scratch = tool::scratch("builds");
    let test = scratch.join("libcxx.cpp");
    std::fs::write(&test, "#include <mutex>\n#include <stdexcept>\nint main() {}\n")
        .expect("scratch can be written to");
    let mut command = Command::new("clang++-22");
    command.args(["-stdlib=libc++", "-o"]).arg(scratch.join("libcxx")).arg(&test);
    if build::succeeded(&process::run(&mut command, Duration::from_secs(60)), &command).is_err() {
        return;
    }
    for (name, verdict) in [
        ("cpp/call_once.cpp", "ok"),
        ("cpp/local_static.cpp", "ok"),
        ("cpp20/call_once_throws.cpp", "ok"),
        ("cpp20/exception_last.cpp", "ok"),
        ("cpp20/future.cpp", "ok"),
    ] {
        let fixture = fixture::named(name);
        let program = compile(&fixture, &["-O1", "-stdlib=libc++", "-std=c++20"]);
        let verification = tool::verify(&program, &Request::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let summary = &verification.summary;
        let found = summary.errors.first().map_or(summary.verdict.as_str(), |e| e.kind.as_str());
        assert_eq!(found, verdict, "{name}: {}", verification.ran.describe());
        std::fs::remove_file(program).expect("it was built");
    }
}

/// A lock in a library that was not compiled with the pass orders nothing that is seen: the report says so.
#[test]
fn a_lock_in_a_library_that_is_not_seen() {
    const LIBRARY: &str = "static volatile int locked;\n\
        void take(void) { while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE)); }\n\
        void give(void) { __atomic_store_n(&locked, 0, __ATOMIC_RELEASE); }\n";
    const PROGRAM: &str = "#include <pthread.h>\nvoid take(void), give(void);\nstatic int shared;\n\
        static void *add(void *a) { take(); shared++; give(); return a; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, add, 0); add(0); pthread_join(t, 0); return shared - 2; }\n";
    let scratch = tool::scratch("builds");
    let library = scratch.join("libunseen.so");
    build::text(LIBRARY, false, &["-shared", "-fPIC"], &library, With::Plain).unwrap_or_else(|e| panic!("{e}"));
    let program = scratch.join("locks-unseen");
    let flags = [library.to_str().expect("a path in text"), &format!("-Wl,-rpath,{}", scratch.display())];
    build::text(PROGRAM, false, &flags, &program, With::Pass).unwrap_or_else(|e| panic!("{e}"));
    let verification = tool::verify(&program, &Request::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(verification.summary.errors[0].kind, "data-race");
    let notes = &verification.summary.notes;
    assert!(notes.iter().any(|n| n.starts_with("libunseen.so was not compiled with symdpor")), "{notes:?}");
}
