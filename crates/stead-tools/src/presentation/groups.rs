//! Groups of tools that a model is shown as one.
//!
//! Effects: none.

use super::ACTION;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use stead_core::{Exposure, Risk, ToolSpec};

/// Tools that belong together and are shown as one, with an `action` that chooses the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolGroup {
    /// The name under which the group is shown.
    pub name: &'static str,
    /// The canonical names of the tools, each after its action.
    pub actions: &'static [(&'static str, &'static str)],
    pub(super) description: &'static str,
    pub(super) exposure: Exposure,
}

/// The groups. Their names differ from the names of all tools, so that lists and rules stay clear.
const GROUPS: [ToolGroup; 4] = [
    ToolGroup {
        name: "plan_mode",
        actions: &[
            ("enter", "plan_enter"),
            ("write", "plan_write"),
            ("exit", "plan_exit"),
        ],
        description: "Plan before changing anything: enter allows only reading, write keeps the plan, exit asks \
                      the person to agree to it.",
        exposure: Exposure::Usually,
    },
    ToolGroup {
        name: "subagents",
        actions: &[
            ("list", "delegation_list"),
            ("output", "delegation_output"),
            ("wait", "delegation_wait"),
            ("cancel", "delegation_cancel"),
            ("agents", "agent_list"),
            ("send", "agent_send"),
        ],
        description: "Look after work that was given away with task: list it, get its output, wait for it, cancel \
                      it, list the agents, send one of them a further message.",
        exposure: Exposure::OnDemand,
    },
    ToolGroup {
        name: "saved_tasks",
        actions: &[
            ("create", "create_task"),
            ("list", "list_tasks"),
            ("get", "get_task"),
            ("update", "update_task"),
            ("delete", "delete_task"),
        ],
        description: "The list of tasks that outlives conversations: work that goes on later, runs elsewhere, or must \
                      be looked after. For the steps of the work at hand use write_todos.",
        exposure: Exposure::OnDemand,
    },
    ToolGroup {
        name: "history",
        actions: &[
            ("recall", "recall"),
            ("search", "session_search"),
            ("list", "session_list"),
            ("read", "session_history"),
        ],
        description: "What was said: recall finds it in this conversation, also where it is no longer shown; search \
                      looks through all sessions, list names them, read shows a part of one.",
        exposure: Exposure::OnDemand,
    },
];

/// Returns all groups.
pub fn tool_groups() -> &'static [ToolGroup] {
    &GROUPS
}

/// Returns the group of this name.
pub fn tool_group(name: &str) -> Option<&'static ToolGroup> {
    GROUPS.iter().find(|group| group.name == name)
}

impl ToolGroup {
    /// Returns the form of the group with these tools, each after its action.
    pub(super) fn spec(&self, members: &[(&'static str, &ToolSpec)]) -> ToolSpec {
        let described: Vec<String> = members
            .iter()
            .filter_map(|(action, spec)| match &required(spec)[..] {
                [] => None,
                needed => Some(format!("{action} needs {}", needed.join(", "))),
            })
            .collect();
        let actions: Vec<&str> = members.iter().map(|(action, _)| *action).collect();
        let mut properties = Map::new();
        properties.insert(
            ACTION.to_owned(),
            json!({"type": "string", "enum": actions, "description": described.join("; ")}),
        );
        properties.extend(shared_properties(members));
        let parameters = json!({"type": "object", "properties": properties, "required": [ACTION]});
        let aliases = members
            .iter()
            .flat_map(|(_, spec)| spec.aliases.iter().chain([&spec.name]));
        ToolSpec::new(self.name, self.description, Risk::READS)
            .with_parameters(parameters)
            .with_aliases(aliases)
            .with_exposure(self.exposure)
    }
}

/// Returns the parameters of all tools, each once, with the actions that have it.
fn shared_properties(members: &[(&'static str, &ToolSpec)]) -> Map<String, Value> {
    let mut found: BTreeMap<&str, (Value, Vec<&str>)> = BTreeMap::new();
    for (action, spec) in members {
        let properties = spec.parameters.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            let entry = found
                .entry(name)
                .or_insert_with(|| (schema.clone(), Vec::new()));
            entry.1.push(action);
        }
    }
    let with_actions = |(name, (mut schema, actions)): (&str, (Value, Vec<&str>))| {
        if let Value::Object(keywords) = &mut schema {
            keywords.remove("default");
            let about = keywords.get("description").and_then(Value::as_str);
            let about = format!("{}: {}", actions.join(", "), about.unwrap_or_default());
            keywords.insert("description".to_owned(), about.trim().into());
        }
        (name.to_owned(), schema)
    };
    found.into_iter().map(with_actions).collect()
}

/// Returns the names of the parameters that a tool needs.
fn required(spec: &ToolSpec) -> Vec<&str> {
    let names = spec.parameters.get("required").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builtin_tool, known_tool};
    use std::collections::BTreeSet;

    #[test]
    fn groups_are_made_of_tools_and_are_not_named_like_one() {
        let mut grouped = BTreeSet::new();
        for group in tool_groups() {
            assert_eq!(known_tool(group.name), None, "{}", group.name);
            for (_, tool) in group.actions {
                assert_eq!(builtin_tool(tool).map(|known| known.name), Some(*tool));
                assert!(grouped.insert(tool), "{tool} is in two groups");
            }
        }
    }
}
