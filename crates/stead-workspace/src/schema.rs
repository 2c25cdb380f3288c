//! JSON schemas of the settings files, for editors.

use crate::AgentConfig;
use crate::tool_lists::ToolsFile;
use serde_json::Value;

/// The schema of `agent.yaml`.
pub fn agent_schema() -> Value {
    titled(schemars::schema_for!(AgentConfig), "agent.yaml of a Stead workspace")
}

/// The schema of `tools.json`.
pub fn tools_schema() -> Value {
    titled(schemars::schema_for!(ToolsFile), "tools.json of a Stead workspace")
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
            assert!(property.get("description").is_some() || property.get("$ref").is_some(), "{key} is not explained");
        }
        let validator = jsonschema::validator_for(&schema).unwrap();
        let parse = |text: &str| AgentConfig::parse(text, &|_| None);
        for (text, valid) in [
            ("name: a\nmodel: openai:gpt", true),
            ("model: {name: 'openai:gpt', temperature: 0.2}\ndisable: [shell, at_paths]", true),
            ("permissions: [{operations: [read], paths: [a], mode: deny}]\nskills: {mode: full}", true),
            ("filesystem: {project: ../code}\nsurface: title", true),
            ("modle: x", false),
            ("policy: {max_steps: many}", false),
            ("disable: [everything]", false),
        ] {
            let value = crate::Document::yaml("agent.yaml", text).unwrap().value().clone();
            assert_eq!((validator.is_valid(&value), parse(text).is_ok()), (valid, valid), "{text}");
        }
    }
}
