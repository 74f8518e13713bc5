//! SARIF and JUnit against the schemas that others check them with, for every verdict and kind of error.
//!
//! The schemas come with published packages (`tests/schemas/Cargo.toml`), which `scripts/setup` fetches.

mod common;

use common::build::{self, With};
use common::{process, tool};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(180);

/// One fixture for each kind of error, and one for each other verdict.
const FIXTURES: [&str; 11] = [
    "mutex/ab_ba.c",
    "races/write_write.c",
    "crash/assertion_in_thread.c",
    "crash/null.c",
    "memory/use_after_free.c",
    "mutex/unlock_others.c",
    "exit/status.c",
    "spin/flag_never_set.c",
    "spin/step_limit.c",
    "cpp/vector_race.cpp",
    "mutex/ab_ordered.c",
];

/// What cannot be controlled.
const FORKS: &str = "#include <pthread.h>
#include <unistd.h>
static void *work(void *unused) { fork(); return unused; }
int main(void) { pthread_t thread; pthread_create(&thread, 0, work, 0); pthread_join(thread, 0); }
";

/// Where cargo has put a file of a package.
fn file_of(package: &str, file: &str) -> PathBuf {
    let manifest = tool::root().join("tests/schemas/Cargo.toml");
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--locked", "--format-version", "1", "--manifest-path"]).arg(manifest);
    let ran = process::run(&mut command, LIMIT);
    assert_eq!(ran.code(), Some(0), "the packages with the schemas are fetched by scripts/setup: {}", ran.describe());
    let metadata: Value = serde_json::from_slice(&ran.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let found = packages.iter().find(|p| p["name"] == package).expect("it is a dependency");
    let manifest = Path::new(found["manifest_path"].as_str().expect("a path"));
    manifest.parent().expect("a manifest is in a directory").join(file)
}

/// All programs, run by `symdpor test`.
fn all_verdicts() -> tempfile::TempDir {
    let directory = tool::fresh_directory();
    let mut config = String::new();
    for fixture in FIXTURES {
        let name = fixture.replace(['/', '.'], "-");
        let source = tool::root().join("fixtures").join(fixture);
        let text = fs::read_to_string(source).expect("a fixture");
        let is_cpp = fixture.ends_with("cpp");
        build::text(&text, is_cpp, &["-O1"], &directory.path().join(&name), With::Pass)
            .unwrap_or_else(|e| panic!("{e}"));
        _ = writeln!(config, "[[program]]\npath = \"./{name}\"\nmax-steps = 2000\nkeep-going = true");
    }
    build::text(FORKS, false, &[], &directory.path().join("forks"), With::Pass).unwrap_or_else(|e| panic!("{e}"));
    let limited = "[[program]]\npath = \"./mutex-ab_ordered-c\"\nsymmetry = \"off\"\nmax-executions = 1";
    let others = "[[program]]\npath = \"./missing\"\n[[program]]\npath = \"./forks\"\n";
    _ = writeln!(config, "{limited}\n{others}[[program]]\npath = \"./mutex-ab_ordered-c\"\nexpect = \"deadlock\"");
    fs::write(directory.path().join("symdpor.toml"), config).expect("it can be written");
    let mut command = tool::symdpor();
    command.args(["test", "--junit", "all.xml", "--sarif", "all.sarif"]).current_dir(directory.path());
    let ran = process::run(&mut command, LIMIT);
    assert_eq!(ran.code(), Some(1), "{}", ran.describe());
    directory
}

/// `symdpor run` writes the same formats, for one program.
fn single_runs(directory: &Path) {
    for (name, code) in [("mutex-ab_ba-c", 1), ("mutex-ab_ordered-c", 0), ("forks", 4)] {
        let mut command = tool::symdpor();
        command.args(["run", "--quiet", "--junit", &format!("{name}.xml"), "--sarif", &format!("{name}.sarif")]);
        command.arg(format!("./{name}")).current_dir(directory);
        let ran = process::run(&mut command, LIMIT);
        assert_eq!(ran.code(), Some(code), "{}", ran.describe());
    }
}

fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("it exists").map(|e| e.expect("an entry").path());
    let all: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == extension)).collect();
    assert_eq!(all.len(), 4, "{all:?}");
    all
}

#[test]
fn what_is_written_is_valid() {
    let directory = all_verdicts();
    single_runs(directory.path());
    sarif(&files(directory.path(), "sarif"));
    junit(&files(directory.path(), "xml"));
}

fn sarif(files: &[PathBuf]) {
    let text = fs::read_to_string(file_of("serde-sarif", "src/schema.json")).expect("the schema");
    let mut schema: Value = serde_json::from_str(&text).expect("a schema is JSON");
    // As published, the pattern of languages has a bracket too many: it is no regular expression. No language is written here.
    for part in ["run", "toolComponent"] {
        let language = schema["definitions"][part]["properties"]["language"].as_object_mut();
        language.expect("a property").remove("pattern");
    }
    let validator = jsonschema::validator_for(&schema).expect("a schema is valid");
    for file in files {
        let mut document: Value =
            serde_json::from_str(&fs::read_to_string(file).expect("it was written")).expect("JSON");
        let errors: Vec<String> =
            validator.iter_errors(&document).map(|e| format!("{e} at {}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", file.display());
        // The schema itself is awake.
        document["runs"][0]["tool"]["driver"]["name"] = Value::from(1);
        assert!(!validator.is_valid(&document));
    }
}

fn junit(files: &[PathBuf]) {
    let schema = file_of("junit-report", "tests/JUnit.xsd");
    let valid = |file: &Path| {
        let mut command = Command::new("xmllint");
        command.arg("--noout").arg("--schema").arg(&schema).arg(file);
        process::run(&mut command, LIMIT)
    };
    for file in files {
        let ran = valid(file);
        assert_eq!(ran.code(), Some(0), "{}: {}", file.display(), ran.describe());
        let text = fs::read_to_string(file).expect("it was written").replace("<testcase ", "<testcase wrong=\"1\" ");
        fs::write(file, text).expect("it is ours");
        assert_ne!(valid(file).code(), Some(0), "the schema itself is awake");
    }
}
