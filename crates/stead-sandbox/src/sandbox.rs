//! The contract of a sandbox.
//!
//! Effects: none.

use crate::{Mounts, OutputSink};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Runs commands.
pub trait Sandbox: Debug + Send + Sync {
    /// Describes where and in which shell a command runs, as text that follows "Commands run ".
    fn describe(&self) -> String;

    /// Returns the walls that commands run behind.
    fn isolation(&self) -> Isolation;

    /// Runs a command to its end and passes the data of both outputs to `sink` in the order of
    /// arrival.
    ///
    /// The command gets no input. On return nothing that it started is left, as far as the sandbox
    /// can reach it. The same holds if the future is dropped, but then the command is killed
    /// without a request to end.
    fn exec<'a>(
        &'a self,
        exec: Exec,
        sink: &'a mut dyn OutputSink,
    ) -> BoxFuture<'a, Result<ExecOutcome, SandboxError>>;
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

    /// Returns whether commands reach neither the machine nor the network.
    pub fn is_complete(self) -> bool {
        !self.is_none() && self.network.is_blocked()
    }
}

/// A command with its limits.
#[derive(Debug, Clone)]
pub struct Exec {
    /// The command line for the shell.
    pub command: String,
    /// The working directory, as seen in the sandbox.
    pub cwd: PathBuf,
    /// Variables beside those that the sandbox gives every command.
    pub env: BTreeMap<String, String>,
    /// The folders of this machine that the command sees, if the sandbox has walls for files.
    pub mounts: Mounts,
    /// The maximum run time.
    pub timeout: Duration,
    /// Stops the command.
    pub cancel: CancellationToken,
}

impl Exec {
    /// The default maximum run time.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

    /// Returns `command` in the folder `cwd`.
    pub fn new(command: impl Into<String>, cwd: impl Into<PathBuf>) -> Self {
        let command = command.into();
        let cwd = cwd.into();
        let cancel = CancellationToken::new();
        Self {
            command,
            cwd,
            env: BTreeMap::new(),
            mounts: Mounts::default(),
            timeout: Self::DEFAULT_TIMEOUT,
            cancel,
        }
    }

    /// Sets the maximum run time.
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the folders that the command sees.
    pub fn with_mounts(self, mounts: Mounts) -> Self {
        Self { mounts, ..self }
    }

    /// Sets the token that stops the command.
    pub fn with_cancel(self, cancel: CancellationToken) -> Self {
        Self { cancel, ..self }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecOutcome {
    /// It exited with this code.
    Exited(i32),
    /// It was ended by this signal.
    Signalled(i32),
    /// It was stopped because its time was up.
    TimedOut,
    /// It was stopped because it was cancelled.
    Cancelled,
    /// It was stopped because the sink accepts no more output.
    OutputFull,
    /// It was stopped because it wrote more to the disk than it may.
    OutOfDisk,
}

/// The reason why a command did not run, or its end is unknown.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// It could not be started.
    #[error("the command could not be started: {0}")]
    Start(#[source] io::Error),
    /// Its end could not be determined; everything left of it was killed.
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
            for network in [Access::Allowed, blocked] {
                let isolation = Isolation {
                    files,
                    processes,
                    network,
                    limits: Access::Allowed,
                };
                let is_complete = !is_none && network == blocked;
                assert_eq!(
                    (isolation.is_none(), isolation.is_complete()),
                    (is_none, is_complete),
                    "{isolation:?}"
                );
            }
        }
    }
}
