//! The command line tool: flags, exit codes, wiring. The only part of symdpor that prints.
#![forbid(unsafe_code)]

mod checkpoint;
mod compile;
mod console;
mod describe;
mod divergence;
mod exit;
mod explain;
mod failing;
mod flags;
mod forecast;
mod gdb;
mod interrupt;
mod keeper;
mod manifest;
mod manual;
mod message;
mod naming;
mod notes;
mod options;
mod outputs;
mod progress;
mod replay;
mod run;
mod search;
mod session;
mod simplify;
mod source;
mod subject;
mod suite;
mod traces;

use clap::Parser;
use compile::Language;
use exit::Exit;
use flags::{Cli, Command};
use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let exit = dispatch().unwrap_or_else(|error| {
        console::complain(&error);
        Exit::Usage
    });
    exit.into()
}

fn dispatch() -> Result<Exit, Box<dyn Error>> {
    // Everything after `cc` is the compiler's, be it `--help`: clap must not see it.
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match arguments.get(1).and_then(|a| a.to_str()) {
        Some("cc") => match compile::compile(Language::C, &arguments[2..])? {},
        Some("c++") => match compile::compile(Language::Cxx, &arguments[2..])? {},
        _ => {}
    }
    match Cli::parse_from(arguments).command {
        Command::Run(flags) => run::command(flags),
        Command::Test(flags) => suite::test(&flags),
        Command::Completions(flags) => Ok(manual::completions(&flags)),
        Command::Man(flags) => manual::man(&flags),
        Command::Replay(flags) => replay::replay(&flags),
        Command::ExplainSymmetry(flags) => explain::explain(&flags),
        Command::Show(flags) => replay::show(&flags),
        Command::Cc(flags) => match compile::compile(Language::C, &flags.arguments)? {},
        Command::Cxx(flags) => match compile::compile(Language::Cxx, &flags.arguments)? {},
    }
}
