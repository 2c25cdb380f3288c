//! The agents of the workspace: subagents to delegate to, and agents to switch to.
//!
//! Effects: workspace files (reads).

mod switch;
mod tasks;
mod title;

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;
use stead_tools::{Tool, ToolIdentity, builtin, typed_tool};
use stead_workspace::{
    AgentSpec, Section, SectionCut, SubagentSpecs, WorkspaceError, element, general_purpose,
    section_order,
};
use switch::SwitchAgentTool;

/// The most agents that are listed.
const MAX_LISTED: usize = 100;
/// The most characters of a description that are shown.
const MAX_DESCRIPTION_CHARS: usize = 1024;

/// The sections and tools for delegating and switching.
#[derive(Debug)]
pub(super) struct SubagentsFeature;

impl Feature for SubagentsFeature {
    fn name(&self) -> &'static str {
        "subagents"
    }

    fn offers(&self) -> &'static [ToolIdentity] {
        &[
            builtin::TASK,
            builtin::AGENT_SEND,
            builtin::AGENT_LIST,
            builtin::DELEGATION_OUTPUT,
            builtin::DELEGATION_LIST,
            builtin::DELEGATION_CANCEL,
            builtin::DELEGATION_WAIT,
            builtin::SWITCH_AGENT,
        ]
    }

    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async move {
            let own = cx
                .definition()
                .paths
                .subagents
                .as_ref()
                .and_then(|folder| cx.user_version(folder));
            let agents = cx.workspace.subagents(&**cx.files, own.as_ref()).await?;
            let mut sections = Vec::new();
            let mut tools = Vec::new();
            if let Some(section) = self.delegation_section(cx, &agents) {
                sections.push(section);
                let refusal = cx.profile.general_purpose_disabled_by();
                tools.extend(
                    cx.subagents
                        .map(|subagents| tasks::tools(subagents, refusal))
                        .unwrap_or_default(),
                );
            }
            if let Some((section, tool)) = self.switching_section(cx, &agents.specs) {
                sections.push(section);
                tools.push(tool);
            }
            Ok(Contribution { sections, tools })
        })
    }
}

type AgentSpecs = BTreeMap<String, Arc<AgentSpec>>;

impl SubagentsFeature {
    /// Returns the section about the subagents that the acting agent may delegate to.
    fn delegation_section(
        &self,
        cx: &TurnCx<'_>,
        SubagentSpecs {
            specs: agents,
            broken,
        }: &SubagentSpecs,
    ) -> Option<Section> {
        let active = cx.definition().active_spec();
        let allowed = active.and_then(|active| active.subagents.as_ref());
        let settings = &cx.profile.profile.general_purpose;
        let default = general_purpose();
        let description = settings.description.clone().or(default.description);
        let general = Arc::new(AgentSpec {
            description,
            ..default
        });
        let name = &general.name;
        let is_available =
            settings.enabled != Some(false) && !agents.contains_key(name) && !broken.contains(name);
        let all = agents.values().chain(is_available.then_some(&general));
        let listed: Vec<&AgentSpec> = all
            .filter(|spec| spec.mode.is_subagent() && !spec.hidden)
            .filter(|spec| allowed.is_none_or(|names| names.contains(&spec.name)))
            .map(|spec| &**spec)
            .collect();
        if listed.is_empty() || !cx.allows_tool(&builtin::TASK) {
            return None;
        }
        let help = format!(
            "## Subagents\nThese agents can be given a task of their own with `{}`.",
            cx.name_of(&builtin::TASK)
        );
        Some(self.section(
            "subagents",
            section_order::SUBAGENTS,
            ("available_subagents", "agent"),
            &help,
            &listed,
        ))
    }

    /// Returns the section about the agents that the acting agent may switch to, and the tool for
    /// it.
    fn switching_section(
        &self,
        cx: &TurnCx<'_>,
        agents: &AgentSpecs,
    ) -> Option<(Section, Arc<dyn Tool>)> {
        let active = cx.definition().active_spec();
        let own = cx.definition().config.agent_id().to_string();
        let listed: Vec<&AgentSpec> = match active {
            Some(active) => active
                .switch_targets
                .iter()
                .filter_map(|name| agents.get(name))
                .map(|spec| &**spec)
                .collect(),
            // The workspace's own agent has no list of targets: it may switch to every main agent.
            None => agents
                .values()
                .filter(|spec| spec.mode.is_primary())
                .map(|spec| &**spec)
                .collect(),
        };
        let back = active.is_some_and(|active| {
            active.switch_targets.contains(&own) && !agents.contains_key(&own)
        });
        if (listed.is_empty() && !back) || !cx.allows_tool(&builtin::SWITCH_AGENT) {
            return None;
        }
        let targets = listed
            .iter()
            .map(|spec| spec.name.clone())
            .chain(back.then_some(own))
            .collect();
        let help = format!(
            "## Switching\nThese agents can go on with this conversation in your place: `{}`.",
            cx.name_of(&builtin::SWITCH_AGENT)
        );
        let section = self.section(
            "switches",
            section_order::SWITCHES,
            ("available_agent_switches", "agent"),
            &help,
            &listed,
        );
        Some((section, typed_tool(SwitchAgentTool { targets })))
    }

    /// Returns a section that lists agents.
    fn section(
        &self,
        title: &'static str,
        order: u16,
        (tag, entry_tag): (&str, &str),
        help: &str,
        listed: &[&AgentSpec],
    ) -> Section {
        let entries: Vec<String> = listed
            .iter()
            .take(MAX_LISTED)
            .map(|spec| render_agent(entry_tag, spec))
            .collect();
        let cut = (listed.len() > MAX_LISTED).then(|| SectionCut {
            source: title.to_owned(),
            what: format!("only {MAX_LISTED} of {} agents are listed", listed.len()),
        });
        let text = format!("{help}\n<{tag}>\n{}\n</{tag}>", entries.join("\n"));
        let section = Section::new(title, self.name(), order, text).with_cuts(cut);
        listed
            .iter()
            .take(MAX_LISTED)
            .fold(section, |section, spec| section.with_source(&spec.source))
    }
}

fn render_agent(tag: &str, spec: &AgentSpec) -> String {
    let description: String = spec
        .description
        .as_deref()
        .unwrap_or_default()
        .trim()
        .chars()
        .take(MAX_DESCRIPTION_CHARS)
        .collect();
    format!(
        "<{tag}>{}{}</{tag}>",
        element("name", &spec.name),
        element("description", &description)
    )
}
