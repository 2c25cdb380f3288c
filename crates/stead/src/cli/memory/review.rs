//! `stead memory review`, `approve` and `reject`: reviewing facts from untrusted content.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (writes), the
//! store (writes).

use super::args::{FactSelectionArgs, JsonArgs};
use super::print_json_if_asked;
use super::show::describe_source;
use crate::cli::approvals::answerer;
use crate::cli::args::GlobalArgs;
use crate::cli::env::ProcessEnv;
use crate::cli::error::CliError;
use crate::cli::print::outln;
use crate::cli::style::Style;
use std::process::ExitCode;
use stead::agent::{Agent, FactSelection, ReviewDecision};

pub(super) async fn list(
    agent: &Agent,
    env: &ProcessEnv,
    form: JsonArgs,
) -> Result<ExitCode, CliError> {
    let waiting = agent.memory().review(agent.owner()).await?;
    if print_json_if_asked(form, &waiting)? {
        return Ok(ExitCode::SUCCESS);
    }
    let style = Style::stdout(env);
    for fact in &waiting {
        let from: Vec<String> = fact.sources.iter().map(describe_source).collect();
        outln!("{}  {}", style.bold(&fact.id), fact.text);
        outln!("              {}", style.dim(&from.join("; ")));
    }
    if waiting.is_empty() {
        outln!("nothing waits for you");
    } else {
        outln!(
            "\nThese came from outside and are not used. `stead memory approve ID…` lets them be remembered,"
        );
        outln!("`stead memory reject ID…` rejects them.");
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn decide(
    agent: &Agent,
    common: &GlobalArgs,
    env: &ProcessEnv,
    which: FactSelectionArgs,
    review: ReviewDecision,
) -> Result<ExitCode, CliError> {
    let which = if which.all {
        FactSelection::All
    } else {
        FactSelection::Ids(which.ids)
    };
    let by = answerer(common, env, None);
    let decided = agent
        .memory()
        .decide(agent.owner(), &which, review, &by)
        .await?;
    let verb = match review {
        ReviewDecision::Approve => "approved",
        ReviewDecision::Reject => "rejected",
    };
    decided
        .iter()
        .for_each(|fact| outln!("{verb}  {}  {}", fact.id, fact.text));
    if decided.is_empty() {
        outln!("nothing waits for you");
    }
    Ok(ExitCode::SUCCESS)
}
