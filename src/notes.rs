//! What limits a verdict, in words.

use symdpor_abi::module::function_flags;
use symdpor_report::text;
use symdpor_trace::Location;
use symdpor_worker::Sites;

/// `Header::restore_method` of a worker that forks.
const FORK: u32 = 2;

/// Parts of the program of which not everything is seen, and a slow way to run it.
pub fn notes(sites: &Sites, restore_method: Option<u32>, directory: &str) -> Vec<String> {
    let functions = sites.remarkable().into_iter().map(|(flags, place)| remark(flags, &place, directory));
    let slow = (restore_method == Some(FORK))
        .then(|| "memory cannot be watched here, so each execution is a process of its own: this is slow".to_owned());
    slow.into_iter().chain(functions).collect()
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
    fn remarks_name_the_function() {
        let place = Location { file: "/p/a.c".into(), line: 3, column: 0, function: "swap".into() };
        let said = remark(function_flags::INLINE_ASSEMBLY, &place, "/p");
        assert_eq!(said, "swap (a.c:3) has inline assembly: only its operands are seen");
        assert!(notes(&Sites::default(), Some(2), "")[0].contains("slow"));
        assert!(notes(&Sites::default(), Some(0), "").is_empty());
        assert_eq!(about_libraries(&[]), None);
        let two = ["liba.so".to_owned(), "libb.so".to_owned()];
        assert!(about_libraries(&two).is_some_and(|note| note.starts_with("liba.so and libb.so were not compiled")));
    }
}
