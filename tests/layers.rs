//! The architecture, checked: which crate may know which, where unsafe code may be, what the runtime may import.

mod common;

use common::{process, tool};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

/// Every edge between our crates. An edge that is absent is absent on purpose: see ARCHITECTURE.md.
const EDGES: [(&str, &[&str]); 11] = [
    ("symdpor-abi", &[]),
    ("symdpor-detect", &[]),
    ("symdpor-trace", &["symdpor-abi"]),
    ("symdpor-explore", &["symdpor-abi", "symdpor-trace"]),
    ("symdpor-report", &["symdpor-trace"]),
    ("symdpor-residual", &["symdpor-abi"]),
    ("symdpor-worker", &["symdpor-abi", "symdpor-residual", "symdpor-trace"]),
    ("symdpor-runtime", &["symdpor-abi", "symdpor-detect"]),
    ("symdpor-pass", &["symdpor-abi"]),
    ("symdpor-bench", &["symdpor-abi", "symdpor-explore", "symdpor-trace", "symdpor-worker"]),
    ("symdpor", &["symdpor-abi", "symdpor-explore", "symdpor-report", "symdpor-trace", "symdpor-worker"]),
];

/// Crates that compute and do nothing else.
const PURE: [&str; 5] = ["crates/abi", "crates/trace", "crates/explore", "crates/report", "crates/residual"];

/// Crates that run inside the program under test: whatever they depended on would run there too.
const ALONE: [&str; 3] = ["symdpor-abi", "symdpor-detect", "symdpor-runtime"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// None for an ordinary one, otherwise "dev" or "build".
    kind: Option<String>,
}

/// The ordinary dependencies of each crate of the workspace.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(tool::root());
    let ran = process::run(&mut command, Duration::from_secs(60));
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
    let metadata: Metadata = serde_json::from_slice(&ran.stdout).expect("cargo writes JSON");
    let ordinary = |p: Package| {
        let names = p.dependencies.into_iter().filter(|d| d.kind.is_none()).map(|d| d.name);
        (p.name, names.collect())
    };
    metadata.packages.into_iter().map(ordinary).collect()
}

#[test]
fn crates_know_only_whom_they_may_know() {
    let found = dependencies();
    let names: BTreeSet<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, EDGES.iter().map(|(name, _)| *name).collect(), "a new crate needs a line in this test");
    for (name, allowed) in EDGES {
        let ours: BTreeSet<&str> = found[name].iter().map(String::as_str).filter(|d| names.contains(d)).collect();
        let allowed = allowed.iter().copied().collect();
        assert!(ours.is_subset(&allowed), "{name} depends on {ours:?}, of which {allowed:?} are allowed");
    }
}

#[test]
fn what_runs_inside_the_program_depends_on_nothing_else() {
    let found = dependencies();
    for name in ALONE {
        let foreign: Vec<&String> = found[name].iter().filter(|d| !d.starts_with("symdpor-")).collect();
        assert!(foreign.is_empty(), "{name} depends on {foreign:?}");
    }
}

#[test]
fn pure_crates_have_no_unsafe_code() {
    for directory in PURE {
        let file = tool::root().join(directory).join("src/lib.rs");
        let text = std::fs::read_to_string(&file).expect("a crate has a root");
        assert!(text.contains("#![forbid(unsafe_code)]"), "{}", file.display());
    }
}

/// The dynamic symbols of the runtime, by whether they are defined in it.
fn runtime_symbols(which: &str) -> BTreeSet<String> {
    let library = tool::directory().join("libsymdpor_rt.so");
    let ran = process::run(Command::new("nm").args(["-D", which]).arg(library), Duration::from_secs(60));
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
    let names = ran.output().lines().filter_map(|l| Some(l.split_whitespace().last()?.to_owned())).collect::<Vec<_>>();
    names.into_iter().map(|n| n.split('@').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn the_runtime_imports_only_what_is_on_its_list() {
    let list = tool::root().join("runtime/allowed-imports.txt");
    let text = std::fs::read_to_string(&list).expect("the list is there");
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    let allowed: BTreeSet<String> = lines.map(str::to_owned).collect();
    let imported = runtime_symbols("--undefined-only");
    let surplus: Vec<&String> = imported.difference(&allowed).collect();
    assert!(surplus.is_empty(), "not in {}: {surplus:?}", list.display());
    let stale: Vec<&String> = allowed.difference(&imported).collect();
    assert!(stale.is_empty(), "in {}, but not imported: {stale:?}", list.display());
    let interposed = runtime_symbols("--defined-only");
    let both: Vec<&String> = allowed.intersection(&interposed).collect();
    assert!(both.is_empty(), "imported and interposed: {both:?}");
    assert!(interposed.contains("pthread_create") && interposed.contains("malloc"), "{interposed:?}");
}
