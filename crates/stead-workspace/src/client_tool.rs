//! The `client_tools:` settings of agent.yaml: tools that the client executes.
//!
//! Effects: none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stead_core::{Risk, ToolEffect, ToolSpec};

/// The maximum length of a tool name that every provider accepts.
const MAX_NAME_BYTES: usize = 64;

/// A tool that the client executes: its calls wait until the client answers with a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientToolSettings {
    /// The tool's name: letters, digits, `_` and `-`.
    pub name: String,
    /// The description of the tool for the model.
    pub description: String,
    /// The JSON schema of the arguments (default: no arguments).
    #[serde(default = "nothing")]
    pub parameters: Value,
    /// The strongest effect of the tool, for the permission mode: `reads`, `writes` (default),
    /// `network` or `executes`.
    #[serde(default = "writes")]
    pub effect: ToolEffect,
}

fn nothing() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": false})
}

fn writes() -> ToolEffect {
    ToolEffect::Writes
}

impl ClientToolSettings {
    /// Returns the specification for the model and the gate.
    pub fn spec(&self) -> ToolSpec {
        let risk = Risk {
            effect: self.effect,
            parallel_safe: false,
            repeatable: false,
        };
        ToolSpec::new(&self.name, &self.description, risk).with_parameters(self.parameters.clone())
    }

    /// Returns the first problem of the tools with the key it is about.
    pub(crate) fn problem(all: &[Self]) -> Option<(String, String)> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        for (at, tool) in all.iter().enumerate() {
            let key = format!("client_tools[{at}]");
            let name = &tool.name;
            if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(plain) {
                let message = format!(
                    "{key}.name: {name:?} is no name of a tool; use letters, digits, _ and -, at most {MAX_NAME_BYTES}"
                );
                return Some((format!("{key}.name"), message));
            }
            if all[..at].iter().any(|other| other.name == *name) {
                return Some((
                    format!("{key}.name"),
                    format!("{key}.name: there are two client tools named `{name}`"),
                ));
            }
            if tool.parameters.get("type").and_then(Value::as_str) != Some("object") {
                let message = format!("{key}.parameters must be a JSON schema with `type: object`");
                return Some((format!("{key}.parameters"), message));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentConfig;

    #[test]
    fn client_tools_are_checked_with_their_place() {
        let good = "client_tools:\n- {name: pick, description: Picks., effect: reads}\n";
        let tools = AgentConfig::parse(good, &|_| None).unwrap().client_tools;
        let name = "pick".to_owned();
        let description = "Picks.".to_owned();
        assert_eq!(
            tools,
            [ClientToolSettings {
                name,
                description,
                parameters: nothing(),
                effect: ToolEffect::Reads
            }]
        );
        let table = [
            (
                "client_tools:\n- {name: 'a b', description: x}",
                "agent.yaml:2:",
            ),
            (
                "client_tools:\n- {name: '', description: x}",
                "agent.yaml:2:",
            ),
            (
                "client_tools:\n- {name: a, description: x}\n- {name: a, description: y}",
                "agent.yaml:3:",
            ),
            (
                "client_tools:\n- {name: a, description: x, parameters: {type: string}}",
                "agent.yaml:2:",
            ),
            (
                "client_tools:\n- {name: a, description: x, parameters: [1]}",
                "agent.yaml:2:",
            ),
            (
                "client_tools:\n- {name: a, description: x, effect: flies}",
                "agent.yaml:2:",
            ),
            ("client_tools:\n- {name: a, descripton: x}", "agent.yaml:2:"),
            ("client_tools:\n- {name: a}", "agent.yaml:2:"),
        ];
        for (text, place) in table {
            let error = AgentConfig::parse(text, &|_| None).unwrap_err()[0].to_string();
            assert!(error.starts_with(place), "{text}: {error}");
        }
    }
}
