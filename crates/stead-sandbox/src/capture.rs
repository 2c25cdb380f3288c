//! Running a child process whose output may never end.

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
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// What is read at once: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;
/// How long a process may take to end itself once it is asked to.
pub(crate) const TERM_GRACE: Duration = Duration::from_millis(300);
/// How long what a process left in its pipe is waited for: something it started may hold it open.
pub(crate) const DRAIN_GRACE: Duration = Duration::from_millis(200);
/// Beyond any life of a process, and within any clock.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What bounds a child process.
#[derive(Debug, Clone)]
pub struct ExecLimits {
    /// How long it may run.
    pub timeout: Duration,
    /// Stops it.
    pub cancel: CancellationToken,
}

/// Runs `command` to its end; what it writes to both its outputs goes to `sink` in the order in
/// which it comes. It gets no input.
///
/// Whatever ends it, nothing that it started is left on return: what is stopped is asked with
/// `SIGTERM` first, then everything in its process group is killed, and everything that left the
/// group but kept the variable [`MARK`](crate::MARK). The same if the future is dropped or this
/// process is killed, without asking.
///
/// Out of reach is what gave up both group and environment, and what another service was asked to
/// run.
pub async fn capture(
    mut command: Command,
    sink: &mut dyn OutputSink,
    bounds: &ExecLimits,
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
        Ok(ExecOutcome::TimedOut | ExecOutcome::Cancelled | ExecOutcome::OutputFull) => {
            if !matches!(ended, Ok(ExecOutcome::OutputFull)) {
                // What it said before counts, even if nobody had listened yet; whether there is
                // room for more does not.
                let _ = sink.write(output.read_available()).await;
            }
            family.signal(Signal::TERM);
            let _ = timeout(TERM_GRACE, drain_until_exit(&mut child, &mut output)).await;
        }
    }
    // It fails only if it has ended.
    let _ = child.start_kill();
    family.kill_all().await;
    child.wait().await.map_err(SandboxError::Lost)?;
    ended.map_err(SandboxError::Lost)
}

/// Starts it with one pipe for both its outputs, so that they stay in order.
fn spawn(mut command: Command) -> io::Result<(Child, OutputPipe)> {
    let (reader, writer) = io::pipe()?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .kill_on_drop(true);
    let child = command.spawn()?;
    // With it goes our own hold on the pipe, which would never end otherwise.
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

/// Until it has ended and said all, or no more is kept.
async fn copy_output(
    child: &mut Child,
    output: &mut OutputPipe,
    sink: &mut dyn OutputSink,
) -> io::Result<ExecOutcome> {
    let mut exited: Option<(ExitStatus, Instant)> = None;
    loop {
        let drained = match exited {
            Some((status, _)) if output.source.is_none() => return Ok(exit_outcome(status)),
            Some((_, at)) => at + DRAIN_GRACE,
            None => Instant::now(),
        };
        let said = tokio::select! {
            biased;
            // First, or whoever holds the pipe and goes on writing would never be left.
            () = sleep_until(drained), if exited.is_some() => output.read_remaining(),
            read = output.fill(), if output.source.is_some() => &output.buffer[..read?],
            status = child.wait(), if exited.is_none() => {
                exited = Some((status?, Instant::now()));
                continue;
            }
        };
        if sink.write(said).await == SinkState::Full {
            return Ok(ExecOutcome::OutputFull);
        }
    }
}

/// Until it has ended. What it says on its way out is read, so that nothing keeps it, and not kept.
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

/// Both outputs of a child.
struct OutputPipe {
    /// None once it has ended.
    source: Option<pipe::Receiver>,
    buffer: Box<[u8]>,
}

impl OutputPipe {
    /// Reads what there is; nothing once it has ended.
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

    /// What is in it now. The pipe itself is asked: the runtime may not have heard of it yet.
    fn read_available(&mut self) -> &[u8] {
        let read = self
            .source
            .as_ref()
            .and_then(|source| rustix::io::read(source, &mut *self.buffer).ok());
        &self.buffer[..read.unwrap_or(0)]
    }

    /// What is in it now, and no more after it.
    fn read_remaining(&mut self) -> &[u8] {
        let read = self.read_available().len();
        self.source = None;
        &self.buffer[..read]
    }
}
