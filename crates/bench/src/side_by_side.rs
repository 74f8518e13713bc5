//! A table of ours with the paper's figures under each program and size.

use crate::goals::Goal;
use crate::table::line;
use std::fmt::Write;

/// A row, and what the paper has for its program and size.
pub struct Lines {
    pub program: &'static str,
    pub threads: u32,
    pub ours: String,
    pub paper: Option<String>,
}

pub fn side_by_side(head: &str, rows: &[Lines], notes: &str, goals: &[Goal]) -> String {
    let mut out = head.to_owned();
    for (i, row) in rows.iter().enumerate() {
        let is_same = |r: &Lines| (r.program, r.threads) == (row.program, row.threads);
        let first = i == 0 || !is_same(&rows[i - 1]);
        let name = if first { row.program } else { "" };
        let threads = if first { row.threads.to_string() } else { String::new() };
        _ = writeln!(out, "{name:10}{threads:>3} {}", row.ours);
        if let Some(paper) = row.paper.as_ref().filter(|_| rows.get(i + 1).is_none_or(|next| !is_same(next))) {
            _ = writeln!(out, "{:13} {paper}", "");
        }
    }
    out.push_str(notes);
    for goal in goals {
        _ = writeln!(out, "{}", line(goal));
    }
    out
}
