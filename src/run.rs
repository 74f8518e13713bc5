//! `symdpor run`.

use crate::checkpoint::{Checkpoint, CheckpointError, Input, Tool};
use crate::console::{Console, complain};
use crate::exit::Exit;
use crate::flags::{Reduction, RunFlags, Symmetry};
use crate::forecast::{Range, Seen};
use crate::interrupt::Interrupt;
use crate::keeper::{Keeper, standard_input};
use crate::notes::{self, notes};
use crate::options::{JsonTarget, RunOptions, channel_bits};
use crate::outputs::{self, check_writable};
use crate::progress::Progress;
use crate::search::{FirstOutput, Known, Limits, Listener, Position, Search, SearchError, Stop};
use crate::session::Session;
use crate::simplify::Simplifier;
use crate::subject::Subject;
use crate::traces;
use std::error::Error;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use symdpor_abi::channel::options as bits;
use symdpor_explore::{AllInterleavings, Dpor, Resume, Rule, SourceSets};
use symdpor_report::{Counts, ErrorEntry, Estimate, Summary, SymmetryCounts, TextOptions, Verdict, json, text};
use symdpor_trace::failure::OutputChunk;
use symdpor_trace::file::Program;
use symdpor_trace::{FailureKind, TraceFile};

/// `symdpor run` as typed: from the beginning, or from a checkpoint.
pub fn command(flags: RunFlags) -> Result<Exit, Box<dyn Error>> {
    let Some(path) = flags.resume.clone() else { return run(&RunOptions::resolve(flags)?) };
    let checkpoint = Checkpoint::read(&path)?;
    let options = RunOptions::resume(flags, &checkpoint)?;
    let directory = Path::new(&checkpoint.program.directory);
    if !directory.is_dir() {
        return Err(CheckpointError::NoDirectory(path, directory.into()).into());
    }
    let subject = Subject::again(&checkpoint.program)?;
    checkpoint.check(&path, &Tool::this(&subject.launch.runtime)?, &subject.program, &standard_input()?)?;
    if let Input::Read(log) = &checkpoint.input {
        symdpor_worker::input::restore(log)?;
    }
    finish(&search(&options, subject, Some((&path, checkpoint)), None)?, &options)
}

fn run(options: &RunOptions) -> Result<Exit, Box<dyn Error>> {
    finish(&search(options, Subject::new(&options.command)?, None, None)?, options)
}

/// The same without a word.
pub fn summary(options: &RunOptions, interrupt: Interrupt) -> Result<Summary, Box<dyn Error>> {
    search(options, Subject::new(&options.command)?, None, Some(interrupt))
}

