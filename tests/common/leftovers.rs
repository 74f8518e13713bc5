//! What a run may leave behind: nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Processes whose environment has the variable with this value, by id. Zombies have no environment and are none.
pub fn processes(variable: &str, value: &str) -> Vec<u32> {
    let wanted = format!("{variable}={value}");
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let ids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| *id != std::process::id() && has_variable(*id, wanted.as_bytes())).collect()
}

fn has_variable(id: u32, wanted: &[u8]) -> bool {
    fs::read(format!("/proc/{id}/environ")).is_ok_and(|e| e.split(|b| *b == 0).any(|v| v == wanted))
}

/// Waits until there is no such process, at most some seconds: the kernel may still be cleaning up.
pub fn wait_for_none(variable: &str, value: &str) -> Result<(), String> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let left = processes(variable, value);
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(format!("processes left behind: {left:?}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Names of what is in a directory.
pub fn files(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}
