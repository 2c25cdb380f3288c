//! `agent.yaml`: every key typed, unknown keys refused with their place.

use crate::variables::{Found, substitute};
use crate::{Filesystem, SessionSettings};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use stead_core::{AgentId, Limits, Price};
use stead_model::ModelSettings;
use stead_vfs::Rule;

/// The settings of an agent. All are optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentConfig {
    /// The agent's id; its sessions lie under `agents/<name>/`. Default `main`.
    pub name: Option<AgentId>,
    /// What it is for, in a line.
    pub description: Option<String>,
    /// The model: `provider:model`, or a map of settings with `name:`.
    #[serde(deserialize_with = "model")]
    pub model: Option<ModelSettings>,
    /// Bounds of a run.
    pub policy: Policy,
    /// Dollars per million tokens by `provider:model`, over the built-in table.
    pub prices: BTreeMap<String, Price>,
    /// Tools whose calls wait for a person: `write_file: true`.
    pub approvals: BTreeMap<String, bool>,
    /// Where the tree lies.
    pub filesystem: Filesystem,
    /// Where sessions are kept, if not with the tree.
    pub sessions: SessionSettings,
    /// How long, and in how much space, it is kept what runs changed.
    pub undo: UndoSettings,
    /// Which files may be read and written; the first rule that covers a path decides.
    #[serde(deserialize_with = "permissions")]
    pub permissions: Vec<Rule>,
    /// Values that came from `${VAR}`, to be kept out of journals and logs.
    #[serde(skip)]
    pub secrets: Vec<String>,
}

/// Bounds of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Model calls at most (default 200).
    pub max_steps: u32,
    /// Seconds for a whole run (default 3600).
    pub run_timeout_seconds: u64,
    /// Seconds for one tool call (default 120).
    pub tool_timeout_seconds: u64,
    /// How many parallel-safe calls of one step run at once (default 8; 1 = one after another).
    pub parallel_tool_calls: u32,
    /// Rounds of the same calls with the same results until the model is told (default 3, 0 = never).
    pub repeat_nudge: u32,
    /// Rounds of the same calls with the same results until the run ends (default 6, 0 = never).
    pub repeat_end: u32,
}

impl Default for Policy {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            max_steps: limits.max_steps,
            run_timeout_seconds: 3600,
            tool_timeout_seconds: 120,
            parallel_tool_calls: 8,
            repeat_nudge: limits.repeat_nudge,
            repeat_end: limits.repeat_end,
        }
    }
}

impl Policy {
    /// The part that the Run machine enforces.
    pub fn limits(&self) -> Limits {
        Limits { max_steps: self.max_steps, repeat_nudge: self.repeat_nudge, repeat_end: self.repeat_end }
    }
}

/// How long, and in how much space, it is kept what runs changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UndoSettings {
    /// Days (default 30).
    pub keep_days: u32,
    /// Megabytes (default 1024).
    pub max_mb: u64,
}

impl Default for UndoSettings {
    fn default() -> Self {
        Self { keep_days: 30, max_mb: 1024 }
    }
}

/// Why settings were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Not YAML, or not what a key wants.
    #[error("agent.yaml:{line}:{column}: {message}")]
    Invalid {
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// What is wrong and, for an unknown key, the nearest known one.
        message: String,
    },
    /// Variables that are not set.
    #[error("agent.yaml uses variables that are not set: {}", .0.join(", "))]
    MissingVariables(Vec<String>),
}

impl ConfigError {
    /// The same at the line of the top-level key that the message begins with: what is wrong was only seen
    /// after everything had been read.
    fn placed(self, text: &str) -> Self {
        let Self::Invalid { line: 1, column: 1, message } = self else { return self };
        let key = message.split(['.', ' ', '[']).next().unwrap_or("").to_owned();
        let at = text
            .lines()
            .position(|line| line.strip_prefix(&key).is_some_and(|rest| rest.trim_start().starts_with(':')));
        Self::Invalid { line: at.map_or(1, |at| at as u64 + 1), column: 1, message }
    }
}

