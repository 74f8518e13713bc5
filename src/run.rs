//! `symdpor run`.

use crate::console::{Console, complain};
use crate::exit::Exit;
use crate::flags::{Reduction, Symmetry};
use crate::interrupt::Interrupt;
use crate::notes::notes;
use crate::options::{JsonTarget, RunOptions, channel_bits};
use crate::progress::Progress;
use crate::search::{FirstOutput, Known, Limits, Listener, Search, SearchError, Stop};
use crate::session::Session;
use crate::simplify::Simplifier;
use crate::subject::Subject;
use crate::traces;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use symdpor_abi::channel::options as bits;
use symdpor_explore::{AllInterleavings, Dpor, Explorer, Rule, SourceSets};
use symdpor_report::{Counts, ErrorEntry, Summary, SymmetryCounts, TextOptions, Verdict, json, text};
use symdpor_trace::failure::OutputChunk;
use symdpor_trace::file::Program;
use symdpor_trace::{FailureKind, TraceFile};

pub fn run(options: &RunOptions) -> Result<Exit, Box<dyn Error>> {
    let interrupt = Interrupt::install()?;
    if let Some(JsonTarget::File(path)) = &options.json {
        check_writable(path)?;
    }
    let subject = Subject::new(&options.command)?;
    let settings = subject.settings(&options.execution, options.step_timeout);
    let mut session =
        Session::new(settings, subject.globals, channel_bits(&options.execution) | symmetry_bits(options));
    let mut reporter = Reporter::new(options, interrupt);
    let checks = options.symmetry == Symmetry::Check;
    let limits = Limits {
        max_executions: options.max_executions,
        time: options.time_limit,
        keep_going: options.keep_going || checks,
    };
    let mut search = Search::new(&mut session, &subject.program, options.execution, limits, &mut reporter);
    search.first_output = match (options.shows_output(), subject.instrumented) {
        (true, true) => FirstOutput::Live,
        (true, false) => FirstOutput::Afterwards,
        (false, _) => FirstOutput::Kept,
    };
    search.simplifier = Some(Simplifier::default());
    let mut stop = search.run(explorer(options));
    let (mut counts, symmetry, time) = (search.counts, search.symmetry, search.started.elapsed());
    if checks && matches!(stop, Ok(Stop::Complete)) {
        let known = search.known();
        (stop, counts) = without_symmetry(options, &mut session, &subject.program, limits, &mut reporter, known);
    }
    reporter.progress.clear();
    let mut summary = reporter.summary(stop?, counts, time);
    summary.symmetry = symmetry;
    summary.notes = notes(&session.sites(), session.restore_method(), &reporter.text.directory);
    summary.notes.extend(reporter.lost.take());
    session.quit();
    finish(&summary, options, reporter.console)
}

/// Explores what symmetry left out, too: what is found then and was not found before has been lost.
fn without_symmetry(
    options: &RunOptions,
    session: &mut Session,
    program: &Program,
    limits: Limits,
    reporter: &mut Reporter<'_>,
    known: Known,
) -> (Result<Stop, SearchError>, Counts) {
    let before: Vec<FailureKind> = reporter.errors.iter().map(|e| e.kind).collect();
    let mut search = Search::new(session, program, options.execution, limits, reporter);
    search.expect(known);
    search.simplifier = Some(Simplifier::default());
    let stop = search.run(plain_explorer(options.reduction));
    let counts = search.counts;
    // Where there are races, not every one of them is found even without symmetry.
    let races = before.contains(&FailureKind::DataRace);
    let new = reporter.errors[before.len()..].iter();
    let lost = new.filter(|e| !(races && e.kind == FailureKind::DataRace)).count();
    if lost > 0 {
        reporter.lost = Some(format!(
            "symmetry lost {lost} of the errors above: a fault of symdpor, please report it; use --symmetry off meanwhile"
        ));
    }
    (stop, counts)
}

fn symmetry_bits(options: &RunOptions) -> u32 {
    if options.symmetry == Symmetry::Off { 0 } else { bits::LOCALS }
}

fn explorer(options: &RunOptions) -> Box<dyn Explorer> {
    let rule = Rule::SOUND;
    match options.reduction {
        Reduction::Dpor if options.symmetry != Symmetry::Off => Box::new(Dpor::with_symmetry(rule).timed(nanos)),
        Reduction::Source if options.symmetry != Symmetry::Off => {
            Box::new(SourceSets::with_symmetry(rule).timed(nanos))
        }
        reduction => plain_explorer(reduction),
    }
}

