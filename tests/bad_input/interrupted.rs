//! The tool itself is stopped, killed, or cannot write.

use crate::common::build::With;
use crate::common::leftovers;
use crate::common::process;
use crate::{LIMIT, MARK, Place, expect};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Enough interleavings to be busy for long.
const LONG: &str = "#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *unused)
{
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}
int main(void)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
";

const CRASH: &str = "#include <stdlib.h>\nint main(void) { abort(); }\n";

/// Starts a long run and waits until there are a controller and a worker.
fn start_long(place: &Place) -> Child {
    let program = place.build(LONG, With::Pass, &["-O1"]);
    let child = process::start(place.run_command().arg("--json").arg("-").arg(program));
    let deadline = Instant::now() + Duration::from_secs(20);
    while leftovers::processes(MARK, &place.mark).len() < 2 {
        assert!(Instant::now() < deadline, "no worker was started");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    child
}

fn send(child: &Child, signal: i32) {
    let id = i32::try_from(child.id()).expect("process ids are small");
    // SAFETY: kill has no memory effects; the child has not been waited for, so the id is still its own.
    assert_eq!(unsafe { libc::kill(id, signal) }, 0);
}

#[test]
fn a_killed_controller_leaves_no_worker() {
    let place = Place::new();
    let mut child = start_long(&place);
    send(&child, libc::SIGKILL);
    child.wait().expect("it was killed");
    place.nothing_left();
}

#[test]
fn an_interrupt_ends_with_what_is_known() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let place = Place::new();
        let mut child = start_long(&place);
        send(&child, signal);
        let status = process::wait(&mut child, Instant::now() + LIMIT);
        let output = child.wait_with_output().expect("it has ended");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(status.and_then(|s| s.code()), Some(3), "{text}");
        assert!(text.contains("interrupted") && text.contains("\"incomplete\""), "{text}");
        place.nothing_left();
    }
}

#[test]
fn a_worker_that_is_killed_from_outside_does_not_hang_the_run() {
    let place = Place::new();
    let mut child = start_long(&place);
    let workers = leftovers::processes(MARK, &place.mark).into_iter().filter(|id| *id != child.id());
    for id in workers {
        let id = i32::try_from(id).expect("process ids are small");
        // SAFETY: kill has no memory effects; the process carries this test's mark.
        unsafe { libc::kill(id, libc::SIGKILL) };
    }
    let status = process::wait(&mut child, Instant::now() + Duration::from_secs(20));
    if status.is_none() {
        // Another worker went on: just as good.
        send(&child, libc::SIGINT);
        assert!(process::wait(&mut child, Instant::now() + LIMIT).is_some());
    }
    place.nothing_left();
}

#[test]
fn limits_end_cleanly() {
    let place = Place::new();
    let program = place.build(LONG, With::Pass, &["-O1"]);
    let limits = [(["--max-executions", "100"], "100 executions"), (["--time-limit", "500ms"], "time limit")];
    for (options, said) in limits {
        let ran = place.finish(place.run_command().args(options).arg("--quiet").arg(&program));
        expect(&ran, 3, &["incomplete", said]);
    }
    // 24 locks and unlocks, creation and joins are more than 20 steps.
    let ran = place.finish(place.run_command().args(["--max-steps", "20", "--quiet"]).arg(&program));
    expect(&ran, 1, &["step-limit"]);
}

#[test]
fn results_that_cannot_be_written() {
    let place = Place::new();
    let program = place.build(CRASH, With::Pass, &[]);
    let ran = place.finish(place.run_command().args(["--quiet", "--json", "/dev/full"]).arg(&program));
    expect(&ran, 2, &["/dev/full", "No space left"]);
    let ran = place.finish(place.run_command().args(["--quiet", "--json", "/nowhere/x.json"]).arg(&program));
    expect(&ran, 2, &["/nowhere/x.json"]);
    // The verdict stands without its trace.
    let ran = place.finish(place.run_command().args(["--quiet", "--trace-dir", "/proc/nowhere"]).arg(&program));
    expect(&ran, 1, &["crash", "could not be written"]);
}

#[test]
fn standard_output_is_full_or_closed() {
    let place = Place::new();
    let program = place.build(CRASH, With::Pass, &[]);
    for redirection in [">/dev/full", ">&-", ">&- 2>&-"] {
        let command = format!("exec \"$0\" run --quiet \"$1\" {redirection}");
        let symdpor = crate::common::tool::directory().join("symdpor");
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).arg(symdpor).arg(&program).current_dir(place.directory.path());
        let ran = place.finish(shell.env(MARK, &place.mark));
        assert_eq!(ran.code(), Some(1), "{redirection}: {}", ran.describe());
    }
}
