//! `symdpor-bench`: see scripts/bench, which builds what this needs and runs the micro-benchmarks first.

use clap::Parser;
use std::path::PathBuf;
use symdpor_bench::cases::{self, Case};
use symdpor_bench::results::{self, Machine, Results};
use symdpor_bench::tools::{Result, Tools};
use symdpor_bench::{measure, micro, table};

/// Measures what an execution costs
#[derive(Parser)]
struct Flags {
    /// Small sizes, one run each
    #[arg(long)]
    quick: bool,
    /// Runs of each search, of which the best counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeat: u32,
    /// Only programs whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Write the figures to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Compare with the figures of an earlier run
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Where criterion has left the results of the micro-benchmarks
    #[arg(long, value_name = "DIR")]
    criterion: Option<PathBuf>,
}

impl Flags {
    fn wants(&self, case: &Case) -> bool {
        (case.quick || !self.quick) && self.only.as_ref().is_none_or(|name| case.program.contains(name.as_str()))
    }

    fn repeat(&self) -> u32 {
        if self.quick { 1 } else { self.repeat.max(1) }
    }
}

fn main() -> Result<()> {
    let flags = Flags::parse();
    // Better now than after the measurements.
    let before = flags.against.as_deref().map(results::read).transpose()?;
    let results = run(&flags)?;
    print!("{}", table::render(&results));
    if let Some(before) = before {
        print!("\n{}", table::compare(&results, &before));
    }
    flags.json.as_deref().map_or(Ok(()), |path| results::write(path, &results))
}

fn run(flags: &Flags) -> Result<Results> {
    let tools = Tools::find()?;
    let load_before = load()?;
    let mut measurements = Vec::new();
    for case in cases::ALL.iter().filter(|c| flags.wants(c)) {
        eprintln!("{} {}", case.program, case.size);
        measurements.push(measure::case(&tools, case, flags.repeat())?);
    }
    let start_to_verdict_ms = measure::start_to_verdict(&tools, flags.repeat())?;
    let micro = flags.criterion.as_deref().map_or(Ok(vec![]), micro::read)?;
    let cpus = std::thread::available_parallelism()?.get();
    let machine = Machine { cpus, load: [load_before, load()?], quick: flags.quick };
    Ok(Results { version: results::VERSION, machine, start_to_verdict_ms, measurements, micro })
}

fn load() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    Ok(text.split_whitespace().next().ok_or("/proc/loadavg is empty")?.parse()?)
}
