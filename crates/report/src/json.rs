//! The machine-readable summary, version 1. A key once published keeps its meaning; new keys may come.

use crate::summary::{ErrorEntry, Summary};
use serde_json::{Value, json};

pub const VERSION: u32 = 1;

/// One object, indented, with a newline at its end.
pub fn render(summary: &Summary) -> String {
    let value = json!({
        "version": VERSION,
        "verdict": summary.verdict,
        "complete": summary.complete,
        "reason": summary.reason,
        "errors": summary.errors.iter().map(error).collect::<Vec<_>>(),
        "executions": summary.counts.executions,
        "blocked": summary.counts.blocked,
        "transitions": summary.counts.transitions,
        "threads": summary.counts.threads,
        // Nothing is compared for symmetry yet, so nothing is counted.
        "symmetry": { "checks": 0, "hits": 0, "refused": 0, "time_s": 0.0 },
        "time_s": rounded(summary.time.as_secs_f64()),
        "executions_per_s": rounded(summary.executions_per_second()),
        "options": summary.options,
    });
    let mut text = serde_json::to_string_pretty(&value).expect("plain data always encodes");
    text.push('\n');
    text
}

fn error(entry: &ErrorEntry) -> Value {
    let location = entry
        .location
        .as_ref()
        .map(|l| json!({ "file": l.file, "line": l.line, "column": l.column, "function": l.function }));
    json!({
        "kind": entry.kind.name(),
        "message": entry.message,
        "location": location,
        "trace": entry.trace.as_ref().map(|p| p.to_string_lossy()),
    })
}

/// To microseconds: more digits are noise.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Counts, Verdict};
    use std::time::Duration;
    use symdpor_trace::{FailureKind, Location};

    fn summary() -> Summary {
        let location = Location { file: "a.c".into(), line: 12, column: 5, function: "work".into() };
        let entry = ErrorEntry {
            kind: FailureKind::DataRace,
            message: "data race on x".into(),
            location: Some(location),
            trace: Some("symdpor-out/a-data-race-1.symtrace".into()),
        };
        let nowhere = ErrorEntry { kind: FailureKind::Deadlock, message: "m".into(), location: None, trace: None };
        Summary {
            verdict: Verdict::Error,
            complete: false,
            reason: None,
            errors: vec![entry, nowhere],
            counts: Counts { executions: 3, blocked: 1, transitions: 42, threads: 3 },
            time: Duration::from_millis(500),
            options: json!({ "reduction": "source" }),
        }
    }

    #[test]
    fn version_1() {
        insta::assert_snapshot!(render(&summary()));
    }

    #[test]
    fn verdicts_have_the_published_names() {
        for (verdict, name) in [
            (Verdict::Ok, "ok"),
            (Verdict::Error, "error"),
            (Verdict::Incomplete, "incomplete"),
            (Verdict::Unsupported, "unsupported"),
        ] {
            let value: Value = serde_json::from_str(&render(&Summary { verdict, ..summary() })).unwrap();
            assert_eq!(value["verdict"], name);
        }
    }
}
