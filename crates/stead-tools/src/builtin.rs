//! Every tool that a list, a rule or a journal may name.
//!
//! The identities of tools in this crate are in their own modules. Those of tools that crates above
//! implement are here, because settings are checked before those crates come into play; their specs
//! are built from these identities, so each name exists once.
//!
//! Effects: none.

use crate::{ToolIdentity, execute, files, plan, presentation, tasks, todos};
use stead_core::Exposure;
use stead_core::ToolKind::{Delegation, Lookup, MemoryForget, MemorySave, Skill, SwitchAgent};

pub use crate::execute::EXECUTE;
pub use crate::files::{
    DELETE_FILE, EDIT_FILE, FILE_INFO, GLOB_FILES, GREP_FILES, LS, MOVE_FILE, OVERWRITE_FILE,
    READ_FILE, WRITE_FILE,
};
pub use crate::plan::{PLAN_ENTER, PLAN_EXIT, PLAN_WRITE};
pub use crate::presentation::{TOOL_SEARCH, USE_TOOL};
pub use crate::todos::WRITE_TODOS;

/// The file tools.
pub const FILE_TOOLS: &[ToolIdentity] = files::IDENTITIES;
/// The tools for tasks that outlive conversations.
pub const TASK_TOOLS: &[ToolIdentity] = tasks::IDENTITIES;

/// `load_skill`: loads a skill.
pub const LOAD_SKILL: ToolIdentity = ToolIdentity::new("load_skill", Skill)
    .aliases(&["load_skill_through_path", "Skill"])
    .title("Skill")
    .subject(&["path", "name"]);
/// `switch_agent`: lets another agent continue the conversation.
pub const SWITCH_AGENT: ToolIdentity = ToolIdentity::new("switch_agent", SwitchAgent)
    .aliases(&["AgentSwitch", "agent.switch"])
    .title("AgentSwitch")
    .subject(&["to"]);
/// `task`: hands a task to a subagent.
pub const TASK: ToolIdentity = ToolIdentity::new("task", Delegation)
    .aliases(&[
        "agent_spawn",
        "SubAgent",
        "spawn_agent",
        "agent.delegate",
        "spawn",
    ])
    .title("SubAgent")
    .subject(&["agent", "description"])
    .exposed(Exposure::Usually);
/// `agent_send`: continues with a subagent.
pub const AGENT_SEND: ToolIdentity = ToolIdentity::new("agent_send", Delegation)
    .subject(&["to"])
    .exposed(Exposure::OnDemand);
/// `agent_list`: lists the subagents of a session.
pub const AGENT_LIST: ToolIdentity = ToolIdentity::new("agent_list", Delegation)
    .aliases(&["list_subagents"])
    .exposed(Exposure::OnDemand);
/// `delegation_list`: lists the tasks that were handed over.
pub const DELEGATION_LIST: ToolIdentity = ToolIdentity::new("delegation_list", Delegation)
    .aliases(&["task_list"])
    .exposed(Exposure::OnDemand);
/// `delegation_output`: shows the state and the result of a task that was handed over.
pub const DELEGATION_OUTPUT: ToolIdentity = ToolIdentity::new("delegation_output", Delegation)
    .aliases(&["task_output", "get_subagent_result"])
    .exposed(Exposure::OnDemand);
/// `delegation_cancel`: stops a task that was handed over.
pub const DELEGATION_CANCEL: ToolIdentity = ToolIdentity::new("delegation_cancel", Delegation)
    .aliases(&["task_cancel", "cancel_subagent"])
    .exposed(Exposure::OnDemand);
/// `delegation_wait`: waits for tasks that were handed over.
pub const DELEGATION_WAIT: ToolIdentity = ToolIdentity::new("delegation_wait", Delegation)
    .aliases(&["wait_tasks", "wait_async_results"])
    .exposed(Exposure::OnDemand);
/// `memory_search`: searches long-term memory.
pub const MEMORY_SEARCH: ToolIdentity = ToolIdentity::new("memory_search", Lookup)
    .subject(&["query"])
    .exposed(Exposure::Usually);
/// `memory_get`: reads a file of long-term memory.
pub const MEMORY_GET: ToolIdentity = ToolIdentity::new("memory_get", Lookup)
    .subject(&["path"])
    .exposed(Exposure::OnDemand);
/// `memory_save`: remembers a fact.
pub const MEMORY_SAVE: ToolIdentity =
    ToolIdentity::new("memory_save", MemorySave).exposed(Exposure::Usually);
/// `memory_forget`: forgets a fact.
pub const MEMORY_FORGET: ToolIdentity = ToolIdentity::new("memory_forget", MemoryForget)
    .subject(&["query"])
    .exposed(Exposure::OnDemand);
/// `session_search`: searches conversations.
pub const SESSION_SEARCH: ToolIdentity = ToolIdentity::new("session_search", Lookup)
    .aliases(&["search_conversations"])
    .subject(&["query"])
    .exposed(Exposure::OnDemand);
/// `session_list`: lists conversations.
pub const SESSION_LIST: ToolIdentity =
    ToolIdentity::new("session_list", Lookup).exposed(Exposure::OnDemand);
/// `session_history`: shows a part of a conversation.
pub const SESSION_HISTORY: ToolIdentity =
    ToolIdentity::new("session_history", Lookup).exposed(Exposure::OnDemand);
/// `recall`: shows what a compaction left out.
pub const RECALL: ToolIdentity = ToolIdentity::new("recall", Lookup)
    .subject(&["query"])
    .exposed(Exposure::OnDemand);

