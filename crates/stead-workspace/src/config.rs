//! `agent.yaml`: every key typed, unknown keys refused with their place.

use crate::{
    Approval, BudgetSettings, ClientToolSettings, CompactionSettings, DisabledFeatures,
    ExecuteSettings, Finding, MemorySettings, OffloadSettings, PlanSettings, Policy, QueueSettings,
    SearchSettings, SettingsDocument, Surface, UndoSettings,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use stead_core::{AgentId, PermissionMode, Price};
use stead_model::ModelSettings;
use stead_place::{FilesystemMode, FilesystemSettings, SessionSettings};
use stead_shell::CommandRules;
use stead_vfs::{CheckedRule, Rule};

/// The settings of an agent. All are optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentConfig {
    /// The agent's id; its sessions lie under `agents/<name>/`. Default `main`.
    #[schemars(with = "Option<String>")]
    pub name: Option<AgentId>,
    /// What it is for, in a line.
    pub description: Option<String>,
    /// The model: `provider:model`, or a map of settings with `name:`, or with `provider:` and
    /// `model:`.
    #[serde(deserialize_with = "model")]
    #[schemars(with = "Option<ModelNameOrSettings>")]
    pub model: Option<ModelSettings>,
    /// Bounds of a run.
    pub policy: Policy,
    /// Dollars per million tokens by `provider:model`, over the built-in table.
    pub prices: BTreeMap<String, Price>,
    /// Tools whose calls wait for a person: `write_file: true`, or a map that says when, how and by
    /// whom.
    pub approvals: BTreeMap<String, Approval>,
    /// Tools that whoever runs the agent carries out: their calls wait, and `respond` gives the
    /// result.
    pub client_tools: Vec<ClientToolSettings>,
    /// How freely it may act: `default`, `accept_edits`, `explore`, `dont_ask` or `bypass`.
    pub permission_mode: PermissionMode,
    /// Which commands may run, must be asked about, or never run.
    pub commands: CommandRules,
    /// Where plans lie.
    pub plan: PlanSettings,
    /// Where the tree lies.
    pub filesystem: FilesystemSettings,
    /// Where sessions are kept, if not with the tree.
    pub sessions: SessionSettings,
    /// How long, and in how much space, it is kept what runs changed.
    pub undo: UndoSettings,
    /// Which files may be read and written; the first rule that covers a path decides.
    #[serde(deserialize_with = "permissions")]
    #[schemars(with = "Vec<Rule>")]
    pub permissions: Vec<CheckedRule>,
    /// What becomes of messages that come while a run goes on.
    pub queue: QueueSettings,
    /// Said first in the prompt, before everything that is read from files.
    pub system_prompt: Option<String>,
    /// Files that are shown whole in the prompt, beside `AGENTS.md`.
    pub context_files: Vec<String>,
    /// Which skills there are, and how the model is told of them.
    pub skills: SkillSettings,
    /// What is remembered across sessions.
    pub memory: MemorySettings,
    /// How memory and sessions are searched.
    pub search: SearchSettings,
    /// When the context is full, and what is left out then.
    pub compaction: CompactionSettings,
    /// The most that may be spent.
    pub budget: BudgetSettings,
    /// When a text is too long for the conversation and goes to a file.
    pub offload: OffloadSettings,
    /// What commands are given.
    pub execute: ExecuteSettings,
    /// How tools are named to the model; left out, the layout decides.
    pub surface: Option<Surface>,
    /// The time zone of its dates and schedules, by its IANA name: `Europe/Paris`. Default: the
    /// machine's.
    pub timezone: Option<String>,
    /// Parts of the harness that are switched off.
    pub disable: DisabledFeatures,
    /// Values that came from `${VAR}`, to be kept out of journals and logs.
    #[serde(skip)]
    pub secrets: Vec<String>,
    /// Variables of the workspace's own `.env`.
    #[serde(skip)]
    pub variables: BTreeMap<String, String>,
}