impl AgentConfig {
    /// Parses `agent.yaml`, taking variables from `lookup`.
    pub fn parse(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Self::default());
        }
        let config: Self = serde_saphyr::from_str(text).map_err(|error| invalid(&error))?;
        config.validate().map_err(|error| error.placed(text))?;
        if !text.contains("${") {
            return Ok(config);
        }
        let unexpected =
            |error: serde_json::Error| ConfigError::Invalid { line: 1, column: 1, message: error.to_string() };
        let mut found = Found::default();
        let mut value = serde_json::to_value(&config).map_err(unexpected)?;
        substitute(&mut value, lookup, &mut found);
        if !found.missing.is_empty() {
            return Err(ConfigError::MissingVariables(found.missing));
        }
        let mut config: Self = serde_json::from_value(value).map_err(unexpected)?;
        config.secrets = found.values;
        Ok(config)
    }

    /// The agent's id.
    pub fn agent(&self) -> AgentId {
        self.name.clone().unwrap_or_else(AgentId::main)
    }

    fn validate(&self) -> Result<(), ConfigError> {
        let zero = [
            (self.policy.max_steps == 0, "policy.max_steps"),
            (self.policy.run_timeout_seconds == 0, "policy.run_timeout_seconds"),
            (self.policy.tool_timeout_seconds == 0, "policy.tool_timeout_seconds"),
            (self.policy.parallel_tool_calls == 0, "policy.parallel_tool_calls"),
        ];
        let invalid = |message: String| Err(ConfigError::Invalid { line: 1, column: 1, message });
        if let Some((_, key)) = zero.into_iter().find(|(is_zero, _)| *is_zero) {
            return invalid(format!("{key} must be at least 1"));
        }
        if let Some(problem) = self.filesystem.problem() {
            return invalid(problem);
        }
        if self.sessions.url.is_some() && self.filesystem.mode == crate::Mode::Local {
            return invalid("sessions.url has no meaning with filesystem.mode: local".to_owned());
        }
        let Policy { repeat_nudge, repeat_end, .. } = self.policy;
        if repeat_end > 0 && repeat_nudge > repeat_end {
            return invalid("policy.repeat_nudge must not be more than policy.repeat_end".to_owned());
        }
        let own = self.model.iter().filter_map(|model| model.price.as_ref().map(|price| (&model.name, price)));
        let amounts = |price: &Price| [Some(price.input), Some(price.output), price.cache_read, price.cache_write];
        let wrong =
            |price: &Price| amounts(price).into_iter().flatten().any(|amount| !amount.is_finite() || amount < 0.0);
        match self.prices.iter().chain(own).find(|(_, price)| wrong(price)) {
            Some((name, _)) => invalid(format!("the price of {name} must be 0 or more")),
            None => Ok(()),
        }
    }
}

fn model<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ModelSettings>, D::Error> {
    struct NameOrSettings;
    impl<'de> serde::de::Visitor<'de> for NameOrSettings {
        type Value = Option<ModelSettings>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("`provider:model`, or a map with `name:`")
        }
        fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
            Ok(Some(ModelSettings { name: name.to_owned(), ..ModelSettings::default() }))
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            ModelSettings::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Some)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }
    deserializer.deserialize_any(NameOrSettings)
}

/// Rule by rule, so that what is wrong with one is told at its place in the file.
fn permissions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    struct At(usize);
    impl<'de> serde::de::DeserializeSeed<'de> for At {
        type Value = Rule;
        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Rule, D::Error> {
            let rule = Rule::deserialize(deserializer)?;
            rule.check(self.0).map_err(serde::de::Error::custom)?;
            Ok(rule)
        }
    }
    struct List;
    impl<'de> serde::de::Visitor<'de> for List {
        type Value = Vec<Rule>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of rules, each with `operations`, `paths` and `mode`")
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut rules: Vec<Rule> = Vec::new();
            while let Some(rule) = list.next_element_seed(At(rules.len()))? {
                rules.push(rule);
            }
            Ok(rules)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }
        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }
    }
    deserializer.deserialize_any(List)
}

fn invalid(error: &serde_saphyr::Error) -> ConfigError {
    let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
    let full = error.without_snippet().to_string();
    // The place is part of our own message.
    let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
    ConfigError::Invalid { line, column, message: in_plain_words(with_suggestion(message)) }
}

