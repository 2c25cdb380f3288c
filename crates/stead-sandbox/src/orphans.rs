//! Killing orphan processes: those that left the process group of their command.
//!
//! Effects: the clock, the local disk (reads), processes.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

/// The number of processes checked in one pass.
const MAX_PROCESSES: usize = 65_536;
/// The part of an environment that is searched: commands are given a small one.
const MAX_ENVIRON_BYTES: u64 = 8 * 1024 * 1024;
/// The time between two passes.
const PASS_INTERVAL: Duration = Duration::from_millis(2);

/// Kills every process whose environment contains `mark`, until none is found or `patience` is
/// over. A dead process has no environment, so one that is no longer found is gone.
pub(crate) fn kill_orphans(mark: &str, patience: Duration) {
    let end = Instant::now() + patience;
    while kill_pass(mark) > 0 && Instant::now() < end {
        std::thread::sleep(PASS_INTERVAL);
    }
}

/// Performs one pass. Returns the number of processes found.
fn kill_pass(mark: &str) -> usize {
    let Ok(listing) = std::fs::read_dir("/proc") else {
        return 0;
    };
    let pids = listing
        .flatten()
        .take(MAX_PROCESSES)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut environ = Vec::new();
    pids.filter(|pid| has_exec_id(*pid, mark, &mut environ))
        .map(|pid| kill(pid, mark))
        .count()
}

/// Kills the process if it is still the one that was checked.
fn kill(pid: i32, mark: &str) {
    let Some(process) = Pid::from_raw(pid) else {
        return;
    };
    let Ok(held) = pidfd_open(process, PidfdFlags::empty()) else {
        return;
    };
    if has_exec_id(pid, mark, &mut Vec::new()) {
        // Fails if the process has ended, or belongs to another user.
        let _ = pidfd_send_signal(held, Signal::KILL);
    }
}

/// Returns whether the environment of a readable process contains `mark`.
fn has_exec_id(pid: i32, mark: &str, environ: &mut Vec<u8>) -> bool {
    environ.clear();
    let Ok(file) = File::open(format!("/proc/{pid}/environ")) else {
        return false;
    };
    let read = file.take(MAX_ENVIRON_BYTES).read_to_end(environ);
    read.is_ok() && memchr::memmem::find(environ, mark.as_bytes()).is_some()
}