/// Which skills there are, and how the model is told of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SkillSettings {
    /// `catalogue` (names and descriptions; default) or `full` (whole bodies). Left out, the layout
    /// decides.
    pub mode: Option<SkillMode>,
    /// More folders of skills in the workspace, later ones going before earlier ones.
    pub dirs: Vec<String>,
}

/// How the model is told of skills.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillMode {
    /// Names and descriptions; bodies on demand.
    #[default]
    Catalogue,
    /// Whole bodies.
    Full,
}

impl AgentConfig {
    /// Parses `agent.yaml`, taking variables from `lookup`.
    pub fn parse(
        text: &str,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Vec<Finding>> {
        let mut document =
            SettingsDocument::parse_yaml("agent.yaml", text).map_err(|finding| vec![finding])?;
        let (secrets, missing) = document.resolve_variables(lookup);
        if !missing.is_empty() {
            return Err(missing);
        }
        let config = Self::from_document(&document).map_err(|finding| vec![finding])?;
        Ok(Self { secrets, ..config })
    }

    /// The settings in `document`, into which variables were put.
    pub fn from_document(document: &SettingsDocument) -> Result<Self, Finding> {
        let mut config: Self = document.deserialize_into()?;
        let joined = config
            .model
            .take()
            .map(ModelSettings::with_joined_name)
            .transpose();
        config.model = joined.map_err(|(key, message)| {
            document.error(&format!("model.{key}"), format!("model.{key}: {message}"))
        })?;
        match config.problem() {
            Some((key, message)) => Err(document.error(&key, message)),
            None => Ok(config),
        }
    }

    /// The agent's id.
    pub fn agent_id(&self) -> AgentId {
        self.name.clone().unwrap_or_else(AgentId::main)
    }

    /// What is wrong with the settings as a whole, and the key it is about.
    pub(crate) fn problem(&self) -> Option<(String, String)> {
        let zero = [
            (self.policy.max_steps == 0, "policy.max_steps"),
            (
                self.policy.run_timeout_seconds == 0,
                "policy.run_timeout_seconds",
            ),
            (
                self.policy.tool_timeout_seconds == 0,
                "policy.tool_timeout_seconds",
            ),
            (
                self.policy.parallel_tool_calls == 0,
                "policy.parallel_tool_calls",
            ),
            (
                self.policy.max_concurrent_subagents == 0,
                "policy.max_concurrent_subagents",
            ),
            (
                self.policy.subagent_timeout_seconds == 0,
                "policy.subagent_timeout_seconds",
            ),
        ];
        if let Some((_, key)) = zero.into_iter().find(|(is_zero, _)| *is_zero) {
            return Some((key.to_owned(), format!("{key} must be at least 1")));
        }
        let found = |(key, message): (&str, String)| (key.to_owned(), message);
        if let Some(message) = self.timezone.as_deref().and_then(timezone_problem) {
            return Some(found(("timezone", message)));
        }
        if let Some(problem) = self.filesystem.problem() {
            return Some(found(problem));
        }
        if self.sessions.url.is_some() && self.filesystem.mode == FilesystemMode::Local {
            return Some(found((
                "sessions.url",
                "sessions.url has no meaning with filesystem.mode: local".to_owned(),
            )));
        }
        let side = [
            ("compaction.model", &self.compaction.model),
            ("memory.model", &self.memory.model),
        ];
        for (key, name) in side {
            if let Some(Err(error)) = name.as_deref().map(stead_model::check_name) {
                return Some((key.to_owned(), format!("{key}: {error}")));
            }
        }
        if let Some(problem) = self.search.problem() {
            return Some(found(problem));
        }
        if let Some(problem) = self.compaction.problem().or_else(|| self.memory.problem()) {
            return Some(found(problem));
        }
        if let Some(problem) = self.budget.problem(&self.disable) {
            return Some(problem);
        }
        if let Some(problem) = self
            .offload
            .problem()
            .or_else(|| self.plan.problem())
            .or_else(|| self.queue.problem())
        {
            return Some(found(problem));
        }
        if let Some(problem) = self
            .approvals
            .iter()
            .find_map(|(tool, approval)| approval.problem(tool))
        {
            return Some(problem);
        }
        if let Some(problem) = self.execute.problem() {
            return Some(problem);
        }
        if let Some(problem) = ClientToolSettings::problem(&self.client_tools) {
            return Some(problem);
        }
        let Policy {
            repeat_nudge,
            repeat_end,
            ..
        } = self.policy;
        if repeat_end > 0 && repeat_nudge > repeat_end {
            let message = "policy.repeat_nudge must not be more than policy.repeat_end".to_owned();
            return Some(found(("policy.repeat_nudge", message)));
        }
        self.price_problem()
    }

    fn price_problem(&self) -> Option<(String, String)> {
        let own = self
            .model
            .iter()
            .filter_map(|model| Some(("model.price".to_owned(), model.price.as_ref()?)));
        let set = self
            .prices
            .iter()
            .map(|(name, price)| (format!("prices.{name}"), price));
        let amounts = |price: &Price| {
            [
                Some(price.input),
                Some(price.output),
                price.cache_read,
                price.cache_write,
            ]
        };
        let wrong = |price: &Price| {
            amounts(price)
                .into_iter()
                .flatten()
                .any(|amount| !amount.is_finite() || amount < 0.0)
        };
        let (key, _) = own.chain(set).find(|(_, price)| wrong(price))?;
        let message = format!("{key} must be 0 or more");
        Some((key, message))
    }
}

/// What is wrong with the name of a time zone, if it is none.
pub(crate) fn timezone_problem(name: &str) -> Option<String> {
    if jiff::tz::TimeZone::get(name).is_ok() {
        return None;
    }
    let zones: Vec<String> = jiff::tz::db()
        .available()
        .map(|zone| zone.to_string())
        .collect();
    let known: Vec<&str> = zones.iter().map(String::as_str).collect();
    let hint = crate::closest_name(name, &known)
        .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Some(format!(
        "timezone: there is no time zone {name:?}; IANA names are needed, such as Europe/Paris{hint}"
    ))
}

/// What `model:` takes.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum ModelNameOrSettings {
    /// `provider:model`.
    Name(String),
    /// A map with `name:`.
    Settings(Box<ModelSettings>),
}

