//! Waiting for what takes long, saying how far it is, and stopping it.

use crate::cli::env::ProcessEnv;
use crate::cli::error::CliError;
use crate::cli::print::err;
use crate::cli::signals::Signals;
use std::future::Future;
use std::time::Duration;
use stead::skills::SkillProgress;

/// What comes of `work`; none if a person stopped it. After a second it is said what is going on.
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
                    err(format_args!("\r\x1b[K"));
                }
                return Ok(Some(done));
            }
            () = signals.cancel.cancelled() => return Ok(None),
            () = tokio::time::sleep(Duration::from_secs(1)) => {
                let now = progress.describe();
                if env.stderr_is_terminal {
                    err(format_args!("\r\x1b[K{now} …"));
                } else if now != said {
                    err(format_args!("{now} …\n"));
                }
                said = now;
            }
        }
    }
}
