//! Running a child process with an input and a short output.
//!
//! Effects: the clock, randomness, the local disk (reads), processes.

use crate::capture::{DRAIN_GRACE, MAX_TIMEOUT, TERM_GRACE, exit_outcome};
use crate::process_tree::ProcessTree;
use crate::{ExecLimits, ExecOutcome, SandboxError};
use futures_util::future::try_join;
use rustix::process::Signal;
use std::io;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep_until, timeout};

/// The output of a child process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// How it ended.
    pub outcome: ExecOutcome,
    /// The data of its standard output.
    pub stdout: Vec<u8>,
    /// The data of its standard error.
    pub stderr: Vec<u8>,
}

/// Runs `command` to its end with `input` on its standard input, which it need not read. It is
/// stopped when it has written more than `limit` bytes to either output
/// ([`ExecOutcome::OutputFull`]).
///
/// Nothing that it started is left on return, as with [`capture()`](crate::capture()).
pub async fn run_with_input(
    mut command: Command,
    input: &[u8],
    limit: usize,
    bounds: &ExecLimits,
) -> Result<CommandOutput, SandboxError> {
    let deadline = Instant::now() + bounds.timeout.min(MAX_TIMEOUT);
    let mut family = ProcessTree::attach(&mut command).map_err(SandboxError::Start)?;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            family.kill_all().await;
            return Err(SandboxError::Start(error));
        }
    };
    let mut stdout = Vec::new();
    let mut stderr = Vec::new();
    let ended = tokio::select! {
        biased;
        () = bounds.cancel.cancelled() => Ok(ExecOutcome::Cancelled),
        () = sleep_until(deadline) => Ok(ExecOutcome::TimedOut),
        ended = exchange(&mut child, input, limit, (&mut stdout, &mut stderr)) => ended,
    };
    match ended {
        Ok(ExecOutcome::Exited(_) | ExecOutcome::Signalled(_)) | Err(_) => {}
        Ok(
            ExecOutcome::TimedOut
            | ExecOutcome::Cancelled
            | ExecOutcome::OutputFull
            | ExecOutcome::OutOfDisk,
        ) => {
            family.signal(Signal::TERM);
            let _ = timeout(TERM_GRACE, child.wait()).await;
        }
    }
    // Fails only if the process has ended.
    let _ = child.start_kill();
    family.kill_all().await;
    child.wait().await.map_err(SandboxError::Lost)?;
    Ok(CommandOutput {
        outcome: ended.map_err(SandboxError::Lost)?,
        stdout,
        stderr,
    })
}

/// Passes input and output until the process has ended and its outputs are read, or it wrote too
/// much.
async fn exchange(
    child: &mut Child,
    input: &[u8],
    limit: usize,
    (stdout, stderr): (&mut Vec<u8>, &mut Vec<u8>),
) -> io::Result<ExecOutcome> {
    let stdin = child.stdin.take();
    let out = child.stdout.take();
    let err = child.stderr.take();
    let tell = async {
        if let Some(mut stdin) = stdin {
            // A process that does not read its input is no failure: its output counts.
            let _ = stdin.write_all(input).await;
        }
    };
    let hear = try_join(
        read_limited(out, limit, stdout),
        read_limited(err, limit, stderr),
    );
    tokio::pin!(tell, hear);
    let mut told = false;
    let mut heard = false;
    let mut exited = None::<(ExitStatus, Instant)>;
    loop {
        let drained = match exited {
            Some((status, _)) if heard => return Ok(exit_outcome(status)),
            Some((_, at)) => at + DRAIN_GRACE,
            None => Instant::now(),
        };
        tokio::select! {
            biased;
            said = &mut hear, if !heard => match said {
                Ok(_) => heard = true,
                Err(OutputReadError::TooMuch) => return Ok(ExecOutcome::OutputFull),
                Err(OutputReadError::Io(error)) => return Err(error),
            },
            status = child.wait(), if exited.is_none() => exited = Some((status?, Instant::now())),
            () = &mut tell, if !told => told = true,
            // An orphan may hold its outputs open.
            () = sleep_until(drained), if exited.is_some() => heard = true,
        }
    }
}

/// The reason why an output was not read to its end.
enum OutputReadError {
    TooMuch,
    Io(io::Error),
}

async fn read_limited(
    source: Option<impl AsyncRead + Unpin>,
    limit: usize,
    kept: &mut Vec<u8>,
) -> Result<(), OutputReadError> {
    let Some(source) = source else { return Ok(()) };
    source
        .take(limit as u64 + 1)
        .read_to_end(kept)
        .await
        .map_err(OutputReadError::Io)?;
    if kept.len() <= limit {
        return Ok(());
    }
    kept.truncate(limit);
    Err(OutputReadError::TooMuch)
}

#[cfg(test)]
mod tests;
