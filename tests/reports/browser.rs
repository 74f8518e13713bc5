//! The page of `symdpor show --html`, in a real browser.

use crate::common::{process, tool};
use crate::{Failed, installed};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

fn page(failed: &Failed) -> PathBuf {
    let page = failed.path("page.html");
    let mut command = tool::symdpor();
    command.current_dir(tool::root()).args(["show", "--html"]).arg(&page).arg(&failed.trace);
    let ran = process::run(&mut command, tool::LIMIT);
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
    page
}

/// The document as the browser has it after these keys were pressed.
fn document(failed: &Failed, keys: &[&str]) -> Option<String> {
    let Some(browser) = installed(&NAMES) else {
        eprintln!("skipped: no browser is installed (apt-get install chromium)");
        return None;
    };
    let page = page(failed);
    let html = std::fs::read_to_string(&page).expect("it was just written");
    let press =
        |k: &&str| format!("document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: '{k}', bubbles: true}}));");
    let script: String = keys.iter().map(press).collect();
    let html = html.replace("</body>", &format!("<script>{script}</script></body>"));
    std::fs::write(&page, html).expect("it is ours");
    Some(dump(&browser, &page, failed.directory.path()))
}

fn dump(browser: &Path, page: &Path, directory: &Path) -> String {
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", directory.join("profile").display()));
    command.arg(format!("file://{}", page.display()));
    let ran = process::run(&mut command, Duration::from_secs(60));
    assert_eq!(ran.code(), Some(0), "{}", ran.describe());
    ran.output()
}

/// What an element with this id says.
fn says(document: &str, id: &str) -> String {
    let start = document.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("{id}: {document}"));
    let rest = &document[start..];
    let text = &rest[rest.find('>').expect("a tag ends") + 1..];
    text[..text.find("</").expect("an element ends")].to_owned()
}

#[test]
fn the_error_is_chosen_first() {
    let failed = Failed::new("mutex/ab_ba.c");
    let Some(document) = document(&failed, &[]) else { return };
    assert_eq!(says(&document, "headline"), "deadlock: no thread can go on");
    assert!(says(&document, "conclusion").contains("This is a cycle"), "{document}");
    assert!(says(&document, "now").starts_with("main: waits for a_then_b 1 to end"), "{document}");
    assert_eq!(document.matches("class=\"band\"").count(), 7);
    assert_eq!(document.matches("class=\"edge thread").count(), 2);
}

#[test]
fn keys_step_through_it() {
    let failed = Failed::new("mutex/ab_ba.c");
    let Some(document) = document(&failed, &["Home", "j", "ArrowDown", "k", "n"]) else { return };
    // Home is step 1, two down, one up: step 2; the next one of main is where it waits.
    assert!(says(&document, "now").starts_with("main: waits for"), "{document}");
    let here = document.find("class=\"here\"").expect("a line of the source is marked");
    assert!(document[here..].contains("pthread_join(first"), "{document}");
}

#[test]
fn nothing_of_the_program_is_taken_for_markup() {
    let mut file = Failed::new("crash/assertion_in_thread.c");
    let mut trace = file.file();
    trace.failure.message = "</script><b id=\"injected\">@CODE@".into();
    trace.threads[1].name = "<i>name</i>".into();
    file.trace = file.path("odd.symtrace");
    std::fs::write(&file.trace, trace.encode()).expect("it is ours");
    let html = std::fs::read_to_string(page(&file)).expect("it was just written");
    assert!(!html.contains("<b id=\"injected\"") && !html.contains("<i>name"), "{html}");
    let Some(document) = document(&file, &[]) else { return };
    assert!(says(&document, "headline").contains("&lt;/script&gt;&lt;b id=\"injected\"&gt;"), "{document}");
}

#[test]
fn long_executions_are_shown_whole() {
    let mut failed = Failed::new("spin/step_limit.c");
    let mut trace = failed.file();
    let last = trace.events[trace.events.len() - 1].clone();
    trace.events.resize(500, last);
    failed.trace = failed.path("long.symtrace");
    std::fs::write(&failed.trace, trace.encode()).expect("it is ours");
    let Some(document) = document(&failed, &["End"]) else { return };
    assert_eq!(document.matches("class=\"band\"").count(), 500);
    assert!(says(&document, "now").starts_with("step 500, work 1: update counter"), "{}", says(&document, "now"));
}

#[test]
fn the_page_needs_no_network() {
    let html = std::fs::read_to_string(page(&Failed::new("cpp/vector_race.cpp"))).expect("it was just written");
    let outside = html.match_indices("http").filter(|(i, _)| !html[*i..].starts_with("http-equiv"));
    let outside: Vec<&str> = outside.map(|(i, _)| &html[i..i + 30]).collect();
    assert!(outside.iter().all(|u| u.starts_with("http://www.w3.org/2000/svg")), "{outside:?}");
}
