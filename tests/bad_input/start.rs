//! Programs that cannot be run at all: exit code 2, and what to do about it.

use crate::common::build::With;
use crate::{Place, expect};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const HARMLESS: &str = "int main(void) { return 0; }\n";

#[test]
fn does_not_exist() {
    let place = Place::new();
    expect(&place.run(Path::new("./nowhere")), 2, &["nowhere", "no such program"]);
}

#[test]
fn is_a_directory() {
    let place = Place::new();
    expect(&place.run(place.directory.path()), 2, &["directory"]);
}

#[test]
fn is_not_executable() {
    let place = Place::new();
    let program = place.build(HARMLESS, With::Pass, &[]);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).expect("it is ours");
    expect(&place.run(&program), 2, &["not executable", "chmod +x"]);
}

#[test]
fn is_no_program() {
    let place = Place::new();
    for (name, content) in [("text", "hello\n"), ("empty", ""), ("cut", "\x7fELF\x02\x01\x01")] {
        let file = place.path(name);
        fs::write(&file, content).expect("the directory is ours");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
        expect(&place.run(&file), 2, &[name]);
    }
    let script = place.path("script");
    fs::write(&script, "#!/bin/sh\nexit 0\n").expect("the directory is ours");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");
    expect(&place.run(&script), 2, &["script"]);
}

#[test]
fn was_not_instrumented() {
    let place = Place::new();
    let program = place.build(HARMLESS, With::Plain, &[]);
    expect(&place.run(&program), 2, &["not instrumented", "symdpor cc"]);
    expect(&place.run(Path::new("/bin/true")), 2, &["/bin/true", "not instrumented"]);
}

#[test]
fn is_statically_linked() {
    let place = Place::new();
    let program = place.build(HARMLESS, With::Pass, &["-static"]);
    expect(&place.run(&program), 2, &["statically linked", "without -static"]);
}

/// Changes the version in every descriptor: it follows the magic.
#[test]
fn was_built_by_a_pass_of_another_version() {
    let place = Place::new();
    let program = place.build(HARMLESS, With::Pass, &[]);
    let mut bytes = fs::read(&program).expect("it was built");
    let magic = b"SYMDPOR1";
    let places: Vec<usize> = (0..bytes.len() - 12).filter(|i| &bytes[*i..i + 8] == magic).collect();
    assert!(!places.is_empty(), "the program has a descriptor");
    let mut other = 0;
    for at in places {
        let version = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().expect("four bytes"));
        other = version + 100;
        bytes[at + 8..at + 12].copy_from_slice(&other.to_le_bytes());
    }
    fs::write(&program, bytes).expect("it is ours");
    expect(&place.run(&program), 2, &["version", &other.to_string()]);
}

#[test]
fn needs_a_library_that_is_not_there() {
    let place = Place::new();
    let library = place.path("libgone.so");
    crate::common::build::text("int gone(void) { return 0; }\n", false, &["-shared", "-fPIC"], &library, With::Plain)
        .unwrap_or_else(|e| panic!("{e}"));
    let flags = ["-L.", library.to_str().expect("a plain name")];
    let program = place.build("int gone(void);\nint main(void) { return gone(); }\n", With::Pass, &flags);
    fs::remove_file(&library).expect("it was built");
    expect(&place.run(&program), 2, &["libgone.so"]);
}
