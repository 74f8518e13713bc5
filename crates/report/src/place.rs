//! Places in the source, short enough for a line.

use symdpor_trace::Location;
use symdpor_trace::ThreadId;

/// Paths below the current directory are shown relative to it, headers of the system as they are included.
pub fn short_path(file: &str, directory: &str) -> String {
    let clean = without_detours(file);
    if let Some(header) = included_as(&clean) {
        return format!("<{header}>");
    }
    let inside = clean.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
    inside.filter(|_| !directory.is_empty()).map_or(clean.clone(), str::to_owned)
}

/// Without `.` and `..` where they can be resolved by looking at the name alone.
fn without_detours(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for (i, part) in path.split('/').enumerate() {
        match part {
            "." => {}
            "" if i > 0 => {}
            ".." if parts.last().is_some_and(|p| !p.is_empty() && *p != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}

/// The name of a header of the system or of the compiler.
fn included_as(path: &str) -> Option<&str> {
    if let Some((_, rest)) = path.split_once("/include/c++/") {
        return Some(rest.split_once('/').map_or(rest, |(_version, header)| header));
    }
    path.strip_prefix("/usr/include/")
}

/// `file:line`, or what is known of it.
pub fn file_line(location: &Location, directory: &str) -> String {
    let file = short_path(&location.file, directory);
    match (file.is_empty(), location.line) {
        (true, _) => "(no line: compile with -g)".to_owned(),
        (false, 0) => file,
        (false, line) => format!("{file}:{line}"),
    }
}

/// The function's name, demangled where debug information had no better one.
pub fn function(location: &Location) -> String {
    readable(&demangled_symbol(&location.function))
}

/// A variable's name, perhaps with an offset.
pub fn demangled(name: &str) -> String {
    match name.rsplit_once('+') {
        Some((symbol, offset)) if symbol.starts_with("_Z") => format!("{}+{offset}", demangled(symbol)),
        _ => readable(&demangled_symbol(name)),
    }
}

fn demangled_symbol(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    match name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name)) {
        Some(Ok(symbol)) => symbol.demangle().unwrap_or_else(|_| name.to_owned()),
        _ => name.to_owned(),
    }
}

/// What every C++ programmer abbreviates in their head.
fn readable(name: &str) -> String {
    if !name.contains("::") && !name.contains("[abi:") {
        return name.to_owned();
    }
    const STRING: &str = "std::basic_string<char, std::char_traits<char>, std::allocator<char>>";
    let name = name.replace("[abi:cxx11]", "").replace("std::__cxx11::", "std::").replace(" >", ">");
    without_places_of_lambdas(&name.replace(STRING, "std::string"))
}

/// `(lambda at a.cpp:3:5)` is a lambda: its line is shown anyway.
fn without_places_of_lambdas(name: &str) -> String {
    const LAMBDA: &str = "(lambda at ";
    let mut text = String::new();
    let mut rest = name;
    while let Some(at) = rest.find(LAMBDA) {
        let Some(end) = rest[at..].find(')') else { break };
        text.push_str(&rest[..at]);
        text.push_str("(lambda)");
        rest = &rest[at + end + 1..];
    }
    text + rest
}

/// `main` or `thread 3`.
pub fn thread(thread: ThreadId) -> String {
    if thread == ThreadId::MAIN { "main".to_owned() } else { format!("thread {}", thread.0) }
}

/// Threads given as bits: `thread 1, thread 3`, or `nobody`.
pub fn threads(bits: u32) -> String {
    let names: Vec<String> = (0..32).filter(|t| bits & 1 << t != 0).map(|t| thread(ThreadId(t))).collect();
    if names.is_empty() { "nobody".to_owned() } else { names.join(", ") }
}

/// At most `width` characters; the end of a text says more than its beginning if it is a path.
pub fn cut_left(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    std::iter::once('…').chain(text.chars().skip(count + 1 - width)).collect()
}

pub fn cut_right(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(std::iter::once('…')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_directory() {
        assert_eq!(short_path("/home/me/src/a.c", "/home/me"), "src/a.c");
        assert_eq!(short_path("/home/me/./a.c", "/home/me"), "a.c");
        assert_eq!(short_path("/home/meta/a.c", "/home/me"), "/home/meta/a.c");
        assert_eq!(short_path("./a.c", "/home/me"), "a.c");
        assert_eq!(short_path("/a.c", ""), "/a.c");
        assert_eq!(short_path("/home/me/build/../src/a.c", "/home/me"), "src/a.c");
        assert_eq!(short_path("../src/a.c", "/home/me"), "../src/a.c");
    }

    #[test]
    fn headers_are_named_as_they_are_included() {
        assert_eq!(short_path("/usr/lib/gcc/x/12/../../../../include/c++/12/bits/invoke.h", "/"), "<bits/invoke.h>");
        assert_eq!(short_path("/usr/include/pthread.h", ""), "<pthread.h>");
    }

    #[test]
    fn names_are_demangled() {
        assert_eq!(demangled("_ZN5Queue4pushEi"), "Queue::push(int)");
        assert_eq!(demangled("_Z5queueB5cxx11+40"), "queue+40");
        assert_eq!(demangled("main"), "main");
        assert_eq!(demangled("a+4"), "a+4");
        let function = "f<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > >".to_owned();
        assert_eq!(super::function(&Location { function, ..Location::default() }), "f<std::string>");
        assert_eq!(demangled("_Znonsense"), "_Znonsense");
        assert_eq!(demangled("std::f<(lambda at /x/a.cpp:3:5), int>"), "std::f<(lambda), int>");
    }

    #[test]
    fn long_texts_are_cut_to_the_width() {
        assert_eq!(cut_left("a/long/path.c:12", 9), "…ath.c:12");
        assert_eq!(cut_left("short", 9), "short");
        assert_eq!(cut_right("operation", 5), "oper…");
        assert_eq!(cut_left("a/long/path.c:12", 9).chars().count(), 9);
    }
}
