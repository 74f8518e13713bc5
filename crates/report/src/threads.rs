//! What threads are called: as the program calls them, or by their function and number.

use crate::place;
use std::collections::BTreeMap;
use symdpor_trace::ThreadId;
use symdpor_trace::file::{ThreadInfo, TraceFile};

/// Longer names of functions are cut.
const LONGEST: usize = 24;

pub struct Threads {
    names: BTreeMap<ThreadId, String>,
}

impl Threads {
    pub fn new(file: &TraceFile) -> Threads {
        let given = |name: &str| file.threads.iter().filter(|t| t.name == name).count();
        let names = file.threads.iter().map(|t| (t.thread, name(t, given(&t.name) > 1))).collect();
        Threads { names }
    }

    pub fn name(&self, thread: ThreadId) -> String {
        self.names.get(&thread).cloned().unwrap_or_else(|| place::thread(thread))
    }
}

fn name(info: &ThreadInfo, is_ambiguous: bool) -> String {
    let number = info.thread.0;
    if !info.name.is_empty() {
        return if is_ambiguous { format!("{} {number}", info.name) } else { info.name.clone() };
    }
    if info.thread == ThreadId::MAIN {
        return "main".to_owned();
    }
    match short_function(&place::demangled(&info.function)) {
        name if name.is_empty() => place::thread(info.thread),
        name => format!("{} {number}", place::cut_right(&name, LONGEST)),
    }
}

/// Without what a function is in, what it takes and what it is made from.
pub fn short_function(name: &str) -> String {
    if name.contains("lambda") || name.contains("{closure") || name.contains("operator()") {
        return "lambda".to_owned();
    }
    let mut plain = String::new();
    let mut depth = 0;
    for c in name.chars() {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let last = plain.rsplit("::").next().unwrap_or(&plain).trim();
    last.rsplit(' ').next().unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(thread: u16, name: &str, function: &str) -> ThreadInfo {
        let (name, function) = (name.to_owned(), function.to_owned());
        ThreadInfo { thread: ThreadId(thread), created_by: None, created_at: None, name, function }
    }

    #[test]
    fn what_the_program_says_goes_first() {
        assert_eq!(name(&info(3, "writer", "work"), false), "writer");
        assert_eq!(name(&info(3, "writer", "work"), true), "writer 3");
        assert_eq!(name(&info(3, "", "work"), false), "work 3");
        assert_eq!(name(&info(0, "", "main"), false), "main");
        assert_eq!(name(&info(3, "", ""), false), "thread 3");
    }

    #[test]
    fn functions_are_short() {
        assert_eq!(short_function("Queue<int>::push(int)"), "push");
        assert_eq!(short_function("main::{lambda()#1}::operator()() const"), "lambda");
        assert_eq!(short_function("void* worker(void*)"), "worker");
    }
}
