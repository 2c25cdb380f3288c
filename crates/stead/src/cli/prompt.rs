//! `stead prompt`: the system prompt, and the sources of its sections.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (reads), the
//! local disk (writes), the network.

use super::args::{GlobalArgs, PromptArgs};
use super::env::ProcessEnv;
use super::error::CliError;
use super::open_agent::open_agent;
use super::print::{out_json, outln};
use super::style::Style;
use serde_json::json;
use std::process::ExitCode;
use stead::core::{counted, spec_bytes, spec_tokens};
use stead::tools::Registry;
use stead::workspace::{ModelUse, Prompt, Section};

pub(crate) async fn prompt(
    common: &GlobalArgs,
    env: &ProcessEnv,
    args: &PromptArgs,
) -> Result<ExitCode, CliError> {
    let agent = open_agent(common, env, ModelUse::NotNeeded).await?;
    let turn = agent.sessionless().turn().await?;
    if args.json {
        out_json(&json!(
            turn.prompt
                .sections
                .iter()
                .map(section_json)
                .collect::<Vec<_>>()
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let style = Style::stdout(env);
    if !args.summary {
        for part in turn.prompt.parts() {
            outln!("{}\n", part.text);
        }
        outln!("{}", style.dim("────────"));
    }
    print_table(&turn.prompt, style);
    print_tools(&turn.tools);
    Ok(ExitCode::SUCCESS)
}

/// Prints what each tool adds to a request, and the names of those that are not shown.
fn print_tools(tools: &Registry) {
    let specs = tools.specs();
    let widths = specs.iter().map(|spec| spec.name.len());
    let width = widths.max().unwrap_or(0).max("all".len());
    outln!("\n{:<width$} {:>8} {:>8}", "tool", "bytes", "tokens");
    for spec in specs.iter() {
        let (bytes, tokens) = (spec_bytes(spec), spec_tokens(spec));
        outln!("{:<width$} {bytes:>8} {tokens:>8}", spec.name);
    }
    let bytes: usize = specs.iter().map(spec_bytes).sum();
    let tokens: u64 = specs.iter().map(spec_tokens).sum();
    outln!("{:<width$} {bytes:>8} {tokens:>8}", "all");
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    outln!("\n{}: {}", counted(specs.len(), "tool"), names.join(", "));
    let further: Vec<&str> = tools.deferred().collect();
    if !further.is_empty() {
        outln!(
            "further tools, found with tool_search: {}",
            further.join(", ")
        );
    }
}

fn section_json(section: &Section) -> serde_json::Value {
    json!({
        "title": section.title, "owner": section.owner, "sources": section.sources, "stable": section.is_stable(),
        "bytes": section.text.len(), "tokens": section.tokens(), "cut": section.cut, "text": section.text,
    })
}

fn print_table(prompt: &Prompt, style: Style) {
    let titles = prompt
        .sections
        .iter()
        .map(|section| section.title.chars().count());
    let width = titles.max().unwrap_or(0).max("section".len());
    outln!(
        "{:<width$} {:>8} {:>8}  {:<6} source",
        "section",
        "bytes",
        "tokens",
        "cached"
    );
    for section in &prompt.sections {
        let source = match section.sources.as_slice() {
            [] => "built in".to_owned(),
            [one] => one.clone(),
            [first, .., last] => format!("{first} … {last} ({} files)", section.sources.len()),
        };
        let cached = if section.is_stable() { "yes" } else { "no" };
        let bytes = section.text.len();
        let tokens = section.tokens();
        outln!(
            "{:<width$} {bytes:>8} {tokens:>8}  {cached:<6} {source}",
            section.title
        );
        for cut in &section.cut {
            outln!(
                "{:<width$} {}",
                "",
                style.warn(&format!("cut: {}: {}", cut.source, cut.what))
            );
        }
    }
    let total = |count: fn(&Section) -> usize| prompt.sections.iter().map(count).sum::<usize>();
    outln!(
        "{:<width$} {:>8} {:>8}",
        "all",
        total(|section| section.text.len()),
        total(Section::tokens)
    );
}