fn plain_explorer(reduction: Reduction) -> Box<dyn Explorer> {
    match reduction {
        Reduction::None => Box::new(AllInterleavings::new()),
        Reduction::Dpor => Box::new(Dpor::new()),
        Reduction::Source => Box::new(SourceSets::new()),
    }
}

fn nanos() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Better now than after an hour.
fn check_writable(path: &Path) -> Result<(), Box<dyn Error>> {
    let open = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
    open.map(|_| ()).map_err(|e| format!("{}: cannot be written: {e}", path.display()).into())
}

/// The last line of the report, the JSON, and the exit code.
fn finish(summary: &Summary, options: &RunOptions, console: Console) -> Result<Exit, Box<dyn Error>> {
    if !options.quiet {
        console.print(&text::notes(&summary.notes, console.paint()));
    }
    console.print(&text::verdict(summary, console.paint()));
    match &options.json {
        None => {}
        Some(JsonTarget::Stdout) => Console::Stdout.print(&json::render(summary)),
        Some(JsonTarget::File(path)) => {
            fs::write(path, json::render(summary))
                .map_err(|e| format!("{}: cannot be written: {e}", path.display()))?;
        }
    }
    Ok(match summary.verdict {
        Verdict::Ok => Exit::Ok,
        Verdict::Error => Exit::Error,
        Verdict::Incomplete => Exit::Incomplete,
        Verdict::Unsupported => Exit::Unsupported,
    })
}

/// Prints failures as they are found and remembers them for the summary.
struct Reporter<'a> {
    options: &'a RunOptions,
    console: Console,
    text: TextOptions,
    progress: Progress,
    interrupt: Interrupt,
    errors: Vec<ErrorEntry>,
    /// What to say of errors that symmetry lost.
    lost: Option<String>,
}

impl<'a> Reporter<'a> {
    fn new(options: &'a RunOptions, interrupt: Interrupt) -> Reporter<'a> {
        let to_stdout = options.json != Some(JsonTarget::Stdout);
        let console = if to_stdout { Console::Stdout } else { Console::Stderr };
        let text = console.text_options();
        Reporter {
            options,
            console,
            text,
            progress: Progress::new(!options.quiet),
            interrupt,
            errors: vec![],
            lost: None,
        }
    }

    fn summary(&self, stop: Stop, counts: Counts, time: Duration) -> Summary {
        let complete = matches!(stop, Stop::Complete);
        let (verdict, reason) = match stop {
            Stop::Complete | Stop::FirstError => (Verdict::Ok, None),
            Stop::Limit(limit) => (Verdict::Incomplete, Some(limit)),
            Stop::Unsupported(what) => {
                self.console.print(&text::unsupported(what.stack.as_ref(), &self.text));
                (Verdict::Unsupported, Some(what.message))
            }
        };
        // What was found stands, whatever ended the search.
        let verdict = if self.errors.is_empty() { verdict } else { Verdict::Error };
        let (errors, options) = (self.errors.clone(), self.options.echo());
        Summary {
            verdict,
            complete,
            reason,
            errors,
            notes: vec![],
            counts,
            time,
            options,
            symmetry: SymmetryCounts::default(),
        }
    }
}

impl Listener for Reporter<'_> {
    fn tick(&mut self, counts: &Counts, depth: usize) {
        self.progress.tick(counts, depth);
    }

    fn failure(&mut self, file: TraceFile, first: bool) {
        let written = traces::write(&self.options.trace_dir, &file);
        let shown_already = first && self.options.shows_output();
        let options = TextOptions { output: !shown_already, ..self.text.clone() };
        let report = text::failure(&file, &options);
        self.progress.suspend(|| {
            self.console.print(&report);
            match &written {
                Ok(path) => self.console.print(&format!("\nReplay: symdpor replay {}\n\n", path.display())),
                Err(e) => {
                    complain(&format!("the trace could not be written to {}: {e}", self.options.trace_dir.display()))
                }
            }
        });
        self.errors.push(ErrorEntry {
            kind: file.failure.kind,
            message: text::headline_in(&file),
            location: file.failure.location,
            trace: written.ok(),
        });
    }

    fn output(&mut self, chunks: &[OutputChunk]) {
        for chunk in chunks {
            let console = if chunk.descriptor == 2 { Console::Stderr } else { Console::Stdout };
            console.print_bytes(&chunk.bytes);
        }
    }

    fn interrupted(&self) -> bool {
        self.interrupt.is_set()
    }
}
