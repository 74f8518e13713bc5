//! `symdpor-tables`: the paper's tables for our programs. See scripts/bench, which builds what this needs.

use clap::{Args, Parser, Subcommand};
use serde::Serialize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use symdpor_bench::experiment::Selection;
use symdpor_bench::tools::{Result, Tools};
use symdpor_bench::{table1, table2};

/// The tables of the paper that the symmetry reduction comes from
#[derive(Parser)]
struct Flags {
    #[command(subcommand)]
    table: Table,
}

#[derive(Subcommand)]
enum Table {
    /// Searches with symmetry against searches without
    Table1(Common),
    /// What looking for symmetry costs
    Table2 {
        #[command(flatten)]
        common: Common,
        /// Runs of each search that is timed, of which the best counts
        #[arg(long, value_name = "N", default_value_t = 3)]
        repeat: u32,
    },
}

#[derive(Args)]
struct Common {
    /// Numbers of threads, main included
    #[arg(long, value_name = "FROM..TO", default_value = "3..6", value_parser = range)]
    threads: RangeInclusive<u32>,
    /// Give a search up after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    limit: u64,
    /// Only programs whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// The variants with a deadlock too
    #[arg(long)]
    buggy: bool,
    /// Write the figures to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Common {
    fn selection(&self) -> Selection {
        let Common { threads, limit, only, buggy, .. } = self;
        Selection { threads: threads.clone(), limit_s: *limit, only: only.clone(), buggy: *buggy, long: false }
    }
}

/// `4`, or `3..6` with both ends.
fn range(text: &str) -> std::result::Result<RangeInclusive<u32>, String> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let number = |part: &str| part.parse::<u32>().map_err(|e| format!("{part}: {e}"));
    match (number(from)?, number(to)?) {
        (from, to) if 2 <= from && from <= to && to <= 200 => Ok(from..=to),
        _ => Err("from 2 to 200, the smaller number first".to_owned()),
    }
}

#[derive(Serialize)]
struct Document<Row> {
    version: u32,
    limit_s: u64,
    rows: Vec<Row>,
}

fn write<Row: Serialize>(common: &Common, rows: Vec<Row>) -> Result<()> {
    let put = |path: &Path, document| -> Result<()> {
        let text = serde_json::to_string_pretty(document)? + "\n";
        std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()).into())
    };
    let document = Document { version: 1, limit_s: common.limit, rows };
    common.json.as_deref().map_or(Ok(()), |path| put(path, &document))
}

fn main() -> Result<()> {
    let flags = Flags::parse();
    let tools = Tools::find()?;
    match flags.table {
        Table::Table1(common) => {
            let rows = table1::measure(&tools, &common.selection())?;
            print!("{}", table1::render(&rows));
            write(&common, rows)
        }
        Table::Table2 { common, repeat } => {
            let selection = Selection { long: true, ..common.selection() };
            let rows = table2::measure(&tools, &selection, repeat.max(1))?;
            print!("{}", table2::render(&rows));
            write(&common, rows)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(range("3..6"), Ok(3..=6));
        assert_eq!(range("4"), Ok(4..=4));
        assert!(range("6..3").is_err() && range("1..2").is_err() && range("x").is_err() && range("3..").is_err());
    }
}
