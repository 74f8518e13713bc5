//! docs/functions.md: every function that the runtime takes over, and how it is treated. The table is made from the source, and
//! from what the library really exports; this test fails when it is stale. `SYMDPOR_BLESS=1` writes it anew.
//!
//! How it is read: a file of the runtime that defines exported functions is a group, and the first sentence of its own
//! description says what they are. Functions in `refused!` end the run; those in `library/` are libc's own, with their accesses
//! noted; the others are the runtime's own versions.

mod common;

use common::{process, tool};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Exported, but nobody's function.
const OWN: [&str; 1] = ["__restore_rt"];
/// The registration, and other names for functions that may be linked into the program.
const LINKED_IN: &str = "__symdpor_";
/// What a debugger stops at.
const DEBUGGER: &str = "symdpor_debug_";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Treatment {
    Modelled,
    Noted,
    Refused,
}

impl Treatment {
    const ALL: [Treatment; 3] = [Treatment::Modelled, Treatment::Noted, Treatment::Refused];

    fn title(self) -> &'static str {
        match self {
            Treatment::Modelled => "Replaced",
            Treatment::Noted => "Noted",
            Treatment::Refused => "Refused",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Treatment::Modelled => "The runtime has its own version: it waits, schedules, or answers as the group says.",
            Treatment::Noted => {
                "libc's or libstdc++'s own version does the work. Called from instrumented code, what it reads and writes of the
caller's memory takes part in the search for data races and misuse of the heap, byte by byte."
            }
            Treatment::Refused => "Using one of these ends the run with exit code 4 and its name. Merely linking with it does not.",
        }
    }
}

