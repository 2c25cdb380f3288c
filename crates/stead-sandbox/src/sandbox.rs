//! The contract of a sandbox, on one screen.

use crate::OutputSink;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Runs commands somewhere.
pub trait Sandbox: Debug + Send + Sync {
    /// What kind it is.
    fn kind(&self) -> SandboxKind;

    /// Where a command runs and what reads it, in words that follow "Commands run ".
    fn describe(&self) -> String;

    /// What it keeps commands away from.
    fn isolation(&self) -> Isolation;

    /// Runs a command to its end; what it writes to both its outputs goes to `sink` in the order in
    /// which it comes.
    ///
    /// It gets no input. On return nothing is left of what it started, as far as the sandbox can
    /// reach it; the same, without asking it to end first, if the future is dropped.
    fn exec<'a>(
        &'a self,
        exec: Exec,
        sink: &'a mut dyn OutputSink,
    ) -> BoxFuture<'a, Result<ExecOutcome, SandboxError>>;
}

/// The kinds of sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxKind {
    /// None: the machine itself.
    Host,
}

/// The walls that commands run behind, one for each kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isolation {
    /// Files outside the workspace.
    pub files: Access,
    /// Processes that the command did not start.
    pub processes: Access,
    /// Other machines.
    pub network: Access,
    /// Memory, processor time, processes and disk space beyond a limit.
    pub limits: Access,
}

/// Whether commands reach a kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Commands cannot reach it.
    Blocked {
        /// The mechanism that enforces this, such as `"a network namespace"`.
        by: &'static str,
    },
    /// Commands reach it with the rights of the user who runs this process.
    Allowed,
}

impl Access {
    /// Returns whether commands cannot reach the resource.
    pub fn is_blocked(self) -> bool {
        match self {
            Self::Blocked { .. } => true,
            Self::Allowed => false,
        }
    }
}

impl Isolation {
    /// No walls: commands can do everything that the user who runs this process can.
    pub const NONE: Self = Self {
        files: Access::Allowed,
        processes: Access::Allowed,
        network: Access::Allowed,
        limits: Access::Allowed,
    };

    /// Returns whether the machine is open to commands: they reach files outside the workspace or
    /// processes of others. A person must approve such commands.
    pub fn is_none(self) -> bool {
        !(self.files.is_blocked() && self.processes.is_blocked())
    }
}

/// A command, and what bounds it.
#[derive(Debug, Clone)]
pub struct Exec {
    /// What a shell is told.
    pub command: String,
    /// The folder it begins in, as the sandbox knows it.
    pub cwd: PathBuf,
    /// Variables beside those that the sandbox gives every command.
    pub env: BTreeMap<String, String>,
    /// How long it may run.
    pub timeout: Duration,
    /// Stops it.
    pub cancel: CancellationToken,
}

impl Exec {
    /// How long a command may run, unless said otherwise.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

    /// `command` in the folder `cwd`.
    pub fn new(command: impl Into<String>, cwd: impl Into<PathBuf>) -> Self {
        let command = command.into();
        let cwd = cwd.into();
        let cancel = CancellationToken::new();
        Self {
            command,
            cwd,
            env: BTreeMap::new(),
            timeout: Self::DEFAULT_TIMEOUT,
            cancel,
        }
    }

    /// The same with another time limit.
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The same, stopped by `cancel`.
    pub fn with_cancel(self, cancel: CancellationToken) -> Self {
        Self { cancel, ..self }
    }
}

/// How a command came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecOutcome {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Stopped: its time was up.
    TimedOut,
    /// Stopped: it was cancelled.
    Cancelled,
    /// Stopped: no more of its output is kept.
    OutputFull,
}

/// Why a command did not run, or nobody knows how it ended.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// It did not begin.
    #[error("the command could not be started: {0}")]
    Start(#[source] io::Error),
    /// It was lost on its way; whatever was left of it is ended.
    #[error("the command was lost: {0}")]
    Lost(#[source] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_closed_only_if_files_and_processes_are_blocked() {
        let blocked = Access::Blocked { by: "a test" };
        for (files, processes, is_none) in [
            (Access::Allowed, Access::Allowed, true),
            (blocked, Access::Allowed, true),
            (Access::Allowed, blocked, true),
            (blocked, blocked, false),
        ] {
            let isolation = Isolation {
                files,
                processes,
                ..Isolation::NONE
            };
            assert_eq!(isolation.is_none(), is_none, "{isolation:?}");
        }
    }
}
