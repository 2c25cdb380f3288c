//! Running a child process whose output may never end.

use crate::{Room, Spill};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// What is read from a pipe at once: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;
/// How long a process may take to end itself once it is asked to.
pub(crate) const TERM_GRACE: Duration = Duration::from_millis(300);
/// How long what a process left in its pipes is waited for: something it started may hold them open.
pub(crate) const DRAIN_GRACE: Duration = Duration::from_millis(200);

/// Beyond any life of a process, and within any clock.
pub(crate) const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What bounds a child process.
#[derive(Debug, Clone)]
pub struct Capture {
    /// How long it may run.
    pub timeout: Duration,
    /// Stops it.
    pub cancel: CancellationToken,
}

/// How a child process came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Captured {
    /// By itself.
    Exited(ExitStatus),
    /// Stopped: its time was up.
    TimedOut,
    /// Stopped: the call was cancelled.
    Cancelled,
    /// Stopped: no more of its output is kept.
    Full,
}

/// Runs `command` to its end; what it writes to both its outputs goes to `spill` in the order in which it comes.
/// It gets no input and a process group of its own.
///
/// Whatever ends it, everything in that group is gone on return: asked with `SIGTERM` first where it is stopped,
/// then killed. The same if the future is dropped, without asking. What leaves its group is for a sandbox to hold.
pub async fn capture(mut command: Command, spill: &mut Spill, bounds: &Capture) -> io::Result<Captured> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn()?;
    let group = Group::of(&child);
    let mut outputs = (Pipe::new(child.stdout.take()), Pipe::new(child.stderr.take()));
    let deadline = Instant::now() + bounds.timeout.min(LONGEST);
    let ended = tokio::select! {
        biased;
        () = bounds.cancel.cancelled() => Captured::Cancelled,
        () = sleep_until(deadline) => Captured::TimedOut,
        ended = run(&mut child, &mut outputs, spill) => ended?,
    };
    match ended {
        Captured::Exited(_) => {}
        Captured::TimedOut | Captured::Cancelled | Captured::Full => {
            group.signal(Signal::TERM);
            // Its pipes are closed first: one that only waits to write would not hear of it otherwise.
            drop(outputs);
            let _ = timeout(TERM_GRACE, child.wait()).await;
        }
    }
    // What it started and left behind, too.
    group.signal(Signal::KILL);
    group.forget();
    child.wait().await?;
    Ok(ended)
}

/// Until it has ended and said all, or no more is kept.
async fn run(
    child: &mut Child,
    (stdout, stderr): &mut (Pipe<ChildStdout>, Pipe<ChildStderr>),
    spill: &mut Spill,
) -> io::Result<Captured> {
    let mut exited: Option<(ExitStatus, Instant)> = None;
    loop {
        let drained = match exited {
            Some((status, _)) if !stdout.is_open() && !stderr.is_open() => return Ok(Captured::Exited(status)),
            Some((_, at)) => at + DRAIN_GRACE,
            None => Instant::now(),
        };
        let said = tokio::select! {
            biased;
            read = stdout.fill(), if stdout.is_open() => &stdout.buffer[..read?],
            read = stderr.fill(), if stderr.is_open() => &stderr.buffer[..read?],
            status = child.wait(), if exited.is_none() => {
                exited = Some((status?, Instant::now()));
                continue;
            }
            () = sleep_until(drained), if exited.is_some() => {
                stdout.source = None;
                stderr.source = None;
                continue;
            }
        };
        if spill.write(said).await == Room::Full {
            return Ok(Captured::Full);
        }
    }
}

/// One output of a child.
struct Pipe<R> {
    /// None once it has ended.
    source: Option<R>,
    buffer: Box<[u8]>,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(source: Option<R>) -> Self {
        Self { source, buffer: vec![0; READ_BYTES].into() }
    }

    fn is_open(&self) -> bool {
        self.source.is_some()
    }

    /// Reads what there is; nothing once it has ended.
    async fn fill(&mut self) -> io::Result<usize> {
        let Some(source) = &mut self.source else { return Ok(0) };
        let read = source.read(&mut self.buffer).await?;
        if read == 0 {
            self.source = None;
        }
        Ok(read)
    }
}

/// The process group of a child; killed when dropped.
pub(crate) struct Group(Option<Pid>);

impl Group {
    pub(crate) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// Fails only if nobody is in it any more.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, signal);
        }
    }

    /// From here on its number may be another's.
    pub(crate) fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
