//! Failing schedules are made simple, and the original ones are kept.

use crate::Failed;
use crate::common::{process, tool};
use symdpor_trace::Choice;

fn switches(choices: &[Choice]) -> usize {
    choices.windows(2).filter(|w| w[0].thread != w[1].thread).count()
}

/// All interleavings in an order that knows nothing of simple ones: what is found first is seldom simple.
const NAMES: [&str; 8] = [
    "mutex/ab_ba.c",
    "cond/lost_wakeup.c",
    "cond/if_instead_of_while.c",
    "cond/bounded_buffer_one_cond.c",
    "crash/assertion_in_thread.c",
    "memory/use_after_free.c",
    "races/rare.c",
    "mutex/trylock_assumed.c",
];

#[test]
fn both_schedules_are_kept_and_lead_to_the_error() {
    let mut simpler = 0;
    for name in NAMES {
        let failed = Failed::with(name, &["--reduction", "dpor", "--symmetry", "off"]);
        let file = failed.file();
        for flags in [&["replay"][..], &["replay", "--original"]] {
            let mut command = tool::symdpor();
            command.current_dir(tool::root()).args(flags).arg(&failed.trace);
            let ran = process::run(&mut command, tool::LIMIT);
            assert_eq!(ran.code(), Some(1), "{name} {flags:?}: {}", ran.describe());
        }
        if let Some(original) = &file.original {
            let weight = |c: &[Choice]| (switches(c), c.len());
            assert!(weight(&file.choices) < weight(original), "{name}");
            simpler += 1;
        }
    }
    assert!(simpler > 0, "nothing was made simpler");
}

#[test]
fn the_same_run_gives_the_same_schedule() {
    for name in ["cond/if_instead_of_while.c", "races/rare.c"] {
        let (one, other) = (Failed::new(name).file(), Failed::new(name).file());
        assert_eq!((one.choices, one.original), (other.choices, other.original), "{name}");
    }
}