const OF_OTHER_CRATES: &[ToolIdentity] = &[
    SWITCH_AGENT,
    LOAD_SKILL,
    TASK,
    AGENT_SEND,
    AGENT_LIST,
    DELEGATION_OUTPUT,
    DELEGATION_LIST,
    DELEGATION_CANCEL,
    DELEGATION_WAIT,
    MEMORY_SEARCH,
    MEMORY_GET,
    MEMORY_SAVE,
    MEMORY_FORGET,
    SESSION_SEARCH,
    SESSION_LIST,
    SESSION_HISTORY,
    RECALL,
];

/// The identities of all built-in tools, by family.
const FAMILIES: [&[ToolIdentity]; 7] = [
    files::IDENTITIES,
    execute::IDENTITIES,
    todos::IDENTITIES,
    plan::IDENTITIES,
    tasks::IDENTITIES,
    presentation::IDENTITIES,
    OF_OTHER_CRATES,
];

/// The tools of a later version: `name: other names`, one per line.
const PLANNED: &str = include_str!("../data/planned.txt");

/// A tool that is known by name, whether this version has it or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownTool {
    /// The canonical name.
    pub name: &'static str,
    /// Whether this version has it.
    pub availability: Availability,
}

/// Whether this version has a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// This version has it.
    Available,
    /// A later version will have it.
    Planned,
}

/// Returns the identities of all built-in tools.
pub fn builtin_tools() -> impl Iterator<Item = &'static ToolIdentity> {
    FAMILIES.into_iter().flatten()
}

/// Returns the built-in tool that `name` means, canonical or not.
pub fn builtin_tool(name: &str) -> Option<&'static ToolIdentity> {
    builtin_tools().find(|tool| tool.names().any(|known| known == name))
}

/// Returns the tool that `name` means, canonical or not.
pub fn known_tool(name: &str) -> Option<KnownTool> {
    let planned = || {
        planned_tools().find(|(tool, aliases)| {
            *tool == name || aliases.split_whitespace().any(|alias| alias == name)
        })
    };
    match builtin_tool(name) {
        Some(tool) => Some(available(tool)),
        None => planned().map(|(name, _)| later(name)),
    }
}

/// Returns all names of a known tool, by any of them, and nothing for an unknown one.
pub fn known_names(name: &str) -> Vec<&'static str> {
    if let Some(tool) = builtin_tool(name) {
        return tool.names().collect();
    }
    let all = |(tool, aliases): (&'static str, &'static str)| {
        [tool]
            .into_iter()
            .chain(aliases.split_whitespace())
            .collect()
    };
    let mut planned = planned_tools().map(all);
    planned
        .find(|names: &Vec<&str>| names.contains(&name))
        .unwrap_or_default()
}

/// Returns the canonical name of the tool whose rules hold for `tool` too. Both are canonical.
pub fn rules_follow(tool: &str) -> Option<&'static str> {
    builtin_tools()
        .find(|known| known.name == tool)?
        .follows_rules_of
}

/// Returns all known tools.
pub fn known_tools() -> impl Iterator<Item = KnownTool> {
    builtin_tools()
        .map(available)
        .chain(planned_tools().map(|(name, _)| later(name)))
}

fn available(tool: &ToolIdentity) -> KnownTool {
    KnownTool {
        name: tool.name,
        availability: Availability::Available,
    }
}

fn later(name: &'static str) -> KnownTool {
    KnownTool {
        name,
        availability: Availability::Planned,
    }
}

fn planned_tools() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = PLANNED.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(':'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_means_one_tool() {
        let builtin = builtin_tools().flat_map(|tool| tool.names().collect::<Vec<_>>());
        let planned = planned_tools().flat_map(|(tool, aliases)| {
            [tool]
                .into_iter()
                .chain(aliases.split_whitespace())
                .collect::<Vec<_>>()
        });
        let mut seen = BTreeSet::new();
        for name in builtin.chain(planned) {
            assert!(seen.insert(name), "{name} means two tools");
        }
    }

    #[test]
    fn every_title_is_an_alias() {
        for tool in builtin_tools() {
            assert!(
                tool.title.is_none_or(|title| tool.aliases.contains(&title)),
                "{tool:?}"
            );
        }
    }

    #[test]
    fn every_tool_of_ours_is_known_by_all_its_names() {
        let file = stead_vfs::VPath::parse("x").unwrap();
        let more = [
            crate::todo_tools(),
            crate::plan_tools(&file),
            crate::task_tools(&file, None),
        ];
        for tool in crate::file_tools()
            .into_iter()
            .chain(more.into_iter().flatten())
        {
            let spec = tool.spec();
            for name in [&spec.name].into_iter().chain(&spec.aliases) {
                let known = known_tool(name).unwrap_or_else(|| panic!("{name} is not known"));
                assert_eq!(
                    (known.name, known.availability),
                    (spec.name.as_str(), Availability::Available)
                );
            }
        }
        assert_eq!(
            known_tool("Bash").map(|tool| (tool.name, tool.availability)),
            Some(("execute", Availability::Available))
        );
        assert_eq!(
            known_tool("WebFetch").map(|tool| (tool.name, tool.availability)),
            Some(("web_fetch", Availability::Planned))
        );
        assert_eq!(known_tool("nonsense"), None);
        assert_eq!(rules_follow("overwrite_file"), Some("write_file"));
    }
}
