//! The background process that does queued memory work.
//!
//! Effects: the clock, the store (reads), processes.

use crate::cli::args::GlobalArgs;
use crate::cli::env::ProcessEnv;
use std::process::Stdio;
use stead::agent::Agent;
use tokio::process::Command;

/// The variable that turns the background process off.
const BACKGROUND_VARIABLE: &str = "STEAD_BACKGROUND";

/// Whether a background process may be started.
pub(crate) fn is_enabled(env: &ProcessEnv) -> bool {
    env.get(BACKGROUND_VARIABLE).as_deref() != Some("0")
}

/// Starts `stead memory work` for the same agent if memory work is due, and does not wait for it. If
/// it cannot be started, the next background process does the work.
pub(crate) async fn start_worker(common: &GlobalArgs, env: &ProcessEnv, agent: &Agent) {
    let Some(executable) = env
        .executable
        .as_ref()
        .filter(|_| is_enabled(env) && agent.memory().extracts_facts())
        .filter(|_| !agent.workspace().trust.is_restricted())
    else {
        return;
    };
    // What cannot be read is told by `stead memory status`.
    let due = agent.memory().is_work_due(&agent.owner().tenant).await;
    if !due.unwrap_or(false) {
        return;
    }
    let mut command = Command::new(executable);
    let started = command
        .args(["memory", "work"])
        .args(common.agent_args())
        .current_dir(&env.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    drop(started);
}

/// Detaches from the terminal of the parent process, so that closing it does not end the work.
pub(super) fn detach_from_terminal() {
    // The leader of a process group, as in the foreground of a shell, stays attached.
    let _ = rustix::process::setsid();
}