/// The parser's own words, where a person could not act on them.
fn in_plain_words(message: String) -> String {
    let plain = [
        ("invalid u32", "a whole number, 0 or more, is needed here"),
        ("invalid u64", "a whole number, 0 or more, is needed here"),
        ("invalid f64", "a number is needed here"),
        ("invalid boolean", "true or false is needed here"),
        ("expected mapping start", "`key: value` pairs are needed here"),
        ("expected sequence start", "a list is needed here"),
        ("duplicate mapping key", "this key stands here twice"),
        ("multiple YAML documents", "only one document is allowed: remove the `---` lines"),
    ];
    let known = plain.iter().find(|(theirs, _)| message.contains(theirs));
    known.map_or(message, |(_, ours)| (*ours).to_owned())
}

/// Adds the nearest of the expected names to an unknown-field message.
fn with_suggestion(message: String) -> String {
    let parts = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once("`, expected "));
    let Some((unknown, expected)) = parts else { return message };
    let known = expected.trim_start_matches("one of ").split(", ").map(|name| name.trim_matches('`'));
    let nearest = known.map(|name| (edit_distance(unknown, name), name)).min();
    match nearest {
        Some((distance, name)) if distance <= 1 + unknown.len() / 3 => format!("{message}; did you mean `{name}`?"),
        Some(_) | None => message,
    }
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead_core::VerdictKind;

    fn parse(text: &str) -> Result<AgentConfig, ConfigError> {
        AgentConfig::parse(text, &|name| (name == "KEY").then(|| "sk-123456".to_owned()))
    }

    #[test]
    fn nothing_and_comments_mean_defaults() {
        for text in ["", "# only a comment\n", "\u{feff}\n"] {
            assert_eq!(parse(text).unwrap(), AgentConfig::default());
        }
    }

    #[test]
    fn a_model_is_a_name_or_a_map_and_variables_become_secrets() {
        let config = parse("model: {name: 'openai:gpt', api_key: '${KEY}', base_url: '${URL:-http://x}'}").unwrap();
        let model = config.model.unwrap();
        assert_eq!((model.api_key.as_deref(), model.base_url.as_deref()), (Some("sk-123456"), Some("http://x")));
        assert_eq!(config.secrets, vec!["sk-123456".to_owned()]);
        assert_eq!(parse("model: ${A}${B}").unwrap_err(), ConfigError::MissingVariables(vec!["A".into(), "B".into()]));
    }

    #[test]
    fn permissions_are_strict_and_tell_rule_and_place() {
        let good = "permissions:\n- {operations: [read, write], paths: ['**/*.{key,pem}'], mode: deny}\n- operations: [write]\n  paths: [docs/**]\n  mode: ask\n";
        let rules = parse(good).unwrap().permissions;
        assert_eq!((rules.len(), rules[1].paths[0].as_str(), rules[1].mode), (2, "docs/**", VerdictKind::Ask));
        let with_variable = "permissions: [{operations: [read], paths: ['${KEY}/x'], mode: deny}]";
        assert_eq!(parse(with_variable).unwrap().permissions[0].paths, ["sk-123456/x"]);
        assert_eq!(parse("permissions:\n").unwrap().permissions, []);
        for (rule, said) in [
            ("{operations: [read], paths: ['[a'], mode: deny}", "permissions[1]: \"[a\" is not a pattern"),
            ("{operations: [], paths: [a], mode: deny}", "permissions[1]: `operations` is empty"),
            ("{operations: [read], paths: [], mode: deny}", "permissions[1]: `paths` is empty"),
            ("{operations: [read], paths: [a]}", "mode"),
            ("{operations: [reed], paths: [a], mode: deny}", "reed"),
            ("{operations: [read], paths: [a], mode: forbid}", "forbid"),
            ("{operations: [read], path: [a], mode: deny}", "did you mean `paths`"),
        ] {
            let text =
                format!("name: main\npermissions:\n- {{operations: [read], paths: [b], mode: allow}}\n- {rule}\n");
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.starts_with("agent.yaml:4:") && error.contains(said), "{rule}: {error}");
        }
    }

    #[test]
    fn a_mistake_is_reported_with_its_place_and_the_nearest_key() {
        let error = parse("name: main\npolicy:\n  max_step: 3\n").unwrap_err().to_string();
        assert!(error.starts_with("agent.yaml:3:"), "{error}");
        assert!(error.contains("did you mean `max_steps`"), "{error}");
        for bad in
            ["policy: {max_steps: 0}", "name: ../x", "name: [", "model: 5", "- a\n- b", "policy: {max_steps: -1}"]
        {
            assert!(parse(bad).is_err(), "{bad} was accepted");
        }
    }
}
