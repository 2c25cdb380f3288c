//! Doing now what else is done in the background.

use super::args::JsonArgs;
use super::printed;
use crate::cli::error::CliError;
use crate::cli::open::session_id;
use crate::cli::print::outln;
use std::process::ExitCode;
use std::time::Duration;
use stead::agent::{Agent, Flushed, WorkOptions};

pub(super) async fn flush(
    agent: &Agent,
    session: Option<&str>,
    form: JsonArgs,
) -> Result<ExitCode, CliError> {
    let listed = agent.sessions().list().await?;
    let wanted = session.map(|id| session_id(Some(id))).transpose()?;
    if let Some(id) = &wanted
        && !listed.iter().any(|summary| summary.id == *id)
    {
        return Err(stead::store::StoreError::NotFound(id.clone()).into());
    }
    let mut all = Flushed::default();
    for summary in listed
        .iter()
        .filter(|summary| wanted.as_ref().is_none_or(|id| summary.id == *id))
    {
        let flushed = agent
            .flush(agent.owner(), &summary.id, summary.entries)
            .await?;
        all.facts += flushed.facts;
        all.quarantined += flushed.quarantined;
    }
    if !printed(form, &all)? {
        outln!(
            "{} facts remembered, {} wait for you (stead memory review)",
            all.facts,
            all.quarantined
        );
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn consolidate(agent: &Agent, form: JsonArgs) -> Result<ExitCode, CliError> {
    let done = agent.consolidate(agent.owner(), None).await?;
    if printed(form, &done)? {
        return Ok(ExitCode::SUCCESS);
    }
    outln!(
        "{} facts merged, {} put away, {} old days archived",
        done.facts,
        done.archived,
        done.days
    );
    if let Some(reason) = &done.fallback {
        outln!("without a model: {reason}");
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn work(agent: &Agent, seconds: u64) -> Result<ExitCode, CliError> {
    let options = WorkOptions::for_at_most(Duration::from_secs(seconds));
    if let Some(worked) = agent.work_alone(agent.owner(), &options).await? {
        outln!("{} jobs done, {} failed", worked.done, worked.failed);
    } else {
        outln!("another process is at it");
    }
    Ok(ExitCode::SUCCESS)
}
