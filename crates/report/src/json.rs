//! The machine-readable summary, version 1. A key once published keeps its meaning; new keys may come.

use crate::summary::{Counts, ErrorEntry, Summary, Verdict};
use serde::Serialize;
use serde_json::Value;

pub const VERSION: u32 = 1;

// Fields are written in the order they are declared in.
#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    verdict: Verdict,
    complete: bool,
    reason: Option<&'a str>,
    errors: Vec<Error<'a>>,
    #[serde(flatten)]
    counts: Counts,
    symmetry: Symmetry<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Estimate>,
    time_s: f64,
    executions_per_s: f64,
    notes: &'a [String],
    options: &'a Value,
}

#[derive(Serialize)]
struct Error<'a> {
    kind: &'static str,
    message: &'a str,
    location: Option<Place<'a>>,
    trace: Option<String>,
}

#[derive(Serialize)]
struct Place<'a> {
    file: &'a str,
    line: u32,
    column: u32,
    function: &'a str,
}

/// Twins that were looked at, how many branches were left out for it and how many were not: because others can tell the two
/// apart, or because what came before relates differently to them. Questions for the threads' memory, and the time for all of
/// it in the controller.
#[derive(Serialize)]
struct Symmetry<'a> {
    mode: &'a str,
    checks: u64,
    hits: u64,
    refused: u64,
    told_apart: u64,
    past_differs: u64,
    questions: u64,
    time_s: f64,
}

/// Of a search that was not finished: how many executions there would have been, `blocked` ones included.
#[derive(Serialize)]
struct Estimate {
    executions: u64,
    low: u64,
    high: u64,
    /// The share that has been explored, from 0 to 1.
    explored: f64,
}

fn estimate(summary: &Summary) -> Option<Estimate> {
    let it = summary.estimate?;
    let done = (summary.counts.executions + summary.counts.blocked) as f64;
    let (executions, low, high) = (it.likely as u64, it.low as u64, it.high as u64);
    Some(Estimate { executions, low, high, explored: rounded(done / it.likely.max(1.0)) })
}

/// One object, indented, with a newline at its end.
pub fn render(summary: &Summary) -> String {
    let document = Document {
        version: VERSION,
        verdict: summary.verdict,
        complete: summary.complete,
        reason: summary.reason.as_deref(),
        errors: summary.errors.iter().map(error).collect(),
        counts: summary.counts,
        symmetry: symmetry(summary),
        estimate: estimate(summary),
        time_s: rounded(summary.time.as_secs_f64()),
        executions_per_s: rounded(summary.executions_per_second()),
        notes: &summary.notes,
        options: &summary.options,
    };
    let mut text = serde_json::to_string_pretty(&document).expect("plain data always encodes");
    text.push('\n');
    text
}

fn symmetry(summary: &Summary) -> Symmetry<'_> {
    let symmetry = &summary.symmetry;
    let refused = symmetry.told_apart + symmetry.past_differs;
    Symmetry {
        mode: summary.options.get("symmetry").and_then(Value::as_str).unwrap_or("off"),
        checks: symmetry.hits + refused,
        hits: symmetry.hits,
        refused,
        told_apart: symmetry.told_apart,
        past_differs: symmetry.past_differs,
        questions: symmetry.questions,
        time_s: rounded(symmetry.time.as_secs_f64()),
    }
}

fn error(entry: &ErrorEntry) -> Error<'_> {
    let place = entry.location.as_ref();
    let location = place.map(|l| Place { file: &l.file, line: l.line, column: l.column, function: &l.function });
    let trace = entry.trace.as_ref().map(|p| p.to_string_lossy().into_owned());
    Error { kind: entry.kind.name(), message: &entry.message, location, trace }
}

/// To microseconds: more digits are noise.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
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
            notes: vec![],
            counts: Counts { executions: 3, blocked: 1, dropped: 0, transitions: 42, threads: 3 },
            time: Duration::from_millis(500),
            options: json!({ "reduction": "source" }),
            symmetry: Default::default(),
            estimate: None,
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
