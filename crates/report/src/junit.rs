//! JUnit's XML, as continuous integration servers read it: one suite, one test case per program.
//!
//! There is no standard; this keeps to what the common schema of Jenkins' xUnit plugin and Ant have in common.

use crate::job::{Job, Outcome};
use crate::summary::Verdict;
use crate::text::{self, TextOptions};
use std::fmt::Write;

/// One document, with a newline at its end. `options`: how interleavings are shown.
pub fn render(jobs: &[Job], options: &TextOptions) -> String {
    let count = |wanted: fn(Outcome) -> bool| jobs.iter().filter(|j| wanted(j.outcome())).count();
    let failures = count(|o| o == Outcome::Failed);
    let skipped = count(is_skipped);
    let errors = jobs.len() - failures - skipped - count(|o| o == Outcome::Passed);
    let time: f64 = jobs.iter().map(seconds).sum();
    let totals = format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{time:.3}\"", jobs.len());
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    _ = writeln!(xml, "<testsuites name=\"symdpor\" {totals}>");
    _ = writeln!(xml, "  <testsuite name=\"symdpor\" {totals} skipped=\"{skipped}\">");
    jobs.iter().for_each(|job| case(&mut xml, job, options));
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// No error, but not all was explored either: neither passed nor failed.
fn is_skipped(outcome: Outcome) -> bool {
    outcome == Outcome::Undecided(Verdict::Incomplete)
}

fn seconds(job: &Job) -> f64 {
    job.result.as_ref().map_or(0.0, |s| s.time.as_secs_f64())
}

fn case(xml: &mut String, job: &Job, options: &TextOptions) {
    let (name, said) = (escaped(&job.name), escaped(&job.said()));
    _ = writeln!(xml, "    <testcase name=\"{name}\" classname=\"symdpor\" time=\"{:.3}\">", seconds(job));
    let kind = |job: &Job| job.result.as_ref().ok().and_then(|s| s.errors.first().map(|e| e.kind.name()));
    match job.outcome() {
        Outcome::Passed => {}
        outcome if is_skipped(outcome) => _ = writeln!(xml, "      <skipped>{said}</skipped>"),
        Outcome::Failed => {
            let kind = kind(job).unwrap_or("no-error");
            _ = writeln!(xml, "      <failure message=\"{said}\" type=\"{kind}\">{}</failure>", details(job, options));
        }
        Outcome::Undecided(verdict) => {
            _ = writeln!(xml, "      <error message=\"{said}\" type=\"{}\"/>", verdict.name());
        }
        Outcome::Broken => _ = writeln!(xml, "      <error message=\"{said}\" type=\"not-run\"/>"),
    }
    xml.push_str("    </testcase>\n");
}

/// All errors, with their interleavings.
fn details(job: &Job, options: &TextOptions) -> String {
    let Ok(summary) = &job.result else { return String::new() };
    let mut all = String::new();
    for (error, trace) in summary.errors.iter().zip(&job.traces) {
        all.push('\n');
        match trace {
            Some(trace) => all.push_str(&text::failure(trace, options)),
            None => all.push_str(&error.message),
        }
        if let Some(path) = &error.trace {
            _ = write!(all, "\nReplay: symdpor replay {}\n", path.display());
        }
    }
    escaped(&all)
}

/// XML 1.0 has no way at all to write most control characters.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_its_place() {
        assert_eq!(escaped("a < b && \"c\"\u{1b}[0m\u{0}\n"), "a &lt; b &amp;&amp; &quot;c&quot;\u{fffd}[0m\u{fffd}\n");
    }

    #[test]
    fn a_program_that_could_not_be_run_is_an_error() {
        let job =
            Job { name: "a<b".into(), result: Err("no such program".into()), traces: vec![], expected: "ok".into() };
        let xml = render(&[job], &TextOptions::default());
        assert!(xml.contains("tests=\"1\" failures=\"0\" errors=\"1\""), "{xml}");
        assert!(xml.contains("name=\"a&lt;b\"") && xml.contains("type=\"not-run\""), "{xml}");
    }
}
