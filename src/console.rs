//! Where things are printed. A reader that has gone away (`| head`) is no error.

use std::io::{IsTerminal, Write};
use symdpor_report::{Paint, TextOptions};

/// Where the report goes: standard output, or standard error when that is taken by JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Console {
    Stdout,
    Stderr,
}

impl Console {
    pub fn print(self, text: &str) {
        self.print_bytes(text.as_bytes());
    }

    pub fn print_bytes(self, bytes: &[u8]) {
        let _ = match self {
            Console::Stdout => std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush()),
            Console::Stderr => std::io::stderr().write_all(bytes),
        };
    }

    pub fn paint(self) -> Paint {
        let terminal = match self {
            Console::Stdout => std::io::stdout().is_terminal(),
            Console::Stderr => std::io::stderr().is_terminal(),
        };
        Paint { colour: terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) }
    }

    /// Columns: as the environment says, as the terminal says, or 0 if it is none.
    fn width(self) -> usize {
        let set = std::env::var("COLUMNS").ok().and_then(|v| v.parse().ok());
        let terminal = match self {
            Console::Stdout => console::Term::stdout(),
            Console::Stderr => console::Term::stderr(),
        };
        set.unwrap_or_else(|| terminal.size_checked().map_or(0, |(_, columns)| columns.into()))
    }

    pub fn text_options(self) -> TextOptions {
        let directory = std::env::current_dir().map(|d| d.to_string_lossy().into_owned()).unwrap_or_default();
        TextOptions { paint: self.paint(), directory, all: false, output: true, width: self.width() }
    }
}

/// A message about symdpor or its environment, never about the program.
pub fn complain(message: &dyn std::fmt::Display) {
    Console::Stderr.print(&format!("symdpor: {message}\n"));
}
