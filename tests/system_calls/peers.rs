//! Servers in other processes, and commands that are run in the program's start.

use crate::{build, common::process, common::tool, expect, run};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Answers as tests/system_calls/peer.c says.
fn answer(mut stream: TcpStream) {
    let mut byte = [0];
    loop {
        match stream.read(&mut byte) {
            Ok(1) if byte[0] == b'?' => {}
            Ok(1) => stream.write_all(&[byte[0] + 1]).unwrap_or(()),
            _ => return stream.write_all(b"done").unwrap_or(()),
        }
    }
}

/// Serves until the tests end; the port, and how many connections there were.
fn serve() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port().to_string();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(|| answer(stream));
        }
    });
    (port, count)
}

#[test]
fn a_server_is_asked_once() {
    let (port, connections) = serve();
    let program = build("peer.c");
    for (what, code, text) in
        [("talk", 0, "ok: no errors"), ("poll", 0, "ok: no errors"), ("shared", 1, "exit status 1")]
    {
        let directory = tool::fresh_directory();
        let mut command = tool::symdpor();
        command
            .args(["run", "--symmetry", "off", "--"])
            .arg(&program)
            .args([&port, what])
            .current_dir(directory.path());
        let ran = process::run(&mut command, tool::LIMIT);
        expect(&ran, code, text);
        expect(&ran, code, "the program talks to other processes");
    }
    // One for each conversation, not for each execution.
    assert!(connections.load(Ordering::SeqCst) < 20, "{connections:?}");
}

#[test]
fn a_server_that_says_nothing_is_named() {
    let (port, _) = serve();
    let text = format!("waits for 127.0.0.1:{port}, which is outside of this process and has sent nothing");
    expect(&run("peer.c", &[&port, "silent"], &[], |_, _| {}), 4, &text);
}

#[test]
fn commands_may_be_run_before_there_are_threads() {
    expect(&run("commands.c", &[], &["--reduction", "none"], |_, _| {}), 0, "ok: no errors");
    expect(&run("commands.c", &["open"], &[], |_, _| {}), 4, "a process that it has started with popen() is there");
}
