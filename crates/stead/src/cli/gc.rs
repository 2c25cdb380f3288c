//! `stead gc`: removing what is no longer needed.

use super::args::{Common, GcArgs};
use super::env::Env;
use super::error::CliError;
use super::open::{Needs, open_agent};
use super::print::outln;
use std::process::ExitCode;
use stead::agent::Really;

pub(crate) async fn gc(common: &Common, env: &Env, args: &GcArgs) -> Result<ExitCode, CliError> {
    let agent = open_agent(common, env, Needs::FilesOnly).await?;
    let really = if args.dry_run { Really::DryRun } else { Really::Do };
    let collected = agent.collect(agent.owner(), really).await?;
    if args.json {
        outln!("{}", serde_json::to_string(&collected).map_err(anyhow::Error::from)?);
        return Ok(ExitCode::SUCCESS);
    }
    let verb = if args.dry_run { "would be forgotten" } else { "forgotten" };
    outln!(
        "{verb}: {} runs, {} earlier contents ({} KB); kept: {} KB",
        collected.runs,
        collected.contents,
        collected.bytes / 1024,
        collected.kept_bytes / 1024
    );
    Ok(ExitCode::SUCCESS)
}
