//! Fixtures: programs whose header comment says what the tool must find in them.
//!
//! A header is the lines that begin with `//@ `, together a TOML document; see [`Header`]. Files without one (headers,
//! second translation units) are not fixtures.

use super::tool;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const MARK: &str = "//@ ";

#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// `ok`, or the kind of error.
    pub verdict: String,
    /// Where the error is; several where either access of a race, or either of two threads, may be named.
    #[serde(default)]
    pub line: Lines,
    /// The file of `line`, if it is not the fixture itself.
    pub file: Option<String>,
    /// Part of the error's message.
    pub message: Option<String>,
    /// How many executions each mode needs. Modes that are not named are not feasible.
    #[serde(default)]
    pub executions: BTreeMap<String, u64>,
    /// What theory says about `source`: the number of Mazurkiewicz traces.
    pub classes: Option<u64>,
    /// Why the number of executions differs between levels of optimisation; then `executions` holds for -O0 only.
    pub counts_differ: Option<String>,
    /// Another fixture, which differs in the order of thread creation only.
    pub same_counts_as: Option<String>,
    /// For the compiler.
    #[serde(default)]
    pub flags: Vec<String>,
    /// For the linker, after the sources.
    #[serde(default)]
    pub link: Vec<String>,
    /// More files of the program, relative to the fixture.
    #[serde(default)]
    pub sources: Vec<PathBuf>,
    /// Files of a shared library that the program is linked with.
    #[serde(default)]
    pub library: Vec<PathBuf>,
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Options of `symdpor run`.
    #[serde(default)]
    pub options: Vec<String>,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(untagged)]
pub enum Lines {
    #[default]
    Any,
    One(u32),
    Several(Vec<u32>),
}

impl Lines {
    pub fn allow(&self, line: u32) -> bool {
        match self {
            Lines::Any => true,
            Lines::One(only) => *only == line,
            Lines::Several(lines) => lines.contains(&line),
        }
    }

    pub fn is_any(&self) -> bool {
        matches!(self, Lines::Any)
    }
}

#[derive(Clone, Debug)]
pub struct Fixture {
    /// `topic/name.c`.
    pub name: String,
    pub path: PathBuf,
    pub header: Header,
}

impl Fixture {
    pub fn is_cxx(&self) -> bool {
        self.name.ends_with(".cpp")
    }

    pub fn directory(&self) -> &Path {
        self.path.parent().expect("a fixture is in a directory")
    }

    pub fn is_ok(&self) -> bool {
        self.header.verdict == "ok"
    }

    /// The file name that a location in this fixture ends with.
    pub fn error_file(&self) -> &str {
        let own = || self.path.file_name().and_then(|n| n.to_str()).expect("names of fixtures are plain");
        self.header.file.as_deref().unwrap_or_else(own)
    }
}

/// All fixtures, by name.
pub fn all() -> Vec<Fixture> {
    let root = tool::root().join("fixtures");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let fixtures: Vec<Fixture> = files.iter().filter_map(|f| read(&root, f)).collect();
    assert!(fixtures.len() >= 60, "only {} fixtures in {}", fixtures.len(), root.display());
    fixtures
}

/// The fixture of that name.
pub fn named(name: &str) -> Fixture {
    let root = tool::root().join("fixtures");
    read(&root, &root.join(name)).unwrap_or_else(|| panic!("{name} has no header"))
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    for entry in entries {
        let path = entry.expect("directories can be listed").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "c" || e == "cpp") {
            files.push(path);
        }
    }
}

fn read(root: &Path, path: &Path) -> Option<Fixture> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix(MARK)).collect();
    if lines.is_empty() {
        return None;
    }
    let header = toml::from_str(&lines.join("\n")).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let name = path.strip_prefix(root).expect("it was found there").to_str().expect("names are plain").to_owned();
    Some(Fixture { name, path: path.to_owned(), header })
}

/// Puts measured counts into the header's `executions` line.
pub fn bless(fixture: &Fixture, counts: &BTreeMap<String, u64>) {
    let text = std::fs::read_to_string(&fixture.path).expect("it was read before");
    let order = ["none", "dpor", "source", "twins", "symmetry"];
    let entries = order.iter().filter_map(|m| counts.get(*m).map(|n| format!("{m} = {n}")));
    let line = format!("{MARK}executions = {{ {} }}", entries.collect::<Vec<_>>().join(", "));
    let is_counts = |l: &str| l.starts_with(&format!("{MARK}executions ="));
    assert!(text.lines().any(is_counts), "{}: add `{MARK}executions = {{}}`", fixture.name);
    let lines = text.lines().map(|l| if is_counts(l) { line.as_str() } else { l });
    let blessed = lines.flat_map(|l| [l, "\n"]).collect::<String>();
    std::fs::write(&fixture.path, blessed).unwrap_or_else(|e| panic!("{}: {e}", fixture.path.display()));
}
