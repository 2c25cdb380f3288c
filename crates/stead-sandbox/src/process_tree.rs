//! A process and all that it starts.

use crate::orphans;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use uuid::Uuid;

/// The variable by which what a command started is found again. One that is there already is kept
/// in front, so that a command that runs commands of its own stays within reach of whoever began.
pub const EXEC_ID_ENV: &str = "STEAD_EXEC_ID";

/// How long processes outside the group may take to be gone once they are killed.
const KILL_WAIT: Duration = Duration::from_millis(300);
/// The same where nobody can be kept waiting.
const KILL_WAIT_ON_DROP: Duration = Duration::from_millis(20);

const SHELL: &str = "/bin/sh";
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Waits for the end of this process, which holds the other end of its input, and then ends what
/// has the mark `$1` and its own group. A pass that finds nothing is the last, so that what is
/// started meanwhile is found, too.
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

/// A process group with a guard at its head, and what left it with its mark.
///
/// The guard is a child of ours that is waited for last: as long as there is a family, its number
/// is nobody else's. It ends the family if this process is killed, which no signal at the death of
/// a parent would do: that reaches one process, and comes when the thread ends that started it.
pub(crate) struct ProcessTree {
    guard: Child,
    group: Option<Pid>,
    exec_id: String,
}

impl ProcessTree {
    /// A family that `command`, which is yet to be started, will be the first of.
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

    /// Sent to the group; fails only if nobody is in it any more.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }

    /// Ends all that is left of it.
    pub(crate) async fn kill_all(&mut self) {
        self.signal(Signal::KILL);
        let mark = self.exec_id.clone();
        // Looking at every process takes a while. It fails only if the runtime is on its way out.
        let _ = tokio::task::spawn_blocking(move || orphans::kill_orphans(&mark, KILL_WAIT)).await;
        // From here on its number may be another's.
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
