//! The crate stands alone: compiled without std and linked with nothing, it needs no symbol from outside, neither
//! libc's nor a panic's. (A loop that the compiler turns into a call of `memset` shows here.)

use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().expect("the tool starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn rustc(directory: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
    command.args(["--edition", "2024", "-O", "-C", "panic=abort", "-C", "codegen-units=1"]).current_dir(directory);
    command
}

#[test]
fn nothing_is_imported() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("standalone");
    std::fs::create_dir_all(&directory).expect("a directory for the build");
    run(rustc(&directory)
        .args(["--crate-type", "rlib", "--crate-name", "symdpor_detect"])
        .arg(sources.join("src/lib.rs")));
    run(rustc(&directory)
        .args(["--crate-type", "cdylib", "-o", "libprobe.so", "-C", "lto=fat"])
        .args(["-C", "link-arg=-nostdlib", "-C", "link-arg=-Wl,--unresolved-symbols=ignore-all"])
        .args(["--extern", "symdpor_detect=libsymdpor_detect.rlib"])
        .arg(sources.join("tests/standalone/probe.rs")));
    let library = directory.join("libprobe.so");
    assert_eq!(run(Command::new("nm").arg("-u").arg(&library)).trim(), "");
    assert!(run(Command::new("nm").arg("-D").arg(&library)).contains("probe_access"));
}
