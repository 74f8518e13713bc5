//! `symdpor replay` and `symdpor show`.

use crate::console::{Console, complain};
use crate::exit::Exit;
use crate::flags::{ReplayFlags, ShowFlags};
use crate::forecast::Seen;
use crate::gdb;
use crate::interrupt::Interrupt;
use crate::options::{channel_bits, step_timeout};
use crate::search::{Limits, Listener, Search, Stop};
use crate::session::Session;
use crate::subject::Subject;
use crate::traces;
use std::error::Error;
use symdpor_abi::channel::options::LIVELOCK;
use symdpor_explore::Replay;
use symdpor_report::{html, text};
use symdpor_trace::TraceFile;
use symdpor_trace::failure::OutputChunk;

pub fn show(flags: &ShowFlags) -> Result<Exit, Box<dyn Error>> {
    let path = flags.trace.clone().map_or_else(traces::newest, Ok)?;
    let file = traces::read(&path)?;
    if let Some(page) = &flags.html {
        let directory = Console::Stdout.text_options().directory;
        std::fs::write(page, html::page(&file, &directory))
            .map_err(|e| format!("{}: cannot be written: {e}", page.display()))?;
        return Ok(Exit::Ok);
    }
    let mut options = Console::Stdout.text_options();
    options.all = flags.all;
    Console::Stdout.print(&text::failure(&file, &options));
    Ok(Exit::Ok)
}

pub fn replay(flags: &ReplayFlags) -> Result<Exit, Box<dyn Error>> {
    let file = traces::read(&flags.trace)?;
    let subject = Subject::again(&file.program)?;
    if (subject.program.length, subject.program.checksum) != (file.program.length, file.program.checksum) {
        complain(&"warning: the program has been changed since the trace was made");
    }
    let choices = match &file.original {
        Some(original) if flags.original => original.clone(),
        _ => file.choices.clone(),
    };
    if flags.gdb {
        return gdb::replay(&flags.trace, &file, choices, &flags.at, &subject);
    }
    let mut session = Session::new(
        subject.settings(&file.options, step_timeout()),
        subject.globals,
        channel_bits(&file.options) | LIVELOCK,
    );
    let mut found = Keep { file: None, interrupt: Interrupt::install()? };
    let mut search = Search::new(&mut session, &file.program, file.options, Limits::default(), &mut found);
    let stop = search.run(Replay::new(choices))?;
    session.quit();
    Ok(judge(&file, found.file, stop))
}

/// The same error again, or what came instead of it.
fn judge(recorded: &TraceFile, found: Option<TraceFile>, stop: Stop) -> Exit {
    let console = Console::Stdout;
    let options = console.text_options();
    if let Some(found) = found {
        console.print(&text::failure(&found, &options));
        if found.failure.signature() == recorded.failure.signature() {
            return Exit::Error;
        }
        console
            .print(&format!("\nThis is another error than the one recorded: {}\n", text::headline(&recorded.failure)));
        return Exit::NotReproduced;
    }
    let instead = match stop {
        Stop::Unsupported(what) => {
            console.print(&text::unsupported(what.stack.as_ref(), &options));
            what.message
        }
        Stop::Limit(limit) => limit,
        Stop::Complete | Stop::FirstError => "the execution ended without an error".to_owned(),
    };
    console.print(&format!("not reproduced: {instead}\n"));
    Exit::NotReproduced
}

/// Keeps the failure instead of printing it.
struct Keep {
    file: Option<TraceFile>,
    interrupt: Interrupt,
}

impl Listener for Keep {
    fn tick(&mut self, _: &mut Seen<'_>) {}

    fn failure(&mut self, file: TraceFile, _: bool) {
        self.file = Some(file);
    }

    fn output(&mut self, _: &[OutputChunk]) {}

    fn interrupted(&self) -> bool {
        self.interrupt.is_set()
    }
}
