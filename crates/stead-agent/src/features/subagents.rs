//! Agents that work can be handed to.

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use stead_workspace::{AgentSpec, Cut, Section, WorkspaceError, element, order};

/// Agents that are listed.
const MAX_LISTED: usize = 100;
/// Characters of a description that are shown.
const MAX_DESCRIPTION_CHARS: usize = 1024;

/// Agents that work can be handed to.
#[derive(Debug)]
pub(super) struct Subagents;

impl Feature for Subagents {
    fn name(&self) -> &'static str {
        "subagents"
    }

    fn contribute<'a>(&'a self, cx: &'a TurnCx<'a>) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async move {
            let own = cx.definition().tree.subagents.as_ref().and_then(|folder| cx.own(folder));
            let agents = cx.workspace.subagents(&**cx.files, own.as_ref()).await?;
            let allowed = cx.definition().active_spec().and_then(|active| active.subagents.as_ref());
            let listed: Vec<&AgentSpec> = agents
                .values()
                .filter(|spec| spec.mode.is_subagent() && !spec.hidden)
                .filter(|spec| allowed.is_none_or(|names| names.contains(&spec.name)))
                .map(|spec| &**spec)
                .collect();
            if listed.is_empty() {
                return Ok(Contribution::default());
            }
            let entries: Vec<String> = listed.iter().take(MAX_LISTED).map(|spec| entry(spec)).collect();
            let cut = (listed.len() > MAX_LISTED).then(|| Cut {
                source: "subagents".to_owned(),
                what: format!("only {MAX_LISTED} of {} agents are listed", listed.len()),
            });
            let text = format!("{}\n<available_subagents>\n{}\n</available_subagents>", help(cx), entries.join("\n"));
            let section = Section::new("subagents", self.name(), order::SUBAGENTS, text).without(cut);
            let section = listed.iter().take(MAX_LISTED).fold(section, |section, spec| section.from(&spec.source));
            Ok(vec![section].into())
        })
    }
}

fn entry(spec: &AgentSpec) -> String {
    let description: String =
        spec.description.as_deref().unwrap_or_default().trim().chars().take(MAX_DESCRIPTION_CHARS).collect();
    format!("<agent>{}{}</agent>", element("name", &spec.name), element("description", &description))
}

fn help(cx: &TurnCx<'_>) -> &'static str {
    if cx.has_tool("agent_spawn") {
        "## Subagents\nThese agents can be given a task of their own with `agent_spawn`."
    } else {
        "## Subagents\nThese agents are defined here. No tool to hand them a task is available: do the work yourself, \
         and follow their definitions where they help."
    }
}
