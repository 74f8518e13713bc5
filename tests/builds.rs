//! Other ways to build: the plain clang line without `symdpor cc`, and flags that change what the linker sees. The
//! verdicts and counts are those of the fixtures.

mod common;

use common::build;
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
