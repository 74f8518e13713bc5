//! Link flags of the runtime: it initialises before every other library and binds its own symbols to itself.
fn main() {
    for flag in ["-Wl,-z,initfirst", "-Wl,-z,now", "-Wl,-z,relro", "-Wl,-Bsymbolic", "-Wl,--no-undefined-version"] {
        println!("cargo:rustc-cdylib-link-arg={flag}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
