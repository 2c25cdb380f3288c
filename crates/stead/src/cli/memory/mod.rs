//! `stead memory`: what is remembered, where it is from, and what a person says about it.

pub(crate) mod args;
pub(crate) mod background;
mod edit;
mod review;
mod search;
mod show;
mod work;

pub(crate) use search::{show as show_found, told};

use super::args::Common;
use super::env::Env;
use super::error::CliError;
use super::open::{Needs, open_agent};
use super::print::outln;
use super::style::Style;
use args::{JsonArgs, MemoryCommand, ModelArgs};
use serde::Serialize;
use std::process::ExitCode;
use std::sync::Arc;
use stead::agent::{Agent, Review};

pub(crate) async fn memory(
    common: &Common,
    env: &Env,
    command: MemoryCommand,
) -> Result<ExitCode, CliError> {
    match command {
        MemoryCommand::Search { text, bounds } => {
            search::search(
                &looking(common, env).await?,
                Style::stdout(env),
                &text,
                &bounds,
            )
            .await
        }
        MemoryCommand::Status(form) => show::status(&*looking(common, env).await?, form).await,
        MemoryCommand::Review(form) => review::list(&*looking(common, env).await?, env, form).await,
        MemoryCommand::Approve(which) => {
            review::decide(
                &*looking(common, env).await?,
                common,
                env,
                which,
                Review::Approve,
            )
            .await
        }
        MemoryCommand::Reject(which) => {
            review::decide(
                &*looking(common, env).await?,
                common,
                env,
                which,
                Review::Reject,
            )
            .await
        }
        MemoryCommand::List(form) => show::list(&*looking(common, env).await?, env, form).await,
        MemoryCommand::Blame(form) => show::blame(&*looking(common, env).await?, env, form).await,
        MemoryCommand::Diff { number, form } => {
            show::diff(&*looking(common, env).await?, env, number, form).await
        }
        MemoryCommand::Edit => edit::edit(&*looking(common, env).await?, env).await,
        MemoryCommand::Flush {
            session,
            model,
            form,
        } => {
            work::flush(
                &*asking(common, env, &model).await?,
                session.as_deref(),
                form,
            )
            .await
        }
        MemoryCommand::Consolidate { model, form } => {
            work::consolidate(&*asking(common, env, &model).await?, form).await
        }
        MemoryCommand::Work { model, seconds } => {
            background::own_session();
            work::work(&*asking(common, env, &model).await?, seconds).await
        }
    }
}

/// The agent, for what asks no model.
async fn looking(common: &Common, env: &Env) -> Result<Arc<Agent>, CliError> {
    open_agent(common, env, Needs::FilesOnly).await
}

/// The agent with its models.
async fn asking(common: &Common, env: &Env, args: &ModelArgs) -> Result<Arc<Agent>, CliError> {
    let common = common
        .with_model(args.model.as_ref())
        .with_agent(args.agent.as_ref());
    open_agent(&common, env, Needs::Model).await
}

/// Prints JSON if that is wanted. False if it is not.
fn printed(form: JsonArgs, value: &impl Serialize) -> Result<bool, CliError> {
    if form.json {
        outln!(
            "{}",
            serde_json::to_string(value).map_err(anyhow::Error::from)?
        );
    }
    Ok(form.json)
}
