//! The program without symdpor: its own instructions in a loop, and its process forked in a loop.

use crate::tools::Result;
use std::path::Path;
use std::process::Command;

/// See `native/driver.c`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Native {
    /// None if the program cannot run without a scheduler.
    pub own_us: Option<f64>,
    pub fork_us: f64,
    pub fork_writing_us: f64,
}

pub fn run(program: &Path) -> Result<Native> {
    let output = Command::new(program).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    parse(&text).ok_or_else(|| format!("{}: {}, {text:?}", program.display(), output.status).into())
}

fn parse(line: &str) -> Option<Native> {
    let numbers: Vec<f64> = line.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>().ok()?;
    let [own, fork, writing] = numbers[..] else { return None };
    Some(Native { own_us: (own > 0.0).then_some(own / 1e3), fork_us: fork / 1e3, fork_writing_us: writing / 1e3 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_blocks_has_no_time_of_its_own() {
        let native = parse("0.000 100000 200000\n").unwrap();
        assert_eq!(native, Native { own_us: None, fork_us: 100.0, fork_writing_us: 200.0 });
        assert_eq!(parse("1500.000 100000 200000").unwrap().own_us, Some(1.5));
        assert_eq!(parse("1500.000 100000"), None);
    }
}