struct Group {
    file: String,
    about: String,
    functions: BTreeMap<Treatment, BTreeSet<String>>,
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("the runtime's source is there") {
        let path = entry.expect("directories can be listed").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The first sentence of a file's description.
fn about(text: &str) -> String {
    let lines = text.lines().take_while(|l| l.starts_with("//!")).map(|l| l.trim_start_matches("//!").trim());
    let words = lines.take_while(|l| !l.is_empty()).collect::<Vec<_>>().join(" ");
    let end = words.find(". ").map_or(words.len(), |i| i + 1);
    words[..end].to_owned()
}

fn is_name(word: &str) -> bool {
    !word.is_empty()
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !word.as_bytes()[0].is_ascii_digit()
}

/// Words that may be names of functions, each with whether it is in a list of refused ones.
fn words(text: &str) -> Vec<(String, bool)> {
    let (mut found, mut refused) = (Vec::new(), false);
    for line in text.lines().filter(|l| !l.trim_start().starts_with("//")) {
        refused = line.starts_with("refused! {") || refused && line != "}";
        let separated = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        found.extend(separated.filter(|w| is_name(w)).map(|w| (w.to_owned(), refused)));
    }
    found
}

fn exported() -> BTreeSet<String> {
    let library = tool::directory().join("libsymdpor_rt.so");
    let ran = process::run(Command::new("nm").args(["-D", "--defined-only"]).arg(library), Duration::from_secs(60));
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
    let names = ran.output().lines().filter_map(|l| Some(l.split_whitespace().last()?.to_owned())).collect::<Vec<_>>();
    let plain = names.into_iter().map(|n| n.split('@').next().unwrap_or_default().to_owned());
    plain.filter(|n| !OWN.contains(&n.as_str()) && !n.starts_with(DEBUGGER) && !n.starts_with(LINKED_IN)).collect()
}

/// Whether a file defines functions under their own names.
fn exports(text: &str) -> bool {
    ["no_mangle", "export_name", "refused! {", "before! {", "around! {", "members! {"].iter().any(|m| text.contains(m))
}

/// Every exported function in the group of the file that defines it: there it is a definition, elsewhere a mere word.
fn groups(exported: &BTreeSet<String>) -> Vec<Group> {
    let root = tool::root().join("runtime/src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    files.sort();
    let mut groups = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("it was listed");
        if !exports(&text) {
            continue;
        }
        let name = file.strip_prefix(&root).expect("it is below").to_string_lossy().into_owned();
        let mut functions: BTreeMap<Treatment, BTreeSet<String>> = BTreeMap::new();
        for (word, refused) in words(&text).into_iter().filter(|(w, _)| exported.contains(w)) {
            if !refused && !defines(&text, &word) {
                continue;
            }
            let treatment = match () {
                _ if refused => Treatment::Refused,
                _ if name.starts_with("library/") => Treatment::Noted,
                _ => Treatment::Modelled,
            };
            functions.entry(treatment).or_default().insert(word);
        }
        groups.push(Group { file: name, about: about(&text), functions });
    }
    groups
}

/// Whether a file defines a function: as an exported one, or as an entry of one of the lists.
fn defines(text: &str, name: &str) -> bool {
    let marks = [
        format!("fn {name}("),
        format!("    {name}: "),
        format!("    {name} via "),
        format!("    {name} => "),
        format!("export_name = \"{name}\""),
    ];
    let call = format!("    {name}(");
    let passed_on = |line: &str| line.starts_with(&call) && line.contains(") = ");
    marks.iter().any(|m| text.contains(m.as_str())) || text.lines().any(passed_on)
}

fn demangled(names: &BTreeSet<String>) -> Vec<String> {
    let mut command = Command::new("llvm-cxxfilt-22");
    let ran = process::run(command.args(names), Duration::from_secs(60));
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
    let short = |l: &str| {
        let text =
            l.replace("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>", "std::string");
        let text = text.replace("std::basic_ostream<char, std::char_traits<char>>", "std::ostream");
        text.replace("std::basic_istream<char, std::char_traits<char>>", "std::istream")
    };
    ran.output().lines().map(short).collect()
}

/// Names in lines of a readable width.
fn list(names: &BTreeSet<String>) -> String {
    if names.iter().any(|n| n.starts_with("_Z")) {
        let mut lines: Vec<String> = demangled(names).into_iter().map(|n| format!("- `{n}`\n")).collect();
        lines.sort();
        lines.dedup();
        return lines.concat();
    }
    let mut text = String::new();
    let mut width = 0;
    for name in names {
        if width + name.len() + 4 > 120 {
            text.push('\n');
            width = 0;
        }
        text.push_str(&format!("`{name}` "));
        width += name.len() + 3;
    }
    text.push('\n');
    text.replace(" \n", "\n")
}

fn render(groups: &[Group]) -> String {
    let mut text = String::from(
        "# Functions that symdpor takes over\n\nMade from the source by `tests/functions.rs`; not to be edited. What becomes of system calls is in\n[system-calls.md](system-calls.md). `memcpy`, `memmove`, `memset`, `memcmp` and their like are noted too, by the compiler's\npass, wherever the program calls them. Functions that are not here run as they are, and their accesses are not seen.\n",
    );
    for treatment in Treatment::ALL {
        text.push_str(&format!("\n## {}\n\n{}\n", treatment.title(), treatment.meaning()));
        for group in groups {
            if let Some(names) = group.functions.get(&treatment) {
                text.push_str(&format!("\n### {}\n\n{}\n\n{}", group.file, group.about, list(names)));
            }
        }
    }
    text
}

#[test]
fn the_table_of_functions_is_complete_and_not_stale() {
    let exported = exported();
    let groups = groups(&exported);
    let described: BTreeSet<String> = groups.iter().flat_map(|g| g.functions.values().flatten().cloned()).collect();
    let missing: Vec<&String> = exported.difference(&described).collect();
    assert!(missing.is_empty(), "exported, but not found in the source: {missing:?}");
    let path = tool::root().join("docs/functions.md");
    let text = render(&groups);
    if std::env::var_os("SYMDPOR_BLESS").is_some() {
        std::fs::write(&path, &text).expect("the documentation can be written to");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == text, "{} is stale: SYMDPOR_BLESS=1 cargo test --release --test functions", path.display());
}
