//! The process tree of a command: the command with everything it started.
//!
//! Effects: the clock, randomness, the local disk (reads), processes.

use crate::{namespaces, orphans};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use uuid::Uuid;

/// The environment variable that identifies the processes of a command. An existing value is kept
/// in front, so that a command within a command can still be found by the outer one.
pub const EXEC_ID_ENV: &str = "STEAD_EXEC_ID";

/// The time that killed processes outside the group may take to end.
const KILL_WAIT: Duration = Duration::from_millis(300);
/// The same time in a destructor, which must not block for long.
const KILL_WAIT_ON_DROP: Duration = Duration::from_millis(20);

const SHELL: &str = "/bin/sh";
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Waits for the end of this process, which holds the other end of the script's input. Then kills
/// all processes with the id `$1` and its own group, in passes until one finds nothing, so that
/// processes started meanwhile are found too.
const GUARD_SCRIPT: &str = r#"
trap '' TERM INT HUP QUIT
read -r _
passes=0
while [ $passes -lt 20 ]; do
  found=no
  for environ in /proc/[0-9]*/environ; do
    if grep -qsF "$1" "$environ"; then
      process=${environ#/proc/}
      kill -KILL "${process%/environ}" && found=yes
    fi
  done
  [ $found = no ] && break
  passes=$((passes + 1))
done
kill -KILL 0
"#;

/// A process group with a guard as its leader, and the processes that left it but kept its id.
///
/// The guard is a child process that is waited for last: as long as the tree exists, its process id
/// is not reused. It kills the tree if this process is killed. A parent-death signal would not do
/// that: it reaches one process, and is sent when the thread that started it ends.
pub(crate) struct ProcessTree {
    guard: Child,
    group: Option<Pid>,
    exec_id: String,
}

impl ProcessTree {
    /// Creates a tree whose first process will be `command`, which is not started yet.
    pub(crate) fn attach(command: &mut Command) -> io::Result<Self> {
        let mark = Uuid::now_v7().to_string();
        let mut guard = Command::new(SHELL);
        guard
            .args(["-c", GUARD_SCRIPT, "stead-guard", &mark])
            .env_clear()
            .env("PATH", PATH)
            .current_dir("/");
        guard
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let guard = guard.process_group(0).kill_on_drop(true).spawn()?;
        let group = guard
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        let family = Self {
            guard,
            group,
            exec_id: mark,
        };
        let leader = family
            .group
            .ok_or_else(|| io::Error::other("its guard has no number"))?;
        let outer = command
            .as_std()
            .get_envs()
            .find_map(|(name, value)| value.filter(|_| name == EXEC_ID_ENV));
        let mark = match outer.and_then(|outer| outer.to_str()) {
            Some(outer) => format!("{outer}:{}", family.exec_id),
            None => family.exec_id.clone(),
        };
        command
            .process_group(leader.as_raw_nonzero().get())
            .env(EXEC_ID_ENV, mark);
        Ok(family)
    }

    /// Sends a signal to the group. Fails only if the group is empty.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }

    /// Asks the processes of the group to end that live in a process namespace of their own, except
    /// the first of that namespace.
    pub(crate) fn terminate_inside(&self) {
        if let Some(group) = self.group {
            namespaces::terminate_inside(group);
        }
    }

    /// Kills everything that is left of the tree.
    pub(crate) async fn kill_all(&mut self) {
        self.signal(Signal::KILL);
        let mark = self.exec_id.clone();
        // Checking every process takes a while. Fails only if the runtime is shutting down.
        let _ = tokio::task::spawn_blocking(move || orphans::kill_orphans(&mark, KILL_WAIT)).await;
        // From here on the process id may be reused.
        self.group = None;
        let _ = self.guard.wait().await;
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if self.group.is_some() {
            self.signal(Signal::KILL);
            orphans::kill_orphans(&self.exec_id, KILL_WAIT_ON_DROP);
        }
    }
}
