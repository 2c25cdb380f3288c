//! Tests of the settings.

use super::*;
use crate::FlushAfter;
use stead_core::VerdictKind;

fn parse(text: &str) -> Result<AgentConfig, Vec<Finding>> {
    AgentConfig::parse(text, &|name| {
        (name == "KEY").then(|| "sk-123456".to_owned())
    })
}

#[test]
fn nothing_and_comments_mean_defaults() {
    for text in ["", "# only a comment\n", "\u{feff}\n"] {
        assert_eq!(parse(text).unwrap(), AgentConfig::default());
    }
}

#[test]
fn a_model_may_be_named_in_two_parts_but_not_twice() {
    let name = |text: &str| {
        parse(text)
            .map(|config| config.model.unwrap().name)
            .map_err(|all| all[0].to_string())
    };
    assert_eq!(
        name("model: {provider: ollama, model: 'qwen3:8b'}").as_deref(),
        Ok("ollama:qwen3:8b")
    );
    let table = [
        (
            "model:\n  name: a:b\n  provider: a",
            "agent.yaml:3:3: model.provider: either `name`, or",
        ),
        (
            "model:\n  name: a:b\n  model: b",
            "agent.yaml:3:3: model.model: either `name`, or",
        ),
        (
            "model:\n  provider: a",
            "agent.yaml:2:3: model.provider: which model of a?",
        ),
        (
            "model:\n  model: b",
            "agent.yaml:2:3: model.model: whose model is b?",
        ),
        (
            "model:\n  name: a:b\n  abilities: [flying]",
            "agent.yaml:3:15: ",
        ),
    ];
    for (text, start) in table {
        let message = name(text).unwrap_err();
        assert!(message.starts_with(start), "{text:?}: {message}");
    }
}

#[test]
fn a_model_is_a_name_or_a_map_and_variables_become_secrets() {
    let config =
        parse("model: {name: 'openai:gpt', api_key: '${KEY}', base_url: '${URL:-http://x}'}")
            .unwrap();
    let model = config.model.unwrap();
    assert_eq!(
        (model.api_key.as_deref(), model.base_url.as_deref()),
        (Some("sk-123456"), Some("http://x"))
    );
    assert_eq!(config.secrets, vec!["sk-123456".to_owned()]);
    let missing = parse("model: ${A}${B}").unwrap_err();
    assert_eq!(missing.len(), 2);
    assert!(
        missing[1]
            .to_string()
            .starts_with("agent.yaml:1:1: the variable B is not set"),
        "{}",
        missing[1]
    );
}

#[test]
fn a_time_zone_is_one_of_iana() {
    assert_eq!(
        parse("timezone: America/Denver")
            .unwrap()
            .timezone
            .as_deref(),
        Some("America/Denver")
    );
    let error = parse("name: a\ntimezone: America/Denvr").unwrap_err()[0].to_string();
    assert!(
        error.starts_with("agent.yaml:2:1: timezone: there is no time zone"),
        "{error}"
    );
    assert!(error.ends_with("did you mean `America/Denver`?"), "{error}");
}

#[test]
fn permissions_are_strict_and_tell_rule_and_place() {
    let good = "permissions:\n- {operations: [read, write], paths: ['**/*.{key,pem}'], mode: deny}\n- operations: [write]\n  paths: [docs/**]\n  mode: ask\n";
    let rules = parse(good).unwrap().permissions;
    assert_eq!(
        (rules.len(), rules[1].paths[0].as_str(), rules[1].mode),
        (2, "docs/**", VerdictKind::Ask)
    );
    let with_variable = "permissions: [{operations: [read], paths: ['${KEY}/x'], mode: deny}]";
    assert_eq!(
        parse(with_variable).unwrap().permissions[0].paths,
        ["sk-123456/x"]
    );
    assert_eq!(parse("permissions:\n").unwrap().permissions, []);
    for (rule, said) in [
        (
            "{operations: [read], paths: ['[a'], mode: deny}",
            "permissions[1]: \"[a\" is not a pattern",
        ),
        (
            "{operations: [], paths: [a], mode: deny}",
            "permissions[1]: `operations` is empty",
        ),
        (
            "{operations: [read], paths: [], mode: deny}",
            "permissions[1]: `paths` is empty",
        ),
        ("{operations: [read], paths: [a]}", "mode"),
        ("{operations: [reed], paths: [a], mode: deny}", "reed"),
        ("{operations: [read], paths: [a], mode: forbid}", "forbid"),
        (
            "{operations: [read], path: [a], mode: deny}",
            "did you mean `paths`",
        ),
    ] {
        let text = format!(
            "name: main\npermissions:\n- {{operations: [read], paths: [b], mode: allow}}\n- {rule}\n"
        );
        let error = parse(&text).unwrap_err()[0].to_string();
        assert!(
            error.starts_with("agent.yaml:4:") && error.contains(said),
            "{rule}: {error}"
        );
    }
}

#[test]
fn settings_of_memory_that_make_no_sense_are_refused_with_their_place() {
    let set = parse(
        "memory: {flush: false, flush_after: run, idle_minutes: 5, flush_tokens: 100, \
         model: 'openai:gpt-5-mini', consolidate_minutes: 0}",
    )
    .unwrap()
    .memory;
    let want = MemorySettings {
        flush: Some(false),
        flush_after: Some(FlushAfter::Run),
        idle_minutes: 5,
        flush_tokens: 100,
        model: Some("openai:gpt-5-mini".to_owned()),
        consolidate_minutes: 0,
        ..MemorySettings::default()
    };
    assert_eq!(set, want);
    let table = [
        (
            "memory:\n  archive_days: 0",
            "agent.yaml:2:3: memory.archive_days must be at least 1",
        ),
        (
            "memory:\n  model: gpt",
            "agent.yaml:2:3: memory.model: \"gpt\" is not a model name",
        ),
        ("memory:\n  flsh: true", "agent.yaml:2:3: "),
        (
            "memory:\n  flush_after: never",
            "agent.yaml:2:3: memory.flush_after",
        ),
    ];
    for (text, start) in table {
        let message = parse(text).unwrap_err()[0].to_string();
        assert!(message.starts_with(start), "{text:?}: {message}");
    }
}

#[test]
fn a_mistake_is_reported_with_its_place_and_the_nearest_key() {
    let error = parse("name: main\npolicy:\n  max_step: 3\n").unwrap_err()[0].to_string();
    assert!(error.starts_with("agent.yaml:3:"), "{error}");
    assert!(error.contains("did you mean `max_steps`"), "{error}");
    for bad in [
        "policy: {max_steps: 0}",
        "name: ../x",
        "name: [",
        "model: 5",
        "- a\n- b",
        "policy: {max_steps: -1}",
    ] {
        assert!(parse(bad).is_err(), "{bad} was accepted");
    }
}
