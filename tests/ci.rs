//! Fit for continuous integration: `symdpor test`, JUnit, SARIF, and the examples, which are run as they are.

mod common;

use common::build::{self, With};
use common::process::{self, Ran};
use common::tool;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(180);

/// A directory with the programs of the examples.
fn programs() -> tempfile::TempDir {
    let directory = tool::fresh_directory();
    for name in ["transfer", "transfer_deadlock"] {
        let source = fs::read_to_string(tool::root().join(format!("examples/{name}.c"))).expect("an example");
        let program = directory.path().join(name);
        build::text(&source, false, &["-O1"], &program, With::Pass).unwrap_or_else(|e| panic!("{e}"));
    }
    directory
}

fn test(directory: &Path, arguments: &[&str], code: i32) -> Ran {
    let ran = process::run(tool::symdpor().arg("test").args(arguments).current_dir(directory), LIMIT);
    assert_eq!(ran.code(), Some(code), "{arguments:?}: {}", ran.describe());
    ran
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("it was written")).expect("JSON")
}

#[test]
fn programs_on_the_command_line_are_expected_to_be_right() {
    let directory = programs();
    let directory = directory.path();
    let ran = test(directory, &["./transfer"], 0);
    assert!(ran.output().contains("ok: 1 of 1 as expected"), "{}", ran.describe());
    let ran = test(directory, &["./transfer", "./transfer_deadlock", "./nothing"], 1);
    for part in ["FAILED", "deadlock", "not run", "no such program", "1 of 3 as expected"] {
        assert!(ran.output().contains(part), "{part}: {}", ran.describe());
    }
    test(directory, &["./nothing"], 2);
    test(directory, &[], 2);
    test(directory, &["--config", "nothing.toml"], 2);
}

#[test]
fn the_file_says_what_is_expected() {
    let directory = programs();
    let directory = directory.path();
    let with = |text: &str, code: i32| {
        fs::write(directory.join("symdpor.toml"), text).expect("it can be written");
        test(directory, &[], code)
    };
    with("[[program]]\npath = \"./transfer_deadlock\"\nexpect = \"deadlock\"\n", 0);
    with("[[program]]\npath = \"./transfer_deadlock\"\nexpect = \"data-race\"\n", 1);
    with("[[program]]\npath = \"./transfer\"\nexpect = \"error\"\n", 1);
    let limited = "[[program]]\npath = \"./transfer\"\nsymmetry = \"off\"\nmax-executions = 1\n";
    with(limited, 3);
    with(&format!("{limited}expect = \"incomplete\"\n"), 0);
    let ran = with("[[program]]\npath = \"./transfer\"\nreduction = \"magic\"\n", 2);
    assert!(ran.output().contains("magic"), "{}", ran.describe());
    with("[[program]]\npath = \"./transfer\"\nexpect = \"fine\"\n", 2);
    // Named from elsewhere, programs are still found beside the file.
    with("[[program]]\npath = \"./transfer\"\n", 0);
    let config = directory.join("symdpor.toml");
    test(tool::root(), &["--config", config.to_str().expect("a path"), "--json", "-"], 0);
}

#[test]
fn a_budget_is_shared() {
    const ENDLESS: &str = "#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *unused) {
    for (int i = 0; i < 4; i++) { pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); }
    return unused;
}
int main(void) {
    pthread_t threads[9];
    for (int i = 0; i < 9; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 9; i++) pthread_join(threads[i], NULL);
}
";
    let directory = programs();
    let directory = directory.path();
    build::text(ENDLESS, false, &["-O1"], &directory.join("endless"), With::Pass).unwrap_or_else(|e| panic!("{e}"));
    let program = "[[program]]\npath = \"./endless\"\nsymmetry = \"off\"\n";
    let text = format!("time-limit = \"3s\"\n{}", program.repeat(3));
    fs::write(directory.join("symdpor.toml"), text).expect("it can be written");
    let ran = test(directory, &["--json", "all.json"], 3);
    assert!(ran.time < Duration::from_secs(20), "{}", ran.describe());
    for program in json(&directory.join("all.json"))["programs"].as_array().expect("a list") {
        let time = program["summary"]["time_s"].as_f64().expect("a number");
        assert!((0.8..2.5).contains(&time), "{program}");
        assert!(program["summary"]["estimate"]["executions"].as_u64() > Some(0), "{program}");
    }
}

