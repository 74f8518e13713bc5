//! SARIF 2.1.0 (OASIS): what code-scanning views read. One run, a rule per kind of error, a result per error, and its
//! interleaving as a code flow: a thread flow per thread, with the order in which the steps were executed.

use crate::job::Job;
use crate::summary::{ErrorEntry, Verdict};
use crate::{place, words};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use symdpor_trace::{FailureKind, Location, ThreadId, TraceFile};

/// Views do not show more, and some refuse files that have more.
const MOST_STEPS: usize = 1000;
const BASE: &str = "SRCROOT";

const RULES: [(FailureKind, &str); 9] = [
    (FailureKind::Deadlock, "No thread can go on: each waits for something that another one holds or will never do."),
    (
        FailureKind::DataRace,
        "Two threads access the same memory, one of them writes, and nothing orders the two accesses.",
    ),
    (FailureKind::Assertion, "An assertion fails in an interleaving of the threads."),
    (FailureKind::Crash, "The program crashes in an interleaving of the threads."),
    (FailureKind::Memory, "Memory is used after it was freed, freed twice, or accessed out of bounds."),
    (FailureKind::LockMisuse, "A lock is used in a way that its interface forbids."),
    (FailureKind::ExitStatus, "The program ends with a status other than 0 in an interleaving of the threads."),
    (FailureKind::Livelock, "Threads spin, and nothing can change what they wait for."),
    (FailureKind::StepLimit, "An execution has more steps than are allowed."),
];

/// One document, with a newline at its end. `root`: the directory that file names are relative to.
pub fn render(jobs: &[Job], root: &str) -> String {
    let rules: Vec<Value> = RULES.iter().map(|(kind, text)| rule(*kind, text)).collect();
    let results: Vec<Value> = jobs.iter().flat_map(|job| results(job, root)).collect();
    let notifications: Vec<Value> = jobs.iter().filter_map(notification).collect();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "symdpor", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "originalUriBaseIds": { BASE: { "uri": format!("file://{}/", encoded(root.trim_end_matches('/'))) } },
            "invocations": [{
                "executionSuccessful": notifications.iter().all(|n| n["level"] != "error"),
                "toolExecutionNotifications": notifications,
            }],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    let mut text = serde_json::to_string_pretty(&document).expect("plain data always encodes");
    text.push('\n');
    text
}

fn rule(kind: FailureKind, text: &str) -> Value {
    json!({
        "id": kind.name(),
        "shortDescription": { "text": text },
        "defaultConfiguration": { "level": "error" },
    })
}

/// What is not an error of the program: a search that is not complete, a program that could not be run.
fn notification(job: &Job) -> Option<Value> {
    let (level, text) = match &job.result {
        Err(problem) => ("error", problem.clone()),
        Ok(summary) => match summary.verdict {
            Verdict::Ok | Verdict::Error => return None,
            Verdict::Incomplete => ("warning", format!("not everything was explored: {}", job.said())),
            Verdict::Unsupported => ("error", job.said()),
        },
    };
    Some(json!({ "level": level, "message": { "text": format!("{}: {text}", job.name) } }))
}

fn results(job: &Job, root: &str) -> Vec<Value> {
    let errors = job.result.as_ref().map_or(&[][..], |s| &s.errors);
    let traces = job.traces.iter().map(Option::as_ref).chain(std::iter::repeat(None));
    errors.iter().zip(traces).map(|(error, trace)| result(job, error, trace, root)).collect()
}

fn result(job: &Job, error: &ErrorEntry, trace: Option<&TraceFile>, root: &str) -> Value {
    let mut result = json!({
        "ruleId": error.kind.name(),
        "ruleIndex": RULES.iter().position(|r| r.0 == error.kind),
        "level": "error",
        "message": { "text": format!("{} (in {})", error.message, job.name) },
    });
    let waits = trace.into_iter().flat_map(|t| t.failure.waits.iter().filter_map(|w| w.location.as_ref()));
    let place = error.location.as_ref().or_else(|| waits.into_iter().next()).filter(|l| l.line > 0);
    if let Some(place) = place {
        result["locations"] = json!([location(place, None, root)]);
        let print = format!("{}:{}:{}", error.kind.name(), relative(&place.file, root), place.function);
        result["partialFingerprints"] = json!({ "place/v1": print });
    }
    let flows = trace.map(|t| thread_flows(t, root)).unwrap_or_default();
    if !flows.is_empty() {
        result["codeFlows"] = json!([{ "threadFlows": flows }]);
    }
    if let Some(path) = &error.trace {
        result["properties"] = json!({ "trace": path.to_string_lossy() });
    }
    result
}

/// The last steps, by thread.
fn thread_flows(trace: &TraceFile, root: &str) -> Vec<Value> {
    let mut flows: BTreeMap<ThreadId, Vec<Value>> = BTreeMap::new();
    let first = trace.events.len().saturating_sub(MOST_STEPS);
    for (number, event) in trace.events.iter().enumerate().skip(first) {
        let Some(place) = trace.location_of(event).filter(|l| l.line > 0) else { continue };
        let step =
            json!({ "location": location(place, Some(words::event(event)), root), "executionOrder": number + 1 });
        flows.entry(event.thread).or_default().push(step);
    }
    let flow = |(thread, steps)| json!({ "id": place::thread(thread), "locations": steps });
    flows.into_iter().map(flow).collect()
}

fn location(place: &Location, message: Option<String>, root: &str) -> Value {
    let relative = relative(&place.file, root);
    let artifact = if relative.starts_with('/') {
        json!({ "uri": format!("file://{}", encoded(relative)) })
    } else {
        json!({ "uri": encoded(relative), "uriBaseId": BASE })
    };
    let mut region = json!({ "startLine": place.line });
    if place.column > 0 {
        region["startColumn"] = json!(place.column);
    }
    let mut location = json!({ "physicalLocation": { "artifactLocation": artifact, "region": region } });
    if !place.function.is_empty() {
        location["logicalLocations"] = json!([{ "name": place::function(place), "kind": "function" }]);
    }
    if let Some(text) = message {
        location["message"] = json!({ "text": text });
    }
    location
}

fn relative<'a>(file: &'a str, root: &str) -> &'a str {
    let inside = file.strip_prefix(root.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
    inside.unwrap_or(file).trim_start_matches("./")
}

/// A path as part of a URI.
fn encoded(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-_.~+".contains(&b);
    path.bytes().map(|b| if plain(b) { (b as char).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_the_root_are_relative() {
        assert_eq!(relative("/src/a/b.c", "/src"), "a/b.c");
        assert_eq!(relative("/src/a/b.c", "/src/"), "a/b.c");
        assert_eq!(relative("/srcs/b.c", "/src"), "/srcs/b.c");
        assert_eq!(relative("./b.c", "/src"), "b.c");
        assert_eq!(encoded("/a b/ü#.c"), "/a%20b/%C3%BC%23.c");
    }

    #[test]
    fn every_kind_has_a_rule_of_its_own() {
        let names: std::collections::BTreeSet<_> = RULES.iter().map(|r| r.0.name()).collect();
        assert_eq!(names.len(), RULES.len());
    }
}
