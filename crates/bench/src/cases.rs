//! The set of programs, all of them fixtures, with their sizes.

/// A program in one size.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub program: &'static str,
    pub size: &'static str,
    pub source: Source,
    /// Not all of its executions, but this many.
    pub limit: Option<u64>,
    /// Part of a quick run.
    pub quick: bool,
}

/// A file below fixtures/ and the macros that give its size.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub file: &'static str,
    pub macros: &'static [&'static str],
}

const fn case(program: &'static str, size: &'static str, file: &'static str, macros: &'static [&'static str]) -> Case {
    Case { program, size, source: Source { file, macros }, limit: None, quick: false }
}

impl Case {
    const fn quick(self) -> Case {
        Case { quick: true, ..self }
    }

    const fn limit(self, executions: u64) -> Case {
        Case { limit: Some(executions), ..self }
    }
}

const MUTEX: &str = "mutex/counter.h";
const ATOMIC: &str = "atomics/relaxed_counter.c";
const READERS: &str = "litmus/readers.h";
const LAST_ZERO: &str = "classic/last_zero.c";
const INDEXER: &str = "classic/indexer.h";
const FILE_SYSTEM: &str = "classic/file_system.h";
const PHILOSOPHERS: &str = "classic/philosophers_ordered.c";
const BUFFER: &str = "cond/bounded_buffer.c";
const STACK: &str = "classic/treiber_stack.c";
const QUEUE: &str = "classic/michael_scott_queue.c";
const WORK_QUEUE: &str = "classic/work_queue.c";
const MANY: &str = "threads/many.c";
const STARTUP: &str = "bench/startup.c";
const HEAP: &str = "bench/heap.c";
const PLAIN: &str = "bench/plain.c";
const CHAIN: &str = "bench/chain.c";

/// In the order in which they are shown. Start-up and heap are the program `mutex` with something before it; the sizes of
/// `chain` are transitions, and it comes with its branching points at the beginning of the trace and at its end.
pub const ALL: &[Case] = &[
    case("mutex", "6", MUTEX, &["THREADS=6"]).quick(),
    case("mutex", "7", MUTEX, &["THREADS=7"]),
    case("mutex", "9", MUTEX, &["THREADS=9"]),
    case("mutex, part", "9", MUTEX, &["THREADS=9"]).limit(5_040),
    case("atomic", "6", ATOMIC, &["THREADS=6"]).quick(),
    case("atomic", "8", ATOMIC, &["THREADS=8"]),
    case("readers", "10", READERS, &["READERS=10"]).quick(),
    case("readers", "14", READERS, &["READERS=14"]),
    case("lastzero", "7", LAST_ZERO, &["N=7"]).quick(),
    case("lastzero", "10", LAST_ZERO, &["N=10"]),
    case("indexer", "14", INDEXER, &["THREADS=14"]).quick(),
    case("indexer", "15", INDEXER, &["THREADS=15"]),
    case("filesystem", "22", FILE_SYSTEM, &["THREADS=22"]).quick(),
    case("filesystem", "24", FILE_SYSTEM, &["THREADS=24"]),
    case("philosophers", "9", PHILOSOPHERS, &["N=9"]).quick(),
    case("philosophers", "12", PHILOSOPHERS, &["N=12"]),
    case("buffer", "3", BUFFER, &["CONSUMERS=3"]).quick(),
    case("buffer", "4", BUFFER, &["CONSUMERS=4"]),
    case("stack", "3", STACK, &["THREADS=3"]).quick(),
    case("queue", "4", QUEUE, &["ITEMS=4"]).quick(),
    case("queue", "5", QUEUE, &["ITEMS=5"]),
    case("work queue", "3", WORK_QUEUE, &["WORKERS=3", "JOBS=4"]).quick(),
    case("work queue", "4", WORK_QUEUE, &["WORKERS=4", "JOBS=5"]),
    case("startup ms", "20", STARTUP, &["THREADS=6", "MILLISECONDS=20"]).quick(),
    case("startup ms", "200", STARTUP, &["THREADS=7", "MILLISECONDS=200"]),
    case("heap MiB", "4", HEAP, &["THREADS=6", "MEBIBYTES=4"]).quick(),
    case("heap MiB", "64", HEAP, &["THREADS=7", "MEBIBYTES=64"]),
    case("plain", "1k", PLAIN, &["THREADS=5", "ACCESSES=1000"]).quick(),
    case("plain", "100k", PLAIN, &["THREADS=5", "ACCESSES=100000"]),
    case("threads", "25", MANY, &["THREADS=25", "MEET=6"]).quick(),
    case("threads", "100", MANY, &["THREADS=100", "MEET=6"]),
    case("threads", "200", MANY, &["THREADS=200", "MEET=6"]),
    case("chain, early", "20", CHAIN, &["THREADS=6", "BEFORE=0", "AFTER=0"]).quick(),
    case("chain, early", "200", CHAIN, &["THREADS=6", "BEFORE=0", "AFTER=30"]).quick(),
    case("chain, early", "2000", CHAIN, &["THREADS=6", "BEFORE=0", "AFTER=330"]),
    case("chain, late", "200", CHAIN, &["THREADS=6", "BEFORE=30", "AFTER=0"]).quick(),
    case("chain, late", "2000", CHAIN, &["THREADS=6", "BEFORE=330", "AFTER=0"]),
];

/// A program with one execution, to measure the way from its start to the verdict.
pub const ONE_EXECUTION: Source = Source { file: "bench/pages.c", macros: &["PAGES=0"] };

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_program_has_a_size_twice() {
        let names: BTreeSet<_> = ALL.iter().map(|c| (c.program, c.size)).collect();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn a_quick_run_leaves_out_no_program() {
        let programs = |cases: Vec<&Case>| cases.iter().map(|c| c.source.file).collect::<BTreeSet<_>>();
        assert_eq!(programs(ALL.iter().filter(|c| c.quick).collect()), programs(ALL.iter().collect()));
    }

    #[test]
    fn all_of_them_are_there() {
        for case in ALL {
            assert!(crate::tools::fixtures().join(case.source.file).is_file(), "{}", case.source.file);
        }
    }
}