/// What the schema of SARIF 2.1.0 requires of what is written here.
fn check_sarif(sarif: &Value) {
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    let base = run["originalUriBaseIds"]["SRCROOT"]["uri"].as_str().expect("a base");
    assert!(base.starts_with("file:///") && base.ends_with('/'), "{base}");
    assert!(run["invocations"][0]["executionSuccessful"].is_boolean());
    for result in run["results"].as_array().expect("results") {
        let index = result["ruleIndex"].as_u64().expect("an index") as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(result["message"]["text"].is_string());
        let flows = result["codeFlows"][0]["threadFlows"].as_array().expect("flows");
        let steps = flows.iter().flat_map(|f| f["locations"].as_array().expect("steps"));
        let mut order: Vec<u64> = steps.clone().filter_map(|s| s["executionOrder"].as_u64()).collect();
        order.sort_unstable();
        assert!(order.windows(2).all(|w| w[0] < w[1]) && order.len() > 2, "{order:?}");
        let places = result["locations"].as_array().expect("places").iter().chain(steps.map(|s| &s["location"]));
        for place in places {
            let place = &place["physicalLocation"];
            assert_eq!(place["artifactLocation"]["uriBaseId"], "SRCROOT");
            assert!(!place["artifactLocation"]["uri"].as_str().expect("a file").starts_with('/'), "{place}");
            assert!(place["region"]["startLine"].as_u64() >= Some(1), "{place}");
        }
    }
}

/// Elements are closed in the order in which they were opened, and are those that JUnit's readers know.
fn check_junit(xml: &str) -> Vec<String> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    let rest = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>").expect("a declaration");
    for tag in rest.split('<').skip(1).map(|t| t.split('>').next().unwrap_or_default()) {
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "{xml}");
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap_or_default().to_owned();
        let inside = match name.as_str() {
            "testsuites" => None,
            "testsuite" => Some("testsuites"),
            "testcase" => Some("testsuite"),
            "failure" | "error" | "skipped" => Some("testcase"),
            other => panic!("<{other}> is not known: {xml}"),
        };
        assert_eq!(open.last().map(String::as_str), inside, "{xml}");
        if !tag.ends_with('/') {
            open.push(name.clone());
        }
        all.push(name);
    }
    assert!(open.is_empty(), "{xml}");
    all
}

#[test]
fn reports_have_the_form_that_others_read() {
    let directory = programs();
    let directory = directory.path();
    let files = ["--junit", "j.xml", "--sarif", "s.sarif", "--json", "t.json"];
    test(directory, &[&files[..], &["./transfer", "./transfer_deadlock", "./nothing"]].concat(), 1);
    let sarif = json(&directory.join("s.sarif"));
    check_sarif(&sarif);
    assert_eq!(sarif["runs"][0]["results"].as_array().map(Vec::len), Some(1));
    assert_eq!(sarif["runs"][0]["invocations"][0]["executionSuccessful"], false, "one could not be run");
    let junit = check_junit(&fs::read_to_string(directory.join("j.xml")).expect("it was written"));
    let cases = ["testsuites", "testsuite", "testcase", "testcase", "failure", "testcase", "error"];
    assert_eq!(junit, cases);
    let all = json(&directory.join("t.json"));
    assert_eq!((&all["passed"], &all["programs"][0]["passed"]), (&Value::Bool(false), &Value::Bool(true)));
    assert_eq!(all["programs"][1]["summary"]["errors"][0]["kind"], "deadlock");

    let mut command = tool::symdpor();
    command.args(["run", "--quiet", "--junit", "r.xml", "--sarif", "r.sarif", "./transfer_deadlock"]);
    assert_eq!(process::run(command.current_dir(directory), LIMIT).code(), Some(1));
    check_sarif(&json(&directory.join("r.sarif")));
    check_junit(&fs::read_to_string(directory.join("r.xml")).expect("it was written"));
    let mut command = tool::symdpor();
    command.args(["run", "--sarif", "no/such/place", "./transfer"]);
    assert_eq!(process::run(command.current_dir(directory), LIMIT).code(), Some(2));
}

/// A copy of the examples, since building leaves files.
fn examples() -> tempfile::TempDir {
    let directory = tool::fresh_directory();
    let from = tool::root().join("examples");
    let copied = Command::new("cp").arg("-r").arg(from).arg(directory.path()).status();
    assert!(copied.is_ok_and(|s| s.success()));
    directory
}

