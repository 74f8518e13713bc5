//! Places in the source, short enough for a line.

use symdpor_trace::Location;
use symdpor_trace::ThreadId;

/// Paths below the current directory are shown relative to it.
pub fn short_path<'a>(file: &'a str, directory: &str) -> &'a str {
    let inside = file.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
    match inside {
        Some(rest) if !directory.is_empty() => rest.strip_prefix("./").unwrap_or(rest),
        _ => file.strip_prefix("./").unwrap_or(file),
    }
}

/// `file:line`, or what is known of it.
pub fn file_line(location: &Location, directory: &str) -> String {
    let file = short_path(&location.file, directory);
    match (file.is_empty(), location.line) {
        (true, _) => "(no debug information)".to_owned(),
        (false, 0) => file.to_owned(),
        (false, line) => format!("{file}:{line}"),
    }
}

/// The function's name, demangled where debug information had no better one.
pub fn function(location: &Location) -> String {
    demangled(&location.function)
}

pub fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    match name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name)) {
        Some(Ok(symbol)) => symbol.demangle().unwrap_or_else(|_| name.to_owned()),
        _ => name.to_owned(),
    }
}

/// `main` or `thread 3`.
pub fn thread(thread: ThreadId) -> String {
    if thread == ThreadId::MAIN { "main".to_owned() } else { format!("thread {}", thread.0) }
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
    }

    #[test]
    fn names_are_demangled() {
        assert_eq!(demangled("_ZN5Queue4pushEi"), "Queue::push(int)");
        assert_eq!(demangled("main"), "main");
        assert_eq!(demangled("_Znonsense"), "_Znonsense");
    }

    #[test]
    fn long_texts_are_cut_to_the_width() {
        assert_eq!(cut_left("a/long/path.c:12", 9), "…ath.c:12");
        assert_eq!(cut_left("short", 9), "short");
        assert_eq!(cut_right("operation", 5), "oper…");
        assert_eq!(cut_left("a/long/path.c:12", 9).chars().count(), 9);
    }
}
