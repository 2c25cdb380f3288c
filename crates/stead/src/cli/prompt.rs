//! `stead prompt`: what the model is told, and where it came from.

use super::args::{Common, PromptArgs};
use super::env::Env;
use super::error::CliError;
use super::open::{Needs, open_agent};
use super::print::outln;
use super::style::Style;
use serde_json::json;
use std::process::ExitCode;
use stead::core::SessionId;
use stead::workspace::SessionFacts;

pub(crate) async fn prompt(common: &Common, env: &Env, args: &PromptArgs) -> Result<ExitCode, CliError> {
    let agent = open_agent(common, env, Needs::FilesOnly).await?;
    let (workspace, session) = (agent.workspace(), SessionId::fresh());
    let files = agent.place().files(agent.owner(), &session, None);
    let facts = SessionFacts {
        date: jiff::Zoned::now().strftime("%Y-%m-%d").to_string(),
        agent: workspace.config().agent(),
        session,
        project: agent.place().project(),
    };
    let prompt = workspace.prompt(&*files, &facts).await?;
    if args.json {
        let sections = prompt.sections.iter().map(|section| {
            json!({
                "title": section.title, "source": section.source, "stable": section.stable,
                "bytes": section.text.len(), "tokens": section.tokens(), "text": section.text,
            })
        });
        outln!("{}", json!(sections.collect::<Vec<_>>()));
        return Ok(ExitCode::SUCCESS);
    }
    let style = Style::stdout(env);
    if !args.summary {
        for section in &prompt.sections {
            outln!("{}\n", section.text);
        }
        outln!("{}", style.dim("────────"));
    }
    outln!("{:<12} {:>8} {:>8}  {:<9} source", "section", "bytes", "tokens", "cached");
    for section in &prompt.sections {
        let source = section.source.as_deref().unwrap_or("built in");
        let cached = if section.stable { "yes" } else { "no" };
        outln!("{:<12} {:>8} {:>8}  {cached:<9} {source}", section.title, section.text.len(), section.tokens());
    }
    Ok(ExitCode::SUCCESS)
}
