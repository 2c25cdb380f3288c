//! Finding the processes of a command inside a process namespace, from outside.
//!
//! Effects: the local disk (reads), processes.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;

/// Asks the processes of `group` to end that live in a process namespace below that of this
/// process, except the first of each namespace, which keeps it.
pub(crate) fn terminate_inside(group: Pid) {
    let Some(own_depth) = status("self").map(|own| own.numbers.len()) else {
        return;
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = processes.filter_map(|entry| entry.file_name().into_string().ok());
    for name in names.filter(|name| name.parse::<i32>().is_ok()) {
        let Some(found) = status(&name) else {
            continue;
        };
        if found.group != group.as_raw_nonzero().get() || !found.is_inside(own_depth) {
            continue;
        }
        if let Some(process) = name.parse().ok().and_then(Pid::from_raw) {
            // Fails if it has ended.
            let _ = kill_process(process, Signal::TERM);
        }
    }
}

/// What `/proc/<number>/status` says about a process.
#[derive(Debug, PartialEq, Eq)]
struct ProcessStatus {
    /// Its group, as this process counts.
    group: i32,
    /// Its number in each namespace, from that of this process to its own.
    numbers: Vec<i32>,
}

impl ProcessStatus {
    fn is_inside(&self, own_depth: usize) -> bool {
        self.numbers.len() > own_depth && self.numbers.last() != Some(&1)
    }
}

fn status(process: &str) -> Option<ProcessStatus> {
    parse(&fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

fn parse(status: &str) -> Option<ProcessStatus> {
    let numbers = |name: &str| -> Option<Vec<i32>> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace()
            .map(|number| number.parse().ok())
            .collect()
    };
    Some(ProcessStatus {
        group: *numbers("NSpgid:")?.first()?,
        numbers: numbers("NSpid:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_inside_that_keep_no_namespace_are_asked_to_end() {
        let status = |numbers: &str| {
            parse(&format!("Name:\tsh\nNSpid:\t{numbers}\nNSpgid:\t40\t0\n")).unwrap()
        };
        assert_eq!(status("40").group, 40);
        for (numbers, is_inside) in [
            ("40", false),
            ("41\t1", false),
            ("42\t2", true),
            ("43\t7\t1", false),
        ] {
            assert_eq!(status(numbers).is_inside(1), is_inside, "{numbers}");
        }
        assert_eq!(parse("Name: x"), None);
    }
}