fn search(
    options: &RunOptions,
    subject: Subject,
    from: Option<(&Path, Checkpoint)>,
    silent: Option<Interrupt>,
) -> Result<Summary, Box<dyn Error>> {
    let is_silent = silent.is_some();
    let interrupt = silent.map_or_else(Interrupt::install, Ok)?;
    options.outputs.check()?;
    if let Some(JsonTarget::File(path)) = &options.json {
        check_writable(path)?;
    }
    let keeper = keeper(options, &subject, from.as_ref().map(|f| f.0))?;
    let settings = subject.settings(&options.execution, options.step_timeout);
    let mut session =
        Session::new(settings, subject.globals, channel_bits(&options.execution) | symmetry_bits(options));
    let mut reporter = Reporter::new(options, interrupt);
    reporter.is_silent = is_silent;
    reporter.keeper = keeper;
    let position = from.map(|(_, checkpoint)| {
        reporter.errors = checkpoint.errors.into_iter().map(Into::into).collect();
        checkpoint.position
    });
    let checks = options.symmetry == Symmetry::Check;
    let limits = Limits {
        max_executions: options.max_executions,
        time: options.time_limit,
        keep_going: options.keep_going || checks,
    };
    let mut search = Search::new(&mut session, &subject.program, options.execution, limits, &mut reporter);
    search.instrumented = subject.instrumented;
    search.first_output = match (options.shows_output(), subject.instrumented) {
        (true, true) => FirstOutput::Live,
        (true, false) => FirstOutput::Afterwards,
        (false, _) => FirstOutput::Kept,
    };
    search.simplifier = Some(Simplifier::default());
    let mut stop = match &position {
        None => search.run_kept(explorer(options)),
        Some(position) => search.resume(explorer(options), position),
    };
    let forecast = search.forecast.range(search.counts.executions + search.counts.blocked);
    let (mut counts, symmetry, time) = (search.counts, search.symmetry, search.time());
    if checks && matches!(stop, Ok(Stop::Complete)) {
        let known = search.known();
        (stop, counts) = without_symmetry(options, &mut session, &subject.program, limits, &mut reporter, known);
    }
    reporter.progress.clear();
    let stop = stop?;
    reporter.put_aside(&stop);
    let mut summary = reporter.summary(stop, counts, time);
    summary.symmetry = symmetry;
    let unknown = summary.complete || summary.verdict == Verdict::Unsupported;
    summary.estimate = forecast.filter(|_| !unknown).map(|Range { likely, low, high }| Estimate { likely, low, high });
    summary.notes = notes(&session.sites(), session.globals(), session.restore_method(), &reporter.text.directory);
    if summary.errors.iter().any(|e| e.kind == FailureKind::DataRace) {
        summary.notes.extend(notes::about_libraries(&session.unseen_libraries()));
    }
    summary.notes.extend(notes::about_peers(session.peers()));
    summary.notes.extend(reporter.lost.take());
    session.quit();
    Ok(summary)
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

/// A file that is there may be hours of work: it is replaced only by what continues it.
fn keeper(options: &RunOptions, subject: &Subject, from: Option<&Path>) -> Result<Option<Keeper>, Box<dyn Error>> {
    let Some(path) = &options.checkpoint else { return Ok(None) };
    let same = from.is_some_and(|from| from.canonicalize().ok() == path.canonicalize().ok());
    if path.exists() && !same {
        let path = path.display();
        return Err(format!("{path} exists: go on with it (--resume {path}), or remove it to start anew").into());
    }
    let tool = Tool::this(&subject.launch.runtime)?;
    Ok(Some(Keeper::new(path, tool, subject.program.clone(), options.search())?))
}

fn explorer(options: &RunOptions) -> Box<dyn Resume> {
    let rule = Rule::SOUND;
    match options.reduction {
        Reduction::Dpor if options.symmetry != Symmetry::Off => Box::new(Dpor::with_symmetry(rule).timed(nanos)),
        Reduction::Source if options.symmetry != Symmetry::Off => {
            Box::new(SourceSets::with_symmetry(rule).timed(nanos))
        }
        reduction => plain_explorer(reduction),
    }
}

fn plain_explorer(reduction: Reduction) -> Box<dyn Resume> {
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

fn console(options: &RunOptions) -> Console {
    if options.json == Some(JsonTarget::Stdout) { Console::Stderr } else { Console::Stdout }
}

/// The last line of the report, the files, and the exit code.
fn finish(summary: &Summary, options: &RunOptions) -> Result<Exit, Box<dyn Error>> {
    let console = console(options);
    if !options.quiet {
        console.print(&text::notes(&summary.notes, console.paint()));
    }
    console.print(&text::verdict(summary, console.paint()));
    match &options.json {
        None => {}
        Some(JsonTarget::Stdout) => Console::Stdout.print(&json::render(summary)),
        Some(JsonTarget::File(path)) => {
            outputs::write(path, &json::render(summary))?;
        }
    }
    let words: Vec<_> = options.command.iter().map(|w| w.to_string_lossy()).collect();
    let job = outputs::job(&words.join(" "), Verdict::Ok.name(), Ok(summary.clone()));
    options.outputs.write(&[job], &std::env::current_dir()?)?;
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
    keeper: Option<Keeper>,
    /// Nothing is printed: others do.
    is_silent: bool,
    /// The search is to be gone on with: the last checkpoint could be written.
    is_kept: bool,
}

impl<'a> Reporter<'a> {
    fn new(options: &'a RunOptions, interrupt: Interrupt) -> Reporter<'a> {
        let console = console(options);
        let text = console.text_options();
        Reporter {
            options,
            console,
            text,
            progress: Progress::new(!options.quiet),
            interrupt,
            errors: vec![],
            lost: None,
            keeper: None,
            is_silent: false,
            is_kept: false,
        }
    }

    /// What becomes of the checkpoint now that the search has ended.
    fn put_aside(&self, stop: &Stop) {
        let Some(keeper) = &self.keeper else { return };
        match stop {
            Stop::Complete | Stop::FirstError => keeper.remove(),
            Stop::Limit(_) if keeper.is_behind() => {
                let path = keeper.path().display();
                complain(&format!(
                    "{path}: an older checkpoint is there; what has been done since then will be done again"
                ));
            }
            Stop::Limit(_) if self.is_kept && !self.options.quiet => {
                let path = keeper.path().display();
                self.console.print(&format!("Go on: symdpor run --resume {path} --checkpoint {path}\n"));
            }
            Stop::Limit(_) | Stop::Unsupported(_) => {}
        }
    }

    fn summary(&self, stop: Stop, counts: Counts, time: Duration) -> Summary {
        let complete = matches!(stop, Stop::Complete);
        let (verdict, reason) = match stop {
            Stop::Complete | Stop::FirstError => (Verdict::Ok, None),
            Stop::Limit(limit) => (Verdict::Incomplete, Some(limit)),
            Stop::Unsupported(what) => {
                if !self.is_silent {
                    self.console.print(&text::unsupported(what.stack.as_ref(), &self.text));
                }
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
            estimate: None,
        }
    }
}

impl Listener for Reporter<'_> {
    fn tick(&mut self, seen: &mut Seen<'_>) {
        self.progress.tick(seen, self.errors.len());
    }

    fn failure(&mut self, file: TraceFile, first: bool) {
        let written = traces::write(&self.options.trace_dir, &file);
        let shown_already = first && self.options.shows_output();
        let options = TextOptions { output: !shown_already, ..self.text.clone() };
        let report = if self.is_silent { String::new() } else { text::failure(&file, &options) };
        self.progress.suspend(|| {
            self.console.print(&report);
            match &written {
                Ok(_) if self.is_silent => {}
                Ok(path) => self.console.print(&format!("\nReplay: symdpor replay {}\n\n", traces::quoted(path))),
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

    fn keep(&mut self, last: bool, position: &dyn Fn() -> Position) {
        if let Some(keeper) = self.keeper.as_mut().filter(|k| last || k.is_due()) {
            let written = keeper.write(self.errors.iter().map(Into::into).collect(), position());
            self.is_kept = last && written;
        }
    }
}
