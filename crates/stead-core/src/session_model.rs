//! The model that a session runs with, as its journal records it.
//!
//! Effects: none.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The model that a session runs with. It never contains a key: whoever continues the session looks
/// the key up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionModel {
    /// The model, as `provider:model`.
    pub name: String,
    /// The endpoint, if it is not the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The variable that held the key, if the session began with one. Without it the session is
    /// not continued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_variable: Option<String>,
    /// The other settings of the model, as in `agent.yaml`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
    /// The agents that it is used for.
    #[serde(default, skip_serializing_if = "ModelScope::is_default")]
    pub scope: ModelScope,
}

/// The agents of a session that use its model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelScope {
    /// Agents whose definition names no model.
    #[default]
    Default,
    /// All agents: a person chose the model.
    AllAgents,
}

impl ModelScope {
    fn is_default(&self) -> bool {
        *self == Self::Default
    }
}

impl SessionModel {
    /// Returns the model `provider:model` with the provider's own endpoint.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Returns the provider: the part of the name before the colon.
    pub fn provider(&self) -> &str {
        self.name.split(':').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_set_is_written() {
        let bare = SessionModel::named("openai:x");
        assert_eq!(
            serde_json::to_string(&bare).unwrap(),
            r#"{"name":"openai:x"}"#
        );
        let full = SessionModel {
            base_url: Some("http://127.0.0.1:1/v1".into()),
            settings: Map::from_iter([("temperature".to_owned(), Value::from(0.5))]),
            scope: ModelScope::AllAgents,
            ..bare
        };
        let text = serde_json::to_string(&full).unwrap();
        assert_eq!(serde_json::from_str::<SessionModel>(&text).unwrap(), full);
        assert!(text.contains(r#""scope":"all_agents""#), "{text}");
        assert_eq!(full.provider(), "openai");
    }
}
