//! `stead memory`: what is remembered across sessions.

mod search;

pub(crate) use search::{show, told};

use super::args::{Common, MemoryCommand};
use super::env::Env;
use super::error::CliError;
use super::open::{Needs, open_agent};
use super::style::Style;
use std::process::ExitCode;

pub(crate) async fn memory(common: &Common, env: &Env, command: MemoryCommand) -> Result<ExitCode, CliError> {
    let agent = open_agent(common, env, Needs::FilesOnly).await?;
    match command {
        MemoryCommand::Search { text, bounds } => search::search(&agent, Style::stdout(env), &text, &bounds).await,
    }
}
