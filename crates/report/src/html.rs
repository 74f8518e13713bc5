//! The interleaving as a page for a browser: complete in itself, without any network.

use crate::edges::edges;
use crate::rows::{self, Row};
use crate::text::{self, TextOptions};
use crate::threads::Threads;
use crate::{conclusion, place};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use symdpor_trace::ThreadId;
use symdpor_trace::file::TraceFile;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const CODE: &str = include_str!("page/page.js");
/// The conclusion is broken into lines by the browser.
const WIDTH: usize = 200;

pub fn page(file: &TraceFile, directory: &str) -> String {
    let threads = Threads::new(file);
    let headline = text::headline_of(&file.failure, &|t| threads.name(t));
    let data = data(file, &threads, directory, &headline);
    // A text that ends the script would end it.
    let data = data.to_string().replace('<', "\\u003c");
    // The data comes last: what the program is called shall not be taken for a place to fill in.
    PAGE.replace("@TITLE@", &escaped(&headline))
        .replace("@STYLE@", STYLE)
        .replace("@CODE@", CODE)
        .replacen("@DATA@", &data, 1)
}

fn data(file: &TraceFile, threads: &Threads, directory: &str, headline: &str) -> Value {
    let rows = rows::rows(file, threads);
    let mut shown: Vec<ThreadId> = rows.iter().map(|r| r.thread).collect();
    shown.sort();
    shown.dedup();
    let options = TextOptions { directory: directory.to_owned(), width: WIDTH, ..TextOptions::default() };
    let conclusion = conclusion::conclusion(file, threads, &options);
    let conclusion = conclusion.split_once('\n').map_or("", |(_, rest)| rest);
    let by_step: BTreeMap<usize, usize> =
        rows.iter().enumerate().filter_map(|(i, r)| Some((r.step?.checked_sub(1)?, i))).collect();
    let arrows: Vec<Value> = edges(file)
        .iter()
        .filter_map(|e| Some(json!([by_step.get(&e.from)?, by_step.get(&e.to)?, e.kind.name()])))
        .collect();
    json!({
        "headline": headline,
        "place": file.failure.location.as_ref().map(|l| place::file_line(l, directory)),
        "program": file.program.arguments.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" "),
        "conclusion": conclusion,
        "threads": shown.iter().map(|t| threads.name(*t)).collect::<Vec<_>>(),
        "rows": rows.iter().map(|r| row(r, file, &shown, directory)).collect::<Vec<_>>(),
        "edges": arrows,
        "source": source(file, directory),
        "output": String::from_utf8_lossy(&file.output.iter().flat_map(|c| c.bytes.clone()).collect::<Vec<u8>>()),
    })
}

fn row(row: &Row, file: &TraceFile, shown: &[ThreadId], directory: &str) -> Value {
    let place = file.location(row.location);
    json!({
        "step": row.step,
        "thread": shown.iter().position(|t| *t == row.thread),
        "text": row.text.replace('\u{a0}', " "),
        "file": place.map(|l| place::short_path(&l.file, directory)),
        "line": place.map(|l| l.line),
        "function": place.map(place::function),
        "error": row.is_error,
    })
}

/// By file: the lines that are there, each with its number.
fn source(file: &TraceFile, directory: &str) -> Value {
    let mut files: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in &file.source {
        files.entry(place::short_path(&line.file, directory)).or_default().push(json!([line.line, line.text]));
    }
    json!(files)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
