//! `stead gc`: removing old before-images and leftovers.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (writes), the
//! local disk (writes), the store (writes), the journal (reads), the network.

use super::args::{GcArgs, GlobalArgs};
use super::env::ProcessEnv;
use super::error::CliError;
use super::open_agent::open_agent;
use super::print::{outln, to_json};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use stead::agent::ApplyMode;
use stead::core::counted;
use stead::workspace::ModelUse;

/// The age after which a leftover cannot belong to a slow writer any more.
const ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);
/// The age at which the search index of a store is removed. It is rebuilt when it is needed.
const UNUSED_AFTER: Duration = Duration::from_secs(90 * 24 * 60 * 60);

pub(crate) async fn gc(
    common: &GlobalArgs,
    env: &ProcessEnv,
    args: &GcArgs,
) -> Result<ExitCode, CliError> {
    let agent = open_agent(common, env, ModelUse::NotNeeded).await?;
    let mode = if args.dry_run {
        ApplyMode::DryRun
    } else {
        ApplyMode::Apply
    };
    let mut collected = agent.collector(agent.owner()).collect(mode).await?;
    if mode == ApplyMode::Apply {
        let swept = agent.place().sweep(agent.owner(), ABANDONED_AFTER).await;
        let swept = swept.map_err(anyhow::Error::from)?;
        agent
            .lookup(agent.owner())
            .prune(&*agent.sessions())
            .await
            .map_err(anyhow::Error::from)?;
        let unused = env
            .cache()
            .map_or(0, |cache| remove_unused_files(&cache.join("search")));
        collected.leftovers = Some(swept + unused);
    }
    if args.json {
        outln!("{}", to_json(&collected)?);
        return Ok(ExitCode::SUCCESS);
    }
    let verb = if args.dry_run {
        "would be removed"
    } else {
        "removed"
    };
    let leftovers = collected.leftovers.map_or(String::new(), |count| {
        format!("; leftovers of crashes removed: {count}")
    });
    outln!(
        "{verb}: {}, {} ({} KB), offloaded files of {} ({} KB); kept: {} KB{leftovers}",
        counted(collected.runs, "run"),
        counted(collected.contents, "earlier content"),
        collected.bytes / 1024,
        counted(collected.offloads, "session"),
        collected.offloaded_bytes / 1024,
        collected.kept_bytes / 1024
    );
    Ok(ExitCode::SUCCESS)
}

/// Removes derived files that were not used for long. Returns their number.
fn remove_unused_files(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let is_old = |entry: &std::fs::DirEntry| {
        let changed = entry.metadata().and_then(|meta| meta.modified()).ok();
        changed
            .and_then(|at| at.elapsed().ok())
            .is_some_and(|age| age > UNUSED_AFTER)
    };
    entries
        .flatten()
        .filter(|entry| is_old(entry) && std::fs::remove_file(entry.path()).is_ok())
        .count()
}
