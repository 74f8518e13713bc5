//! The sentence that an error is known by.

use symdpor_abi::channel::Header;
use symdpor_trace::FailureKind;
use symdpor_trace::failure::OutputChunk;
use symdpor_worker::decode::RawError;

/// Addresses below this are a null pointer, perhaps with the offset of a member.
const FIRST_PAGE: u64 = 4096;

/// What the runtime says, or what the outcome says by itself; `name` is what the error is about, if it is known.
pub fn message(kind: FailureKind, header: &Header, error: &RawError, name: Option<&str>, has_place: bool) -> String {
    match kind {
        FailureKind::Crash if !error.message.is_empty() => crash(&error.message, error.address, has_place),
        FailureKind::Memory | FailureKind::LockMisuse if !error.message.is_empty() => match name {
            Some(name) => format!("{} ({})", error.message, symdpor_report::place::demangled(name)),
            None => error.message.clone(),
        },
        _ if !error.message.is_empty() => error.message.clone(),
        FailureKind::ExitStatus => format!("the program ended with exit status {}", header.exit_status),
        FailureKind::StepLimit => format!("an execution had more than {} steps", header.max_steps),
        FailureKind::Crash => format!("the program was killed by {}", signal_name(header.signal as i32)),
        FailureKind::Deadlock => "no thread can go on".to_owned(),
        _ => String::new(),
    }
}

/// Where the source is known the instruction's address says nothing.
fn crash(text: &str, address: u64, has_place: bool) -> String {
    match text.split_once(" (instruction ") {
        Some((before, _)) if before.contains("SIGSEGV") && address < FIRST_PAGE => format!("{before}, a null pointer"),
        Some((before, _)) if has_place => without_own_address(before).to_owned(),
        _ => text.to_owned(),
    }
}

/// What these signals tell as the address is that of the instruction.
fn without_own_address(text: &str) -> &str {
    let is_own = ["SIGILL", "SIGTRAP", "SIGFPE"].iter().any(|s| text.contains(s));
    text.split_once(" at address ").filter(|_| is_own).map_or(text, |(before, _)| before)
}

/// An abort after an exception that nobody caught is told by what the C++ library printed last.
pub fn uncaught(message: &str, output: &[OutputChunk]) -> Option<String> {
    const THROWN: &str = "terminate called after throwing an instance of '";
    if !message.contains("SIGABRT") {
        return None;
    }
    let errors = output.iter().filter(|c| c.descriptor == 2).flat_map(|c| c.bytes.iter().copied());
    let bytes: Vec<u8> = errors.collect();
    let text = String::from_utf8_lossy(&bytes);
    if text.trim_end().ends_with("terminate called without an active exception") {
        return Some(
            "std::terminate: a std::thread was destroyed that had been neither joined nor detached, say".into(),
        );
    }
    let (_, after) = text.rsplit_once(THROWN)?;
    let (class, rest) = after.split_once('\'')?;
    let what = rest.split_once("what():").map(|(_, what)| what.trim()).filter(|w| !w.is_empty());
    Some(match what {
        Some(what) => format!("uncaught exception {class}: {what}"),
        None => format!("uncaught exception {class}"),
    })
}

pub fn signal_name(signal: i32) -> String {
    match signal_hook::low_level::signal_name(signal) {
        Some(name) => name.to_owned(),
        None => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_told_only_without_a_place() {
        let text = "segmentation fault (SIGSEGV) at address 0x8 (instruction 0x5555)";
        assert_eq!(crash(text, 8, true), "segmentation fault (SIGSEGV) at address 0x8, a null pointer");
        assert_eq!(crash(text, 0x10_0000, false), text);
        assert_eq!(crash(text, 0x10_0000, true), "segmentation fault (SIGSEGV) at address 0x8");
        assert_eq!(crash("abort (SIGABRT)", 0, true), "abort (SIGABRT)");
        let text = "arithmetic error (SIGFPE) at address 0x5555 (instruction 0x5555)";
        assert_eq!(crash(text, 0x5555, true), "arithmetic error (SIGFPE)");
    }

    #[test]
    fn exceptions_are_found_in_the_output() {
        let printed = b"x\nterminate called after throwing an instance of 'std::runtime_error'\n  what():  no value\n";
        let output = [OutputChunk { descriptor: 2, bytes: printed.to_vec() }];
        let told = uncaught("abort (SIGABRT)", &output);
        assert_eq!(told.as_deref(), Some("uncaught exception std::runtime_error: no value"));
        assert_eq!(uncaught("abort (SIGABRT)", &[]), None);
        let number =
            OutputChunk { descriptor: 2, bytes: b"terminate called after throwing an instance of 'int'\n".to_vec() };
        assert_eq!(uncaught("abort (SIGABRT)", &[number]).as_deref(), Some("uncaught exception int"));
        let without = b"terminate called without an active exception\n".to_vec();
        let told = uncaught("abort (SIGABRT)", &[OutputChunk { descriptor: 2, bytes: without }]);
        assert!(told.is_some_and(|t| t.contains("neither joined nor detached")));
    }
}
