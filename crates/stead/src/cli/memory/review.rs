//! What came from outside, and what a person says about it.

use super::args::{JsonArgs, WhichArgs};
use super::printed;
use super::show::origin;
use crate::cli::args::Common;
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::print::outln;
use crate::cli::style::Style;
use std::process::ExitCode;
use stead::agent::{Agent, Review, Which};

pub(super) async fn list(agent: &Agent, env: &Env, form: JsonArgs) -> Result<ExitCode, CliError> {
    let waiting = agent.memory_review(agent.owner()).await?;
    if printed(form, &waiting)? {
        return Ok(ExitCode::SUCCESS);
    }
    let style = Style::stdout(env);
    for fact in &waiting {
        let from: Vec<String> = fact.sources.iter().map(origin).collect();
        outln!("{}  {}", style.bold(&fact.id), style.safe(&fact.text));
        outln!("              {}", style.dim(&style.safe(&from.join("; "))));
    }
    if waiting.is_empty() {
        outln!("nothing waits for you");
    } else {
        outln!(
            "\nThese came from outside and are not used. `stead memory approve ID…` lets them be remembered,"
        );
        outln!("`stead memory reject ID…` puts them away.");
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn decide(
    agent: &Agent,
    common: &Common,
    env: &Env,
    which: WhichArgs,
    review: Review,
) -> Result<ExitCode, CliError> {
    let which = if which.all {
        Which::All
    } else {
        Which::Ids(which.ids)
    };
    let by = common
        .user
        .clone()
        .or_else(|| env.get("USER"))
        .unwrap_or_else(|| "person".to_owned());
    let decided = agent
        .memory_decide(agent.owner(), &which, review, &by)
        .await?;
    let verb = match review {
        Review::Approve => "approved",
        Review::Reject => "rejected",
    };
    let style = Style::stdout(env);
    decided
        .iter()
        .for_each(|fact| outln!("{verb}  {}  {}", fact.id, style.safe(&fact.text)));
    if decided.is_empty() {
        outln!("nothing waits for you");
    }
    Ok(ExitCode::SUCCESS)
}
