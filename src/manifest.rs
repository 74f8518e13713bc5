//! `symdpor.toml`: the programs of a project, and what is expected of them.

use serde::Deserialize;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What can be expected: a verdict, or a kind of error.
const EXPECTED: [&str; 13] = [
    "ok",
    "error",
    "incomplete",
    "unsupported",
    "deadlock",
    "data-race",
    "assertion",
    "crash",
    "memory",
    "lock-misuse",
    "exit-status",
    "livelock",
    "step-limit",
];

#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("{}: {}: name programs on the command line, or write the file (see docs/guide.md)", .0.display(), .1)]
    Unreadable(PathBuf, std::io::Error),
    #[error("{}: {}", .0.display(), .1)]
    Wrong(PathBuf, String),
}

#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Manifest {
    /// For all programs together.
    time_limit: Option<String>,
    #[serde(rename = "program", default)]
    pub programs: Vec<Entry>,
    #[serde(skip)]
    path: Option<PathBuf>,
}

/// One program. The options are those of `symdpor run`.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Entry {
    path: PathBuf,
    name: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    expect: Option<String>,
    reduction: Option<String>,
    symmetry: Option<String>,
    visible: Option<String>,
    races: Option<String>,
    max_executions: Option<u64>,
    time_limit: Option<String>,
    max_steps: Option<u64>,
    seed: Option<u64>,
    #[serde(default)]
    keep_going: bool,
}

impl Manifest {
    pub fn read(path: &Path) -> Result<Manifest, ManifestError> {
        let text = fs::read_to_string(path).map_err(|e| ManifestError::Unreadable(path.into(), e))?;
        let manifest = Manifest::parse(&text).map_err(|e| ManifestError::Wrong(path.into(), e))?;
        Ok(Manifest { path: Some(path.into()), ..manifest })
    }

    fn parse(text: &str) -> Result<Manifest, String> {
        let manifest: Manifest = toml::from_str(text).map_err(|e| e.to_string())?;
        if manifest.programs.is_empty() {
            return Err("there is no program in it: [[program]] with a path".to_owned());
        }
        for entry in &manifest.programs {
            let expected = entry.expected();
            if !EXPECTED.contains(&expected) {
                return Err(format!("{}: expect = \"{expected}\" is none of {}", entry.name(), EXPECTED.join(", ")));
            }
        }
        manifest.time_limit()?;
        Ok(manifest)
    }

    pub fn of_programs(programs: &[PathBuf]) -> Manifest {
        let entry = |path: &PathBuf| Entry { path: path.clone(), ..Entry::default() };
        Manifest { programs: programs.iter().map(entry).collect(), ..Manifest::default() }
    }

    pub fn time_limit(&self) -> Result<Option<Duration>, String> {
        self.time_limit.as_deref().map(crate::flags::parse_duration).transpose().map_err(|e| format!("time-limit: {e}"))
    }

    /// Where its programs are.
    pub fn directory(&self) -> Option<PathBuf> {
        let parent = self.path.as_ref()?.parent()?;
        (!parent.as_os_str().is_empty()).then(|| parent.to_owned())
    }
}

impl Entry {
    pub fn name(&self) -> String {
        let line = || std::iter::once(self.path.display().to_string()).chain(self.args.iter().cloned());
        self.name.clone().unwrap_or_else(|| line().collect::<Vec<_>>().join(" "))
    }

    pub fn expected(&self) -> &str {
        self.expect.as_deref().unwrap_or("ok")
    }

    /// What would be typed after `symdpor run`.
    pub fn run_arguments(&self) -> Vec<OsString> {
        let number = |n: Option<u64>| n.map(|n| n.to_string());
        let options = [
            ("--reduction", self.reduction.clone()),
            ("--symmetry", self.symmetry.clone()),
            ("--visible", self.visible.clone()),
            ("--races", self.races.clone()),
            ("--max-executions", number(self.max_executions)),
            ("--time-limit", self.time_limit.clone()),
            ("--max-steps", number(self.max_steps)),
            ("--seed", number(self.seed)),
        ];
        let mut line: Vec<OsString> = Vec::new();
        for (flag, value) in options {
            line.extend(value.into_iter().map(|v| format!("{flag}={v}").into()));
        }
        if self.keep_going {
            line.push("--keep-going".into());
        }
        line.push("--".into());
        line.push(self.path.clone().into());
        line.extend(self.args.iter().map(Into::into));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_flags() {
        let text = "time-limit = \"5m\"\n[[program]]\npath = \"./a\"\nargs = [\"-n\", \"3\"]\nexpect = \"deadlock\"\n\
                    max-steps = 50\nkeep-going = true\nreduction = \"dpor\"\n[[program]]\npath = \"./b\"\n";
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.time_limit(), Ok(Some(Duration::from_secs(300))));
        let [a, b] = &manifest.programs[..] else { panic!("{manifest:?}") };
        assert_eq!(a.run_arguments(), ["--reduction=dpor", "--max-steps=50", "--keep-going", "--", "./a", "-n", "3"]);
        assert_eq!((a.name().as_str(), a.expected()), ("./a -n 3", "deadlock"));
        assert_eq!((b.run_arguments(), b.expected()), (vec!["--".into(), "./b".into()], "ok"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |text: &str| Manifest::parse(text).unwrap_err();
        assert!(wrong("").contains("no program"));
        assert!(wrong("[[program]]\npath = \"a\"\nexpect = \"fine\"\n").contains("fine"));
        assert!(wrong("[[program]]\npath = \"a\"\ntimelimit = \"3s\"\n").contains("timelimit"));
        assert!(wrong("time-limit = \"3\"\n[[program]]\npath = \"a\"\n").contains("unit"));
        assert!(wrong("[[program]]\nargs = []\n").contains("path"));
    }
}