fn model<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ModelSettings>, D::Error> {
    struct ModelVisitor;
    impl<'de> serde::de::Visitor<'de> for ModelVisitor {
        type Value = Option<ModelSettings>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("`provider:model`, or a map with `name:`, or with `provider:` and `model:`")
        }
        fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
            Ok(Some(ModelSettings {
                name: name.to_owned(),
                ..ModelSettings::default()
            }))
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
    deserializer.deserialize_any(ModelVisitor)
}

/// Reads and compiles rule by rule, so that an invalid one is reported at its position in the file.
fn permissions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<CheckedRule>, D::Error> {
    struct RuleSeed(usize);
    impl<'de> serde::de::DeserializeSeed<'de> for RuleSeed {
        type Value = CheckedRule;
        fn deserialize<D: Deserializer<'de>>(
            self,
            deserializer: D,
        ) -> Result<CheckedRule, D::Error> {
            let rule = Rule::deserialize(deserializer)?;
            CheckedRule::new(self.0, rule).map_err(serde::de::Error::custom)
        }
    }
    struct RulesVisitor;
    impl<'de> serde::de::Visitor<'de> for RulesVisitor {
        type Value = Vec<CheckedRule>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of rules, each with `operations`, `paths` and `mode`")
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(
            self,
            mut list: A,
        ) -> Result<Self::Value, A::Error> {
            let mut rules: Vec<CheckedRule> = Vec::new();
            while let Some(rule) = list.next_element_seed(RuleSeed(rules.len()))? {
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
    deserializer.deserialize_any(RulesVisitor)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let set =
            parse("memory: {flush: false, model: 'openai:gpt-5-mini', consolidate_minutes: 0}")
                .unwrap()
                .memory;
        let want = MemorySettings {
            flush: Some(false),
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
                "agent.yaml:2:3: memory.model: \"gpt\" is no model name",
            ),
            ("memory:\n  flsh: true", "agent.yaml:2:3: "),
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
}
