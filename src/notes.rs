//! What limits a verdict, in words.

use symdpor_abi::module::function_flags;
use symdpor_report::text;
use symdpor_trace::Location;
use symdpor_worker::{Globals, Sites};

/// `Header::restore_method` of a worker that forks.
const FORK: u32 = 2;

/// Parts of the program of which not everything is seen, and a slow way to run it.
pub fn notes(sites: &Sites, globals: &Globals, restore_method: Option<u32>, directory: &str) -> Vec<String> {
    let functions = sites.remarkable().into_iter().map(|(flags, place)| remark(flags, &place, directory));
    let slow = (restore_method == Some(FORK))
        .then(|| "memory cannot be watched here, so each execution is a process of its own: this is slow".to_owned());
    slow.into_iter().chain(foreign(&globals.foreign_files())).chain(functions).collect()
}

/// A file that was forgotten would make a verdict that nobody should rely on.
fn foreign(files: &[String]) -> Option<String> {
    const NAMED: usize = 4;
    let names = files.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let rest = "not compiled with symdpor: what";
    match files.len() {
        0 => None,
        1 => Some(format!("{names} was {rest} it does to memory is not seen")),
        2..=NAMED => Some(format!("{names} were {rest} they do to memory is not seen")),
        n => Some(format!("{names} and {} more files were {rest} they do to memory is not seen", n - NAMED)),
    }
}

/// Where a race was found, libraries that may have locks nobody sees.
pub fn about_libraries(unseen: &[String]) -> Option<String> {
    let (last, others) = unseen.split_last()?;
    let (names, were) = match others {
        [] => (last.clone(), "was"),
        _ => (format!("{} and {last}", others.join(", ")), "were"),
    };
    Some(format!(
        "{names} {were} not compiled with symdpor: locks in there are not seen, and what they order is called a race"
    ))
}

/// What others send is input like a file, and yet cannot be looked at.
pub fn about_peers(count: u32) -> Option<String> {
    (count > 0).then(|| {
        "the program talks to other processes: what they answer is asked for once, and taken to be the same each time".to_owned()
    })
}

fn remark(flags: u32, place: &Location, directory: &str) -> String {
    let what = if flags & function_flags::UNINSTRUMENTED != 0 {
        "is not instrumented: what it does is not seen"
    } else if flags & function_flags::COROUTINE != 0 {
        "is a coroutine: it is not instrumented"
    } else {
        "has inline assembly: only its operands are seen"
    };
    format!("{} {what}", text::named_place(place, directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_were_forgotten_are_named() {
        let files = |n: usize| (0..n).map(|i| format!("{i}.c")).collect::<Vec<_>>();
        assert_eq!(foreign(&files(0)), None);
        assert!(foreign(&files(1)).is_some_and(|n| n.starts_with("0.c was not compiled")));
        assert!(foreign(&files(7)).is_some_and(|n| n.starts_with("0.c, 1.c, 2.c, 3.c and 3 more files were")));
    }

    #[test]
    fn remarks_name_the_function() {
        let place = Location { file: "/p/a.c".into(), line: 3, column: 0, function: "swap".into() };
        let said = remark(function_flags::INLINE_ASSEMBLY, &place, "/p");
        assert_eq!(said, "swap (a.c:3) has inline assembly: only its operands are seen");
        assert!(notes(&Sites::default(), &Globals::default(), Some(2), "")[0].contains("slow"));
        assert!(notes(&Sites::default(), &Globals::default(), Some(0), "").is_empty());
        assert_eq!(about_libraries(&[]), None);
        let two = ["liba.so".to_owned(), "libb.so".to_owned()];
        assert!(about_libraries(&two).is_some_and(|note| note.starts_with("liba.so and libb.so were not compiled")));
    }
}
