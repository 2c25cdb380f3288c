//! Running a child process and streaming its output.
//!
//! Effects: the clock, randomness, the local disk (reads), processes.

use crate::process_tree::ProcessTree;
use crate::{ExecOutcome, OutputSink, SandboxError, SinkState};
use rustix::process::Signal;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// The number of bytes read at once: the capacity of a pipe.
const READ_BYTES: usize = 64 * 1024;
/// The time that a process has to end after `SIGTERM`.
pub(crate) const TERM_GRACE: Duration = Duration::from_millis(300);
/// The time to wait for the rest of the output after the process ended, because an orphan may hold
/// the pipe open.
pub(crate) const DRAIN_GRACE: Duration = Duration::from_millis(200);
/// How long nothing must come before the sink hears of it.
const QUIET_TIME: Duration = Duration::from_millis(150);
/// Longer than any process lives, and within the range of the clock.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The limits of a child process.
#[derive(Debug, Clone)]
pub struct ExecLimits {
    /// The maximum run time.
    pub timeout: Duration,
    /// Stops the process.
    pub cancel: CancellationToken,
}

/// Runs `command` to its end and passes the data of both outputs to `sink` in the order of arrival.
/// The command gets no input.
///
/// Guarantee: on return, nothing that the command started is left running. A command that is
/// stopped gets `SIGTERM` first; then everything in its process group is killed, and everything
/// that left the group but kept the variable [`EXEC_ID_ENV`](crate::EXEC_ID_ENV). The same holds
/// without `SIGTERM` if the future is dropped or this process is killed.
///
/// Not covered: processes that left both the group and the environment, and work that another
/// service was asked to do.
pub async fn capture(
    command: Command,
    sink: &mut dyn OutputSink,
    bounds: &ExecLimits,
) -> Result<ExecOutcome, SandboxError> {
    capture_with(command, sink, bounds, Keeper::None).await
}

/// Whether processes keep the walls of a command and end it by ending themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeper {
    /// No process does.
    None,
    /// Those outside the command's process namespace, and its first process. A request to end is
    /// not for them.
    Namespace,
}

/// Does the same as [`capture`] for a command whose walls a process keeps.
pub(crate) async fn capture_with(
    mut command: Command,
    sink: &mut dyn OutputSink,
    bounds: &ExecLimits,
    keeper: Keeper,
) -> Result<ExecOutcome, SandboxError> {
    let deadline = Instant::now() + bounds.timeout.min(MAX_TIMEOUT);
    let mut family = ProcessTree::attach(&mut command).map_err(SandboxError::Start)?;
    let begun = spawn(command);
    let (mut child, mut output) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            family.kill_all().await;
            return Err(SandboxError::Start(error));
        }
    };
    let ended = tokio::select! {
        biased;
        () = bounds.cancel.cancelled() => Ok(ExecOutcome::Cancelled),
        () = sleep_until(deadline) => Ok(ExecOutcome::TimedOut),
        ended = copy_output(&mut child, &mut output, sink) => ended,
    };
    match ended {
        Ok(ExecOutcome::Exited(_) | ExecOutcome::Signalled(_)) | Err(_) => {}
        Ok(
            ExecOutcome::TimedOut
            | ExecOutcome::Cancelled
            | ExecOutcome::OutputFull
            | ExecOutcome::OutOfDisk,
        ) => {
            if !matches!(ended, Ok(ExecOutcome::OutputFull)) {
                // Output from before the stop counts even if it was not read yet; whether the sink
                // is full now does not matter.
                let _ = sink.write(output.read_available()).await;
            }
            match keeper {
                Keeper::None => family.signal(Signal::TERM),
                Keeper::Namespace => family.terminate_inside(),
            }
            let _ = timeout(TERM_GRACE, drain_until_exit(&mut child, &mut output)).await;
        }
    }
    // Fails only if the process has ended.
    let _ = child.start_kill();
    family.kill_all().await;
    child.wait().await.map_err(SandboxError::Lost)?;
    ended.map_err(SandboxError::Lost)
}

/// Starts the command with one pipe for both outputs, so that they stay in order.
fn spawn(mut command: Command) -> io::Result<(Child, OutputPipe)> {
    let (reader, writer) = io::pipe()?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .kill_on_drop(true);
    let child = command.spawn()?;
    // Drops our own copy of the write end, without which the pipe would never end.
    drop(command);
    let source = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
    Ok((
        child,
        OutputPipe {
            source: Some(source),
            buffer: vec![0; READ_BYTES].into(),
        },
    ))
}

/// Copies output until the process has ended and the pipe is drained, or the sink is full.
async fn copy_output(
    child: &mut Child,
    output: &mut OutputPipe,
    sink: &mut dyn OutputSink,
) -> io::Result<ExecOutcome> {
    let mut exited: Option<(ExitStatus, Instant)> = None;
    let mut is_quiet = true;
    loop {
        let drained = match exited {
            Some((status, _)) if output.source.is_none() => return Ok(exit_outcome(status)),
            Some((_, at)) => at + DRAIN_GRACE,
            None => Instant::now(),
        };
        let said = tokio::select! {
            biased;
            // Checked first, or a process that holds the pipe and keeps writing would prevent the
            // end.
            () = sleep_until(drained), if exited.is_some() => output.read_remaining(),
            read = output.fill(), if output.source.is_some() => &output.buffer[..read?],
            status = child.wait(), if exited.is_none() => {
                exited = Some((status?, Instant::now()));
                continue;
            }
            () = sleep(QUIET_TIME), if !is_quiet => {
                is_quiet = true;
                sink.pause();
                continue;
            }
        };
        is_quiet = false;
        if sink.write(said).await == SinkState::Full {
            return Ok(ExecOutcome::OutputFull);
        }
    }
}

/// Waits for the end of the process. Output is read so that it does not block the process, and
/// discarded.
async fn drain_until_exit(child: &mut Child, output: &mut OutputPipe) {
    loop {
        tokio::select! {
            biased;
            _ = child.wait() => return,
            read = output.fill(), if output.source.is_some() => {
                if read.is_err() {
                    output.source = None;
                }
            }
        }
    }
}

pub(crate) fn exit_outcome(status: ExitStatus) -> ExecOutcome {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExecOutcome::Exited(code),
        (None, signal) => ExecOutcome::Signalled(signal.unwrap_or_default()),
    }
}

/// The pipe of both outputs.
struct OutputPipe {
    /// The pipe, or `None` once it has ended.
    source: Option<pipe::Receiver>,
    buffer: Box<[u8]>,
}

impl OutputPipe {
    /// Reads available data; 0 bytes once the pipe has ended.
    async fn fill(&mut self) -> io::Result<usize> {
        let Some(source) = &mut self.source else {
            return Ok(0);
        };
        let read = source.read(&mut self.buffer).await?;
        if read == 0 {
            self.source = None;
        }
        Ok(read)
    }

    /// Reads what is in the pipe now, directly, because the runtime may not have been notified yet.
    fn read_available(&mut self) -> &[u8] {
        let read = self
            .source
            .as_ref()
            .and_then(|source| rustix::io::read(source, &mut *self.buffer).ok());
        &self.buffer[..read.unwrap_or(0)]
    }

    /// Reads what is in the pipe now and closes it.
    fn read_remaining(&mut self) -> &[u8] {
        let read = self.read_available().len();
        self.source = None;
        &self.buffer[..read]
    }
}
