//! Compiles the C++ side: registration with Clang's pass manager, and what LLVM's C interface lacks.

use std::process::Command;

fn main() {
    let config = std::env::var("LLVM_CONFIG").unwrap_or_else(|_| "llvm-config-22".to_owned());
    println!("cargo:rerun-if-env-changed=LLVM_CONFIG");
    println!("cargo:rerun-if-changed=cpp");
    put_header_beside_the_pass();
    let mut build = cc::Build::new();
    build.cpp(true).compiler("clang++-22").warnings(true).flag("-fno-rtti");
    for flag in cxx_flags(&config) {
        build.flag(flag);
    }
    for file in ["cpp/plugin.cpp", "cpp/shims.cpp", "cpp/debug_info.cpp"] {
        build.file(file);
    }
    build.compile("symdpor_plugin");
}

/// `target/PROFILE/include/symdpor.h`: where the compiler driver looks for it.
fn put_header_beside_the_pass() {
    const HEADER: &str = "../include/symdpor.h";
    println!("cargo:rerun-if-changed={HEADER}");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    // OUT_DIR is target/PROFILE/build/PACKAGE/out.
    let Some(profile) = std::path::Path::new(&out).ancestors().nth(3) else { return };
    let directory = profile.join("include");
    std::fs::create_dir_all(&directory).expect("the target directory can be written to");
    std::fs::copy(HEADER, directory.join("symdpor.h")).expect("the header is there");
}

/// Include paths and defines; LLVM's headers are not ours to warn about.
fn cxx_flags(config: &str) -> Vec<String> {
    let output = Command::new(config).arg("--cxxflags").output().expect("llvm-config-22 runs (package llvm-22-dev)");
    assert!(output.status.success(), "llvm-config-22 --cxxflags failed");
    let text = String::from_utf8(output.stdout).expect("flags are UTF-8");
    text.split_whitespace().map(|flag| flag.replacen("-I", "-isystem", 1)).collect()
}