fn shell(line: &str, directory: &Path) -> Ran {
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", tool::directory().display());
    let mut command = Command::new("bash");
    command.args(["-euc", line]).current_dir(directory).env("PATH", path);
    let ran = process::run(&mut command, LIMIT);
    assert_eq!(ran.code(), Some(0), "{line}: {}", ran.describe());
    ran
}

#[test]
fn the_makefile_works() {
    let directory = examples();
    let ran = shell("make -C examples/make check", directory.path());
    assert!(ran.output().contains("ok: 2 of 2 as expected"), "{}", ran.describe());
}

#[test]
fn the_cmake_project_works() {
    let directory = examples();
    let line = "cmake -S examples/cmake -B build -DCMAKE_C_COMPILER=clang-22 && cmake --build build && \
                ctest --test-dir build --output-on-failure";
    let ran = shell(line, directory.path());
    assert!(ran.output().contains("100% tests passed"), "{}", ran.describe());
}

/// The commands of the workflow's `run` steps, one by one, in the order of the file.
#[test]
fn the_commands_of_the_workflow_work() {
    let directory = examples();
    let text = fs::read_to_string(directory.path().join("examples/ci/workflow.yml")).expect("a workflow");
    assert!(!text.contains('\t') && text.contains("\njobs:\n") && text.contains("\non:\n"), "{text}");
    let mut commands: Vec<String> = Vec::new();
    let mut block = false;
    for line in text.lines() {
        let trimmed = line.trim_start();
        if let Some(command) = trimmed.strip_prefix("run: ") {
            block = command == "|";
            commands.push(if block { String::new() } else { command.to_owned() });
        } else if block && line.starts_with("          ") {
            let last = commands.last_mut().expect("a block belongs to a step");
            last.push_str(trimmed);
            last.push('\n');
        } else {
            block = false;
        }
    }
    assert_eq!(commands.len(), 3, "{commands:?}");
    for command in commands {
        shell(&command, directory.path());
    }
    assert!(directory.path().join("examples/make/symdpor.sarif").is_file());
}

#[test]
fn man_pages_and_completions_come_from_the_definition() {
    let directory = tool::fresh_directory();
    let ran = process::run(tool::symdpor().args(["man", "pages"]).current_dir(directory.path()), LIMIT);
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
    let page = fs::read_to_string(directory.path().join("pages/symdpor-run.1")).expect("a page");
    assert!(page.contains("checkpoint") && page.contains("sarif"), "{page}");
    for shell in ["bash", "zsh", "fish"] {
        let ran = process::run(tool::symdpor().args(["completions", shell]), LIMIT);
        assert_eq!(ran.code(), Some(0), "{}", ran.describe());
        assert!(ran.output().contains("checkpoint"), "{shell}");
    }
    let script = "source <(symdpor completions bash) && complete -p symdpor";
    assert!(shell(script, directory.path()).output().contains("symdpor"));
}

/// The guide, literally: its program, its file, and its commands, in an empty directory.
#[test]
fn the_guide_works() {
    let directory = tool::fresh_directory();
    let directory = directory.path();
    let guide = fs::read_to_string(tool::root().join("docs/guide.md")).expect("the guide");
    let mut blocks = guide.split("```");
    let mut codes = Vec::new();
    while let (Some(_), Some(block)) = (blocks.next(), blocks.next()) {
        let (language, text) = block.split_once('\n').expect("a block has lines");
        match language {
            "c" => fs::write(directory.join("counter.c"), text).expect("it can be written"),
            "toml" => fs::write(directory.join("symdpor.toml"), text).expect("it can be written"),
            "sh" => {
                for line in text.lines() {
                    let said = shell(&format!("set +e; {line}; echo \"exit $?\""), directory).output();
                    let code = said.lines().last().and_then(|l| l.strip_prefix("exit ")).map(str::to_owned);
                    codes.push(code.expect("an exit code"));
                }
            }
            _ => {}
        }
    }
    // The first run and its replay find the race, nothing else fails.
    let expected: Vec<&str> = "0 1 1 0 0 0 0 0 0 0 0 0 0".split(' ').collect();
    assert_eq!(codes, expected);
    assert!(directory.join("junit.xml").is_file() && directory.join("man1/symdpor.1").is_file());
    assert!(!directory.join("counter.check").exists());
}
