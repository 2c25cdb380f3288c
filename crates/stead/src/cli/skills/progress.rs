//! The progress of long work of `stead skills`, which a person can stop.
//!
//! Effects: the clock, the terminal, processes.

use crate::cli::env::ProcessEnv;
use crate::cli::error::CliError;
use crate::cli::print::{clear_status_line, err};
use crate::cli::signals::Signals;
use std::future::Future;
use std::time::Duration;
use stead::skills::SkillProgress;

/// Returns the result of `work`, or `None` if a person stopped it. Shows progress after a second.
pub(super) async fn with_progress<T>(
    env: &ProcessEnv,
    progress: &SkillProgress,
    work: impl Future<Output = T>,
) -> Result<Option<T>, CliError> {
    let signals = Signals::watch()?;
    let mut work = Box::pin(work);
    let mut said = String::new();
    loop {
        tokio::select! {
            done = &mut work => {
                if env.stderr_is_terminal && !said.is_empty() {
                    clear_status_line();
                }
                return Ok(Some(done));
            }
            () = signals.cancel.cancelled() => return Ok(None),
            () = tokio::time::sleep(Duration::from_secs(1)) => {
                let now = progress.describe();
                if env.stderr_is_terminal {
                    clear_status_line();
                    err(format_args!("{now} …"));
                } else if now != said {
                    err(format_args!("{now} …\n"));
                }
                said = now;
            }
        }
    }
}
