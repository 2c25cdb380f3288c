//! Asking a child process something: an input, and an answer that is short.

use crate::process::{DRAIN_GRACE, Group, LONGEST, TERM_GRACE};
use crate::{Capture, Captured};
use futures_util::future::try_join;
use rustix::process::Signal;
use std::io;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep_until, timeout};

/// What a child process answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialogue {
    /// How it came to its end.
    pub ended: Captured,
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error.
    pub stderr: Vec<u8>,
}

/// Runs `command` to its end with `input` on its standard input, which it need not read. It gets a process group of
/// its own, and is stopped when it has written more than `limit` bytes to either output ([`Captured::Full`]).
///
/// Whatever ends it, everything in that group is gone on return, as it is if the future is dropped.
pub async fn converse(mut command: Command, input: &[u8], limit: usize, bounds: &Capture) -> io::Result<Dialogue> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn()?;
    let group = Group::of(&child);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let deadline = Instant::now() + bounds.timeout.min(LONGEST);
    let ended = tokio::select! {
        biased;
        () = bounds.cancel.cancelled() => Captured::Cancelled,
        () = sleep_until(deadline) => Captured::TimedOut,
        ended = talk(&mut child, input, limit, (&mut stdout, &mut stderr)) => ended?,
    };
    match ended {
        Captured::Exited(_) => {}
        Captured::TimedOut | Captured::Cancelled | Captured::Full => {
            group.signal(Signal::TERM);
            let _ = timeout(TERM_GRACE, child.wait()).await;
        }
    }
    // What it started and left behind, too.
    group.signal(Signal::KILL);
    group.forget();
    child.wait().await?;
    Ok(Dialogue { ended, stdout, stderr })
}

/// Until it has ended and said all, or said too much.
async fn talk(
    child: &mut Child,
    input: &[u8],
    limit: usize,
    (stdout, stderr): (&mut Vec<u8>, &mut Vec<u8>),
) -> io::Result<Captured> {
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let tell = async {
        if let Some(mut stdin) = stdin {
            // One that does not listen is no failure: its answer counts.
            let _ = stdin.write_all(input).await;
        }
    };
    let hear = try_join(fill(out, limit, stdout), fill(err, limit, stderr));
    tokio::pin!(tell, hear);
    let (mut told, mut heard, mut exited) = (false, false, None::<(ExitStatus, Instant)>);
    loop {
        let drained = match exited {
            Some((status, _)) if heard => return Ok(Captured::Exited(status)),
            Some((_, at)) => at + DRAIN_GRACE,
            None => Instant::now(),
        };
        tokio::select! {
            biased;
            said = &mut hear, if !heard => match said {
                Ok(_) => heard = true,
                Err(Unheard::TooMuch) => return Ok(Captured::Full),
                Err(Unheard::Io(error)) => return Err(error),
            },
            status = child.wait(), if exited.is_none() => exited = Some((status?, Instant::now())),
            () = &mut tell, if !told => told = true,
            // Something that it started may hold its outputs open.
            () = sleep_until(drained), if exited.is_some() => heard = true,
        }
    }
}

/// Why an output was not heard to its end.
enum Unheard {
    TooMuch,
    Io(io::Error),
}

async fn fill(source: Option<impl AsyncRead + Unpin>, limit: usize, kept: &mut Vec<u8>) -> Result<(), Unheard> {
    let Some(source) = source else { return Ok(()) };
    source.take(limit as u64 + 1).read_to_end(kept).await.map_err(Unheard::Io)?;
    if kept.len() <= limit {
        return Ok(());
    }
    kept.truncate(limit);
    Err(Unheard::TooMuch)
}

#[cfg(test)]
mod tests;
