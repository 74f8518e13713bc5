//! Projects with build systems that know nothing of symdpor.

mod common;

use common::tool::{self, Request};
use common::{build, process};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(180);

/// A copy of the project to build in.
fn copy(name: &str) -> PathBuf {
    let target = tool::scratch("projects").join(name);
    if target.exists() {
        std::fs::remove_dir_all(&target).expect("the scratch directory is ours");
    }
    std::fs::create_dir_all(&target).expect("the scratch directory is writable");
    for entry in std::fs::read_dir(tool::root().join("fixtures/projects").join(name)).expect("the project is there") {
        let file = entry.expect("it can be listed").path();
        std::fs::copy(&file, target.join(file.file_name().expect("a file"))).expect("it can be copied");
    }
    target
}

fn compilers(command: &mut Command) {
    let symdpor = tool::directory().join("symdpor");
    command.env("CC", format!("{} cc", symdpor.display())).env("CXX", format!("{} c++", symdpor.display()));
}

fn must_run(command: &mut Command) {
    let ran = process::run(command, LIMIT);
    build::succeeded(&ran, command).unwrap_or_else(|e| panic!("{e}"));
}

fn expect(program: &Path, verdict: &str, kind: Option<&str>) -> tool::Summary {
    let verification = tool::verify(program, &Request::default()).unwrap_or_else(|e| panic!("{e}"));
    let found = &verification.summary;
    assert_eq!(found.verdict, verdict, "{}: {}", program.display(), verification.ran.describe());
    assert_eq!(found.errors.first().map(|e| e.kind.as_str()), kind, "{}", program.display());
    verification.summary
}

fn runs_alone(program: &Path) {
    let ran = process::run(&mut Command::new(program), Duration::from_secs(20));
    assert_eq!(ran.code(), Some(0), "{}: {}", program.display(), ran.describe());
}

#[test]
fn make() {
    let directory = copy("make");
    // make hands CC on from its command line, as a user would give it.
    let compiler = format!("CC={} cc", tool::directory().join("symdpor").display());
    must_run(Command::new("make").arg(compiler).current_dir(&directory));
    runs_alone(&directory.join("good"));
    assert_eq!(expect(&directory.join("good"), "ok", None).executions, 2);
    let found = expect(&directory.join("bad"), "error", Some("data-race"));
    let place = found.errors[0].location.as_ref().expect("the race is in the library's source");
    assert!(place.file.ends_with("queue.c"), "{place:?}");
}

#[test]
fn cmake() {
    let directory = copy("cmake");
    let mut configure = Command::new("cmake");
    compilers(configure.args(["-B", "build"]).current_dir(&directory));
    must_run(&mut configure);
    must_run(Command::new("cmake").args(["--build", "build"]).current_dir(&directory));
    runs_alone(&directory.join("build/good"));
    assert_eq!(expect(&directory.join("build/good"), "ok", None).executions, 1);
    let found = expect(&directory.join("build/bad"), "error", Some("assertion"));
    let place = found.errors[0].location.as_ref().expect("assertions have places");
    assert!(place.file.ends_with("main.cpp") && place.line == 23, "{place:?}");
}
