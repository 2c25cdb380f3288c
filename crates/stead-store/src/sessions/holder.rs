//! The process that holds a session, and whether it is still alive.
//!
//! Effects: the clock, randomness, the local disk (reads).

use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// The holder of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// The process id, or `None` if the process is not visible from here, for example in another
    /// container or machine.
    pub pid: Option<u32>,
    /// The program that the process runs.
    pub program: Option<String>,
    /// The machine, if it is another one.
    pub host: Option<String>,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.pid, &self.program) {
            (Some(pid), Some(program)) => write!(f, "process {pid} ({program})"),
            (Some(pid), None) => write!(f, "process {pid}"),
            (None, _) => f.write_str("another process"),
        }?;
        self.host
            .iter()
            .try_for_each(|host| write!(f, " on {host}"))
    }
}

/// The identity of a process in a lease. From the same machine it tells whether the process still
/// runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// A value that differs for every lease request.
    nonce: String,
    host: String,
    pid: u32,
    program: String,
    /// The boot of the machine and the process namespace, which differs between containers.
    machine: String,
    /// The start time of the process in kernel ticks. Process ids are reused, but not together with
    /// the start time.
    began: u64,
}

impl ProcessIdentity {
    /// Returns the identity of this process for one lease.
    pub fn fresh() -> Self {
        let pid = std::process::id();
        let program = read(&format!("/proc/{pid}/comm"));
        let host = read("/proc/sys/kernel/hostname");
        let began = process_start_ticks(pid).unwrap_or(0);
        let nonce = uuid::Uuid::now_v7().simple().to_string();
        Self {
            nonce,
            host,
            pid,
            program,
            machine: machine_id().to_owned(),
            began,
        }
    }

    /// Returns the text form that is written into the lease.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses the text form, or returns `None` if the text has another format.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns whether the process is certainly gone: it ran on this machine and no longer does. A
    /// process of another machine is never known to be gone.
    pub fn is_gone(&self) -> bool {
        let here = self.machine == machine_id() && !machine_id().is_empty() && self.began > 0;
        here && process_start_ticks(self.pid) != Some(self.began)
    }

    /// Returns whether the process certainly runs: it is on this machine, and not stopped. One that
    /// is stopped may sleep past its lease.
    pub fn is_running(&self) -> bool {
        let here = self.machine == machine_id() && !machine_id().is_empty() && self.began > 0;
        let is_stopped = || matches!(process_status(self.pid).as_deref(), Some("T" | "t"));
        here && process_start_ticks(self.pid) == Some(self.began) && !is_stopped()
    }

    /// Returns the holder for messages.
    pub fn holder(&self) -> Holder {
        let here = self.machine == machine_id();
        let host = (!here).then(|| self.host.clone());
        Holder {
            pid: Some(self.pid),
            program: Some(self.program.clone()),
            host,
        }
    }
}

/// Returns an id of this boot of this machine as seen from this container.
fn machine_id() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let boot = read("/proc/sys/kernel/random/boot_id");
        let view = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        if boot.is_empty() {
            boot
        } else {
            format!("{boot} {}", view.display())
        }
    })
}

/// Returns the start time of a process, or `None` if it does not exist or is a zombie.
fn process_start_ticks(pid: u32) -> Option<u64> {
    let fields = process_fields(pid)?;
    let is_dead = matches!(fields.first()?.as_str(), "Z" | "X");
    if is_dead {
        None
    } else {
        fields.get(19)?.parse().ok()
    }
}

/// Returns the state of a process as the kernel names it, such as `R` or `T`.
fn process_status(pid: u32) -> Option<String> {
    process_fields(pid)?.into_iter().next()
}

/// Returns the fields of `/proc/PID/stat` after the name.
fn process_fields(pid: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; the fields after it are counted from its end.
    let fields = stat.get(stat.rfind(')')? + 2..)?.split(' ');
    Some(fields.map(str::to_owned).collect())
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_process_is_not_gone_and_a_dead_or_reborn_one_is() {
        let me = ProcessIdentity::parse(&ProcessIdentity::fresh().text()).unwrap();
        assert!(!me.is_gone());
        assert!(
            ProcessIdentity {
                began: me.began + 1,
                ..me.clone()
            }
            .is_gone(),
            "the same number, another process"
        );
        assert!(
            ProcessIdentity {
                pid: u32::MAX,
                ..me.clone()
            }
            .is_gone()
        );
        assert!(
            !ProcessIdentity {
                machine: "elsewhere".into(),
                pid: u32::MAX,
                ..me
            }
            .is_gone(),
            "nothing is known"
        );
    }
}
