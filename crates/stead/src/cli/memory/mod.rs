//! `stead memory`: showing, reviewing and changing long-term memory.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (writes), the
//! local disk (writes), the store (writes), the journal (reads), the model, the network, processes.

pub(crate) mod args;
pub(crate) mod background;
mod edit;
mod review;
mod search;
mod show;
mod work;

pub(crate) use search::{lookup_error, print_hits as show_found};
pub(crate) use show::status_lines;

use super::args::GlobalArgs;
use super::env::ProcessEnv;
use super::error::CliError;
use super::open_agent::open_agent;
use super::print::{outln, to_json};
use super::style::Style;
use args::{JsonArgs, MemoryCommand, ModelArgs};
use serde::Serialize;
use std::process::ExitCode;
use std::sync::Arc;
use stead::agent::{Agent, ReviewDecision};
use stead::workspace::ModelUse;

pub(crate) async fn memory(
    common: &GlobalArgs,
    env: &ProcessEnv,
    command: MemoryCommand,
) -> Result<ExitCode, CliError> {
    match command {
        MemoryCommand::Search { text, bounds } => {
            search::search(
                &open_without_model(common, env).await?,
                Style::stdout(env),
                &text,
                &bounds,
            )
            .await
        }
        MemoryCommand::Status(form) => {
            show::status(&*open_without_model(common, env).await?, form).await
        }
        MemoryCommand::Review(form) => {
            review::list(&*open_without_model(common, env).await?, env, form).await
        }
        MemoryCommand::Approve(which) => {
            review::decide(
                &*open_without_model(common, env).await?,
                common,
                env,
                which,
                ReviewDecision::Approve,
            )
            .await
        }
        MemoryCommand::Reject(which) => {
            review::decide(
                &*open_without_model(common, env).await?,
                common,
                env,
                which,
                ReviewDecision::Reject,
            )
            .await
        }
        MemoryCommand::List(form) => {
            show::list(&*open_without_model(common, env).await?, env, form).await
        }
        MemoryCommand::Blame(form) => {
            show::blame(&*open_without_model(common, env).await?, env, form).await
        }
        MemoryCommand::Diff { number, form } => {
            show::diff(&*open_without_model(common, env).await?, env, number, form).await
        }
        MemoryCommand::Edit => edit::edit(&*open_without_model(common, env).await?, env).await,
        MemoryCommand::Flush {
            session,
            model,
            form,
        } => {
            work::flush(
                &*open_with_model(common, env, &model).await?,
                session.as_deref(),
                form,
            )
            .await
        }
        MemoryCommand::Consolidate { model, form } => {
            work::consolidate(&*open_with_model(common, env, &model).await?, form).await
        }
        MemoryCommand::Work { model, seconds } => {
            background::detach_from_terminal();
            work::work(&*open_with_model(common, env, &model).await?, seconds).await
        }
    }
}

/// Opens the agent for commands that use no model.
async fn open_without_model(common: &GlobalArgs, env: &ProcessEnv) -> Result<Arc<Agent>, CliError> {
    open_agent(common, env, ModelUse::NotNeeded).await
}

/// Opens the agent with its models.
async fn open_with_model(
    common: &GlobalArgs,
    env: &ProcessEnv,
    args: &ModelArgs,
) -> Result<Arc<Agent>, CliError> {
    let common = common
        .with_model(args.model.as_ref())
        .with_agent(args.agent.as_ref());
    open_agent(&common, env, ModelUse::Required).await
}

/// Prints JSON and returns true if the person asked for it.
fn print_json_if_asked(form: JsonArgs, value: &impl Serialize) -> Result<bool, CliError> {
    if form.json {
        outln!("{}", to_json(value)?);
    }
    Ok(form.json)
}
