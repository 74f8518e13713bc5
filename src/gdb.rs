//! `symdpor replay --gdb`.

use crate::describe::failure_kind;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::options::{channel_bits, step_timeout};
use crate::subject::Subject;
use std::error::Error;
use std::path::{Path, PathBuf};
use symdpor_report::gdb::script;
use symdpor_trace::{Choice, Plan, TraceFile};
use symdpor_worker::{Request, debug};

/// Another gdb than the first one in PATH.
const ENV_GDB: &str = "SYMDPOR_GDB";

pub fn replay(
    trace: &Path,
    file: &TraceFile,
    choices: Vec<Choice>,
    at: &[usize],
    subject: &Subject,
) -> Result<Exit, Box<dyn Error>> {
    let gdb = find().ok_or("gdb is not installed (or set SYMDPOR_GDB to where it is)")?;
    // An interrupt is for gdb.
    let _interrupt = Interrupt::install()?;
    // The steps of the trace are those of the schedule that it shows.
    let steps = if choices == file.choices { Some(file) } else { None };
    let path = script_path(trace)?;
    std::fs::write(&path, script(file, steps.is_some(), at)).map_err(|e| format!("{}: {e}", path.display()))?;
    let plan = Plan { choices, ..Plan::default() };
    let request = Request { plan: &plan, options: channel_bits(&file.options), watch: 0 };
    let settings = subject.settings(&file.options, step_timeout());
    let answer = debug::run(&settings, request, &gdb, &path)?;
    Ok(match answer {
        Some((outcome, header)) if failure_kind(outcome, &header) == Some(file.failure.kind) => Exit::Error,
        Some(_) => Exit::NotReproduced,
        // gdb was left before the end.
        None => Exit::Ok,
    })
}

fn find() -> Option<PathBuf> {
    if let Some(set) = std::env::var_os(ENV_GDB) {
        return Some(set.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|d| d.join("gdb")).find(|p| p.is_file())
}

/// Next to the trace, absolute: gdb may run elsewhere.
fn script_path(trace: &Path) -> Result<PathBuf, Box<dyn Error>> {
    Ok(std::path::absolute(trace)?.with_extension("gdb.py"))
}
