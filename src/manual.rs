//! Man pages and shell completions, from the definition of the command line.

use crate::console::Console;
use crate::exit::Exit;
use crate::flags::{Cli, CompletionsFlags, ManFlags};
use clap::CommandFactory;
use std::error::Error;
use std::io;

pub fn completions(flags: &CompletionsFlags) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut Cli::command(), "symdpor", &mut script);
    Console::Stdout.print_bytes(&script);
    Exit::Ok
}

/// symdpor.1 and a page for each command.
pub fn man(flags: &ManFlags) -> Result<Exit, Box<dyn Error>> {
    let said = |e: io::Error| format!("{}: {e}", flags.directory.display());
    std::fs::create_dir_all(&flags.directory).map_err(said)?;
    clap_mangen::generate_to(Cli::command(), &flags.directory).map_err(said)?;
    Ok(Exit::Ok)
}
