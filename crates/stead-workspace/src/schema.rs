//! JSON schemas of the settings files, for editors.
//!
//! Effects: none.

use crate::tool_lists::ToolsFile;
use crate::{AgentConfig, ProfileFile};
use serde_json::Value;

/// Returns the schema of `agent.yaml`.
pub fn agent_schema() -> Value {
    titled(
        schemars::schema_for!(AgentConfig),
        "agent.yaml of a Stead workspace",
    )
}

/// Returns the schema of `tools.json`.
pub fn tools_schema() -> Value {
    titled(
        schemars::schema_for!(ToolsFile),
        "tools.json of a Stead workspace",
    )
}

/// Returns the schema of a file in `profiles/`.
pub fn profile_schema() -> Value {
    let mut schema = schemars::schema_for!(ProfileFile);
    schema.insert("required".to_owned(), serde_json::json!(["for"]));
    titled(schema, "profile of a Stead workspace")
}

fn titled(mut schema: schemars::Schema, title: &str) -> Value {
    schema.insert("title".to_owned(), title.into());
    schema.to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_accepts_what_the_parser_does_and_every_key_is_explained() {
        let schema = agent_schema();
        let properties = schema["properties"].as_object().unwrap();
        for (key, property) in properties {
            assert!(
                property.get("description").is_some() || property.get("$ref").is_some(),
                "{key} is not explained"
            );
        }
        let validator = jsonschema::validator_for(&schema).unwrap();
        let parse = |text: &str| AgentConfig::parse(text, &|_| None);
        for (text, valid) in [
            ("name: a\nmodel: openai:gpt", true),
            (
                "model: {name: 'openai:gpt', temperature: 0.2}\ndisable: [shell, at_paths]",
                true,
            ),
            (
                "permissions: [{operations: [read], paths: [a], mode: deny}]\nskills: {mode: full}",
                true,
            ),
            ("filesystem: {project: ../code}\nsurface: title", true),
            ("modle: x", false),
            ("policy: {max_steps: many}", false),
            ("disable: [everything]", false),
        ] {
            let value = crate::SettingsDocument::parse_yaml("agent.yaml", text)
                .unwrap()
                .value()
                .clone();
            assert_eq!(
                (validator.is_valid(&value), parse(text).is_ok()),
                (valid, valid),
                "{text}"
            );
        }
    }

    #[test]
    fn the_schema_of_profiles_accepts_what_the_parser_does() {
        let validator = jsonschema::validator_for(&profile_schema()).unwrap();
        for (text, valid) in [
            ("for: openai", true),
            (
                "for: [anthropic, 'claude:x*']\ncaching: 1h\ntemperature: 0.5\nthinking_tokens: 0",
                true,
            ),
            (
                "for: openai\ngeneral_purpose: false\nsurface: title\nexclude: [ls]",
                true,
            ),
            (
                "for: openai\ngeneral_purpose: {prompt: a}\ndescriptions: {ls: b}\nprompt_suffix: c",
                true,
            ),
            ("for: anthropic\ncaching: off", true),
            ("temperature: 1", false),
            ("for: openai\ncaching: 2h", false),
            ("for: openai\ngeneral_purpose: {promt: a}", false),
            ("for: openai\nsurface: camel", false),
            ("for: openai\nexclude: ls", false),
        ] {
            let value = crate::SettingsDocument::parse_yaml("p.yaml", text)
                .unwrap()
                .value()
                .clone();
            let parsed = crate::profile::ParsedProfile::parse("p.yaml", text).is_ok();
            assert_eq!(
                (validator.is_valid(&value), parsed),
                (valid, valid),
                "{text}"
            );
        }
    }
}
