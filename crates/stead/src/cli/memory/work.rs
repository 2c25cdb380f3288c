//! `stead memory flush`, `consolidate` and `work`: memory work, also in the background.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (writes), the
//! store (writes), the journal (reads), the model.

use super::args::JsonArgs;
use super::print_json_if_asked;
use crate::cli::choose_session::find_session;
use crate::cli::error::CliError;
use crate::cli::print::{errln, outln};
use std::process::ExitCode;
use std::time::Duration;
use stead::agent::{Agent, FailedFlush, WorkerOptions};
use stead::core::{SessionId, counted};
use stead::store::StoreError;

pub(super) async fn flush(
    agent: &Agent,
    session: Option<&str>,
    form: JsonArgs,
) -> Result<ExitCode, CliError> {
    let listed = agent.sessions().list_all().await?;
    let wanted = match session {
        Some(text) => Some(find_session(agent, text).await?),
        None => None,
    };
    if let Some(id) = &wanted
        && !listed.iter().any(|summary| summary.id == *id)
    {
        return Err(StoreError::NotFound(id.clone()).into());
    }
    let sessions: Vec<(SessionId, u64)> = listed
        .into_iter()
        .filter(|summary| wanted.as_ref().is_none_or(|id| summary.id == *id))
        .map(|summary| (summary.id, summary.entries))
        .collect();
    let (all, failed) = agent.memory().flush_all(agent.owner(), &sessions).await?;
    let skipped = failed.len();
    for FailedFlush { session, error } in failed {
        // One session does not keep the facts of all others from being kept.
        if wanted.is_some() {
            return Err(error.into());
        }
        errln!("skipped {session}: {error}");
    }
    if !print_json_if_asked(form, &all)? {
        outln!(
            "{} remembered, {} waiting for you (stead memory review)",
            counted(all.facts, "fact"),
            all.quarantined
        );
    }
    Ok(match skipped {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

pub(super) async fn consolidate(agent: &Agent, form: JsonArgs) -> Result<ExitCode, CliError> {
    let done = agent.memory().consolidate(agent.owner()).await?;
    if print_json_if_asked(form, &done)? {
        return Ok(ExitCode::SUCCESS);
    }
    outln!(
        "{} merged, {} put away, {} archived",
        counted(done.facts, "fact"),
        done.archived,
        counted(done.days, "old day")
    );
    if let Some(reason) = &done.fallback {
        outln!("without a model: {reason}");
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn work(agent: &Agent, seconds: u64) -> Result<ExitCode, CliError> {
    let options = WorkerOptions::with_limit(Duration::from_secs(seconds));
    if let Some(worked) = agent
        .memory()
        .work_exclusively(&agent.owner().tenant, &options)
        .await?
    {
        outln!(
            "{} done, {} failed",
            counted(worked.done, "job"),
            worked.failed
        );
    } else {
        outln!("another process is doing it");
    }
    Ok(ExitCode::SUCCESS)
}
