//! Compiling snippets with and without the pass, and running them alone or under a stand-in for the runtime.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use symdpor_abi::module::function_flags::{RETURNS_ARGUMENT, RETURNS_CONSTANT};

use tempfile::TempDir;

pub const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// libsymdpor.so: in SYMDPOR_LIB_DIR, or where a release build of the workspace leaves it.
pub fn plugin() -> PathBuf {
    let name = "libsymdpor.so";
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from);
    let directory = std::env::var_os("SYMDPOR_LIB_DIR").map_or(target.join("release"), PathBuf::from);
    let path = directory.join(name);
    assert!(path.exists(), "{} is missing: cargo build --release -p symdpor-pass", path.display());
    path
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The stand-in, compiled once for all tests.
fn fake_runtime() -> &'static Path {
    static BUILT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, library) = BUILT.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let source = root().join("tests/pass/fake_runtime.c");
        let library = directory.path().join("fake.so");
        let mut command = Command::new("clang-22");
        command.args(["-O1", "-w", "-shared", "-fPIC", "-o"]).arg(&library).arg(source);
        check(command.output().expect("clang-22 runs"));
        (directory, library)
    });
    library
}

fn check(output: Output) -> Output {
    assert!(output.status.success(), "failed: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// A directory with sources and what is built from them.
pub struct Workshop {
    directory: TempDir,
}

/// What a program printed and how it ended.
#[derive(PartialEq, Eq, Debug)]
pub struct Behaviour {
    pub output: String,
    pub status: Option<i32>,
}

impl Workshop {
    pub fn new(sources: &[(&str, &str)]) -> Workshop {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (name, text) in sources {
            std::fs::write(directory.path().join(name), text).expect("the source is written");
        }
        Workshop { directory }
    }

    /// One file, `a.c` or `a.cpp`.
    pub fn single(name: &str, text: &str) -> Workshop {
        Workshop::new(&[(name, text)])
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn clang(&self, arguments: &[&str]) -> Command {
        let cpp = arguments.iter().any(|a| a.ends_with(".cpp"));
        let mut command = Command::new(if cpp { "clang++-22" } else { "clang-22" });
        command.current_dir(self.directory.path()).args(arguments).arg("-w").env("SYMDPOR_VERIFY", "1");
        command
    }

    pub fn build_plain(&self, arguments: &[&str]) {
        check(self.clang(arguments).output().expect("clang-22 runs"));
    }

    pub fn build(&self, arguments: &[&str]) {
        let mut command = self.clang(arguments);
        command.arg(format!("-fpass-plugin={}", plugin().display()));
        check(command.output().expect("clang-22 runs"));
    }

    fn program(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path(name));
        command.current_dir(self.directory.path()).args(arguments).env("LD_LIBRARY_PATH", self.directory.path());
        command
    }

    pub fn run(&self, name: &str, arguments: &[&str]) -> Behaviour {
        behaviour(&self.program(name, arguments).output().expect("the program starts"))
    }

    /// Runs under the stand-in; the behaviour, and what the hooks reported.
    pub fn observe(&self, name: &str, arguments: &[&str]) -> (Behaviour, Log) {
        let log = self.path("log");
        let mut command = self.program(name, arguments);
        command.env("LD_PRELOAD", fake_runtime()).env("FAKE_LOG", &log);
        let behaviour = behaviour(&command.output().expect("the program starts"));
        let text = std::fs::read(&log).expect("the program is instrumented");
        (behaviour, Log { text: String::from_utf8_lossy(&text).into_owned() })
    }

    /// The program does the same with the pass as without, alone and under the stand-in, and leaves no frame behind.
    pub fn same_behaviour(&self, source: &str, options: &[&str]) {
        let build = |name: &'static str| [&[source, "-o", name][..], options].concat();
        self.build_plain(&build("plain"));
        self.build(&build("instrumented"));
        let expected = self.run("plain", &[]);
        assert_eq!(self.run("instrumented", &[]), expected, "alone, {options:?}");
        let (seen, log) = self.observe("instrumented", &[]);
        assert_eq!(seen, expected, "observed, {options:?}");
        assert_eq!(log.depth_at_end(), 0, "{options:?}");
    }

    /// Address and name of every variable of a program that is not position-independent.
    pub fn variables(&self, program: &str) -> BTreeMap<u64, String> {
        let output = check(Command::new("llvm-nm-22").arg(self.path(program)).output().expect("llvm-nm-22 runs"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let fields = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let variables = fields.filter(|f| f.len() == 3 && matches!(f[1], "b" | "B" | "d" | "D"));
        variables.map(|f| (u64::from_str_radix(f[0], 16).expect("an address"), f[2].to_owned())).collect()
    }

    /// Builds one source at a level with debug info and reports what its hooks saw.
    pub fn log_of(&self, source: &str, options: &[&str], arguments: &[&str]) -> Log {
        self.build(&[&[source, "-o", "program"][..], options].concat());
        self.observe("program", arguments).1
    }
}

fn behaviour(output: &Output) -> Behaviour {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    Behaviour { output: String::from_utf8_lossy(&both).into_owned(), status: output.status.code() }
}

/// What the stand-in wrote.
pub struct Log {
    text: String,
}

/// The tables of a module.
#[derive(Default)]
pub struct Tables {
    pub sites: u32,
    pub digest: Vec<u8>,
    pub strings: Vec<u8>,
    /// Offset of the symbol, and number of slots.
    pub functions: Vec<[u32; 2]>,
}

/// A hook's report.
#[derive(Clone, Debug)]
pub struct Event {
    pub what: String,
    /// Size, shape or order.
    pub number: u64,
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub function: String,
    pub name: String,
    pub inlined: String,
    pub stack: String,
    pub slots: Vec<u64>,
    pub site: u32,
    pub address: u64,
}

impl Log {
    fn lines(&self) -> impl Iterator<Item = Vec<&str>> {
        self.text.lines().map(|line| line.split('\t').collect())
    }

    pub fn events(&self) -> Vec<Event> {
        self.lines().filter(|f| f.len() == 13).map(|f| event(&f)).collect()
    }

    /// Events of one kind on variables of one name.
    pub fn on(&self, what: &str, name: &str) -> Vec<Event> {
        self.events().into_iter().filter(|e| e.what == what && e.name == name).collect()
    }

    pub fn of_kind(&self, what: &str) -> Vec<Event> {
        self.events().into_iter().filter(|e| e.what == what).collect()
    }

    /// Shape and success of each finished atomic access.
    pub fn outcomes(&self) -> Vec<(u64, u64)> {
        self.lines().filter(|f| f[0] == "after").map(|f| (number(f[1]), number(f[2]))).collect()
    }

    pub fn modules(&self) -> usize {
        self.lines().filter(|f| f[0] == "module").count()
    }

    pub fn depth_at_end(&self) -> u64 {
        let end = self.lines().find(|f| f[0] == "end").unwrap_or_else(|| panic!("no end in\n{}", self.text));
        number(end[1])
    }

    /// Flags by name of function, but for those that say what it returns.
    pub fn flags(&self, function: &str) -> Option<u32> {
        self.all_flags(function).map(|flags| flags & !(RETURNS_CONSTANT | RETURNS_ARGUMENT))
    }

    /// Those that do.
    pub fn returns(&self, function: &str) -> Option<u32> {
        self.all_flags(function).map(|flags| flags & (RETURNS_CONSTANT | RETURNS_ARGUMENT))
    }

    fn all_flags(&self, function: &str) -> Option<u32> {
        let found = self.lines().find(|f| f[0] == "function" && f[2] == function)?;
        Some(number(found[4]) as u32)
    }

    pub fn functions(&self) -> Vec<(String, String)> {
        self.lines().filter(|f| f[0] == "function").map(|f| (f[1].to_owned(), f[2].to_owned())).collect()
    }

    pub fn digests(&self) -> Vec<Vec<u8>> {
        self.lines().filter(|f| f[0] == "digest").map(|f| unhex(f[1])).collect()
    }

    /// What the modules say of themselves, in the order in which they registered.
    pub fn tables(&self) -> Vec<Tables> {
        let mut all: Vec<Tables> = Vec::new();
        for fields in self.lines() {
            match (fields[0], all.last_mut()) {
                ("module", _) => all.push(Tables { sites: number(fields[1]) as u32, ..Tables::default() }),
                ("digest", Some(tables)) => tables.digest = unhex(fields[1]),
                ("strings", Some(tables)) => tables.strings = unhex(fields[1]),
                ("entry", Some(tables)) => tables.functions.push([number(fields[1]) as u32, number(fields[2]) as u32]),
                _ => {}
            }
        }
        all
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hexadecimal")).collect()
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is a number"))
}

fn event(fields: &[&str]) -> Event {
    let slots = fields[10].split(',').filter(|s| !s.is_empty());
    Event {
        what: fields[0].to_owned(),
        number: number(fields[1]),
        file: fields[2].to_owned(),
        line: number(fields[3]) as u32,
        column: number(fields[4]) as u32,
        function: fields[5].to_owned(),
        name: fields[6].to_owned(),
        inlined: fields[8].to_owned(),
        stack: fields[9].to_owned(),
        slots: slots.map(|s| u64::from_str_radix(s, 16).unwrap()).collect(),
        site: number(fields[11]) as u32,
        address: u64::from_str_radix(fields[12], 16).expect("an address"),
    }
}
